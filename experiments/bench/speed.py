"""Times of the training step and of its parts, compared with those of other implementations."""

import statistics
import sys
import time
import timeit
from collections.abc import Callable, Sequence
from typing import Any

import torch

from capsnet.device import bfloat16_is_fast
from capsnet_lab.cli.allocator import keep_freed_memory
from experiments.bench.contestants import (
    BATCH,
    CONTESTANTS,
    CONVOLUTIONS,
    DTYPES,
    GROUPS,
    Call,
    Contestant,
    contestants,
    convolution,
    matrix_product,
    training_step,
)
from experiments.bench.memory import in_fresh_process

REPEATS = 7
STEPS = 10  # of a timing that replays graphs: the host runs ahead of the device


def run(device: torch.device) -> dict[str, Any]:
    """All times, as a process starts and with an allocator that keeps freed memory."""
    result: dict[str, Any] = {"batch_size": BATCH, "times": in_fresh_process(time_all, device)}
    if times := in_fresh_process(time_all_keeping_freed_memory, device):
        result["times_keeping_freed_memory"] = times
    return result


def time_all_keeping_freed_memory(device: torch.device) -> dict[str, dict[str, Any]]:
    """:func:`time_all` with an allocator that keeps freed memory; {} if there is none."""
    return time_all(device) if keep_freed_memory() else {}


def time_all(device: torch.device) -> dict[str, dict[str, Any]]:
    """{group: {name: seconds of a call, and the images in it}}, all in this process."""

    def seconds(call: Call) -> dict[str, float]:
        times = [1e-3 * milliseconds for (milliseconds,) in time_in_turn([call], device, REPEATS)]
        spread = {"median": statistics.median(times), "min": min(times), "max": max(times)}
        return spread | {"rounds": REPEATS, "images": BATCH}

    times: dict[str, dict[str, Any]] = {"matrix product": {}, "convolution": {}}
    for precision, dtype in DTYPES.items():
        if precision == "bf16" and not bfloat16_is_fast(device):
            continue  # minutes a product, without the hardware
        times["matrix product"][precision] = seconds(matrix_product(dtype, device))
        for way in CONVOLUTIONS[precision]:
            torch.compiler.reset()
            call = convolution(way, dtype, device)
            times["convolution"][f"{way}-{precision}"] = seconds(call)
    for group, make in GROUPS.items():
        times[group] = {}
        for contestant in contestants(group, device):
            print(f"{group}: {contestant}", file=sys.stderr, flush=True)
            torch.compiler.reset()
            times[group][str(contestant)] = seconds(make(contestant, device))
    return times


def time_launches(device: torch.device) -> dict[str, Any]:
    """{"batch_size", "rows": {name: :func:`step_time`}}; others' networks as they are published.

    Raises:
        ValueError: the device is no CUDA device.
    """
    if device.type != "cuda":
        raise ValueError(f"launches are those of a CUDA device, got {device.type}")
    others = [c for c in CONTESTANTS.values() if not c.ours and not c.compile]
    ours = [Contestant(name, precision) for name in ("plain", "fast") for precision in DTYPES]
    rows: dict[str, Any] = {}
    for contestant in [*others, *ours]:
        if not contestant.can_run(device):
            continue
        rows[str(contestant)] = in_fresh_process(step_time, contestant, False, device)
        if contestant.ours:
            time_of_graph = in_fresh_process(step_time, contestant, True, device)
            rows[f"{contestant}, as a graph"] = time_of_graph
    return {"batch_size": BATCH, "rows": rows}


def step_time(contestant: Contestant, captured: bool, device: torch.device) -> dict[str, float]:
    """Median "milliseconds" of a step, and "images_per_second"."""
    step = training_step(contestant, device, captured=captured)

    def steps() -> None:
        for _ in range(STEPS):
            step()

    steps()  # what is captured is, by now
    rounds = time_in_turn([steps], device, REPEATS)
    milliseconds = statistics.median(times[0] for times in rounds) / STEPS
    per_second = 1e3 * BATCH / milliseconds
    return {"milliseconds": round(milliseconds, 3), "images_per_second": round(per_second)}


def time_in_turn(
    calls: Sequence[Callable[[], Any]], device: torch.device, rounds: int
) -> list[tuple[float, ...]]:
    """Milliseconds of each of the calls, round by round, after two rounds that are not counted.

    The calls run in turn, so that other work slows all of them alike.
    """

    def clock() -> float:
        if device.type != "cpu":
            torch.accelerator.synchronize()
        return 1e3 * time.perf_counter()

    timers = [timeit.Timer(call, timer=clock) for call in calls]
    return [tuple(timer.timeit(1) for timer in timers) for _ in range(2 + rounds)][2:]
