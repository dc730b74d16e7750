"""One self-contained HTML page with texts and their summaries side by side, and where the model looked."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from lib.data.sentences import split_sentences
from lib.decoding.html_page import html_page
from lib.evaluation.support import SourceText
from lib.system.files import write_whole

KEPT, MOST = 0.98, 60  # of each row: the largest weights that hold this much of it, at most so many
SPARSE = ("words", "units", "heads")  # the arrays that are cut so
REST = 10_000  # words of what was not read that the page shows, at most


@dataclass(frozen=True)
class ShownSummary:
    """A summary of another system beside that of a run; its parts are as `ShownText.support` gives them."""

    name: str
    summary: list[list[str]]  # sentences of tokens with the space before each
    lacks: list[str]
    carriers: list[list[tuple[int, float]]]


@dataclass(frozen=True)
class ShownDocument:
    """A text as a model read it, its summary, and where the model looked; T summary words, N source words.

    `attention` has any of these arrays, of numbers from 0 up; a sentence below is a unit, whatever `unit` calls it:

    words [T, N]: weight of each source word, adding up to about 1 a row; units [T, L]: likewise of each sentence;
    generate [T]: probability that the word was generated rather than copied;
    slots [T, r]: how much each slot of the memory is read; heads [r, L]: how much of each sentence a slot holds;
    window [T]: number of the window at each word, from 0; windows [W, 2]: its first source word and its end.
    """

    name: str  # id, title or file name
    source: list[list[str]]  # L units of tokens, N in all; a token carries its own leading space where one belongs
    unit: str  # "sentence", "paragraph" or "section"
    summary: list[list[str]]  # sentences of tokens, likewise, T in all
    attention: dict[str, np.ndarray]
    copied: list[bool] | None = None  # for each summary token; None: the model cannot copy
    unfinished: bool = False  # whether the last sentence of the summary was cut
    notes: list[str] = field(default_factory=list)  # what a reader has to know of the text: how much of it was read
    unread: list[tuple[str, str]] = field(default_factory=list)  # section and text of what was not read
    spans: list[tuple[int, int]] = field(default_factory=list)  # of the sentences that were read (`ShownText`)
    lacks: list[str] = field(default_factory=list)  # of the summary's tokens (`ShownText.support`)
    carriers: list[list[tuple[int, float]]] = field(default_factory=list)  # of its sentences
    others: list[ShownSummary] = field(default_factory=list)  # of the same text


def write_page(path: str | Path, model: str, documents: Sequence[ShownDocument]) -> Path:
    """Write the page; `model` is a line such as "Mem2Mem, +read". It loads nothing, so it opens from a file.

    Of each row of words, units and heads only the largest weights are written, those that hold 98% of the row and at
    most 60; the rest show as 0. All numbers are rounded to 3 digits. Of what was not read there are at most 10,000
    words. The address may name a document and a word to open at, from 0: page.html#0.5.
    """
    data = {"model": model, "alone": SourceText.ALONE, "documents": [_record(d) for d in documents]}
    return write_whole(path, html_page(Path(__file__).with_name("summary_page.html"), data))


def _record(document: ShownDocument) -> dict[str, object]:
    """What the page's script reads: cut rows as lists of [index, weight], the other arrays as they are."""
    arrays = {name: np.asarray(a, dtype=float) for name, a in document.attention.items()}
    shown = {name: _largest(a) if name in SPARSE else _rounded(a) for name, a in arrays.items()}
    names = ("name", "unit", "source", "summary", "unfinished", "notes", "spans", "lacks")
    about = {name: getattr(document, name) for name in names}
    about["carriers"] = _shares(document.carriers)
    about["others"] = [{**asdict(other), "carriers": _shares(other.carriers)} for other in document.others]
    copied = None if document.copied is None else [int(c) for c in document.copied]
    unread, left_off = _beginning(document.unread, REST)
    sentences = [(section, split_sentences(text)) for section, text in unread]
    return {**about, "copied": copied, "attention": shown, "unread": sentences, "left_off": left_off}


def _shares(carriers: list[list[tuple[int, float]]]) -> list[list[tuple[int, float]]]:
    return [[(number, _digits(share)) for number, share in of_sentence] for of_sentence in carriers]


def _beginning(stretches: Sequence[tuple[str, str]], most: int) -> tuple[list[tuple[str, str]], int]:
    """Stretches of text up to so many words, and how many words are left off."""
    shown, left_off = [], 0
    for section, text in stretches:
        words = text.split()
        if most:
            shown.append((section, text if len(words) <= most else " ".join(words[:most]) + " …"))
        left_off += max(0, len(words) - most)
        most = max(0, most - len(words))
    return shown, left_off


def _largest(rows: np.ndarray) -> list[list[list[float]]]:
    """For each row of [R, C] its largest weights as [index, weight], largest first: KEPT of the row, at most MOST."""
    kept = []
    for row in rows:
        order = np.argsort(-row, kind="stable")[:MOST]
        before = np.cumsum(row[order]) - row[order]
        order = order[before < KEPT * row.sum()]
        kept.append([[int(i), _digits(row[i])] for i in order])
    return kept


def _rounded(array: np.ndarray) -> list[object]:
    return [_rounded(row) for row in array] if array.ndim > 1 else [_digits(x) for x in array]


def _digits(number: float) -> float:
    """Rounded to 3 digits; whole numbers, such as a word's place in the text, as they are."""
    return int(number) if number == int(number) else float(f"{number:.3g}")
