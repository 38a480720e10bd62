"""95 % intervals: of a share, and of the mean difference of pairs. The arithmetic is SciPy's."""

import math
import statistics
from collections.abc import Sequence

from scipy import stats


def wilson_interval(right: int, total: int) -> tuple[float, float]:
    """The 95 % interval of a share, by E. B. Wilson's method of 1927.

    Args:
        right: right answers, 0 … total.
        total: all answers, independent of each other; at least 1.

    Returns:
        The lowest and the highest share, 0 … 1.

    Raises:
        ValueError: ``right`` is below 0 or above ``total``.
    """
    interval = stats.binomtest(right, total).proportion_ci(0.95, method="wilson")
    return interval.low, interval.high


def t95(degrees: float) -> float:
    """Student's t: 95 % of its distribution with so many degrees of freedom lie within ± t."""
    return float(stats.t.ppf(0.975, degrees))


def half_width(deviation: float, n: int) -> float:
    """Half of the 95 % interval of the mean of n numbers with this sample standard deviation."""
    return t95(n - 1) * deviation / math.sqrt(n)


def paired_difference(
    before: Sequence[float], after: Sequence[float], least_deviation: float = 0.0
) -> tuple[float, float]:
    """The mean of before − after, pair by pair, and the half-width of its 95 % interval.

    Args:
        before: one number a pair, of trainings that share a seed, say; at least two pairs.
        after: the other number of each pair.
        least_deviation: what the differences' standard deviation is taken to be at least; two that
            agree by chance would otherwise make an interval of no width.

    Raises:
        ValueError: not as many before as after, or fewer than two.
    """
    differences = [x - y for x, y in zip(before, after, strict=True)]
    deviation = max(statistics.stdev(differences), least_deviation)
    return statistics.mean(differences), half_width(deviation, len(differences))


def difference_of_means(
    before: tuple[float, float], after: tuple[float, float], n: int
) -> tuple[float, float]:
    """The difference before − after, and the half-width of its 95 % interval (Welch's: the two
    may spread differently).

    Args:
        before: mean and sample standard deviation of n numbers.
        after: likewise, of n others, which have nothing to do with these; not both without spread.
        n: how many there are of each, at least 2.
    """
    difference, spread = before[0] - after[0], math.hypot(before[1], after[1])
    degrees = (n - 1) / sum((deviation / spread) ** 4 for _, deviation in (before, after))
    return difference, t95(degrees) * spread / math.sqrt(n)


def unpaired_difference(before: Sequence[float], after: Sequence[float]) -> tuple[float, float]:
    """As :func:`difference_of_means`, of the numbers themselves: at least two of each, and not
    necessarily as many.
    """
    found = stats.ttest_ind(before, after, equal_var=False).confidence_interval(0.95)
    return statistics.mean(before) - statistics.mean(after), float(found.high - found.low) / 2


def main_effect(
    before: Sequence[Sequence[float]], after: Sequence[Sequence[float]]
) -> tuple[float, float]:
    """Of two switches, what turning one saves on average over the other one's positions.

    Args:
        before: for each position of the other switch, one number a training, in the seeds' order.
        after: likewise, with the switch turned.

    Returns:
        As :func:`paired_difference`, of the means over the positions, seed by seed: trainings of
        one seed are not independent of each other.
    """
    one, other = (list(map(statistics.mean, zip(*x, strict=True))) for x in (before, after))
    return paired_difference(one, other)


def verdict(
    measured: tuple[float, float] | None, least: float = -math.inf, most: float = math.inf
) -> str:
    """Whether a claim about a number holds, by the number's 95 % interval.

    Args:
        measured: the interval's ends; None where there is none, as of a single training.
        least: the claim: the number is at least this, …
        most: … and at most this.

    Returns:
        "holds" where every value in the interval is as claimed, "does not hold" where none is, else
        "undecided".
    """
    if measured is None:
        return "undecided"
    low, high = measured
    if least <= low and high <= most:
        return "holds"
    return "does not hold" if high < least or most < low else "undecided"
