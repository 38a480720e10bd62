"""What a change of a network costs: mistakes that it adds, drawings, shares that move."""

import statistics
from collections.abc import Mapping
from typing import Any

from capsnet_book.intervals import paired_difference, unpaired_difference
from capsnet_book.ledger import counted, missed

Records = Mapping[int, Mapping[str, Any]]  # a row's, by seed
Cost = tuple[float, float | None, int]  # points, half of their 95 % interval, seeds


def added(with_it: Records, without: Records) -> Cost:
    """Percentage points of mistakes more, as :func:`difference`."""
    more, base = ({seed: missed(r) for seed, r in of.items()} for of in (with_it, without))
    one_image = 100 / sum(images["total"] for images in counted(next(iter(without.values()))))
    return difference(more, base, one_image)


def unpaired(with_it: Records, without: Records) -> tuple[float, float]:
    """As :func:`added`, of all trainings, as if those of one seed had nothing in common."""
    more, base = ([missed(record) for record in of.values()] for of in (with_it, without))
    return unpaired_difference(more, base)


def difference(more: Mapping[int, float], base: Mapping[int, float], least: float) -> Cost:
    """The mean of more − base over the seeds that both have, seed by seed.

    Fewer than three differences say too little about their spread: they get no interval.

    Args:
        more: one number a seed, in percent.
        base: likewise.
        least: what the differences' standard deviation is taken to be at least, such as one image.
    """
    seeds = sorted(more.keys() & base.keys())
    pair = [[of[seed] for seed in seeds] for of in (more, base)]
    if len(seeds) < 3:
        points, other = map(statistics.mean, pair)
        return points - other, None, len(seeds)
    return *paired_difference(pair[0], pair[1], least), len(seeds)


def more(cost: Cost) -> str:
    """Such as "+0.12 ± 0.05"."""
    points, half, _ = cost
    text = f"{points:+z.2f}" if half is None else f"{points:+z.2f} ± {half:.2f}"
    return text.replace("-", "−")


def said(cost: Cost) -> str:
    """Such as "+0.12 ± 0.05 points, 5 seeds"."""
    seeds = cost[2]
    return f"{more(cost)} points, {seeds} seed{'s' * (seeds > 1)}"


def effects(records: Records) -> tuple[float, float]:
    """What a network does besides making mistakes, means over its seeds.

    Returns:
        The squared error of a reconstruction, summed over its pixels; and how far the shares of the
        third iteration are from the first's, in units of the mean share.
    """
    drawn = statistics.mean(r["test"]["reconstruction"] for r in records.values())
    return drawn, statistics.mean(r["routing"]["moved"][2] for r in records.values())
