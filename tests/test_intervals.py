"""Intervals, against SciPy's."""

import pytest
from scipy.stats import binomtest, norm, t, ttest_rel

from capsnet_book.intervals import T95, paired_difference, wilson_interval
from helpers import Refuses


@pytest.mark.parametrize(("right", "total"), [(0, 1), (10, 10), (7, 31), (9964, 10_000)])
def test_wilson_interval_is_scipys(right: int, total: int) -> None:
    z = float(norm.ppf(0.975))
    expected = binomtest(right, total).proportion_ci(method="wilson")
    assert wilson_interval(right, total, z) == pytest.approx((expected.low, expected.high))
    assert wilson_interval(right, total) == pytest.approx((expected.low, expected.high), abs=1e-4)


@pytest.mark.parametrize(("right", "total"), [(-1, 5), (6, 5), (0, 0)])
def test_counts_that_cannot_be(right: int, total: int, refuses: Refuses) -> None:
    with refuses("0 ≤ right ≤ total", f"got {right} and {total}"):
        wilson_interval(right, total)


def test_students_t_is_scipys() -> None:
    assert list(T95) == list(range(1, 10))
    for degrees, value in T95.items():
        assert value == round(float(t.ppf(0.975, degrees)), 3)


def test_paired_difference_is_scipys() -> None:
    before, after = [1.2, 1.4, 1.1, 1.7, 1.3], [1.0, 1.1, 1.2, 1.2, 1.1]
    expected = ttest_rel(before, after).confidence_interval(0.95)
    mean, half = paired_difference(before, after)
    assert (mean - half, mean + half) == pytest.approx((expected.low, expected.high), abs=1e-3)


def test_a_difference_of_few_pairs() -> None:
    assert paired_difference([2.0, 3.0], [1.0, 2.0]) == (1.0, 0.0)
    mean, half = paired_difference([2.0, 3.0], [1.0, 2.0], least_deviation=0.01)
    assert half == pytest.approx(12.706 * 0.01 / 2**0.5) and mean == 1.0


@pytest.mark.parametrize(("before", "after"), [(0, 0), (1, 1), (2, 3), (11, 11)])
def test_pairs_that_cannot_be(before: int, after: int, refuses: Refuses) -> None:
    with refuses("expected 2 to 10 pairs", f"got {before} numbers before and {after} after"):
        paired_difference([0.0] * before, [0.0] * after)
