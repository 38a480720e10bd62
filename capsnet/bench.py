"""Timing of the training step and of the evaluation, side by side on one machine."""

import itertools
import statistics
import time
import timeit
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from capsnet.device import autocast, bfloat16_is_fast, can_compile, describe_machine
from capsnet.fast import FAST_DEVICES, arrange
from capsnet.model import CapsNet
from capsnet.training import TrainingConfig, make_step


def benchmark(device: torch.device, batch_size: int = 128, steps: int = 7) -> dict[str, Any]:
    """Time the paper's network, in every precision and mode that this machine has.

    Args:
        device: where.
        batch_size: images a step.
        steps: timed steps of each kind, after two that are not counted.

    Returns:
        {"machine", "batch_size", "steps", "rows"}; a row has "what", "arrangement",
        "precision", "compile", and the "median", "min" and "max" of milliseconds a step.

    Raises:
        ValueError: ``batch_size`` or ``steps`` is below 1.
    """
    for name, value in (("batch_size", batch_size), ("steps", steps)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    images = torch.rand(batch_size, 1, 28, 28, device=device)
    labels = torch.randint(10, (batch_size,), device=device)
    rows = []
    for arrangement, precision, compile in itertools.product(
        ("plain", "fast") if device.type in FAST_DEVICES else ("plain",),
        ("fp32", "bf16") if bfloat16_is_fast(device) else ("fp32",),
        (False, True) if can_compile(device) else (False,),
    ):
        kind: dict[str, Any] = {"arrangement": arrangement, "precision": precision}
        kind["compile"] = compile
        model = CapsNet().to(device)
        step = make_step(model, config=TrainingConfig(**kind))
        times = measure(partial(step, images, labels), device, steps)
        rows.append({"what": "train", **kind, **times})
        arranged = arrange(model.eval(), arrangement)
        if compile:
            arranged.compile()
        times = measure(partial(infer, arranged, images, precision), device, steps)
        rows.append({"what": "evaluate", **kind, **times})
    machine = describe_machine(device)
    return {"machine": machine, "batch_size": batch_size, "steps": steps, "rows": rows}


@torch.no_grad()
def infer(network: nn.Module, images: Tensor, precision: str) -> None:
    with autocast(images.device, precision):
        network(images)


def measure(call: Callable[[], Any], device: torch.device, repeats: int) -> dict[str, float]:
    """Median, least and greatest milliseconds of a call, after two that are not counted."""

    def clock() -> float:
        if device.type != "cpu":
            torch.accelerator.synchronize()
        return 1e3 * time.perf_counter()

    times = timeit.repeat(call, timer=clock, repeat=2 + repeats, number=1)[2:]
    return {"median": statistics.median(times), "min": min(times), "max": max(times)}


def table(result: dict[str, Any]) -> str:
    """A benchmark's result as text."""
    machine = result["machine"]
    line = "{:<10}{:<13}{:<11}{:<9}{:>10}{:>10}".format
    lines = [
        f"{machine['device']}, torch {machine['torch']}, {machine['threads']} threads, batch "
        f"{result['batch_size']}, median of {result['steps']} (least … most)",
        line("what", "arrangement", "precision", "compile", "images/s", "ms a step"),
    ]
    for row in result["rows"]:
        median, rate = f"{row['median']:.1f}", f"{1e3 * result['batch_size'] / row['median']:.0f}"
        cells = row["what"], row["arrangement"], row["precision"], "yes" if row["compile"] else "no"
        lines.append(f"{line(*cells, rate, median)}  ({row['min']:.1f} … {row['max']:.1f})")
    return "\n".join(lines)
