"""Effects that claims rest on: differences of two systems, with intervals that count documents and
trainings."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import median

import numpy as np
from scipy import stats

from companion.results.first_words import first_words_of
from companion.results.kept import stored_numbers
from companion.tasks.task import by_row
from lib.system.errors import one_of

student_t = stats.t
PLAIN = ", plain beam search"  # the end of a row's label
BOOTSTRAP_WIDTH = 3.92  # of a 95% interval, in standard errors
SEED_COUNTS = 0.05  # p of the F test below which trainings of equal seeds are paired


@dataclass(frozen=True)
class Effect:
    """The difference of two systems, the second minus the first, with its 95% interval (or its
    range over seeds).

    freedom: degrees of freedom of the t distribution that the interval is of.
    """

    mean: float
    low: float
    high: float
    seeds: int
    is_range: bool = False
    freedom: float = math.inf

    @property
    def smallest_seen(self) -> float | None:
        """The smallest true effect whose interval would exclude 0 in 80% of all repetitions; None
        for a range."""
        if self.is_range:
            return None
        half = (self.high - self.low) / 2
        return float(
            half * (1 + student_t.ppf(0.8, self.freedom) / student_t.ppf(0.975, self.freedom))
        )


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

    @property
    def is_of_table(self) -> bool:
        """Whether two rows of a table of scores are compared."""
        return not self.effect and ("_table" in self.source or self.source.startswith("trained_"))

    @property
    def is_ours(self) -> bool:
        """Whether summaries are searched for in a way that is not the papers'."""
        return "blocking" in self.label or "slides decided first" in self.label


@cache
def effect_of(setting: Setting) -> Effect:
    """Read the effect of a setting. Raises InputError where its source has no such comparison."""
    if setting.effect:
        found = _stored_effect(setting)
    elif setting.is_of_table:
        found = _table_effect(setting)
    else:
        found = _task_effect(setting)
    low, high = sorted((setting.scale * found.low, setting.scale * found.high))
    return replace(found, mean=setting.scale * found.mean, low=low, high=high)


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
    numbers, column = stored_numbers(setting.source), setting.column
    rows = {row["label"]: row for row in numbers["rows"]}
    pair = [rows[one_of(label, rows, "row")] for label in (setting.first, setting.second)]
    mean = pair[1]["scores"][column]["mean"] - pair[0]["scores"][column]["mean"]
    parts = [*_of_trainings(numbers, pair, column), _of_documents(numbers, rows, setting)]
    variance = sum(part for part, _ in parts)
    # Satterthwaite's degrees of freedom
    freedom = math.inf
    if variance:
        freedom = variance**2 / sum(part**2 / (count - 1) for part, count in parts)
    half = float(student_t.ppf(0.975, freedom)) * math.sqrt(variance)
    seeds = min(len(row["seeds"]) for row in pair if "seeds" in row)
    return Effect(mean, mean - half, mean + half, seeds, freedom=freedom)


def _of_trainings(numbers: dict, pair: Sequence[dict], column: str) -> list[tuple[float, int]]:
    """Compute the parts of a difference's variance that are due to trainings, and of how many
    trainings each is."""
    by_seed = [np.array(row["by seed"][column]) for row in pair if len(row.get("seeds", ())) > 1]
    same_seeds = len(by_seed) == 2 and pair[0]["seeds"] == pair[1]["seeds"]
    if same_seeds and seed_counts(numbers, pair[0]["label"].endswith(PLAIN), column):
        by_seed = [by_seed[1] - by_seed[0]]
    return [(float(values.var(ddof=1)) / len(values), len(values)) for values in by_seed]


def _of_documents(numbers: dict, rows: dict[str, dict], setting: Setting) -> tuple[float, int]:
    """Compute the part of a difference's variance that is due to documents, and their number.

    A few trainings that are drawn again, as the bootstrap of a table does it, have only
    (n - 1) / n of the variance between n trainings. What is left of the bootstrap's variance
    without it is the documents'. Where a table does not compare the two rows, it is the median of
    the pairs that it compares in the same decoding.
    """
    wanted = {setting.first, setting.second}
    others = []
    for pair in numbers["pairs"]:
        labels = {pair["first"], pair["second"]}
        by_seed = [rows[label].get("by seed", {}).get(setting.column, ()) for label in labels]
        drawn = sum(
            np.var(values, ddof=1) * (len(values) - 1) / len(values) ** 2
            for values in by_seed
            if len(values) > 1
        )
        interval = pair[setting.column]
        whole = ((interval["high"] - interval["low"]) / BOOTSTRAP_WIDTH) ** 2
        of_documents = max(0.0, float(whole - drawn))
        if labels == wanted:
            return of_documents, numbers["documents"]
        if _are_plain(labels) == _are_plain(wanted):
            others.append(of_documents)
    return median(others), numbers["documents"]


def _are_plain(labels: Iterable[str]) -> bool:
    return any(label.endswith(PLAIN) for label in labels)


def seed_counts(numbers: dict, plain: bool, column: str) -> bool:
    """Return whether trainings of one seed have something in common, by an F test over all rows of
    a table that have the same three seeds or more.

    plain: of the rows with plain beam search, or of the others.
    """
    rows = [
        row
        for row in numbers["rows"]
        if len(row.get("seeds", ())) >= 3 and row["label"].endswith(PLAIN) == plain
    ]
    rows = [row for row in rows if row["seeds"] == rows[0]["seeds"]]
    if len(rows) < 3:
        return False
    values = np.array([row["by seed"][column] for row in rows])
    count, seeds = values.shape
    of_seeds = values.mean(0) - values.mean()
    rest = values - values.mean(1, keepdims=True) - of_seeds
    freedom = (seeds - 1, (count - 1) * (seeds - 1))
    ratio = (count * (of_seeds**2).sum() / freedom[0]) / ((rest**2).sum() / freedom[1])
    return bool(stats.f.sf(ratio, *freedom) < SEED_COUNTS)


def has_learned(setting: Setting) -> bool:
    """Return whether the better system of a comparison of trained rows is above the first words of
    the texts, as many as it writes.

    Comparisons with what is not trained, and of other measures than scores of summaries, have no
    such floor.
    """
    if not setting.is_of_table:
        return True
    rows = {row["label"]: row for row in stored_numbers(setting.source)["rows"]}
    pair = [rows[label] for label in (setting.first, setting.second)]
    if not all("seeds" in row for row in pair):
        return True
    column = setting.column if setting.column.endswith("recall") else "R-1"
    better = max(pair, key=lambda row: row["scores"].get(column, {"mean": 0})["mean"])
    floors = first_words_of(setting.source)
    if better["label"] in floors:
        return better["scores"]["R-1"]["mean"] > floors[better["label"]]["R-1"]
    first_bytes = rows.get("Lead (75 bytes)")
    if first_bytes and column in better["scores"]:
        return better["scores"][column]["mean"] > first_bytes["scores"][column]["mean"]
    return True


def size_of(setting: Setting) -> float:
    """Return the numbers that a training of the setting's rows has updated: parameters times
    steps."""
    rows = stored_numbers(setting.source)["rows"]
    sizes = [
        row["parameters"] * row["steps"]
        for row in rows
        if row["label"] in (setting.first, setting.second) and row.get("steps")
    ]
    return max(sizes, default=0)


def _task_effect(setting: Setting) -> Effect:
    rows = by_row(stored_numbers(setting.source)["results"])
    second = _by_seed(rows, setting.second, setting.column, setting.source)
    first = dict.fromkeys(second, 0.0)
    if setting.first or setting.minus:
        label = setting.first or setting.second
        first = _by_seed(rows, label, setting.minus or setting.column, setting.source)
    values = np.array([second[seed] - first[seed] for seed in second if seed in first])
    return Effect(values.mean(), values.min(), values.max(), len(values), is_range=True)


def _by_seed(rows: dict, label: str, column: str, source: str) -> dict[int, float]:
    row = rows[one_of(label, rows, f"row of {source}")]
    return dict(zip(row["seed"], row[column]))
