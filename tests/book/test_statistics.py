"""The intervals that the chapters use, and differences of error rates as they report them."""

from statistics import mean, stdev
from typing import Any

import pytest
from scipy.stats import ttest_ind, ttest_rel

from capsnet_book.statistics import (
    Cost,
    difference_of_means,
    error_added,
    error_added_unpaired,
    paired_difference,
    signed_with_seeds,
    unpaired_difference,
    wilson_interval,
)


def ends(difference: tuple[float, float]) -> Any:
    value, half = difference
    return pytest.approx((value - half, value + half))


def test_wilsons_interval_is_of_shares_as_far_off_as_its_definition_says() -> None:
    for right, total in ((7, 31), (9964, 10_000)):
        for p in wilson_interval(right, total):
            deviations = abs(right / total - p) / (p * (1 - p) / total) ** 0.5
            assert deviations == pytest.approx(1.959964)
    assert wilson_interval(0, 1)[0] == 0 and wilson_interval(10, 10)[1] == 1


def test_differences_have_scipys_intervals() -> None:
    before, after = [1.2, 1.8, 1.1], [1.0, 1.1, 1.2]
    paired = ttest_rel(before, after).confidence_interval(0.95)
    assert tuple(paired) == ends(paired_difference(before, after))
    welch = ttest_ind(before, after, equal_var=False).confidence_interval(0.95)
    assert tuple(welch) == ends(unpaired_difference(before, after))
    both = ((mean(x), stdev(x)) for x in (before, after))
    assert tuple(welch) == ends(difference_of_means(*both, n=3))
    fewer = ttest_ind(before, after[:2], equal_var=False).confidence_interval(0.95)
    assert tuple(fewer) == ends(unpaired_difference(before, after[:2]))


def record(wrong: int) -> dict[str, Any]:
    """Of a run: so many wrong of a thousand test images, thrice as many of 3,000 others."""
    counts = {"test": (wrong, 1000), "unseen": (3 * wrong, 3000)}
    return {part: {"correct": n - k, "total": n} for part, (k, n) in counts.items()}


def test_a_cost_is_of_the_seeds_that_both_have() -> None:
    base = {seed: record(10) for seed in range(3)}
    assert error_added({2: record(20), 7: record(0)}, base) == (pytest.approx(1), None, 1)
    two = {0: record(20), 1: record(30)}
    assert error_added(two, base) == (pytest.approx(1.5), None, 2)  # too few for an interval
    points, half, seeds = error_added(two | {2: record(40)}, base)
    assert (points, seeds) == (pytest.approx(2), 3)
    assert half == pytest.approx(4.303 * 1 / 3**0.5, rel=1e-3)  # t of two degrees
    by_chance = error_added(dict.fromkeys(base, record(10)), base)
    assert by_chance[1] == pytest.approx(4.303 * 0.025 / 3**0.5, rel=1e-3)  # one image of 4,000


def test_unpaired_a_seed_says_nothing() -> None:
    base = {0: record(10), 1: record(14), 2: record(12)}
    points, half = error_added_unpaired({2: record(24), 1: record(26), 7: record(22)}, base)
    assert points == pytest.approx(1.2)
    # The four degrees of twice three numbers that spread alike, by 0.2 points.
    assert half == pytest.approx(2.776 * 0.2 * (2 / 3) ** 0.5, rel=1e-3)


@pytest.mark.parametrize(
    ("cost", "words"),
    [
        ((0.125, None, 1), "+0.12 points, 1 seed"),
        ((-1.5, 0.25, 5), "−1.50 ± 0.25 points, 5 seeds"),
        ((-0.004, 0.01, 3), "+0.00 ± 0.01 points, 3 seeds"),
    ],
)
def test_a_cost_in_words(cost: Cost, words: str) -> None:
    assert signed_with_seeds(cost) == words
