"""Timing of the training step and of the evaluation, side by side on one machine."""

import itertools
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

from capsnet.device import autocast, bfloat16_is_fast, can_compile, describe_machine
from capsnet.fast import arrange
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
    precisions = ("fp32", "bf16") if bfloat16_is_fast(device) else ("fp32",)
    modes = (False, True) if can_compile(device) else (False,)
    for arrangement, precision, compiled in itertools.product(("plain", "fast"), precisions, modes):
        kind: dict[str, Any] = {
            "arrangement": arrangement,
            "precision": precision,
            "compile": compiled,
        }
        model = CapsNet().to(device)
        step = make_step(model, config=TrainingConfig(**kind))
        times = measure(lambda: step(images, labels), device, steps)  # noqa: B023
        rows.append({"what": "train", **kind, **times})

        arranged = arrange(model.eval(), arrangement)
        if compiled:
            arranged.compile()

        @torch.no_grad()
        def evaluate() -> None:
            with autocast(device, precision):  # noqa: B023
                arranged(images)  # noqa: B023

        times = measure(evaluate, device, steps)
        rows.append({"what": "evaluate", **kind, **times})
    return {
        "machine": describe_machine(device),
        "batch_size": batch_size,
        "steps": steps,
        "rows": rows,
    }


def measure(call: Callable[[], Any], device: torch.device, repeats: int) -> dict[str, float]:
    """Median, least and greatest milliseconds of a call, after two that are not counted."""
    times = []
    for _ in range(2 + repeats):
        start = time.perf_counter()
        call()
        if device.type != "cpu":
            torch.accelerator.synchronize()
        times.append(1e3 * (time.perf_counter() - start))
    times = times[2:]
    return {"median": statistics.median(times), "min": min(times), "max": max(times)}


def table(result: dict[str, Any]) -> str:
    """A benchmark's result as text."""
    machine = result["machine"]
    lines = [
        f"{machine['device']}, torch {machine['torch']}, {machine['threads']} threads, batch "
        f"{result['batch_size']}, median of {result['steps']} (least … most)",
        f"{'what':<10}{'arrangement':<13}{'precision':<11}{'compile':<9}{'images/s':>10}"
        f"{'ms a step':>10}",
    ]
    for row in result["rows"]:
        rate = 1e3 * result["batch_size"] / row["median"]
        lines.append(
            f"{row['what']:<10}{row['arrangement']:<13}{row['precision']:<11}"
            f"{'yes' if row['compile'] else 'no':<9}"
            f"{rate:>10.0f}{row['median']:>10.1f}  ({row['min']:.1f} … {row['max']:.1f})"
        )
    return "\n".join(lines)
