"""The intervals that the chapters use."""

from statistics import mean, stdev
from typing import Any

import pytest
from scipy.stats import ttest_1samp, ttest_ind

from capsnet_book.statistics import difference_of_means, half_width


def ends(difference: tuple[float, float]) -> Any:
    value, half = difference
    return pytest.approx((value - half, value + half))


def test_intervals_are_scipys() -> None:
    before, after = [1.2, 1.8, 1.1], [1.0, 1.1, 1.2]
    interval = ttest_1samp(before, 0).confidence_interval(0.95)
    assert tuple(interval) == ends((mean(before), half_width(stdev(before), 3)))
    welch = ttest_ind(before, after, equal_var=False).confidence_interval(0.95)
    both = ((mean(x), stdev(x)) for x in (before, after))
    assert tuple(welch) == ends(difference_of_means(*both, n=3))
