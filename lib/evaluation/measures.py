"""Measures of tables, made of scores that are there: light, for papers name them and training
imports papers."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

# rouge-score's names. rougeLsum is the summary-level R-L of ROUGE-1.5.5, one sentence a line: what
# the tables of arXiv, PubMed, CNN/DailyMail and Newsroom report.
METRICS = {"R-1": "rouge1", "R-2": "rouge2", "R-Lsum": "rougeLsum"}


@dataclass(frozen=True)
class Measure:
    """Columns of a table, made of a system's scores (`lib.evaluation.scores.score_systems`)."""

    columns: tuple[str, ...]
    # values and weights of their mean: [2, columns, documents]
    numbers: Callable[[dict], np.ndarray]


def ngrams(words: Sequence[str], n: int) -> Iterable[tuple[str, ...]]:
    """Return all n words in a row, in order."""
    return zip(*(words[i:] for i in range(n)))


def _plainly(*keys: str) -> Callable[[dict], np.ndarray]:
    """Numbers of each document, in a column or several of each key."""

    def numbers(scores: dict) -> np.ndarray:
        columns = [np.array(scores[key], dtype=float) for key in keys]
        values = np.column_stack(columns).T
        return np.stack([values, np.ones_like(values)])

    return numbers


def _shares(key: str) -> Callable[[dict], np.ndarray]:
    """Percent of what is counted (n-grams, numbers, ...), pooled over documents."""

    def numbers(scores: dict) -> np.ndarray:
        found, every = np.array(list(scores[key].values()), dtype=float).transpose(2, 0, 1)
        return np.stack([100 * found, every])

    return numbers


def _with_repetition(scores: dict) -> np.ndarray:
    """ROUGE, percent of trigrams that were said before, percent of summaries that no other document
    has."""
    repeated, every = np.array(scores["repeated"], dtype=float).T
    distinct = 100 * np.array(scores["distinct"])
    more = np.stack([[100 * repeated, distinct], [every, np.ones_like(distinct)]])
    return np.concatenate([_plainly("rouge")(scores), more], axis=1)


SUPPORT = {  # `lib.evaluation.support.support_counts` by their columns
    "numbers": "numbers not in the text",
    "names": "names not in the text",
    "words": "words not in the text",
    "pairs": "word pairs not in the text",
    "carried": "sentences that one source sentence carries",
}
COPIED = ("5", "10", "15", "20")  # n of the n-grams
MEASURES = {
    "rouge": Measure(tuple(METRICS), _plainly("rouge")),
    "rouge, one line": Measure((*METRICS, "R-L"), _plainly("rouge", "one line")),
    "copied": Measure(COPIED, _shares("copied")),
    "repetition": Measure((*METRICS, "repeated", "distinct"), _with_repetition),
    "recall": Measure(("R-1", "R-2", "R-L"), _plainly("recall")),  # of the first 75 bytes
    "support": Measure(tuple(SUPPORT.values()), _shares("support")),
}
