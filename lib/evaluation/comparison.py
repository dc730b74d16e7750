"""Compare systems on the same documents: ROUGE as they write, and cut to the references' length."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from lib.data.documents import Document
from lib.evaluation.baselines import counted_in, lexrank
from lib.evaluation.bootstrap import paired_bootstrap
from lib.evaluation.measures import METRICS
from lib.evaluation.rouge import count_words
from lib.evaluation.scores import column_values, intervals, score_systems

AS_WRITTEN, CUT = "as written", "cut to the words of each reference"

Summaries = Sequence[list[str]]  # of each document, in sentences


def baseline_summaries(name: str, documents: Sequence[Document]) -> list[list[str]]:
    """Choose sentences until there are as many words as the references have on average.

    name: "lexrank" or "lead".
    """
    lengths = reference_lengths(documents)
    words = round(sum(lengths) / len(lengths))
    if name == "lead":
        return [first_words(document.sentences, words) for document in documents]
    letters = counted_in(documents)
    return [lexrank(document.sentences, words, all_letters=letters) for document in documents]


def first_words(sentences: Sequence[str], words: int) -> list[str]:
    """Return the first sentences, until there are so many words."""
    chosen: list[str] = []
    for sentence in sentences:
        if sum(len(own.split()) for own in chosen) >= words:
            break
        chosen.append(sentence)
    return chosen


def reference_lengths(documents: Sequence[Document]) -> list[int]:
    """Count the words of each document's reference, as ROUGE does."""
    return [count_words(document.summary) for document in documents]


def compare(systems: Mapping[str, Summaries], documents: Sequence[Document]) -> dict[str, Any]:
    """Score systems in both ways, and every pair by a paired bootstrap over documents.

    Returns for each way (`AS_WRITTEN`, `CUT`) the `systems`, with a mean and an interval for each
    metric and the mean number of words, and the `pairs`: the second system minus the first.
    """
    found = {}
    for way, lengths in ((AS_WRITTEN, None), (CUT, reference_lengths(documents))):
        parts = score_systems(systems, documents, words=lengths)
        rows = {
            name: {
                **{metric: str(cell) for metric, cell in intervals("rouge", part).items()},
                "words": part["words"],
            }
            for name, part in parts.items()
        }
        pairs = []
        for first, second in combinations(systems, 2):
            difference = {metric: _difference(parts, first, second, metric) for metric in METRICS}
            pairs.append({"first": first, "second": second, "difference": difference})
        found[way] = {"systems": rows, "pairs": pairs}
    return found


def _difference(parts: Mapping[str, dict], first: str, second: str, metric: str) -> str:
    """Write the difference that the second system makes, with its interval."""
    values = [column_values("rouge", [parts[name]], metric)[0] for name in (first, second)]
    return str(paired_bootstrap(*values))
