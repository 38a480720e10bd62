"""Times of the training step and of its parts, each compared with its peers'."""

import statistics
import sys
from typing import Any

import torch

from capsnet.device import bfloat16_is_fast
from capsnet.fast.allocator import keep_freed_memory
from experiments.bench.contestants import (
    BATCH,
    CONVOLUTIONS,
    DTYPES,
    GROUPS,
    Call,
    contestants,
    convolution,
    matrix_product,
)
from experiments.bench.memory import in_fresh_process
from experiments.bench.timing import time_in_turn

REPEATS = 7


def run(device: torch.device) -> dict[str, Any]:
    """All times, as a process starts and with an allocator that keeps freed memory."""
    result: dict[str, Any] = {"batch_size": BATCH, "times": in_fresh_process(time_all, device)}
    if kept := in_fresh_process(time_all_keeping_freed_memory, device):
        result["times_keeping_freed_memory"] = kept
    return result


def time_all_keeping_freed_memory(device: torch.device) -> dict[str, dict[str, Any]]:
    """As :func:`time_all`, in a process that cannot go back; {} where no allocator keeps memory."""
    return time_all(device) if keep_freed_memory() else {}


def time_all(device: torch.device) -> dict[str, dict[str, Any]]:
    """{group: {name: seconds of a call, and the images in it}}, all in this process."""

    def seconds(call: Call) -> dict[str, float]:
        times = [1e-3 * milliseconds for (milliseconds,) in time_in_turn([call], device, REPEATS)]
        found = {"median": statistics.median(times), "min": min(times), "max": max(times)}
        return found | {"rounds": REPEATS, "images": BATCH}

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
