"""95 % intervals of a share, of a mean, and of a difference whose numbers are not known."""

import math
from collections.abc import Mapping
from typing import Any

from scipy import stats

Records = Mapping[int, Mapping[str, Any]]  # a row's, by seed


def wilson_interval(right: int, total: int) -> tuple[float, float]:
    """The ends, 0 … 1, of the 95 % interval of a share of independent answers that are right.

    The method is that of E. B. Wilson, 1927.
    """
    interval = stats.binomtest(right, total).proportion_ci(0.95, method="wilson")
    return interval.low, interval.high


def t95(degrees: float) -> float:
    """Student's t: 95 % of its distribution with so many degrees of freedom lie within ± t."""
    return float(stats.t.ppf(0.975, degrees))


def half_width(deviation: float, n: int) -> float:
    """Half of the 95 % interval of the mean of n numbers with this sample standard deviation."""
    return t95(n - 1) * deviation / math.sqrt(n)


def difference_of_means(
    before: tuple[float, float], after: tuple[float, float], n: int
) -> tuple[float, float]:
    """The difference of two means, and half of Welch's 95 % interval.

    Of n numbers ``before`` and of n independent ones ``after``: mean and sample standard deviation.
    """
    difference, spread = before[0] - after[0], math.hypot(before[1], after[1])
    degrees = (n - 1) / sum((deviation / spread) ** 4 for _, deviation in (before, after))
    return difference, t95(degrees) * spread / math.sqrt(n)
