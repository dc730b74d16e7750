"""Steps of a decoder, one frame each: the text, shaded by its attention weights, the most probable
words, the switch, and other parts of a model (slots, a window, paragraphs)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import groupby, zip_longest
from operator import itemgetter

import torch
from torch import Tensor
from torch.nn import functional as F

from companion.pages.frames import Frames
from lib.layers.pointer import PointerGenerator, PointerOutput

BLUE, ORANGE, GREY = "0, 102, 168", "#b8440a", "#5f6b76"
# drawings have a white background in every theme, table rows too
WHITE = "background: #fff; color: #14181e"
PAPER = f"{WHITE}; max-width: 56rem"
CELL = "padding: 0.2rem 0.6rem; text-align: left"  # a widget's table has no style of its own
Best = Sequence[tuple[str, float]]


@dataclass(frozen=True)
class Step:
    """The quantities of a decoder before it writes one word.

    word: the word that it writes.
    attention: a number from 0 to 1 for each word of the text [N].
    best: the most probable words of each distribution, by its name (`best_words`).
    switch: the probability of generating; None where a model has no switch.
    view: the first word that the decoder sees, and the one after the last; None: the whole text.
    slots: of a memory, how much of each its gates have kept and how much of the reading it gets.
    """

    word: str
    attention: Sequence[float]
    best: Mapping[str, Best] = field(default_factory=dict)
    switch: float | None = None
    view: tuple[int, int] | None = None
    slots: Sequence[tuple[float, float]] = ()


def best_words(probabilities: Tensor, words: Sequence[str], count: int = 3) -> Best:
    """Return the most probable words of a distribution [V] with their probabilities, the largest
    first."""
    values, ids = probabilities.detach().topk(count)
    return [(words[int(i)], float(p)) for i, p in zip(ids, values)]


@torch.no_grad()
def pointer_steps(
    pointer: PointerGenerator,
    output: PointerOutput,
    ids: Iterable[int],
    words: Sequence[str],
    names: Sequence[str] = ("P_g", "P_c", "P"),
) -> list[Step]:
    """Make the steps of a model that generates or copies, from its decoder's output for one
    document.

    Args:
        ids: of the words that are written [T].
        words: one for each id, those that can only be copied after the vocabulary.
        names: of the distributions by generating, by copying, and by both.
    """
    generated = pointer.vocabulary(output.features[0]).softmax(-1)
    generated = F.pad(generated, (0, len(words) - generated.shape[1]))
    copied = torch.zeros_like(generated).index_add(1, output.source[0], output.copy[0])
    p = output.switch[0].sigmoid()[:, None]
    parts = dict(zip(names, (generated, copied, p * generated + (1 - p) * copied)))
    steps = []
    for t, word in enumerate(ids):
        best = {name: best_words(P[t], words) for name, P in parts.items()}
        steps.append(Step(words[word], output.copy[0, t].tolist(), best, p[t].item()))
    return steps


def decoding_frames(
    text: Sequence[Sequence[str]],
    steps: Sequence[Step],
    names: Sequence[str] = (),
    beside: Mapping[str, Sequence[str]] | None = None,
) -> Frames:
    """Make a frame for each step, numbered from 1.

    Args:
        text: its lines (sentences, paragraphs, or one), each a list of words.
        names: one for each line; none without.
        beside: words that other models write at the same steps, by the models' names.
    """
    written = {"written": [step.word for step in steps], **(beside or {})}
    frames = []
    for t, step in enumerate(steps):
        summaries = "".join(_written(name, words, t) for name, words in written.items())
        parts = _shaded(text, names, step) + summaries + _distributions(step) + _slots(step.slots)
        frames.append(f'<div style="{PAPER}; padding: 0.3rem 0.6rem">{parts}</div>')
    return Frames(frames, 1)


def _written(name: str, words: Sequence[str], t: int) -> str:
    """Write the words up to a step, its own in colour."""
    before, now = " ".join(map(escape, words[:t])), "".join(map(escape, words[t : t + 1]))
    return f'<p style="margin: 0.5rem 0">{escape(name)}: {before} <b style="color: {ORANGE}">{now}</b></p>'


def _shaded(text: Sequence[Sequence[str]], names: Sequence[str], step: Step) -> str:
    """Write the lines of the text, each after its name."""
    looks = iter([shade(weight, j, step.view) for j, weight in enumerate(step.attention)])
    lines = []
    for name, line in zip_longest(names, text, fillvalue=""):
        # neighbours that look the same are one piece
        runs = groupby(zip(line, looks), key=itemgetter(1))
        pieces = [(look, escape(" ".join(word for word, _ in run))) for look, run in runs]
        words = " ".join(
            f'<span style="{look}">{piece}</span>' if look else piece for look, piece in pieces
        )
        lines.append(
            (f'<span style="color: {GREY}">{escape(name)}</span> ' if name else "") + words
        )
    return f'<div style="line-height: 1.8">{"<br>".join(lines)}</div>'


def shade(weight: float, place: int = 0, view: tuple[int, int] | None = None) -> str:
    """Return the style of a word."""
    if view and not view[0] <= place < view[1]:
        return f"color: {GREY}"
    look = [f"background: rgba({BLUE}, {weight:.2f})"] if weight >= 0.005 else []
    look += [f"color: {_ink(weight)}"] if weight > 0.5 else []
    look += [f"border-bottom: 3px solid {ORANGE}"] if view else []
    return "; ".join(look)


def _ink(weight: float) -> str:
    """Choose black or white for words on blue of this weight, with a contrast of at least 4.5 (WCAG
    1.4.3)."""
    return "#fff" if weight >= 0.86 else "#000"


def _distributions(step: Step) -> str:
    cells = {
        name: "".join(
            f'<td style="{CELL}">{escape(word)} {probability:.2f}</td>'
            for word, probability in best
        )
        for name, best in step.best.items()
    }
    if step.switch is not None:
        generates = f"{share_bar(step.switch)} generates with {step.switch:.2f}"
        cells["switch"] = f'<td colspan="3" style="{CELL}">{generates}</td>'
    rows = (
        f'<tr style="{WHITE}"><td style="{CELL}">{escape(name)}</td>{row}</tr>'
        for name, row in cells.items()
    )
    return f'<table style="{PAPER}">{"".join(rows)}</table>' if cells else ""


def _slots(slots: Sequence[tuple[float, float]]) -> str:
    """Write a box for each slot, shaded by what is kept of it, with its share of the reading."""
    boxes = "".join(
        f'<td style="{CELL}; background: rgba({BLUE}, {left:.2f}); color: {_ink(left)}">'
        f"slot {k + 1}: {left:.2f} kept<br>{share_bar(read, '4rem')} read {read:.2f}</td>"
        for k, (left, read) in enumerate(slots)
    )
    return f'<table style="{PAPER}"><tr style="{WHITE}">{boxes}</tr></table>' if slots else ""


def share_bar(share: float, width: str = "8rem", colour: str = ORANGE) -> str:
    """Write a bar of which a share is filled."""
    filled = f'<span style="display: block; height: 100%; width: {share:.0%}; background: {colour}"></span>'
    return f'<span style="display: inline-block; height: 0.7em; width: {width}; background: #ddd">{filled}</span>'
