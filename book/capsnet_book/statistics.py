"""95 % intervals, and differences of error rates as the chapters report them."""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from scipy import stats

from capsnet_book.ledger import counted, missed

Records = Mapping[int, Mapping[str, Any]]  # a row's, by seed
Cost = tuple[float, float | None, int]  # percentage points, half of their 95 % interval, seeds


def wilson_interval(right: int, total: int) -> tuple[float, float]:
    """The ends, 0 … 1, of the 95 % interval of a share, by E. B. Wilson's method of 1927.

    Args:
        right: right answers, 0 … total.
        total: all answers, independent of each other; at least 1.

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
        before: one number a pair, of training runs that share a seed, say; at least two pairs.
        after: the other number of each pair.
        least_deviation: the least that the differences' standard deviation is assumed to be; two
            that agree by chance would otherwise make an interval of no width.

    Raises:
        ValueError: not as many before as after, or fewer than two.
    """
    differences = [x - y for x, y in zip(before, after, strict=True)]
    deviation = max(statistics.stdev(differences), least_deviation)
    return statistics.mean(differences), half_width(deviation, len(differences))


def unpaired_difference(before: Sequence[float], after: Sequence[float]) -> tuple[float, float]:
    """The difference of the means before − after, and the half-width of its 95 % interval.

    The interval is Welch's: the two, of at least two numbers each, may spread differently.
    """
    found = stats.ttest_ind(before, after, equal_var=False).confidence_interval(0.95)
    return statistics.mean(before) - statistics.mean(after), float(found.high - found.low) / 2


def difference_of_means(
    before: tuple[float, float], after: tuple[float, float], n: int
) -> tuple[float, float]:
    """As :func:`unpaired_difference`, where the numbers themselves are not known.

    Args:
        before: mean and sample standard deviation of n numbers.
        after: the same of n others, independent of these; not both without spread.
        n: how many there are of each, at least 2.
    """
    difference, spread = before[0] - after[0], math.hypot(before[1], after[1])
    degrees = (n - 1) / sum((deviation / spread) ** 4 for _, deviation in (before, after))
    return difference, t95(degrees) * spread / math.sqrt(n)


def error_added(with_it: Records, without: Records) -> Cost:
    """The error rate that a change adds, as :func:`difference_by_seed`."""
    more, base = ({seed: missed(r) for seed, r in of.items()} for of in (with_it, without))
    one_image = 100 / sum(images["total"] for images in counted(next(iter(without.values()))))
    return difference_by_seed(more, base, one_image)


def error_added_unpaired(with_it: Records, without: Records) -> tuple[float, float]:
    """The error rate that a change adds, of all runs, as if equal seeds had nothing in common."""
    more, base = ([missed(record) for record in of.values()] for of in (with_it, without))
    return unpaired_difference(more, base)


def difference_by_seed(more: Mapping[int, float], base: Mapping[int, float], least: float) -> Cost:
    """The mean of more − base, in percentage points, over the seeds that both have.

    Fewer than three differences say too little about their spread: they get no interval. `least` is
    the least that the differences' standard deviation is assumed to be, such as one image.
    """
    seeds = sorted(more.keys() & base.keys())
    changed, unchanged = ([of[seed] for seed in seeds] for of in (more, base))
    if len(seeds) < 3:
        return statistics.mean(changed) - statistics.mean(unchanged), None, len(seeds)
    return *paired_difference(changed, unchanged, least), len(seeds)


def signed(cost: Cost) -> str:
    """A cost in words: "+0.12 ± 0.05"."""
    points, half, _ = cost
    text = f"{points:+z.2f}" if half is None else f"{points:+z.2f} ± {half:.2f}"
    return text.replace("-", "−")


def signed_with_seeds(cost: Cost) -> str:
    """A cost in words, with its unit: "+0.12 ± 0.05 points, 5 seeds"."""
    seeds = cost[2]
    return f"{signed(cost)} points, {seeds} seed{'s' * (seeds > 1)}"
