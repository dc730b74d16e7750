"""One self-contained HTML page: texts and their summaries side by side, where the model looked, and
what of a summary the text supports."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from lib.data.sentences import sentence_spans, split_sentences
from lib.decoding.readable import Reading
from lib.evaluation.support import Names, SourceText, not_in_text, terms
from lib.page.html_page import html_page
from lib.system.files import write_whole

TITLE = -1  # the number of a text's title, which is not one of its sentences
# of each row of weights: the largest ones that hold this share, at most so many
KEPT_MASS, MAX_WEIGHTS = 0.98, 60
SPARSE = ("words", "units", "heads")  # the arrays that are cut so

Tokens = Sequence[Sequence[str]]  # of each sentence, each with the space before it


class ShownText:
    """The sentences of a text by number: those that a model read, with their places, and then those
    that it did not.

    spans: of each that was read, its first token and its end, among all tokens of `Reading.rows`.
    """

    def __init__(self, reading: Reading, unit: str, title: str = ""):
        self.spans: list[tuple[int, int]] = []
        sentences = []
        start = 0
        for row in reading.rows:
            found = [(0, len(row))] if unit == "sentence" else _find_sentences(row)
            for first, end in found:
                self.spans.append((start + first, start + end))
                sentences.append("".join(row[first:end]))
            start += len(row)
        for _, text in reading.unread:
            sentences += split_sentences(text)
        # The last one: equal sentences are before it.
        self._title_number = len(sentences) if title else None
        self._source = SourceText([*sentences, *filter(None, [title])])

    def support(
        self, sentences: Tokens, names: Names
    ) -> tuple[list[str], list[list[tuple[int, float]]]]:
        """Find `lacks` and `carriers` of a summary, as `ShownDocument` has them."""
        lacks, carriers = [], []
        for tokens in sentences:
            sentence = terms("".join(tokens))
            missing = not_in_text(sentence, self._source, names)
            for start, end in pairwise(accumulate(map(len, tokens), initial=0)):
                inside = [kind for term, kind in missing if term.start < end and start < term.end]
                lacks.append(inside[0] if inside else "")
            found = []
            for number, share in self._source.carriers(sentence):
                found.append((TITLE if number == self._title_number else number, share))
            carriers.append(found)
        return lacks, carriers


def _find_sentences(row: Sequence[str]) -> Iterable[tuple[int, int]]:
    """Return the first token and the end of each sentence of a row of tokens."""
    token_ends = list(accumulate(map(len, row)))
    ends = [bisect_right(token_ends, end) for _, end in sentence_spans("".join(row))]
    return [(first, end) for first, end in pairwise([0, *ends]) if first < end]


@dataclass(frozen=True)
class ShownDocument:
    """A text as a model read it, its summary, and where the model looked; T summary words, N source
    words.

    `attention` has any of these arrays, of numbers from 0 up; a unit is a sentence, paragraph or
    section:

    words [T, N]: weight of each source word, adding up to about 1 a row; units [T, L]: likewise of
    each unit; generate [T]: probability that the word was generated rather than copied; slots
    [T, r]: how much each slot of the memory is read; heads [r, L]: how much of each unit a slot
    holds; window [T]: number of the window at each word, from 0; windows [W, 2]: its first source
    word and its end.
    """

    name: str  # id, title or file name
    source: Tokens  # L units of N tokens in all
    unit: str  # "sentence", "paragraph" or "section"
    summary: Tokens  # T tokens in all
    attention: dict[str, np.ndarray]
    copied: list[bool] | None = None  # for each summary token; None: the model cannot copy
    unfinished: bool = False  # whether the last sentence of the summary was cut
    # what a reader has to know of the text: how much of it was read
    notes: list[str] = field(default_factory=list)
    sections: Sequence[str] = ()  # of each unit, the name of the section in which it begins
    # section and text of what was not read
    unread: list[tuple[str, str]] = field(default_factory=list)
    # of the sentences that were read (`ShownText`)
    spans: list[tuple[int, int]] = field(default_factory=list)
    # of each token "number", "name" or "word" if the text lacks it
    lacks: list[str] = field(default_factory=list)
    # of each sentence the numbers of those of the text, or `TITLE`, that carry it, and their shares
    carriers: list[list[tuple[int, float]]] = field(default_factory=list)
    # sentences that LexRank chooses, to compare with
    lexrank: list[str] = field(default_factory=list)


def write_page(
    path: str | Path, model: str, documents: Sequence[ShownDocument], caution: str = ""
) -> Path:
    """Write the page; `model` is a line such as "Mem2Mem, +read", `caution` the run's
    (`Run.caution`).

    The page loads nothing, so it opens from a file.

    Of each row of words, units and heads only the largest weights are written, those that hold 98%
    of the row and at most 60; the rest show as 0. All numbers are rounded to 3 digits.
    """
    data = {
        "model": model,
        "caution": caution,
        "alone": SourceText.ALONE,
        "documents": list(map(_record, documents)),
    }
    return write_whole(path, html_page(Path(__file__).with_name("summary_page.html"), data))


def _record(document: ShownDocument) -> dict[str, object]:
    """Return what the page's script reads: cut rows as lists of [index, weight], the other arrays
    as they are."""
    attention = {}
    for name, values in document.attention.items():
        attention[name] = list(map(_largest, values)) if name in SPARSE else _rounded(values)
    return {
        **vars(document),
        "copied": document.copied and list(map(int, document.copied)),
        "attention": attention,
        "unread": [(section, split_sentences(text)) for section, text in document.unread],
    }


def _largest(row: np.ndarray) -> list[list[float]]:
    """Return the largest weights of a row as [index, weight], the largest first."""
    order = np.argsort(-row, kind="stable")[:MAX_WEIGHTS]
    mass_before = np.cumsum(row[order]) - row[order]
    return [[int(i), _rounded(row[i])] for i in order[mass_before < KEPT_MASS * row.sum()]]


def _rounded(values: Any) -> Any:
    """Round numbers to 3 digits; whole numbers, such as a word's place in the text, stay."""
    if np.ndim(values):
        return [_rounded(value) for value in values]
    return int(values) if values == int(values) else float(f"{values:.3g}")
