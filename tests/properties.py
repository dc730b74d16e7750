"""What the files `test_properties_*.py` share: properties, and strategies for their examples.

A property is a test that must hold of every input. Examples are generated, always the same ones.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from lib.data.batch import EncodedDocument

FEW = settings(
    derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)


def holds(few: int, **examples: st.SearchStrategy) -> Callable[[Callable], Callable]:
    """Make a test of a property: it must hold of every example; so many are tried, always the same
    ones."""
    return lambda check: settings(FEW, max_examples=few)(given(**examples)(check))


# ---------------------------------------------------------------------------------
# numbers


@dataclass(frozen=True)
class Numbers:
    """Tensors that a seed determines. kind: "normal"; "equal", all the same; "steps", of a few
    whole numbers, so that many are equal; "extreme", -1e4, 0 and 1e4."""

    seed: int
    kind: str
    dtype: torch.dtype

    def __call__(self, *shapes: tuple[int, ...]) -> list[Tensor]:
        random = np.random.default_rng(self.seed)
        return [torch.from_numpy(self._values(random, shape)).to(self.dtype) for shape in shapes]

    def module(self, kind: Callable[..., Any], *sizes: Any, **options: Any) -> Any:
        """A layer, whose weights the seed determines too."""
        torch.manual_seed(self.seed)
        return kind(*sizes, **options).to(self.dtype)

    def _values(self, random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        if self.kind == "equal":
            return np.full(shape, random.normal())
        if self.kind == "normal":
            return random.normal(size=shape)
        return random.integers(-1, 2, shape) * (1e4 if self.kind == "extreme" else 1.0)


def numbers(*kinds: str) -> st.SearchStrategy[Numbers]:
    """kinds: some of those of `Numbers`; all of them, where none is named."""
    seeds, of_kind = (
        st.integers(0, 2**16),
        st.sampled_from(kinds or ("normal", "equal", "steps", "extreme")),
    )
    return st.builds(Numbers, seeds, of_kind, st.sampled_from([torch.float64, torch.float32]))


def lengths(least: int = 1, most: int = 9) -> st.SearchStrategy[list[int]]:
    """Lengths of one to three texts; one of them may be longer than a vector of the kernels."""
    return st.lists(
        st.one_of(st.integers(least, most), st.just(least), st.just(70)), min_size=1, max_size=3
    )


def mask_of(counts: list[int], padding: int = 0) -> Tensor:
    """[B, N]: true for the first of each text; `padding`: columns that no text has."""
    return torch.arange(max(1, *counts) + padding) < torch.tensor(counts)[:, None]


def with_gradients(
    function: Callable[..., Any],
    inputs: list[Tensor],
    slopes: list[Tensor],
    parameters: list[Tensor] | None = None,
) -> list[Tensor]:
    """What a function gives, and the gradients of the sum of its results times `slopes` in each
    input, and in `parameters`; 0 where it does not depend on one."""
    leaves = [x.clone().requires_grad_() for x in inputs]
    made, leaves = function(*leaves), leaves + (parameters or [])
    made = [made] if isinstance(made, Tensor) else list(made)
    total = torch.stack(
        [(x * slope.to(x.dtype)).sum() for x, slope in zip(made, slopes, strict=True)]
    ).sum()
    gradients = torch.autograd.grad(total, leaves, allow_unused=True)
    return [x.detach() for x in made] + [
        torch.zeros_like(x) if g is None else g for x, g in zip(leaves, gradients)
    ]


def slopes_for(*shapes: tuple[int, ...]) -> list[Tensor]:
    """Numbers from -1 to 1 of these shapes."""
    return [
        torch.linspace(-1, 1, max(1, int(np.prod(shape))))[: int(np.prod(shape))].view(shape)
        for shape in shapes
    ]


def near(ours: list[Tensor], exact: list[Tensor], scale: float = 1.0) -> None:
    """The same numbers up to what their precision rounds, `scale` times that of numbers of about 1.

    ours: in float32, whose tanh and exp are right to 5e-7, or float64; exact: in float64.
    """
    for number, (a, b) in enumerate(zip(ours, exact, strict=True)):
        unit = 1e-5 if a.dtype == torch.float32 else 1e-13
        assert a.shape == b.shape and torch.isfinite(a).all() and torch.isfinite(b).all(), number
        if a.numel():
            far, largest = (a.double() - b).abs().max().item(), b.abs().max().item()
            assert far <= unit * scale * (1 + largest), (number, far, largest)


# ---------------------------------------------------------------------------------
# documents


@st.composite
def documents(draw, vocab_size: int, unknown: int = 2, most: int = 6) -> list[EncodedDocument]:
    """One to four documents of a few sentences, with copy ids, and references of one to five words
    that end in [EOS]."""
    found = []
    for number in range(draw(st.integers(1, 4))):
        words = st.integers(4, vocab_size + draw(st.integers(0, unknown)) - 1)
        sentences = draw(
            st.lists(st.lists(words, min_size=1, max_size=most), min_size=1, max_size=4)
        )
        source, own = [], {}
        # copy ids in the order of the words
        for word in (word for sentence in sentences for word in sentence):
            source.append(
                own.setdefault(word, vocab_size + len(own)) if word >= vocab_size else word
            )
        names = [f"unknown {i}" for i in range(len(own))]
        target = draw(st.lists(st.integers(4, vocab_size + len(own) - 1), max_size=4))
        counts = [len(sentence) for sentence in sentences]
        found.append(
            EncodedDocument.of(f"document {number}", source, counts, [*target, 3], names, ["x ."])
        )
    return found


# ---------------------------------------------------------------------------------
# texts

# words and letters of many scripts; what cannot be seen, what is drawn as one, marks, digits,
# brackets, line ends
_WORDS = """a an The cat dogs ran. U.S. e.g. Dr. Fig. 3.14 1,000 don't state-of-the-art p53 β-catenin µm x² ½ naïve
    cafe\u0301 ĳ ﬁnd ﬀ Ａｂ１ \u00adsoft zero\u200bwidth İstanbul straße кошки не любят.
    Ελλάδα שָׁלוֹם مَرْحَبًا می\u200cخواهم
    हिन्दी क्षत्रिय ไทยกำลัง ລາວ မြန်မာ ខ្មែរ 猫は好き。 漢字 カタカナ 한국어 한 \u202e ①②
    <dig> <cit @xmath0 [EOS] [UNK] _ __ ... … !? “ ” ( ) [ ] { } - – — / % € 😀 👩\u200d👩\u200d👧 \ufeff""".split()  # noqa: SIM905
WORDS = st.sampled_from(_WORDS)
LETTERS = st.characters(exclude_categories=("Cs",), exclude_characters="\0")  # what no door lets in
SPACES = st.sampled_from([" ", "", "\n", " \n\n", "-\n", ".\n", ". ", "\t", "\r\n"])
TEXTS = st.one_of(
    st.lists(WORDS, max_size=12).map(" ".join),
    st.lists(st.tuples(WORDS, SPACES).map("".join), max_size=9).map("".join),
    st.text(LETTERS, max_size=20),
)


def without_space(text: str) -> str:
    return "".join(text.split())
