"""Milliseconds of calls that run in turn, so that other work slows all of them alike."""

import time
import timeit
from collections.abc import Callable, Sequence
from typing import Any

import torch


def time_in_turn(
    calls: Sequence[Callable[[], Any]], device: torch.device, rounds: int
) -> list[tuple[float, ...]]:
    """Milliseconds of each of the calls, round by round, after two rounds that are not counted."""

    def clock() -> float:
        if device.type != "cpu":
            torch.accelerator.synchronize()
        return 1e3 * time.perf_counter()

    timers = [timeit.Timer(call, timer=clock) for call in calls]
    return [tuple(timer.timeit(1) for timer in timers) for _ in range(2 + rounds)][2:]
