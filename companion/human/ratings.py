"""Ratings read back from saved forms: means, agreement, and which differences are real."""

import re
import warnings
from pathlib import Path
from typing import Any

import krippendorff
import numpy as np
import pandas as pd
from scipy.stats import f_oneway, tukey_hsd

from companion.human.sheets import read_csv, read_key
from lib.evaluation.bootstrap import interval
from lib.system.errors import InputError

BEST_WORST = "best minus worst"
# a unit is what several people may have judged
COLUMNS = ("rater", "unit", "system", "criterion", "value")
RATINGS = {str(rating): float(rating) for rating in range(1, 6)}


def read_ratings(folder: str | Path) -> pd.DataFrame:
    """Read the judgements of all saved forms (form-NAME.csv), one a row with `COLUMNS`.

    Criteria run from 1 to 5; a best summary counts 1, the worst -1, the others 0.
    """
    key, rows, seen = read_key(folder), [], {}
    for path in sorted(Path(folder).glob("form-*.csv")):
        table = read_csv(path, ("sheet", "item", "field", "value"))
        # a browser's second download would count as another person
        first_download = re.sub(r" \(\d+\)$", "", path.stem)
        if other := seen.get(first_download):
            raise InputError(f"{other} and {path.name} are of the same person: keep one of them")
        judged = frozenset(table.itertuples(index=False, name=None))
        if (other := seen.get(judged)) and _is_copy(other, path.name):
            raise InputError(f"{other} and {path.name} are a form and its copy: keep one of them")
        seen |= dict.fromkeys((first_download, judged), path.name)
        if table.duplicated(["sheet", "item", "field"]).any():
            raise InputError(f"{path}: something is filled in twice")
        groups: Any = table.groupby(["sheet", "item"], sort=False)
        for (sheet, item), values in groups:
            given = dict(zip(values["field"], values["value"]))
            try:
                judgements = _judgements(key, sheet, item, given)
            except (KeyError, ValueError):
                raise InputError(
                    f"{path}: {given} is no judgement of {sheet} {item} in this folder"
                ) from None
            rows += [(path.stem.removeprefix("form-"), *judgement) for judgement in judgements]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _is_copy(one: str, other: str) -> bool:
    """Whether names of equal forms differ only by what is added to the name of a copy."""
    stems = sorted((Path(name).stem.lower() for name in (one, other)), key=len)
    return stems[1].startswith(stems[0]) or stems[1].endswith(stems[0])


def equal_forms(folder: str | Path) -> list[tuple[str, str]]:
    """Find pairs of forms with the same judgements, which may be a form and its copy."""
    first: dict[frozenset, str] = {}
    pairs = []
    for path in sorted(Path(folder).glob("form-*.csv")):
        table = read_csv(path, ("sheet", "item", "field", "value"))
        judged = frozenset(table.itertuples(index=False, name=None))
        if judged in first:
            pairs.append((first[judged], path.name))
        first.setdefault(judged, path.name)
    return pairs


def _judgements(
    key: dict, sheet: str, item: str, given: dict[str, str]
) -> list[tuple[str, str, str, float]]:
    """List unit, system, criterion and value of what a person filled in at an item of a sheet."""
    own = key[sheet][item]
    if sheet == "ratings":
        return [(item, own[1], criterion, RATINGS[value]) for criterion, value in given.items()]
    if given.keys() != {"best", "worst"}:  # it is not finished
        return []
    scores = {given["best"]: 1.0, given["worst"]: -1.0}
    if not scores.keys() <= own.keys() or len(scores) < 2:
        raise ValueError("best and worst are two of the letters")
    return [
        (f"{item}{letter}", system, BEST_WORST, scores.get(letter, 0.0))
        for letter, system in own.items()
    ]


def by_system(ratings: pd.DataFrame, criterion: str) -> dict[str, list[float]]:
    """Compute the value of every unit by system: the mean over the people who rated it."""
    chosen: Any = ratings[ratings["criterion"] == criterion]
    means = chosen.groupby(["system", "unit"], sort=False)["value"].mean()
    return {
        str(system): of_system.tolist()
        for system, of_system in means.groupby(level="system", sort=False)
    }


def agreement(ratings: pd.DataFrame, criterion: str) -> float | None:
    """Compute Krippendorff's alpha of the raters for ordinal values. None if no two raters judged
    the same units, or if all their values are equal."""
    table = (
        ratings[ratings["criterion"] == criterion]
        .pivot(index="rater", columns="unit", values="value")
        .to_numpy()
    )
    shared = table[:, np.isfinite(table).sum(0) > 1]
    if len(np.unique(shared[np.isfinite(shared)])) < 2:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(krippendorff.alpha(reliability_data=table, level_of_measurement="ordinal"))


def compare_systems(values: dict[str, list[float]]) -> tuple[pd.DataFrame, pd.DataFrame, float]:
    """Compare systems: means with 95% bootstrap intervals; Tukey's test of every pair; and p of a
    one-way analysis of variance. Raises InputError when there are not two systems with two ratings
    each."""
    if len(values) < 2 or min(map(len, values.values())) < 2:
        raise InputError("two systems with two ratings each are needed for a comparison")
    means = {
        s: {"mean": str(interval(np.array(v), unit="rating")), "ratings": len(v)}
        for s, v in values.items()
    }
    # where all ratings of every system are the same
    with np.errstate(divide="ignore", invalid="ignore"):
        tukey, names = tukey_hsd(*values.values()), list(values)
    limits, pairs = tukey.confidence_interval(0.95), np.triu_indices(len(names), 1)
    columns = {
        "difference": tukey.statistic,
        "low": limits.low,
        "high": limits.high,
        "p": tukey.pvalue,
    }
    by_pair = pd.DataFrame(
        {name: values_of_pairs[pairs] for name, values_of_pairs in columns.items()}
    )
    by_pair.index = pd.Index([f"{names[i]} - {names[k]}" for i, k in zip(*pairs)], name="pair")
    return (
        pd.DataFrame.from_dict(means, orient="index"),
        by_pair,
        float(f_oneway(*values.values()).pvalue),
    )


def report(folder: str | Path) -> str:
    """Report the judgements criterion by criterion; of one that cannot be compared yet, why."""
    ratings, key = read_ratings(folder), read_key(folder)
    parts = [
        f"{one} and {other} have the same judgements everywhere: remove one if it is a copy"
        for one, other in equal_forms(folder)
    ]
    for criterion in (*key["criteria"], BEST_WORST):
        values = by_system(ratings, criterion)
        if not values:
            parts.append(f"{criterion}: nothing is filled in yet")
            continue
        try:
            means, pairs, p = compare_systems(
                {name: values[name] for name in key["systems"] if name in values}
            )
        except InputError as error:
            parts.append(f"{criterion}: {error}")
            continue
        alpha = agreement(ratings, criterion)
        own: Any = ratings[ratings["criterion"] == criterion]
        raters = own["rater"].nunique()
        if alpha is not None:
            agreed = f"{alpha:.2f}"
        elif raters < 2:
            agreed = "needs two raters"
        elif own["value"].nunique() < 2:
            agreed = "needs ratings that differ: all are equal"
        else:
            agreed = "needs two raters of the same summaries"
        variance = (
            "all ratings are the same" if np.isnan(p) else f"analysis of variance: p = {p:.2g}"
        )
        head = f"{criterion} ({raters} raters, Krippendorff's alpha {agreed}; {variance})"
        parts.append(f"{head}\n{means}\n\n{pairs.round(4).to_string(na_rep='-')}")
    return "\n\n".join(parts)
