"""Exercises of the page that compares the models."""

from collections.abc import Iterator

import numpy as np

from companion.exercises.exercise import Case, Exercises
from lib.evaluation.bootstrap import FEWEST, paired_bootstrap

PAGE = Exercises()
check, grade, progress = PAGE.check, PAGE.grade, PAGE.progress


@PAGE.cases(1, points=2)
def interval_of_difference() -> Iterator[Case]:
    for count, mean, spread in ((30, 1.0, 3.0), (100, -4.0, 8.0)):
        random = np.random.default_rng(count)
        first = random.normal(35, 9, count)
        second = first + random.normal(mean, spread, count)
        ends = [(found := paired_bootstrap(first, second, resamples=4000)).low, found.high]
        luck = 0.2 * (second - first).std() / count**0.5  # other draws give other ends: 0.2 standard errors
        yield Case(f"{count} documents", (first, second), ends, tolerance=luck / max(1, *map(abs, ends)))


def _least_documents(difference: float, spread: float) -> int:
    """The least for a star, where half of the documents differ by `spread` more and half by as much less: a resample
    has a binomial number of the former."""
    random, low, high = np.random.default_rng(0), FEWEST, 2000  # no star, a star
    while high - low > 1:
        count = (low + high) // 2
        more = random.binomial(count, 0.5, 50_000)
        star = np.percentile(abs(difference) + spread * (2 * more / count - 1), 2.5) > 0
        low, high = (low, count) if star else (count, high)
    return high


@PAGE.cases(2, points=3)
def documents_for_a_star() -> Iterator[Case]:
    for difference, spread in ((0.6, 3.0), (1.0, 8.0), (-2.0, 7.0)):
        what = f"a difference of {difference:+}, spread {spread}"
        yield Case(what, (difference, spread), _least_documents(difference, spread), tolerance=0.1)
