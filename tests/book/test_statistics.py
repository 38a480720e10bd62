"""The intervals that the chapters use."""

from statistics import mean, stdev
from typing import Any

import pytest
from scipy.stats import ttest_1samp, ttest_ind

from capsnet_book.statistics import difference_of_means, half_width, wilson_interval


def ends(difference: tuple[float, float]) -> Any:
    value, half = difference
    return pytest.approx((value - half, value + half))


def test_wilsons_interval_is_of_shares_as_far_off_as_its_definition_says() -> None:
    for right, total in ((7, 31), (9964, 10_000)):
        for p in wilson_interval(right, total):
            deviations = abs(right / total - p) / (p * (1 - p) / total) ** 0.5
            assert deviations == pytest.approx(1.959964)
    assert wilson_interval(0, 1)[0] == 0 and wilson_interval(10, 10)[1] == 1


def test_intervals_are_scipys() -> None:
    before, after = [1.2, 1.8, 1.1], [1.0, 1.1, 1.2]
    interval = ttest_1samp(before, 0).confidence_interval(0.95)
    assert tuple(interval) == ends((mean(before), half_width(stdev(before), 3)))
    welch = ttest_ind(before, after, equal_var=False).confidence_interval(0.95)
    both = ((mean(x), stdev(x)) for x in (before, after))
    assert tuple(welch) == ends(difference_of_means(*both, n=3))
