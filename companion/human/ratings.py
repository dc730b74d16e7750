"""Ratings read back from sheets and forms: means, agreement, and which differences are real."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import krippendorff
import numpy as np
import pandas as pd
from scipy.stats import f_oneway, tukey_hsd

from companion.human.sheets import RatingError, read_key, read_rows
from lib.evaluation.bootstrap import interval

MARKS = {"1": 1.0, "1.0": 1.0, "0.5": 0.5, ".5": 0.5, "0": 0.0, "0.0": 0.0}
BEST_WORST = "best minus worst"
QUESTIONS = "questions answered, %"


@dataclass(frozen=True)
class Rating:
    """One person's judgement of one system's summary in one place of a sheet."""

    rater: str  # from the file's name
    unit: str  # what several people rated
    system: str
    criterion: str
    value: float


def read_ratings(folder: str | Path) -> list[Rating]:
    """All ratings in a folder of sheets and forms; copies are told apart by their names, ratings-anna.csv.

    Criteria run from 1 to 5; a best summary counts 1, the worst -1, the others 0; answers count 100, 50 or 0.
    Raises RatingError with file and line for what cannot be.
    """
    key, ratings = read_key(folder), []
    for kind, read in (("ratings", _criteria), ("best_worst", _best_worst), ("answers", _marks)):
        for rater, path, line, item, given in _given(Path(folder), kind, key):
            ratings += [Rating(rater, *rating) for rating in read(key, f"{path}, line {line}", item, given)]
    return ratings


def _given(folder: Path, kind: str, key: dict) -> Iterator[tuple[str, Path, int, str, dict[str, str]]]:
    """(rater, file, line, item, what was filled in) of a kind of sheet, from CSV sheets and from saved forms."""
    columns = {"ratings": tuple(key["criteria"]), "best_worst": ("best", "worst"), "answers": ("mark",)}[kind]
    for path in sorted(folder.glob(f"{kind}*.csv")):
        lines: dict[str, int] = {}
        for line, row in read_rows(path, ("item", *columns)):
            given = {name: row[name].strip() for name in columns}
            if any(given.values()):
                _once(lines, row["item"], f"item {row['item']!r}", path, line)
                yield path.stem.removeprefix(kind).strip("-_"), path, line, row["item"], given
    for path in sorted(folder.glob("form-*.csv")):
        items: dict[str, tuple[int, dict[str, str]]] = {}
        fields: dict[tuple[str, str], int] = {}
        for line, row in read_rows(path, ("sheet", "item", "field", "value")):
            if row["sheet"] == kind and row["field"] in columns:
                _once(fields, (row["item"], row["field"]), f"{row['field']} of item {row['item']!r}", path, line)
                _, given = items.setdefault(row["item"], (line, dict.fromkeys(columns, "")))
                given[row["field"]] = row["value"].strip()
        for item, (line, given) in items.items():
            yield path.stem.removeprefix("form-"), path, line, item, given


def _once(lines: dict, name, what: str, path: Path, line: int) -> None:
    """Raise RatingError for a second value of one person. lines: those of the first values."""
    if name in lines:
        raise RatingError(f"{path}, line {line}: {what} is filled in twice, in line {lines[name]} too")
    lines[name] = line


def _criteria(key: dict, where: str, item: str, values: dict[str, str]) -> Iterator[tuple]:
    _, system = _known(key["ratings"], item, where)
    for criterion, value in values.items():
        if value and value not in tuple("12345"):
            raise RatingError(f"{where}: {criterion} is 1, 2, 3, 4 or 5, not {value!r}")
        if value:
            yield item, system, criterion, float(value)


def _best_worst(key: dict, where: str, item: str, values: dict[str, str]) -> Iterator[tuple]:
    order = _known(key["best_worst"], item, where)
    best, worst = values["best"].upper(), values["worst"].upper()
    if best not in order or worst not in order or best == worst:
        raise RatingError(f"{where}: best and worst must be two of {', '.join(order)}, not {best!r} and {worst!r}")
    for letter, system in order.items():
        yield f"{item}{letter}", system, BEST_WORST, float(letter == best) - float(letter == worst)


def _marks(key: dict, where: str, item: str, values: dict[str, str]) -> Iterator[tuple]:
    system, mark = _known(key.get("answers", {}), item, where), values["mark"].replace(",", ".")
    if mark not in MARKS:
        raise RatingError(f"{where}: a mark is 1, 0.5 or 0, not {mark!r}")
    yield item, system, QUESTIONS, 100 * MARKS[mark]


def _known(items: dict, item: str, where: str):
    if item not in items:
        raise RatingError(f"{where}: no item {item!r} was given out")
    return items[item]


def by_system(ratings: list[Rating], criterion: str) -> dict[str, list[float]]:
    """Values of every unit by system: the mean of the people who rated it."""
    units: dict[tuple[str, str], list[float]] = {}
    for r in ratings:
        if r.criterion == criterion:
            units.setdefault((r.system, r.unit), []).append(r.value)
    values: dict[str, list[float]] = {}
    for (system, _), ratings_of_unit in units.items():
        values.setdefault(system, []).append(float(np.mean(ratings_of_unit)))
    return values


def agreement(ratings: list[Rating], criterion: str) -> float | None:
    """Krippendorff's alpha of the raters, with the distances of ranks; None for fewer than two raters, or where they
    gave no two different values."""
    value_by_rater = {(r.rater, r.unit): r.value for r in ratings if r.criterion == criterion}
    raters, units = (sorted({key[i] for key in value_by_rater}) for i in (0, 1))
    table = np.array([[value_by_rater.get((rater, unit), np.nan) for unit in units] for rater in raters])
    shared = np.isfinite(table).sum(0) > 1
    if not shared.any() or len(np.unique(table[:, shared][np.isfinite(table[:, shared])])) < 2:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(krippendorff.alpha(reliability_data=table, level_of_measurement="ordinal"))


def compare_systems(values: dict[str, list[float]]) -> tuple[pd.DataFrame, pd.DataFrame, float]:
    """Means with 95% bootstrap intervals; Tukey's test of every pair; and the p value of a one-way analysis of
    variance. Raises RatingError when there are not two systems with two ratings each."""
    if len(values) < 2 or min(map(len, values.values())) < 2:
        raise RatingError("two systems with two ratings each are needed for a comparison")
    means = {s: {"mean": str(interval(np.array(v), unit="rating")), "ratings": len(v)} for s, v in values.items()}
    with np.errstate(divide="ignore", invalid="ignore"):  # where all ratings of every system are one
        tukey, names = tukey_hsd(*values.values()), list(values)
    limits = tukey.confidence_interval(0.95)
    pairs = {
        f"{names[i]} - {names[k]}": {
            "difference": tukey.statistic[i, k],
            "low": limits.low[i, k],
            "high": limits.high[i, k],
            "p": tukey.pvalue[i, k],
        }
        for i, k in combinations(range(len(names)), 2)
    }
    by_system, by_pair = (pd.DataFrame.from_dict(rows, orient="index") for rows in (means, pairs))
    return by_system, by_pair, float(f_oneway(*values.values()).pvalue)


def report(folder: str | Path) -> str:
    """Report what the sheets of a folder say, criterion by criterion; of one that cannot be compared yet, why."""
    ratings, key, parts = read_ratings(folder), read_key(folder), []
    for criterion in (*key["criteria"], BEST_WORST, QUESTIONS):
        unit_means = by_system(ratings, criterion)
        values = {system: unit_means[system] for system in key["systems"] if system in unit_means}
        if not values:
            parts.append(f"{criterion}: nothing is filled in yet")
            continue
        raters = sorted({r.rater for r in ratings if r.criterion == criterion})
        alpha = agreement(ratings, criterion)
        said = "Krippendorff's alpha needs two raters" if alpha is None else f"Krippendorff's alpha {alpha:.2f}"
        try:
            means, pairs, p = compare_systems(values)
        except RatingError as error:
            parts.append(f"{criterion}: {error}")
            continue
        head = f"{criterion} ({len(raters)} raters, {said}; analysis of variance: p = {p:.2g})"
        parts.append(f"{head}\n{means}\n\n{pairs.round(4)}")
    return "\n\n".join(parts)
