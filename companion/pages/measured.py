"""Tables of a page: stored results of synthetic tasks over several seeds, and systems'
summaries."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from companion.results.kept import stored_numbers
from companion.tasks.task import by_row
from lib.evaluation.bootstrap import interval
from lib.evaluation.measures import METRICS
from lib.evaluation.scores import intervals


def task_results(name: str) -> dict[str, dict[str, list]]:
    """Read the committed results of a task, `by_row`."""
    return by_row(stored_numbers(f"task_{name}")["results"])


def task_table(
    name: str,
    columns: Mapping[str, str],
    rows: Mapping[str, str] | None = None,
    by_seed: bool = False,
) -> pd.DataFrame:
    """Tabulate results of `companion.train_task NAME`: the mean over seeds of each measure, with its
    range; or its shares by seed.

    columns, rows: {name in the table: measure or row}; by default all rows. A cell is empty where a
    row does not have the measure.
    """
    table, write = task_results(name), shares if by_seed else over_seeds
    cells = {
        label: {column: write(table[row].get(measure, [])) for column, measure in columns.items()}
        for label, row in (rows or dict(zip(table, table))).items()
    }
    return pd.DataFrame.from_dict(cells, orient="index")


def shares(values: Sequence[float]) -> str:
    """Format the percentages of several seeds: "100 / 99 / 100%"."""
    return " / ".join(f"{100 * value:.0f}" for value in values) + "%" * bool(values)


def over_seeds(values: Sequence[float]) -> str:
    """Format the mean, with the smallest and the largest value if they differ."""
    if not len(values):
        return ""
    mean, low, high = (f"{f(values):.2f}" for f in (np.mean, np.min, np.max))
    return mean if low == high else f"{mean} [{low}, {high}]"


def summary_row(part: dict, seed: int) -> dict[str, str]:
    """Make a system's row of a table from its part of `score_systems`: ROUGE with intervals, mean
    words, the share of trigrams that are repeated, and of 5-grams that are copied."""
    repeated, copied = np.sum(part["repeated"], axis=0), np.sum(part["copied"]["5"], axis=0)
    return {
        **{m: str(interval(values, seed)) for m, values in zip(METRICS, np.array(part["rouge"]).T)},
        "words": f"{part['words']:.0f}",
        "repeated": f"{repeated[0] / max(1, repeated[1]):.0%}",
        "copied": f"{copied[0] / max(1, copied[1]):.0%}",
    }


def support_row(part: dict) -> dict[str, str]:
    """Make a system's row of a table of what the text lacks (`lib.evaluation.support`), in percent
    with intervals."""
    return {column: str(share) for column, share in intervals("support", part).items()}
