"""Intervals of means over documents and seeds, and which differences between systems are real."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

LEAST_WEIGHT = 1e-12  # instead of 0, to divide by
FEWEST = 10  # documents; resamples of fewer are too similar to show how uncertain a mean is


def no_interval(count: int, unit: str = "document") -> str:
    """Explain why so few documents, or other units, have no interval; an empty text if there are
    enough."""
    return "" if count >= FEWEST else f"no interval: {count} {unit}{'s' * (count != 1)}"


@dataclass(frozen=True)
class Interval:
    """A mean over documents with its 95% bootstrap interval, in percent. `str` does not show an
    interval that says nothing: of fewer documents than `FEWEST`, and of documents that all have the
    mean."""

    mean: float
    low: float
    high: float
    count: int = field(default=FEWEST, compare=False)  # documents
    unit: str = field(default="document", compare=False)

    @property
    def drawn(self) -> list[float]:
        """Mean, low and high for a figure: where no interval can be had, a point."""
        return [self.mean] * 3 if no_interval(self.count) else [self.mean, self.low, self.high]

    def __str__(self) -> str:
        mean, low, high = f"{self.mean:.2f}", f"{self.low:.2f}", f"{self.high:.2f}"
        if said := no_interval(self.count, self.unit):
            return f"{mean} ({said})"
        return mean if low == high else f"{mean} [{low}, {high}]"


def interval(
    values: ArrayLike,
    seed: int = 0,
    resamples: int = 1000,
    weights: ArrayLike | None = None,
    unit: str = "document",
) -> Interval:
    """Mean of `values` [documents], or of several runs [runs, documents], and the 2.5th and 97.5th
    percentile of the means of resampled documents; of several runs, these are resampled too.

    weights: of the same shape, for a weighted mean: a share that is pooled over documents; 0 where
    all weights are. unit: what the values are of, where it is not documents.
    """
    rows, row_weights = _by_run(values, weights)
    means = _resampled(rows, row_weights, np.random.default_rng(seed), resamples)
    low, high = np.percentile(means, [2.5, 97.5])
    return Interval(_mean(rows, row_weights), low, high, rows.shape[1], unit)


@dataclass(frozen=True)
class Difference:
    """The difference that a second system makes, in percent: 95% bootstrap interval, and the share
    of resamples (twice the smaller side) that say otherwise. Of fewer than `FEWEST` documents only
    the mean has a meaning."""

    mean: float
    low: float
    high: float
    p: float
    count: int = field(default=FEWEST, compare=False)  # documents

    @property
    def is_real(self) -> bool:
        """Whether the interval can be had, and excludes 0."""
        return self.count >= FEWEST and (self.low > 0 or self.high < 0)

    def __str__(self) -> str:
        return self.text(2)

    def text(self, digits: int) -> str:
        """The difference, its interval and p, or why there is no interval."""
        if said := no_interval(self.count):
            return f"{self.mean:+.{digits}f} ({said})"
        low, high = f"{self.low:+.{digits}f}", f"{self.high:+.{digits}f}"
        p = "< 0.01" if self.p < 0.01 else f"{self.p:.2f}"
        return f"{self.mean:+.{digits}f} [{low}, {high}], p {p}"


def paired_bootstrap(
    first: ArrayLike,
    second: ArrayLike,
    seed: int = 0,
    resamples: int = 2000,
    weights: Sequence[ArrayLike | None] = (None, None),
) -> Difference:
    """Compute `second` minus `first`, both [documents] or [runs, documents] over the same documents
    (Koehn 2004).

    Documents are drawn together for both. Runs are drawn separately, because their seeds have
    nothing in common. Raises ValueError if the numbers of documents differ.
    """
    a, a_weights = _by_run(first, weights[0])
    b, b_weights = _by_run(second, weights[1])
    if a.shape[1] != b.shape[1]:
        raise ValueError(f"{a.shape[1]} and {b.shape[1]} documents cannot be paired")
    random = np.random.default_rng(seed)
    documents = random.integers(0, a.shape[1], (resamples, a.shape[1]))
    # The random numbers of the second system come first.
    b_means = _resampled(b, b_weights, random, resamples, documents)
    a_means = _resampled(a, a_weights, random, resamples, documents)
    drawn = b_means - a_means
    low, high = np.percentile(drawn, [2.5, 97.5])
    p = min(1.0, 2 * min((drawn <= 0).mean(), (drawn >= 0).mean()))
    return Difference(_mean(b, b_weights) - _mean(a, a_weights), low, high, p, a.shape[1])


def _by_run(values: ArrayLike, weights: ArrayLike | None) -> tuple[np.ndarray, np.ndarray]:
    """Return values and weights as [runs, documents]; without weights all are 1."""
    rows = np.atleast_2d(np.asarray(values, dtype=float))
    if weights is None:
        return rows, np.ones_like(rows)
    return rows, np.atleast_2d(np.asarray(weights, dtype=float))


def _mean(values: np.ndarray, weights: np.ndarray) -> float:
    """Mean of the values; 0 where there are none."""
    return values.sum() / np.maximum(weights.sum(), LEAST_WEIGHT)


def _resampled(
    values: np.ndarray,
    weights: np.ndarray,
    random: np.random.Generator,
    resamples: int,
    documents: np.ndarray | None = None,
) -> np.ndarray:
    """Compute means of resampled documents (given, or drawn), and of resampled runs where there are
    several."""
    runs, count = values.shape
    if documents is None:
        documents = random.integers(0, count, (resamples, count))
    if runs > 1:
        chosen = random.integers(0, runs, (resamples, runs))
    else:
        chosen = np.zeros((resamples, 1), dtype=int)
    means = []
    for rows, columns in zip(chosen, documents):
        draw = np.ix_(rows, columns)
        means.append(_mean(values[draw], weights[draw]))
    return np.array(means)
