"""Milliseconds of calls that run in turn, so that other work slows all of them alike."""

import statistics
import time
import timeit
from collections.abc import Callable, Sequence
from typing import Any

import torch


def median_and_range(
    call: Callable[[], Any], device: torch.device, repeats: int
) -> dict[str, float]:
    """Median, least and greatest milliseconds of a call, after two that are not counted."""
    times = [milliseconds for (milliseconds,) in in_turn([call], device, repeats)]
    return {"median": statistics.median(times), "min": min(times), "max": max(times)}


def in_turn(
    calls: Sequence[Callable[[], Any]], device: torch.device, rounds: int
) -> list[tuple[float, ...]]:
    """Milliseconds of each of the calls, round by round, after two rounds that are not counted."""

    def clock() -> float:
        if device.type != "cpu":
            torch.accelerator.synchronize()
        return 1e3 * time.perf_counter()

    timers = [timeit.Timer(call, timer=clock) for call in calls]
    return [tuple(timer.timeit(1) for timer in timers) for _ in range(2 + rounds)][2:]
