"""The records of the papers' claims, the effects that they name, and the verdicts that follow from
these."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from companion.results.kept import stored_numbers
from companion.tasks.task import by_row
from lib.system.errors import InputError, one_of

# A 95% interval is 3.92 standard errors wide. It excludes 0 in 80% of repetitions if the true
# effect is 2.8 of them.
SEEN_SHARE = 2.8 / 3.92
EXPLAINED = 0.5  # a control explains an effect if it has this share of it


@dataclass(frozen=True)
class Effect:
    """The difference of two systems, the second minus the first, with its 95% interval (or its
    range over seeds)."""

    mean: float
    low: float
    high: float
    seeds: int
    is_range: bool = False

    @property
    def smallest_seen(self) -> float | None:
        """The smallest true effect that this comparison would see in 80% of all repetitions; None
        for a range."""
        return None if self.is_range else SEEN_SHARE * (self.high - self.low)


@dataclass(frozen=True)
class Setting:
    """A comparison whose result is stored in `figures/SOURCE.json` or, as `trained_NAME`, beside a
    trained run.

    It is a pair of a table, an entry of `effects` or `changes`, or two rows of a synthetic task's
    results.
    """

    label: str
    source: str
    first: str = ""
    second: str = ""
    column: str = "R-1"
    # of a task: the measure of the same row that is subtracted, where there is no first row
    minus: str = ""
    effect: str = ""
    # 100 for percent; negative where the stored difference has the other direction
    scale: float = 1
    synthetic: bool = False
    # of a control: what is left of the effect once the other explanation is taken away
    remains: bool = False


@dataclass(frozen=True)
class Claim:
    """A claim of a paper. The first setting is the paper's own decoding on real texts, and gives
    the verdict."""

    id: str
    claim: str
    place: str  # in the paper
    unit: str  # of every effect
    docs: str  # a section in docs/papers
    published: float | None = None  # the paper's effect
    # the smallest effect that counts where the paper has no number, declared beforehand
    counts: float | None = None
    shows: str = ""  # what the paper has instead of a number
    settings: tuple[Setting, ...] = ()
    controls: tuple[Setting, ...] = ()
    readme: bool = False
    note: str = ""
    paper: str = field(default="", compare=False)

    @property
    def expected(self) -> float | None:
        """The effect that an interval includes or excludes: the paper's, or the smallest one that
        counts."""
        return self.counts if self.published is None else self.published


def records_of(paper: str) -> dict[str, Any]:
    """Read a paper's `claims` and `sources` (command and minutes of stored results); a new one may
    have no file."""
    path = Path(__file__).with_name(f"{paper}.toml")
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


@cache
def claims_of(paper: str) -> tuple[Claim, ...]:
    """Read the claims of a paper."""
    rows = records_of(paper).get("claims", [])
    return TypeAdapter(tuple[Claim, ...]).validate_python([row | {"paper": paper} for row in rows])


@cache
def effect_of(setting: Setting) -> Effect:
    """Read the effect of a setting. Raises InputError where its source has no such comparison."""
    if setting.effect:
        found = _stored_effect(setting)
    elif "_table" in setting.source or setting.source.startswith("trained_"):
        found = _table_effect(setting)
    else:
        found = _task_effect(setting)
    low, high = sorted((setting.scale * found.low, setting.scale * found.high))
    return Effect(setting.scale * found.mean, low, high, found.seeds, found.is_range)


def _stored_effect(setting: Setting) -> Effect:
    numbers = stored_numbers(setting.source)
    entries = {
        entry.get("name", entry.get("change")): entry
        for entry in numbers.get("effects") or numbers["changes"]
    }
    entry = entries[one_of(setting.effect, entries, f"effect in {setting.source}")]
    return Effect(
        entry.get("difference", entry["mean"]),
        entry["low"],
        entry["high"],
        len(entry.get("seeds", [0])),
    )


def _table_effect(setting: Setting) -> Effect:
    numbers = stored_numbers(setting.source)
    seeds = {row["label"]: len(row["seeds"]) for row in numbers["rows"] if "seeds" in row}
    fewest = min(seeds[label] for label in (setting.first, setting.second) if label in seeds)
    for pair in numbers["pairs"]:
        if {pair["first"], pair["second"]} == {setting.first, setting.second}:
            sign = 1 if pair["first"] == setting.first else -1
            mean, low, high = (sign * pair[setting.column][key] for key in ("mean", "low", "high"))
            return Effect(mean, min(low, high), max(low, high), fewest)
    raise InputError(f"{setting.source} does not compare {setting.first!r} and {setting.second!r}")


def _task_effect(setting: Setting) -> Effect:
    rows = by_row(stored_numbers(setting.source)["results"])
    second = rows[one_of(setting.second, rows, f"row of {setting.source}")]
    values = np.array(second[setting.column], dtype=float)
    if setting.first or setting.minus:
        first = rows[one_of(setting.first or setting.second, rows, f"row of {setting.source}")]
        values = values - first[setting.minus or setting.column]
    return Effect(values.mean(), values.min(), values.max(), len(values), is_range=True)


def verdict(claim: Claim) -> str:
    """Determine the verdict on a claim from the stored results (papers.md explains the
    verdicts)."""
    if not claim.settings:
        return "not tested"
    decisive = claim.settings[0]
    found = effect_of(decisive)
    said = _judge(claim, found)
    if said in ("confirmed", "confirmed, smaller than the paper's", "opposite"):
        if explanation := _explanation(claim.controls, found):
            said = f"explained by a control: {explanation}"
        elif decisive.synthetic and said != "opposite":
            return "confirmed in a synthetic task only"
    elif _confirmed_elsewhere(claim.settings[1:]):
        said += "; confirmed in a synthetic task"
    blocking = "with trigram blocking, " if "blocking" in decisive.label else ""
    return {1: "one seed: ", 2: "two seeds: "}.get(found.seeds, "") + blocking + said


def _judge(claim: Claim, found: Effect) -> str:
    counts = claim.counts or 0
    if -counts < found.low and found.high < counts:
        return "no effect that counts"
    if found.low > 0 and found.mean >= counts:
        smaller = claim.published is not None and found.high < claim.published
        return "confirmed, smaller than the paper's" if smaller else "confirmed"
    if found.high < 0:
        return "opposite"
    excluded = claim.published is not None and found.high < claim.published
    return "no effect as large as the paper's" if excluded else "cannot tell"


def _explanation(controls: Sequence[Setting], found: Effect) -> str:
    """Name the first control that has most of the effect, or that leaves little of it."""
    for control in controls:
        share = effect_of(control).mean / found.mean
        if (1 - share if control.remains else share) >= EXPLAINED:
            return control.label
    return ""


def _confirmed_elsewhere(settings: Sequence[Setting]) -> bool:
    synthetic = [effect_of(setting) for setting in settings if setting.synthetic]
    return bool(synthetic) and all(found.low > 0 and found.seeds >= 3 for found in synthetic)
