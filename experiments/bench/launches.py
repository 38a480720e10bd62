"""A training step on a GPU, its kernels launched one by one, and replayed as a graph."""

import statistics
from typing import Any

import torch

from experiments.bench.contestants import (
    BATCH,
    CONTESTANTS,
    DTYPES,
    Contestant,
    training_step,
)
from experiments.bench.memory import in_fresh_process
from experiments.bench.timing import time_in_turn

ROUNDS, STEPS = 7, 10  # timings, and steps of each: the host runs ahead of the device


def run(device: torch.device) -> dict[str, Any]:
    """{"batch_size", "rows": {name: :func:`step_time`}}; others' networks as they are published.

    Raises:
        ValueError: the device is no CUDA device.
    """
    if device.type != "cuda":
        raise ValueError(f"launches are those of a CUDA device, got {device.type}")
    others = [each for each in CONTESTANTS.values() if not each.ours and not each.compile]
    ours = [Contestant(name, precision) for name in ("plain", "fast") for precision in DTYPES]
    steps = [(each, False) for each in others]
    steps += [(each, captured) for each in ours for captured in (False, True)]
    rows = {
        str(each) + ", as a graph" * captured: in_fresh_process(step_time, each, captured, device)
        for each, captured in steps
        if each.can_run(device)
    }
    return {"batch_size": BATCH, "rows": rows}


def step_time(contestant: Contestant, captured: bool, device: torch.device) -> dict[str, float]:
    """Median "milliseconds" of a step, and "images_per_second"."""
    step = training_step(contestant, device, captured=captured)

    def steps() -> None:
        for _ in range(STEPS):
            step()

    steps()  # what is captured is, by now
    found = statistics.median(each for (each,) in time_in_turn([steps], device, ROUNDS)) / STEPS
    return {
        "milliseconds": round(found, 3),
        "images_per_second": round(1e3 * BATCH / found),
    }
