"""Networks compared at equal errors on plain digits, as the paper compares them on affNIST."""

from collections.abc import Sequence
from itertools import pairwise

from capsnet_book import ledger

Course = Sequence[tuple[float, float]]  # percent of errors on plain and on affine digits, by epoch


def courses(row: str) -> dict[int, Course]:
    """The training runs of a row of the experiment "places", by seed."""
    by_seed: dict[int, Course] = {}
    for seed, run in ledger.trainings("places", "gpu")[row].items():
        plain, affine = (
            [100 * (1 - epoch[kind] / run[kind]["total"]) for epoch in run["records"]]
            for kind in ("placed", "test")
        )
        by_seed[seed] = list(zip(plain, affine, strict=True))
    return by_seed


def common_level(*rows: str) -> float:
    """The fewest errors on plain digits, in percent, that every run of these rows reaches."""
    return max(min(course)[0] for row in rows for course in courses(row).values())


def at_level(course: Course, level: float) -> float:
    """The errors on affine digits where those on plain digits first fall to `level`.

    Between two epochs they lie on a straight line. Raise ValueError if they never fall to it.
    """
    for (before, high), (after, low) in pairwise(course):
        if before > level >= after:
            return high + (low - high) * (before - level) / (before - after)
    raise ValueError(f"no epoch falls to {level} % of errors on plain digits")


def at_common_level(more: str, fewer: str) -> tuple[dict[int, float], dict[int, float]]:
    """The errors of two rows on affine digits, by seed, where both make equal errors on plain ones.

    They are compared at their :func:`common_level`.
    """
    level = common_level(more, fewer)

    def rates(row: str) -> dict[int, float]:
        return {seed: at_level(course, level) for seed, course in courses(row).items()}

    return rates(more), rates(fewer)
