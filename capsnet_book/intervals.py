"""How far a count of mistakes, or a difference of trainings, may be from what it estimates."""

import math
import statistics
from collections.abc import Sequence

# Student's t by degrees of freedom: 95 % of its distribution lie within ± t.
T95 = {
    1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262
}  # fmt: skip


def wilson_interval(right: int, total: int, z: float = 1.96) -> tuple[float, float]:
    """The shares p for which a count of right answers is within z standard deviations of p·total.

    Args:
        right: right answers, 0 … total.
        total: all answers, independent of each other.
        z: standard deviations; 1.96 for 95 %.

    Returns:
        The lowest and the highest such share, 0 … 1.

    Raises:
        ValueError: the counts are not 0 ≤ right ≤ total, total at least 1.

    Source: E. B. Wilson, Probable Inference, the Law of Succession, and Statistical Inference,
    Journal of the American Statistical Association 22 (1927).
    """
    if not 0 <= right <= total or total < 1:
        raise ValueError(f"expected 0 ≤ right ≤ total and 1 ≤ total, got {right} and {total}")
    share = right / total
    centre = (share + z**2 / (2 * total)) / (1 + z**2 / total)
    inside = share * (1 - share) / total + (z / (2 * total)) ** 2
    half = z * math.sqrt(inside) / (1 + z**2 / total)
    return max(0.0, centre - half), min(1.0, centre + half)


def paired_difference(
    before: Sequence[float], after: Sequence[float], least_deviation: float = 0.0
) -> tuple[float, float]:
    """The mean of before − after, pair by pair, and the half-width of its 95 % interval.

    Args:
        before: one number a pair, of trainings that share a seed, say; 2 to 10 pairs.
        after: the other number of each pair.
        least_deviation: what the differences' standard deviation is taken to be at least; two that
            agree by chance would otherwise make an interval of no width.

    Returns:
        The mean, and t·s/√n, where s is the differences' sample standard deviation and t Student's
        with n − 1 degrees of freedom.

    Raises:
        ValueError: not as many before as after, or not 2 to 10 of them.

    Source: Student, The Probable Error of a Mean, Biometrika 6 (1908).
    """
    n = len(before)
    if len(after) != n or n - 1 not in T95:
        raise ValueError(f"expected 2 to 10 pairs, got {n} numbers before and {len(after)} after")
    differences = [x - y for x, y in zip(before, after, strict=True)]
    deviation = max(statistics.stdev(differences), least_deviation)
    return statistics.mean(differences), T95[n - 1] * deviation / math.sqrt(n)
