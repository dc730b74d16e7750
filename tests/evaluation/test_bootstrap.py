"""Intervals over documents and seeds, and differences between systems."""

import numpy as np
import pytest

from lib.evaluation.bootstrap import Difference, Interval, interval, paired_bootstrap


def test_intervals_over_runs_are_wider():
    """The same documents; runs that differ by ten points are drawn as well."""
    random = np.random.default_rng(0)
    documents = random.normal(30, 3, 200)
    alone, equal, apart = (
        interval(documents),
        interval([documents] * 3),
        interval([documents + d for d in (-10, 0, 10)]),
    )
    assert alone.mean == pytest.approx(equal.mean) and apart.mean == pytest.approx(alone.mean)
    assert equal.high - equal.low == pytest.approx(alone.high - alone.low, rel=0.15)
    assert apart.high - apart.low > 5 * (alone.high - alone.low)
    assert apart.low < apart.mean - 5 and apart.high > apart.mean + 5, "each of the runs is drawn"


@pytest.mark.parametrize("place", [0, 14, 29])
def test_each_document_is_as_likely_as_any(place):
    """One of 30 has all the points: it is drawn once on average, and more than three times in 2 of
    100 resamples."""
    values = np.zeros(30)
    values[place] = 30
    assert str(interval(values, resamples=20_000)) == "1.00 [0.00, 3.00]"


def test_ends_are_compared_as_numbers():
    assert (
        str(Interval(10, 9, 11)) == "10.00 [9.00, 11.00]"
        and str(Interval(10, 10.001, 10.002)) == "10.00"
    )


def test_pooled_shares():
    """3 of 4 and 0 of 96: three percent of all, not the mean of 75 and 0."""
    assert interval([300.0, 0.0], weights=[4, 96]).mean == pytest.approx(3.0)


@pytest.mark.filterwarnings("error")
def test_shares_of_nothing():
    """Summaries without a trigram, of which none is repeated."""
    nothing = np.zeros(4)
    assert interval(nothing, weights=nothing) == Interval(0, 0, 0)
    against = paired_bootstrap(nothing, np.ones(4), weights=(nothing, None))
    assert against == Difference(1, 1, 1, 0)
    assert paired_bootstrap(np.ones(4), nothing, weights=(None, nothing)) == Difference(
        -1, -1, -1, 0
    )


def test_paired_bootstrap_sees_what_intervals_hide():
    random = np.random.default_rng(1)
    hard = random.normal(30, 10, 150)  # how hard a document is, for every system
    first, second = hard + random.normal(0, 1, 150), hard + 1 + random.normal(0, 1, 150)
    a, b = interval(first), interval(second)
    assert a.low < b.low < a.high < b.high, "the intervals overlap"
    found = paired_bootstrap(first, second)
    assert (
        found.low > 0.5
        and found.p < 0.01
        and found.mean == pytest.approx(second.mean() - first.mean())
    )
    same = paired_bootstrap(first, first + random.normal(0, 1, 150))
    assert same.low < 0 < same.high and same.p > 0.05
    assert paired_bootstrap(second, first).high < -0.5, "the second minus the first"
    with pytest.raises(ValueError, match="150 and 2 documents cannot be paired"):
        paired_bootstrap(first, [1.0, 2.0])


def test_paired_bootstrap_draws_seeds():
    """One lucky run of three is no proof."""
    documents = np.random.default_rng(2).normal(30, 1, 100)
    lucky = [documents, documents, documents + 9]
    found = paired_bootstrap([documents] * 3, lucky)
    assert found.mean == pytest.approx(3) and found.low <= 0.01 and found.p > 0.05


def test_p_is_two_sided_and_an_interval_holds_95_of_100():
    """Of 400 differences with a mean of 1.8 standard errors: as a normal distribution has it."""
    differences = np.random.default_rng(0).normal(0, 1, 400)
    differences = (differences - differences.mean()) / differences.std() + 1.8 / 20
    found = paired_bootstrap(np.zeros(400), differences, resamples=20_000)
    assert found.p == pytest.approx(0.072, abs=0.012) and str(found).endswith(f"], p {found.p:.2f}")
    assert found.high - found.low == pytest.approx(2 * 1.96 / 20, rel=0.05)


@pytest.mark.parametrize(("count", "said"), [(1, "1 document"), (9, "9 documents"), (10, "")])
def test_few_documents_have_no_interval(count, said):
    """Means stay, and a difference of few documents is never called real. Nor has a mean that all
    documents have an interval."""
    values, better = np.full(count, 10.0), np.full(count, 12.0)
    shown, drawn = str(interval(values)), interval(values + np.arange(count)).drawn
    against = paired_bootstrap(values, better)
    if said:
        assert (
            shown == f"10.00 (no interval: {said})"
            and str(against) == f"+2.00 (no interval: {said})"
        )
        assert drawn == [drawn[0]] * 3 and not against.is_real
    else:
        assert shown == "10.00" and str(against) == "+2.00 [+2.00, +2.00], p < 0.01"
        assert drawn[1] < drawn[0] < drawn[2] and against.is_real
    assert str(interval(values, unit="rating")) == shown.replace("document", "rating")
    assert not paired_bootstrap(np.arange(20.0), np.arange(20.0)[::-1]).is_real
