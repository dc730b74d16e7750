"""Tables of systems' summaries: scores with intervals, lengths, repetition and copying."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from lib.data.documents import Document
from lib.data.options import Options
from lib.evaluation.bootstrap import interval
from lib.evaluation.measures import METRICS
from lib.evaluation.scores import intervals, score_systems


def summary_row(part: dict, seed: int) -> dict[str, str]:
    """A system's row of a table, of its part of `score_systems`: ROUGE with intervals, mean words, the share of
    trigrams said before, and of 5-grams copied."""
    repeated, copied = np.sum(part["repeated"], axis=0), np.sum(part["copied"]["5"], axis=0)
    return {
        **{m: str(interval(values, seed)) for m, values in zip(METRICS, np.array(part["rouge"]).T)},
        "words": f"{part['words']:.0f}",
        "repeated": f"{repeated[0] / max(1, repeated[1]):.0%}",
        "copied": f"{copied[0] / max(1, copied[1]):.0%}",
    }


def support_row(part: dict) -> dict[str, str]:
    """A system's row of a table of what is not in the text (`lib.evaluation.support`), in percent with intervals."""
    return {column: str(share) for column, share in intervals("support", part).items()}


def summary_table(
    systems: Mapping[str, Sequence[list[str]]],
    documents: Sequence[Document],
    options: Options,
    words: int | None,
    seed: int,
) -> tuple[pd.DataFrame, dict[str, dict]]:
    """Make a table of systems' summaries (sentences of each): a `summary_row` each, cut to `words` or whole;
    and return each one's part of `score_systems`."""
    parts = score_systems(systems, documents, options, words)
    rows = {name: summary_row(part, seed) for name, part in parts.items()}
    return pd.DataFrame.from_dict(rows, orient="index"), parts
