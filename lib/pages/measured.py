"""Tables of what commands measured and the project keeps in `figures`: small models on made-up tasks over several
seeds."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from lib.system.files import project_root, read_numbers
from lib.tasks.task import by_row


def task_table(name: str, columns: Mapping[str, str], rows: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Results of `lib.solve NAME`: the mean over seeds of each measure, with the least and the largest where they
    differ. columns, rows: {name in the table: measure or row}; by default all rows. Nothing where a row does not have
    a measure."""
    numbers = read_numbers(project_root() / "figures" / f"task_{name}.json", "results of a task", ["results"])
    table = by_row(numbers["results"])
    cells = {
        label: {column: over_seeds(table[row].get(measure, [])) for column, measure in columns.items()}
        for label, row in (rows or dict(zip(table, table))).items()
    }
    return pd.DataFrame.from_dict(cells, orient="index")


def over_seeds(values: Sequence[float]) -> str:
    """The mean, and the least and the largest where they differ."""
    if not len(values):
        return ""
    mean, low, high = (f"{f(values):.2f}" for f in (np.mean, np.min, np.max))
    return mean if low == high else f"{mean} [{low}, {high}]"
