"""Facts in a long text: read through windows that slide, or by attention to everything."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import cache, partial
from typing import Literal

import numpy as np
import torch

from companion.tasks.synthetic import planted_facts
from companion.tasks.task import Task, learn
from lib.data.batch import EncodedDocument, make_batch
from lib.data.vocabulary import SLIDE
from lib.decoding.config import DecodeConfig
from lib.decoding.search import beam_search
from lib.models.changes import configured, hooks, replaced
from lib.models.windowed import Windowed, WindowedConfig, count_windows

# ids; words of a window, from one to the next, of a fact
VOCABULARY, WINDOW, STRIDE, WORDS = 60, 20, 16, 4
TESTED = {2: 50, 6: 50, 12: 50, 300: 5}  # windows of a text: how many texts of that length are read
BATCH, RATE = 16, 5e-3
STEPS = 400  # of models that read chunks

Facts = list[list[int]]


def small_model(
    seed: int, encode: Literal["whole", "stream"] = "whole", window: int | None = WINDOW
) -> Windowed:
    """Make a model of width 64 with random weights; without a window it attends to everything."""
    torch.manual_seed(seed)
    stride = window and STRIDE
    return Windowed(WindowedConfig(VOCABULARY, 32, 32, window=window, stride=stride, encode=encode))


def written_for(
    model: Windowed, documents: Sequence[EncodedDocument], max_length: int
) -> list[list[int]]:
    """Summarize documents with a beam of two: ids without [EOS]."""
    config = DecodeConfig(beam=2, min_length=0, max_length=max_length)
    return [
        best.ids
        for best, *_ in beam_search(model.eval(), make_batch(documents, VOCABULARY), config)
    ]


def facts_in_place(ids: Sequence[int] | np.ndarray, symbols: bool = True) -> Facts:
    """Split a summary into facts at the symbols, or into every four words."""
    if not symbols:
        return [list(ids[i : i + WORDS]) for i in range(0, len(ids), WORDS)]
    parts = np.split(np.array(ids), np.flatnonzero(np.array(ids) == SLIDE))
    return [part[part != SLIDE].tolist() for part in parts]


def share_in_place(texts: Sequence[Facts], true: Sequence[Facts]) -> float:
    """Compute the share of the true facts that are written in their place."""
    right = [
        ours[i : i + 1] == [fact]
        for ours, facts in zip(texts, true)
        for i, fact in enumerate(facts)
    ]
    return float(np.mean(right))


# ---------------------------------------------------------------------------------
# longer texts than in training


def learn_facts(mode: str, seed: int, steps: int = 200) -> Windowed:
    """Train a model on new texts of two to six windows at every step. "standard" attends to
    everything and has three times the steps; "windows" encodes the whole text; "streamed" encodes
    each window when it is entered."""
    standard = mode == "standard"
    model = small_model(
        seed, "stream" if mode == "streamed" else "whole", None if standard else WINDOW
    )
    made = (
        planted_facts(BATCH, 1000 * (seed + 1) + i, 2 + i % 5)
        for i in range(3 * steps if standard else steps)
    )
    batches = (
        make_batch(list(map(_unmarked, docs)) if standard else docs, VOCABULARY) for docs in made
    )
    return learn(model, batches, RATE)


def _unmarked(document: EncodedDocument) -> EncodedDocument:
    return replace(document, target=document.target[document.target != SLIDE])


def _by_length(mode: str, seed: int) -> dict[str, float]:
    """Measure the share of facts that are written in their place, at each length."""
    model, measures = learn_facts(mode, seed), {}
    for windows, count in TESTED.items():
        documents = planted_facts(count, 1, windows)
        texts, targets = (
            written_for(model, documents, 6 * windows),
            [d.target[:-1] for d in documents],
        )
        facts = [facts_in_place(ids, symbols=mode != "standard") for ids in texts]
        measures[f"facts of {windows}"] = share_in_place(facts, list(map(facts_in_place, targets)))
    return measures


# ---------------------------------------------------------------------------------
# parts left out


@contextmanager
def _attend_to_all(model: Windowed) -> Iterator[None]:
    """Attend to the whole text. Windows are counted, so that slide symbols can be written."""
    sizes = model.config.window, model.config.stride
    last_window = lambda lengths: count_windows(lengths, *sizes) - 1  # noqa: E731
    with (
        configured(window=None, stride=None)(model),
        replaced(model, "_last_window", last_window),
    ):
        yield


def _stay(model: Windowed) -> AbstractContextManager:
    """Keep the window at the beginning of the text, whatever is written."""
    return replaced(model, "_windows", lambda tokens, state: torch.zeros_like(tokens))


def _fix_switch(score: float) -> Callable[[Windowed], AbstractContextManager]:
    return hooks(lambda switch: torch.full_like(switch, score), "switch")


LEFT_OUT: dict[str, Callable[[Windowed], AbstractContextManager]] = {  # changes of a model
    "nothing": nullcontext,
    "window": _attend_to_all,
    "sliding": _stay,
    "copying": _fix_switch(50.0),
    "generating": _fix_switch(-50.0),
}
_trained = cache(partial(learn_facts, "windows"))  # every part is taken from the same model


def _without(part: str, seed: int) -> dict[str, float]:
    """Leave out a part of a trained model with windows. Returns the shares of facts that it writes
    in their places, of texts whose first fact it writes, and of texts in which it writes a slide
    symbol."""
    model, documents = _trained(seed), planted_facts(50, 1, 6)
    with LEFT_OUT[part](model):
        texts = written_for(model, documents, 36)
    true = [facts_in_place(d.target[:-1]) for d in documents]
    return {
        "facts of 6": share_in_place(list(map(facts_in_place, texts)), true),
        "first fact": float(np.mean([ids[:WORDS] == facts[0] for ids, facts in zip(texts, true)])),
        "texts with symbols": float(np.mean([SLIDE in ids for ids in texts])),
    }


TASK = Task(
    "facts of a long text: windows that slide, attention to everything",
    {
        **{mode: partial(_by_length, mode) for mode in ("standard", "windows", "streamed")},
        **{f"windows without {part}": partial(_without, part) for part in LEFT_OUT},
    },
)
