"""Facts in a long text: read through windows that slide, by attention to everything, or in chunks that are summarized
one by one and put together."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Literal
from unittest.mock import patch

import numpy as np
import torch

from companion.tasks.synthetic import FACT, planted_facts
from companion.tasks.task import Task, learn
from lib.data.batch import Batch, EncodedDocument, make_batch
from lib.data.vocabulary import EOS, SLIDE
from lib.decoding.search import DecodeConfig, beam_search
from lib.evaluation.interventions import configured, hooks
from lib.models.windowed import Windowed, WindowedConfig, count_windows

VOCABULARY, WINDOW, STRIDE, WORDS = 60, 20, 16, 4  # ids; words of a window, from one to the next, of a fact
TESTED = {2: 50, 6: 50, 12: 50, 300: 5}  # windows of a text: how many texts of that length are read
BATCH, RATE = 16, 5e-3
STEPS = 400  # of models that read chunks

Facts = list[list[int]]


def small_model(seed: int, encode: Literal["whole", "stream"] = "whole", window: int | None = WINDOW) -> Windowed:
    """A model of width 64 with random weights; without a window it attends to everything."""
    torch.manual_seed(seed)
    stride = window and STRIDE
    return Windowed(WindowedConfig(VOCABULARY, 32, 32, window=window, stride=stride, encode=encode))


def written_for(model: Windowed, documents: Sequence[EncodedDocument], max_length: int) -> list[list[int]]:
    """Summarize documents with a beam of two: ids without [EOS]."""
    config = DecodeConfig(beam=2, min_length=0, max_length=max_length)
    return [best.ids for best, *_ in beam_search(model.eval(), make_batch(documents, VOCABULARY), config)]


def facts_in_place(ids: Sequence[int] | np.ndarray, symbols: bool = True) -> Facts:
    """Split a summary into facts at the symbols, or into every four words."""
    if not symbols:
        return [list(ids[i : i + WORDS]) for i in range(0, len(ids), WORDS)]
    parts = np.split(np.array(ids), np.flatnonzero(np.array(ids) == SLIDE))
    return [part[part != SLIDE].tolist() for part in parts]


def share_in_place(texts: Sequence[Facts], true: Sequence[Facts]) -> float:
    """The share of the true facts that are written, each in its place."""
    right = [ours[i : i + 1] == [fact] for ours, facts in zip(texts, true) for i, fact in enumerate(facts)]
    return float(np.mean(right))


# ------------------------------------------------------------------------------------- longer texts than in training


def learn_facts(mode: str, seed: int, steps: int = 200) -> Windowed:
    """Train a model on new texts of two to six windows at every step: "standard" attends to everything and has three
    times the steps, "windows" encodes the whole text, "streamed" each window when it is entered."""
    standard = mode == "standard"
    model = small_model(seed, "stream" if mode == "streamed" else "whole", None if standard else WINDOW)
    made = (planted_facts(BATCH, 1000 * (seed + 1) + i, 2 + i % 5) for i in range(3 * steps if standard else steps))
    batches = (make_batch(list(map(_unmarked, docs)) if standard else docs, VOCABULARY) for docs in made)
    return learn(model, batches, RATE)


def _unmarked(document: EncodedDocument) -> EncodedDocument:
    return replace(document, target=document.target[document.target != SLIDE])


def _by_length(mode: str, seed: int) -> dict[str, float]:
    """Facts that are written in their place, at each length."""
    model, measures = learn_facts(mode, seed), {}
    for windows, count in TESTED.items():
        documents = planted_facts(count, 1, windows)
        texts, targets = written_for(model, documents, 6 * windows), [d.target[:-1] for d in documents]
        facts = [facts_in_place(ids, symbols=mode != "standard") for ids in texts]
        measures[f"facts of {windows}"] = share_in_place(facts, list(map(facts_in_place, targets)))
    return measures


# ---------------------------------------------------------------------------------------------- parts left out


@contextmanager
def _attend_to_all(model: Windowed) -> Iterator[None]:
    """Attention to the whole text. Windows are counted, so that symbols can be written."""
    sizes = model.config.window, model.config.stride
    last_window = lambda lengths: count_windows(lengths, *sizes) - 1  # noqa: E731
    with configured(window=None, stride=None)(model), patch.object(model, "_last_window", last_window):
        yield


def _stay(model: Windowed) -> AbstractContextManager:
    """The window never leaves the beginning of the text, whatever is written."""
    return patch.object(model, "_windows", lambda tokens, state: torch.zeros_like(tokens))


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
    """Without one of its parts: facts that a trained model with windows writes in their places, texts whose first
    fact it writes, texts in which it writes a symbol; of the attention at the first step the weight of all first
    words of facts, and the largest weight."""
    model, documents = _trained(seed), planted_facts(50, 1, 6)
    with LEFT_OUT[part](model):
        texts, first = written_for(model, documents, 36), first_look(model, documents)
    true = [facts_in_place(d.target[:-1]) for d in documents]
    return {
        "facts of 6": share_in_place(list(map(facts_in_place, texts)), true),
        "first fact": float(np.mean([ids[:WORDS] == facts[0] for ids, facts in zip(texts, true)])),
        "texts with symbols": float(np.mean([SLIDE in ids for ids in texts])),
        **first,
    }


@torch.no_grad()
def first_look(model: Windowed, documents: Sequence[EncodedDocument]) -> dict[str, float]:
    batch = make_batch(documents, VOCABULARY)  # texts of one length
    output, _ = model.decode(batch.target_input[:, :1], model.encode(batch))
    weights, begins = output.copy[:, 0], (batch.source == FACT).roll(1, 1).gather(1, output.places)
    return {
        "first look, facts": weights.where(begins, 0.0).sum(1).mean().item(),
        "first look, largest": weights.amax(1).mean().item(),
    }


# ------------------------------------------------------------------------------------------- chunks against windows


@dataclass(frozen=True)
class FactText:
    source: np.ndarray  # [words]
    starts: list[int]  # the place of each FACT, in order
    facts: Facts


def fact_text(random: np.random.Generator, windows: int) -> FactText:
    """Draw a text with a fact for each window, which may begin at any word that the next window does not have."""
    source = random.integers(FACT + 1, VOCABULARY, WINDOW + (windows - 1) * STRIDE)
    starts, facts = [], random.integers(FACT + 1, VOCABULARY, (windows, WORDS)).tolist()
    for begin, fact in zip(range(0, windows * STRIDE, STRIDE), facts):
        free = starts[-1] + WORDS + 1 if starts else 0  # no fact lies inside the one before
        start = max(free, begin + int(random.integers(STRIDE)))
        source[start : start + WORDS + 1] = [FACT, *fact]
        starts.append(start)
    return FactText(source.astype(np.int32), starts, facts)


def in_windows(text: FactText) -> list[EncodedDocument]:
    """The whole text, with a symbol between the facts of its summary."""
    target = [word for fact in text.facts for word in (SLIDE, *fact)][1:]
    return [EncodedDocument.of("", text.source, [len(text.source)], [*target, EOS])]


def in_chunks(text: FactText, stride: int) -> list[EncodedDocument]:
    """Chunks as long as a window, each `stride` words after the one before; the summary of a chunk has the facts that
    begin before the next one and are whole in it."""
    chunks = []
    for begin in range(0, stride * count_windows(len(text.source), WINDOW, stride), stride):
        chunk = text.source[begin : begin + WINDOW]
        target = []
        for start, fact in zip(text.starts, text.facts):
            if begin <= start < begin + stride and start + WORDS < begin + len(chunk):
                target += fact
        chunks.append(EncodedDocument.of("", chunk, [len(chunk)], [*target, EOS]))
    return chunks


READINGS: dict[str, Callable[[FactText], list[EncodedDocument]]] = {
    "windows": in_windows,
    "chunks": partial(in_chunks, stride=WINDOW),
    "overlapping chunks": partial(in_chunks, stride=STRIDE),
}


def _texts(seed: int, count: int, windows: int) -> list[FactText]:
    random = np.random.default_rng(seed)
    return [fact_text(random, windows) for _ in range(count)]


def _learned(reading: str, seed: int) -> Windowed:
    def batches() -> Iterator[Batch]:
        for i in range(STEPS):
            texts = _texts(1000 * (seed + 1) + i, BATCH, 2 + i % 5)
            yield make_batch([part for text in texts for part in READINGS[reading](text)], VOCABULARY)

    return learn(small_model(seed, window=WINDOW if reading == "windows" else None), batches(), RATE)


def _read(reading: str, seed: int) -> dict[str, float]:
    """Of new texts of 4 and of 12 windows: the share of the facts that are written; of what is written, the share
    that was written before."""
    model, measures = _learned(reading, seed), {}
    for windows in (4, 12):
        texts = _texts(1, 100, windows)
        parts = [READINGS[reading](text) for text in texts]
        words = iter(written_for(model, [part for of_text in parts for part in of_text], 6 * windows))
        facts, repeated, written = 0, 0, 0
        for text, of_text in zip(texts, parts):
            ours = [tuple(f) for _ in of_text for f in facts_in_place(next(words), reading == "windows") if f]
            true = set(map(tuple, text.facts))
            facts += len(set(ours) & true)
            repeated += len(ours) - len(set(ours))
            written += len(ours)
        measures |= {
            f"facts of {windows}": facts / sum(len(text.facts) for text in texts),
            f"twice of {windows}": repeated / max(1, written),
        }
    return measures


TASK = Task(
    "facts of a long text: windows that slide, attention to everything, chunks put together",
    {
        **{mode: partial(_by_length, mode) for mode in ("standard", "windows", "streamed")},
        **{f"facts anywhere, {reading}": partial(_read, reading) for reading in READINGS},
        **{f"windows without {part}": partial(_without, part) for part in LEFT_OUT},
    },
)
