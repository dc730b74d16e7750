"""The cases of the exercises of the page Start here.

The solutions are on the page, below each exercise: `notebooks/start_here.py`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from companion.exercises.exercise import Case, Exercises
from companion.pages.frames import Frames
from companion.pages.steps import decoding_frames, pointer_steps
from companion.tasks.stories import (
    CONFIG,
    SUMMARY,
    TEXT,
    VOCABULARY,
    learned,
    story_of,
    unseen_stories,
)
from companion.tasks.synthetic import planted_sentences
from companion.tasks.task import learn
from lib.data.batch import Batch, in_vocabulary, make_batch
from lib.data.vocabulary import BOS, PAD
from lib.decoding.config import DecodeConfig
from lib.decoding.search import beam_search
from lib.evaluation.bootstrap import paired_bootstrap
from lib.layers.attention import Attention
from lib.layers.pointer import PointerOutput
from lib.models.seq2seq import RecurrentState, Seq2Seq, Seq2SeqConfig
from lib.models.state import per_document

_P = partial(torch.tensor, dtype=torch.float64)
PAGE = Exercises()
check, grade, progress = PAGE.check, PAGE.grade, PAGE.progress


# ---------------------------------------------------------------------------------
# the reader's model


@cache
def _of_two_texts() -> tuple[Batch, PointerOutput, Seq2Seq]:
    """Make a batch of two stories of different lengths, and a model with random weights; decode the
    batch with it."""
    torch.manual_seed(0)
    model = _Own(replace(CONFIG, embedding=8, hidden=12)).double().requires_grad_(False)
    batch = make_batch([story_of(TEXT[1:], SUMMARY), story_of(TEXT, SUMMARY)], len(VOCABULARY))
    return batch, model.decode(batch.target_input, model.encode(batch))[0], model


class _Own(Seq2Seq):
    """A pointer-generator without coverage, of the library's layers and a reader's functions;
    without these, of the library's."""

    functions: Sequence[Callable] = ()

    def __init__(self, config: Seq2SeqConfig):
        super().__init__(config)
        self.word_attention = Attention(config.hidden, config.hidden, config.hidden)

    def _attend(self, query: Tensor, state: RecurrentState) -> tuple:
        layer, of_documents = (
            self.word_attention,
            per_document(query, len(state.words)).flatten(1, 2),
        )
        queries = layer.project_queries(of_documents)  # [B, K * T, A]
        if self.functions:
            alpha = self.functions[0](queries, state.word_keys, layer.v.weight[0], state.word_mask)
        else:
            alpha = layer(queries, state.word_keys, state.word_mask)
        alpha, context = (x.reshape(*query.shape[:2], -1) for x in (alpha, alpha @ state.words))
        return alpha, None, alpha, context, state.coverage

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        if not self.functions:
            return super().loss(batch)
        _, copy_words, mix, loss_of = self.functions
        output = self.decode(batch.target_input, self.encode(batch))[0]
        P_g = self.pointer.vocabulary(output.features).softmax(-1)
        size = P_g.shape[-1] + max(map(len, batch.unknown))
        P = mix(output.switch.sigmoid(), P_g, copy_words(output.copy, batch.source_extended, size))
        return {"loss": loss_of(P, batch.target, batch.target_mask)}


@PAGE.cases(1, points=2)
def attend() -> Iterator[Case]:
    batch, output, model = _of_two_texts()
    layer, state = model.word_attention, model.encode(batch)
    hidden, _ = model.decoder(
        model.embedding(in_vocabulary(batch.target_input, len(VOCABULARY))), state.hidden[None]
    )
    queries = layer.project_queries(hidden)
    for b, what in enumerate(("a text with padding", "a text without")):
        given = (
            queries[b : b + 1],
            state.word_keys[b : b + 1],
            layer.v.weight[0],
            state.word_mask[b : b + 1],
        )
        yield Case(what, given, output.copy[b : b + 1])


@PAGE.cases(2, points=2)
def copy_words() -> Iterator[Case]:
    batch, output, _ = _of_two_texts()
    size = len(VOCABULARY) + 2
    for b in (1, 0):
        alpha, extended = output.copy[b : b + 1], batch.source_extended[b : b + 1]
        yield Case(
            f"text {b + 1}", (alpha, extended, size), alpha @ F.one_hot(extended, size).double()
        )


MIXED = {
    "two steps": (_P([[0.25, 1.0]]), _P([[[0.5, 0.5]] * 2]), _P([[[0.2, 0.0, 0.8]] * 2])),
    "one step": (_P([[0.5]]), _P([[[0.9, 0.1]]]), _P([[[0.0, 0.0, 0.7, 0.3]]])),
}


@PAGE.exercise(3, points=1, cases=MIXED)
def mix(p: Tensor, P_g: Tensor, P_c: Tensor) -> Tensor:
    rows = [
        p[0, t] * F.pad(P_g[0, t], (0, P_c.shape[2] - P_g.shape[2])) + (1 - p[0, t]) * P_c[0, t]
        for t in range(p.shape[1])
    ]
    return torch.stack(rows)[None]


@PAGE.cases(4, points=1)
def loss_of() -> Iterator[Case]:
    P = torch.rand(2, 3, 5, generator=torch.Generator().manual_seed(0)).double().softmax(-1)
    target, mask = (
        torch.tensor([[1, 4, 2], [3, 0, 0]]),
        torch.tensor([[True] * 3, [True, False, False]]),
    )
    whole, short = -P[0, [0, 1, 2], target[0]].log().mean(), -P[1, 0, 3].log()
    yield Case("a short and a long summary", (P, target, mask), (whole + short) / 2)
    yield Case("the short one", (P[1:], target[1:], mask[1:]), short)


def own_model(*functions: Callable, steps: int = 300) -> Frames | None:
    """Train a model of a reader's four functions on the page's stories, and show how it writes the
    summary of the page's text. Prints what is missing where a function is not right yet."""
    if not PAGE.ready(1, 2, 3, 4):
        return None
    model = learned(0, type("Own", (_Own,), {"functions": functions}), steps=steps)
    batch, unseen = make_batch([story_of(TEXT, SUMMARY)], len(VOCABULARY)), unseen_stories()
    config = DecodeConfig(beam=4, min_length=1, max_length=10, forbidden=(PAD, BOS))
    written = beam_search(model, make_batch(unseen, len(VOCABULARY)), config)
    right = sum(best.ids == d.target[:-1].tolist() for (best, *_), d in zip(written, unseen))
    print(f"Your model writes {right} of {len(unseen)} new summaries right to the last word.")
    with torch.no_grad():
        output, _ = model.decode(batch.target_input, model.encode(batch))
    words = [*VOCABULARY.words, *batch.unknown[0]]
    steps_of = pointer_steps(
        model.pointer, output, batch.target[0].tolist(), words, ("generate", "copy", "both")
    )
    return decoding_frames([sentence.split() for sentence in TEXT], steps_of)


# ---------------------------------------------------------------------------------
# exercises

Chain = Mapping[str, Mapping[str, float]]  # by the word before, "" at the beginning
END = {"[EOS]": 1.0}
TABLE: Chain = {
    "": {"zebra": 0.6, "cat": 0.4},
    "zebra": {"ran": 0.52, "saw": 0.48},
    "cat": {"slept": 0.9, "ran": 0.1},
    **dict.fromkeys(("ran", "saw", "slept"), END),
}
CATS: Chain = {
    "": {"cats": 0.9, "dogs": 0.1},
    "cats": {"[EOS]": 0.5, "sleep": 0.3, "run": 0.2},
    "dogs": {"sleep": 0.5, "run": 0.5},
    "sleep": {"and": 0.6, "[EOS]": 0.4},
    "run": {"and": 0.7, "[EOS]": 0.3},
    **{"and": {"eat": 1.0}, "eat": END},
}
LATE_CATS: Chain = CATS | {
    "cats": {"sleep": 0.7, "[EOS]": 0.3},
    "sleep": {"and": 0.9, "[EOS]": 0.1},
}


BEAMS = (  # the size of the beam, the most symbols, and the best summary that such a beam finds
    (CATS, 3, 5, "cats [EOS]"),
    (TABLE, 2, 3, "cat slept [EOS]"),
    (TABLE, 1, 3, "zebra ran [EOS]"),
    (LATE_CATS, 3, 5, "cats sleep and eat [EOS]"),
)


@PAGE.cases(5, points=2, shown=len(BEAMS))
def best_of_beam() -> Iterator[Case]:
    for number, (chain, K, most, best) in enumerate(BEAMS, start=1):

        def next_words(words: list[str], chain=chain) -> Mapping[str, float]:
            return chain.get(words[-1] if words else "", {})

        yield Case(f"model {number}, a beam of {K}", (next_words, K, most), best.split())


@PAGE.exercise(6, points=3, shown=2, cases=[(7, 5), (3, 5), (20, 4), (1, 6), (9, 9)])
def extremes_of_coverage_loss(T: int, N: int) -> list[float]:
    everywhere = torch.full((T, N), 1 / N)
    in_turn = torch.eye(N)[torch.arange(T) % N]  # each word once before any word twice
    return [
        torch.minimum(alphas, alphas.cumsum(0) - alphas).sum().item()
        for alphas in (everywhere, in_turn)
    ]


@PAGE.exercise(
    7, points=3, cases=[(0.3, 0.8, 0.2), (0.5, 0.0, 0.4), (0.9, 0.3, 0.3), (0.01, 0.5, 0.001)]
)
def push_on_the_switch(p: float, P_g: float, P_c: float) -> Tensor:
    score = _P(p).logit().requires_grad_()
    P = score.sigmoid() * P_g + (1 - score.sigmoid()) * P_c
    return torch.autograd.grad(P.log(), score)[0]


@PAGE.prediction(8, points=3)
def shown_by_intervals() -> dict[str, bool]:
    random = np.random.default_rng(0)
    first = random.normal(40, 8, 60)
    second = first + random.normal(1, 1, 60)
    real = {}
    for what, scores in (("as they are", second), ("sorted by mistake", np.sort(second))):
        apart = [scores[random.integers(0, 60, (2000, 60))].mean(1) for scores in (first, scores)]
        low, high = np.percentile(apart[1] - apart[0], [2.5, 97.5])
        real[f"paired, {what}"] = bool(paired_bootstrap(first, scores).is_real)
        real[f"unpaired, {what}"] = bool(low > 0 or high < 0)
    return real


@PAGE.prediction(9, points=3)
@cache
def smaller_loss_and_better_summary() -> dict[str, str]:
    """Compare two models on summaries whose words the vocabulary lacks: by the loss, and by the
    mean probability of their first words (by their own ids, not as [UNK])."""
    loss, first = {}, {}
    for name in ("plain", "pointer"):
        torch.manual_seed(0)
        model = Seq2Seq(
            Seq2SeqConfig(6, embedding=8, hidden=16, bottleneck=8, copy=name == "pointer")
        )
        *batches, last = (
            make_batch(planted_sentences(16, step, 3, 4, 1, 20), 6) for step in range(31)
        )
        loss[name] = learn(model, iter(batches), 1e-2).loss(last)["loss"].item()
        P = model.distribution(
            *model.decode(last.target_input[:, :1], model.encode(last)), extra=14
        )
        first[name] = P.gather(1, last.target[:, :1]).mean().item()
    return {
        "the loss": min(loss, key=loss.__getitem__),
        "the summary": max(first, key=first.__getitem__),
    }
