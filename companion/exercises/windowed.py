"""Exercises of the page on windowed attention."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from companion.exercises.exercise import Case, Exercises, slope
from companion.tasks.synthetic import planted_facts
from companion.tasks.task import learn
from lib.data.batch import EncodedDocument, make_batch
from lib.data.vocabulary import SLIDE
from lib.models.windowed import Windowed, WindowedConfig
from lib.papers.windowed.windows import mark_transitions

WINDOW, STRIDE = 8, 6
PAGE = Exercises()
check, grade, progress = PAGE.check, PAGE.grade, PAGE.progress


def small_windowed(vocab_size: int = 30, width: int = 6, **changes) -> Windowed:
    """With random weights."""
    torch.manual_seed(0)
    sizes = {"embedding": width, "hidden": width, "window": WINDOW, "stride": STRIDE}
    return Windowed(WindowedConfig(vocab_size, **{**sizes, **changes}))


def _of_three_windows() -> tuple:
    """A model, a text of three windows, its encoding and the decoder's output."""
    facts = planted_facts(1, 0, windows=3, window=WINDOW, step=STRIDE, words=2, vocab_size=30)
    batch = make_batch(facts, 30)
    model = small_windowed().double().requires_grad_(False)
    state = model.encode(batch)
    return model, batch, state, model.decode(batch.target_input, state)[0]


@PAGE.cases(1, points=2, shown=2)
def windows_of_words() -> Iterator[Case]:
    for windows in ([0, 0, 1], [1, 1, 2], [0, 2, 2], [3, 3, 5]):  # of three sentences
        document = EncodedDocument.of("", [9], [1], [10, 11, 12, 13])
        marked = mark_transitions(document, np.array([1, 2, 1]), windows).target.tolist()
        first, second, third = (window + 1 for window in windows)  # a page counts from 1
        yield Case(f"sentences of the windows {[first, second, third]}", (marked,), [first, second, second, third])


@PAGE.cases(2, points=2)
def attention_in_window() -> Iterator[Case]:
    model, batch, state, output = _of_three_windows()
    first = state.hidden[None], state.cell[None]
    s, h = model.decoder(model.embedding(batch.target_input), first)[0][0], state.words[0]
    for t in (0, 2, 3, len(s) - 1):
        yield Case(f"step {t}", (s[t], h, int(output.windows[0, t]) + 1, WINDOW, STRIDE), output.copy[0, t])


@PAGE.cases(3, points=2, shown=2)
def words_in_reach() -> Iterator[Case]:
    model, batch, state, _ = _of_three_windows()
    words = batch.source.shape[1]
    for ids in ([9, 10, SLIDE, 11], [9, 9], [SLIDE] * 5, [9, SLIDE, SLIDE, 10], [9, 10, 11, SLIDE]):
        weights = model.decode(torch.tensor([ids]), state)[0].copy[0].sum(0)
        sizes = (words, WINDOW, STRIDE)
        yield Case(f"{ids.count(SLIDE)} symbols, {words} words", (ids, *sizes), int(weights.nonzero().max()) + 1)


ALPHA = torch.tensor([0.05, 0.3, 0.1, 0.25, 0.1, 0.2]).double()
PLACES = {
    "two places": (ALPHA, torch.tensor([0.0, 1, 0, 0, 1, 0]).double()),
    "one place": (ALPHA, torch.tensor([0.0, 0, 0, 1, 0, 0]).double()),
}


@PAGE.exercise(4, points=3, cases=PLACES)
def push_on_the_scores(alpha: Tensor, here: Tensor) -> Tensor:
    return slope(lambda scores: (scores.softmax(0) @ here).log(), alpha.log())


@PAGE.prediction(5, points=3)
def same_when_streamed() -> dict[str, bool]:
    model, batch, state, _ = _of_three_windows()
    streamed = Windowed(replace(model.config, encode="stream")).double()
    streamed.load_state_dict(model.state_dict())
    same = {}
    for what, window in (("window 2", 1), ("the last window", 2)):
        states = streamed.decode(torch.tensor([[SLIDE] * window]), streamed.encode(batch))[1].held[0][0]
        whole = state.words[0, window * STRIDE : window * STRIDE + WINDOW]
        for half, a, b in zip(("forward", "backward"), states.chunk(2, 1), whole.chunk(2, 1)):
            same[f"{half}, {what}"] = torch.allclose(a, b)
    return same


@PAGE.prediction(6, points=3)
def smaller_loss_of_facts() -> dict[str, str]:
    box, loss = {"windows": 3, "window": 10, "step": 8, "words": 2, "vocab_size": 20}, {}
    for window, stride in ((None, None), (10, 8), (3, 3)):
        model = small_windowed(20, width=24, window=window, stride=stride)
        *batches, last = (make_batch(planted_facts(32, i, **box), 20) for i in range(51))
        loss[window] = learn(model, iter(batches), 1e-2).loss(last)["nll"].item()
    return {f"windows of {n}": "window" if loss[n] < loss[None] else "standard" for n in (10, 3)}
