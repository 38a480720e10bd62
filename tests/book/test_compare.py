"""What a change costs, as chapters say it."""

from typing import Any

import pytest

from capsnet_book import ledger
from capsnet_book.compare import Cost, added, effects, said, unpaired


def record(wrong: int, unseen: int = 0) -> dict[str, Any]:
    """Of a training: so many wrong of a thousand test images, and of three thousand others."""
    return {
        "test": {"correct": 1000 - wrong, "total": 1000},
        "unseen": {"correct": 3000 - unseen, "total": 3000},
    }


def test_a_cost_is_of_the_seeds_that_both_have() -> None:
    base = {seed: record(10, 30) for seed in range(3)}
    assert ledger.missed(base[0]) == pytest.approx(1)
    assert added({2: record(20, 60), 7: record(0)}, base) == (pytest.approx(1), None, 1)
    two = {0: record(20, 60), 1: record(30, 90)}
    assert added(two, base) == (pytest.approx(1.5), None, 2)  # too few for an interval
    points, half, seeds = added(two | {2: record(40, 120)}, base)
    assert (points, seeds) == (pytest.approx(2), 3)
    assert half == pytest.approx(4.303 * 1 / 3**0.5, rel=1e-3)  # t of two degrees
    assert added(dict.fromkeys(base, record(10, 30)), base)[1] > 0  # agreed by chance


def test_unpaired_a_seed_says_nothing() -> None:
    base = {0: record(10), 1: record(14), 2: record(12)}
    more = {2: record(24), 1: record(26), 7: record(22)}
    points, half = unpaired(more, base)
    assert points == pytest.approx(0.3)
    # The four degrees of twice three numbers that spread alike; 0.05 points each.
    assert half == pytest.approx(2.776 * 0.05 * (2 / 3) ** 0.5, rel=1e-3)


def test_effects_are_means_over_seeds() -> None:
    def made(drawn: float, moved: float) -> dict[str, Any]:
        return {"test": {"reconstruction": drawn}, "routing": {"moved": [0.0, 0.5, moved, 9.0]}}

    assert effects({0: made(30, 0.01), 4: made(50, 0.03)}) == (40, pytest.approx(0.02))


@pytest.mark.parametrize(
    ("cost", "words"),
    [
        ((0.125, None, 1), "+0.12 points, 1 seed"),
        ((-1.5, 0.25, 5), "−1.50 ± 0.25 points, 5 seeds"),
        ((-0.004, None, 2), "+0.00 points, 2 seeds"),
        ((-0.004, 0.01, 3), "+0.00 ± 0.01 points, 3 seeds"),
    ],
)
def test_what_is_said_of_a_cost(cost: Cost, words: str) -> None:
    assert said(cost) == words
