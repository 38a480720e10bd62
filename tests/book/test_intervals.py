"""The intervals that the chapters use, against SciPy's and against numbers from tables."""

from statistics import mean, stdev

import pytest
from scipy.stats import ttest_1samp, ttest_ind, ttest_rel

from capsnet_book.intervals import (
    difference_of_means,
    main_effect,
    paired_difference,
    t95,
    unpaired_difference,
    verdict,
    wilson_interval,
)


def test_the_ends_of_wilsons_interval_are_as_surprising_as_its_definition_says() -> None:
    for right, total in ((7, 31), (9964, 10_000)):
        for p in wilson_interval(right, total):
            deviations = abs(right / total - p) / (p * (1 - p) / total) ** 0.5
            assert deviations == pytest.approx(1.959964)
    assert wilson_interval(0, 1)[0] == 0 and wilson_interval(10, 10)[1] == 1


def test_t_is_that_of_the_tables() -> None:
    assert [round(t95(n), 3) for n in (1, 2, 9, 30)] == [12.706, 4.303, 2.262, 2.042]


def test_paired_difference_is_scipys() -> None:
    before, after = [1.2, 1.4, 1.1, 1.7, 1.3], [1.0, 1.1, 1.2, 1.2, 1.1]
    expected = ttest_rel(before, after).confidence_interval(0.95)
    mean, half = paired_difference(before, after)
    assert (mean - half, mean + half) == pytest.approx((expected.low, expected.high))


def test_a_difference_of_few_pairs() -> None:
    assert paired_difference([2.0, 3.0], [1.0, 2.0]) == (1.0, 0.0)
    mean, half = paired_difference([2.0, 3.0], [1.0, 2.0], least_deviation=0.01)
    assert mean == 1.0 and half == pytest.approx(12.7062 * 0.01 / 2**0.5, rel=1e-5)


def test_the_difference_of_two_means_is_scipys() -> None:
    before, after = [1.2, 1.8, 1.1], [1.0, 1.1, 1.2]
    expected = ttest_ind(before, after, equal_var=False).confidence_interval(0.95)
    points, half = difference_of_means(*((mean(x), stdev(x)) for x in (before, after)), n=3)
    assert (points - half, points + half) == pytest.approx((expected.low, expected.high))
    assert unpaired_difference(before, after) == pytest.approx((points, half))
    fewer = ttest_ind(before, after[:2], equal_var=False).confidence_interval(0.95)
    points, half = unpaired_difference(before, after[:2])
    assert (points - half, points + half) == pytest.approx((fewer.low, fewer.high))


def test_a_main_effect_is_a_t_test_of_each_seeds_mean_difference() -> None:
    before, after = [[1.2, 1.4, 1.1], [1.7, 1.3, 1.6]], [[1.0, 1.1, 1.2], [1.2, 1.1, 1.5]]
    differences = [((1.2 - 1.0) + (1.7 - 1.2)) / 2, ((1.4 - 1.1) + (1.3 - 1.1)) / 2, 0.0]
    expected = ttest_1samp(differences, 0).confidence_interval(0.95)
    mean, half = main_effect(before, after)
    assert (mean - half, mean + half) == pytest.approx((expected.low, expected.high))


def test_a_claim_holds_where_the_whole_interval_does() -> None:
    assert verdict((0.1, 0.3), least=0) == "holds" == verdict((-2, -1), most=0)
    assert verdict((-0.1, 0.3), least=0) == "undecided" == verdict(None, least=0)
    assert verdict((-0.3, -0.1), least=0) == "does not hold" == verdict((1, 2), most=0)
    assert verdict((0.7, 0.9), 0.7, 0.9) == "holds"
