"""The cases of the exercises of the page on windowed attention, and the reader's own model.

The solutions are on the page, below each exercise: `notebooks/windowed.py`.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache

import numpy as np
import torch
from torch import Tensor

from companion.exercises.exercise import Case, Exercises
from companion.pages.frames import Frames
from companion.pages.windowed import fact_frames
from companion.studies.marking import PATH, apply_rule
from companion.tasks.synthetic import planted_facts
from companion.tasks.task import learn
from companion.tasks.windows import (
    BATCH,
    RATE,
    STRIDE,
    VOCABULARY,
    WINDOW,
    WORDS,
    facts_in_place,
    learn_facts,
    share_in_place,
)
from lib.data.batch import EncodedDocument, make_batch
from lib.data.vocabulary import BOS, EOS, SLIDE
from lib.data.word_vectors import similarities
from lib.decoding.config import DecodeConfig
from lib.decoding.search import greedy_search
from lib.models.state import per_hypothesis
from lib.models.windowed import Windowed, WindowedConfig
from lib.papers.windowed.windows import mark_transitions

SIZES = {"window": 8, "stride": 6}
PAGE = Exercises()
check, grade, progress = PAGE.check, PAGE.grade, PAGE.progress


def small_windowed(vocab_size: int = 30, width: int = 6, **changes) -> Windowed:
    """With random weights."""
    torch.manual_seed(0)
    sizes = {"embedding": width, "hidden": width, **SIZES, **changes}
    return Windowed(WindowedConfig(vocab_size, **sizes))


@cache
def _of_three_windows() -> tuple:
    """A model, a text of three windows, its encoding and the decoder's output."""
    facts = planted_facts(1, 0, windows=3, window=8, step=6, words=2, vocab_size=30)
    batch = make_batch(facts, 30)
    model = small_windowed().double().requires_grad_(False)
    state = model.encode(batch)
    return model, batch, state, model.decode(batch.target_input, state)[0]


# ---------------------------------------------------------------------------------
# the own model


@PAGE.cases(1, points=3)
def linked_sentences() -> Iterator[Case]:
    random = np.random.default_rng(0)
    vectors = random.normal(size=(30, 5))
    for summary, source in (((2, 3), (4, 1, 5)), ((1,), (3, 3)), ((4, 2, 2), (6, 2, 1, 4))):
        parts = [[random.integers(5, 30, n) for n in lengths] for lengths in (summary, source)]
        flat = [
            (np.concatenate(part), np.array(lengths))
            for part, lengths in zip(parts, (summary, source))
        ]
        best = similarities(flat[0], flat[1], vectors).argmax(1).tolist()
        yield Case(f"{len(summary)} and {len(source)} sentences", (*parts, vectors), best)


@PAGE.cases(2, points=3)
def marked_summary() -> Iterator[Case]:
    sentences = [[10], [11, 12], [13]]
    for windows in ([1, 1, 2], [2, 2, 3], [1, 3, 2], [4, 1, 1]):
        document = EncodedDocument.of("", [9], [1], [10, 11, 12, 13])
        marks = np.maximum.accumulate(windows) - 1
        yield Case(
            f"windows {windows}",
            (sentences, windows),
            mark_transitions(document, np.array([1, 2, 1]), marks).target,
        )


@PAGE.cases(3, points=3)
def windows_of_steps() -> Iterator[Case]:
    model, _, state, _ = _of_three_windows()
    for inputs, before in (
        ([BOS, 9, SLIDE, 10], 1),
        ([SLIDE, SLIDE, 9, SLIDE], 1),
        ([9, SLIDE], 2),
        ([SLIDE], 3),
    ):
        window = model.decode(
            torch.tensor([inputs]), state.replace(window=torch.tensor([before - 1]))
        )[0].windows[0]
        yield Case(f"{len(inputs)} inputs, window {before} before", (inputs, before, 3), window + 1)


@PAGE.cases(4, points=3)
def window_mask() -> Iterator[Case]:
    for windows, words in (([1, 2, 3], 20), ([1, 1], 20), ([3], 19), ([2, 4], 24)):
        places, numbers = torch.arange(words), torch.tensor(windows)
        mask = small_windowed()._in_window(places[None], numbers[None] - 1)[0]
        yield Case(
            f"windows {windows} of {words} words",
            (numbers, words, 8, 6),
            mask.int(),
            of=lambda m: m.int(),
        )


@PAGE.exercise(5, points=3, cases=[(0.4, 1.0), (0.4, 0.6), (0.0, 0.51), (0.9, 1.0), (0.2, 0.62)])
def decide(p_slide: float, stayed: float) -> list[float]:
    stayed *= 1 - p_slide
    return [1.0, 1.0] if stayed < 0.5 else [0.0, stayed]


def _marked_by(
    link: Callable, mark: Callable, document: EncodedDocument, vectors: np.ndarray
) -> EncodedDocument:
    """Mark a summary of facts without symbols: link each fact to the piece of the text that it was
    taken from."""
    words = document.target[(document.target != SLIDE) & (document.target != EOS)]
    facts = [list(map(int, words[i : i + WORDS])) for i in range(0, len(words), WORDS)]
    pieces = [
        document.source[i : i + STRIDE].tolist()
        for i in range(0, len(document.source) - STRIDE + 1, STRIDE)
    ]
    windows = [int(place) + 1 for place in link(facts, pieces, vectors)]
    return replace(document, target=np.array([*mark(facts, windows), EOS], dtype=np.int32))


class OwnWindowed(Windowed):
    """A windowed model whose windows are those of a reader's functions."""

    functions: tuple[Callable, Callable]

    def _windows(self, tokens: Tensor, state) -> Tensor:
        last = per_hypothesis(state.last_window, len(tokens)) + 1
        rows = zip(tokens.tolist(), (state.window + 1).tolist(), last.tolist())
        return torch.tensor([list(map(int, self.functions[0](*row))) for row in rows]) - 1

    def _in_window(self, places: Tensor, windows: Tensor) -> Tensor:
        sizes = int(places.max()) + 1, self.config.window, self.config.stride
        masks = torch.stack(
            [torch.as_tensor(self.functions[1](row + 1, *sizes)).bool() for row in windows]
        )
        return masks.gather(2, places[:, None].expand(-1, windows.shape[1], -1))


@torch.no_grad()
def _write(
    model: Windowed, document: EncodedDocument, decide: Callable, max_length: int
) -> list[int]:
    """Decide before each word whether to slide; then take the most probable word."""
    state, ids, stayed = model.encode(make_batch([document], VOCABULARY)), [BOS], 1.0
    while ids[-1] != EOS and len(ids) <= max_length:
        output, state = model.decode(torch.tensor([ids[-1:]]), state)
        p = model.distribution(output, state, 0)[0]
        slides, stayed = decide(float(p[SLIDE]), stayed)
        p[SLIDE] = 0
        ids.append(SLIDE if slides else int(p.argmax()))
    return [i for i in ids[1:] if i != EOS]


def own_model(
    link: Callable,
    mark: Callable,
    slide: Callable,
    mask: Callable,
    decide: Callable,
    steps: int = 200,
) -> Frames | None:
    """Train a model of a reader's five functions on facts, print how many it writes beside the
    library's, and show how. Prints what is missing where a function is not right yet."""
    if not PAGE.ready(1, 2, 3, 4, 5):
        return None
    vectors = np.eye(VOCABULARY)
    torch.manual_seed(0)
    model = OwnWindowed(WindowedConfig(VOCABULARY, 32, 32, window=WINDOW, stride=STRIDE))
    model.functions = slide, mask
    made = (planted_facts(BATCH, 1000 + i, 2 + i % 5) for i in range(steps))
    batches = ([_marked_by(link, mark, document, vectors) for document in texts] for texts in made)
    learn(model, (make_batch(texts, VOCABULARY) for texts in batches), RATE)
    texts, library = planted_facts(20, 1, 6), learn_facts("windows", 0, steps).eval()
    true = [facts_in_place(document.target[:-1]) for document in texts]
    ours = [facts_in_place(_write(model.eval(), document, decide, 36)) for document in texts]
    found = greedy_search(library, make_batch(texts, VOCABULARY), DecodeConfig(max_length=36))
    theirs = [facts_in_place(hypothesis.ids) for hypothesis in found]
    shares = [f"{share_in_place(facts, true):.0%}" for facts in (ours, theirs)]
    print(f"Your model writes {shares[0]} of the facts in their places, the library's {shares[1]}.")
    (shown,) = planted_facts(1, 7, 3)
    return fact_frames(model, shown, _write(model, shown, decide, 18))


# ---------------------------------------------------------------------------------
# exercises


@PAGE.cases(6, points=2)
def attention_in_window() -> Iterator[Case]:
    model, batch, state, output = _of_three_windows()
    first = state.hidden[None], state.cell[None]
    s, h = model.decoder(model.embedding(batch.target_input), first)[0][0], state.words[0]
    for t in (0, 2, 3, len(s) - 1):
        yield Case(f"step {t}", (s[t], h, int(output.windows[0, t]) + 1, 8, 6), output.copy[0, t])


@PAGE.cases(7, points=4)
def best_path() -> Iterator[Case]:
    for seed, (sentences, windows) in enumerate(((3, 2), (4, 3), (1, 3), (7, 5), (5, 4))):
        scores = np.random.default_rng(seed).random((sentences, windows)).round(2)
        path = apply_rule(PATH, scores, np.arange(windows)) + 1
        yield Case(f"{sentences} sentences, {windows} windows", (scores,), path)


@PAGE.cases(8, points=3)
def smaller_loss_of_facts() -> Iterator[Case]:
    yield Case("all three", (), _smaller_losses())


@cache
def _smaller_losses() -> list[str]:
    """Train on the same texts: windows of 10, windows of 3, windows of 10 that never slide, and no
    window."""
    box, loss = {"windows": 3, "window": 10, "step": 8, "words": 2, "vocab_size": 20}, []
    for window, stride, slides in ((None, None, True), (10, 8, True), (3, 3, True), (10, 8, False)):
        model = small_windowed(20, width=24, window=window, stride=stride)
        if not slides:
            model._windows = lambda tokens, state: torch.zeros_like(tokens)
        *batches, last = (make_batch(planted_facts(32, i, **box), 20) for i in range(51))
        loss.append(learn(model, iter(batches), 1e-2).loss(last)["nll"].item())
    standard, *others = loss
    return ["window" if other < standard else "standard" for other in others]
