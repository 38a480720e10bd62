"""A training step on a GPU, its kernels launched one by one, and replayed as a graph."""

import statistics
from collections.abc import Callable
from typing import Any

import torch

from capsnet import CapsNet
from capsnet.device import bfloat16_is_fast
from capsnet.training import TrainingConfig, make_step
from experiments.bench.contestants import BATCH, CONTESTANTS, DTYPES, batch, training_step
from experiments.bench.memory import run_alone
from experiments.bench.timing import in_turn

ROUNDS, STEPS = 7, 10  # timings, and steps of each: the host runs ahead of the device


def run(device: torch.device) -> dict[str, Any]:
    """{"batch_size", "rows": {name: :func:`step_times`}}; others' networks as they are published.

    Raises:
        ValueError: the device is no CUDA device.
    """
    if device.type != "cuda":
        raise ValueError(f"launches are those of a CUDA device, got {device.type}")
    others = [name for name, of in CONTESTANTS.items() if not of.ours and not of.compile]
    rows = {name: run_alone(peer_times, name, device) for name in others}
    for arrangement in ("plain", "fast"):
        for precision in DTYPES:
            if precision == "fp32" or bfloat16_is_fast(device):
                for captured in (False, True):
                    name = f"capsnet {arrangement}, {precision}" + ", as a graph" * captured
                    how = arrangement, precision, captured
                    rows[name] = run_alone(step_times, *how, device)
    return {"batch_size": BATCH, "rows": rows}


def step_times(
    arrangement: str, precision: str, captured: bool, device: torch.device
) -> dict[str, float]:
    """Of ours: "milliseconds" of a step, the median, and "images_per_second"."""
    images, labels = batch(BATCH, device)
    config = TrainingConfig(arrangement=arrangement, precision=precision)
    step = make_step(CapsNet().to(device), config=config)
    if captured:
        step.capture()
    return timed(lambda: step(images, labels), device)


def peer_times(name: str, device: torch.device) -> dict[str, float]:
    """:func:`step_times` of another's."""
    return timed(training_step(name, device), device)


def timed(call: Callable[[], Any], device: torch.device) -> dict[str, float]:
    def steps() -> None:
        for _ in range(STEPS):
            call()

    steps()  # what is captured is, by now
    found = statistics.median(each for (each,) in in_turn([steps], device, ROUNDS)) / STEPS
    return {
        "milliseconds": round(found, 3),
        "images_per_second": round(1e3 * BATCH / found),
    }
