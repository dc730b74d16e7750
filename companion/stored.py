"""Results in a JSON file. A long command that was stopped continues: results in the file are not
measured again."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from lib.evaluation.bootstrap import Difference, interval
from lib.system.errors import InputError
from lib.system.files import check_writable, read_numbers, write_json


@dataclass
class Store:
    """The numbers that a file holds; without a file they are only in memory."""

    output: Path | None
    numbers: dict[str, Any]

    def part(self, name: str, measure: Callable[[], Any]) -> Any:
        """Return the numbers of a name; measure and write them where there are none."""
        if name not in self.numbers:
            self.numbers[name] = measure()
            self._write()
        return self.numbers[name]

    def replace(self, name: str, numbers: Any) -> None:
        """Write the numbers of a name, in place of those that it has."""
        self.numbers[name] = numbers
        self._write()

    def results(
        self,
        rows: Mapping[str, Callable[[int], Mapping]],
        seeds: Sequence[int],
        order: Sequence[str],
    ) -> list[dict]:
        """Return all results of the file, after each missing pair of a row and a seed was measured
        and written.

        rows: functions that take a seed and return measures by name. order: of all rows in the
        file.
        """
        results = self.numbers.setdefault("results", [])
        done = {(result["row"], result["seed"]) for result in results}
        for row, seed in product(rows, seeds):
            if (row, seed) not in done:
                results.append({"row": row, "seed": seed, **rows[row](seed)})
                results.sort(
                    key=lambda r: (
                        order.index(r["row"]) if r["row"] in order else len(order),
                        r["seed"],
                    )
                )
                self._write()
        return results

    def _write(self) -> None:
        if self.output:
            write_json(self.output, self.numbers)


def open_store(output: Path | None, what: str, about: Mapping[str, Any]) -> Store:
    """Open the results of a setting, or begin them.

    what: a name for the file's content. about: the setting. Raises InputError for a file of
    something else.
    """
    if output is None:
        return Store(None, dict(about))
    check_writable(output)
    numbers = read_numbers(output, what, about) if output.exists() else dict(about)
    for name, value in about.items():
        if numbers[name] != value:
            raise InputError(
                f"{output} is of {name} {numbers[name]}, not {value}: name another file"
            )
    return Store(output, numbers)


def effect_row(
    name: str, what: str, values: Any, seeds: Sequence[int] = (0,), **more: Any
) -> dict[str, Any]:
    """Make an entry of `effects`: the mean of `values` [documents] or [seeds, documents], its
    interval over documents and seeds, and the value of each document (the mean over seeds)."""
    values = np.atleast_2d(np.asarray(values, dtype=float))
    found = interval(values)
    return {
        "name": name,
        "what": what,
        **more,
        "mean": found.mean,
        "low": found.low,
        "high": found.high,
        "documents": values.shape[1],
        "seeds": [*seeds],
        "by seed": values.mean(1).round(5).tolist(),
        "values": values.mean(0).round(4).tolist(),
    }


def difference_row(name: str, what: str, found: Difference, values: np.ndarray) -> dict[str, Any]:
    """Make an entry of `effects` of a paired difference with one seed. values: of each document."""
    numbers = {key: round(float(getattr(found, key)), 4) for key in ("mean", "low", "high")}
    about = {"name": name, "what": what, **numbers, "documents": len(values), "seeds": [0]}
    return {**about, "values": values.round(3).tolist()}
