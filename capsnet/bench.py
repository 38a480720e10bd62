"""Timing of the training step and of the evaluation, side by side on one machine."""

import itertools
import statistics
import time
import timeit
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from capsnet.device import autocast, bfloat16_is_fast, can_compile, describe_machine
from capsnet.fast import FAST_DEVICES, arrange
from capsnet.model import CapsNet
from capsnet.text import columns
from capsnet.training import TrainingConfig, make_step


def benchmark(device: torch.device, batch_size: int = 128, steps: int = 7) -> dict[str, Any]:
    """Time the paper's network, in every precision and mode that this machine has.

    Each kind is timed for ``steps`` steps, after two that are not counted, in milliseconds. A
    ValueError where ``batch_size`` or ``steps`` is below 1.
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
        kind: Any = {"arrangement": arrangement, "precision": precision, "compile": compile}
        model = CapsNet().to(device)
        step = make_step(model, config=TrainingConfig(**kind))
        train = partial(step, images, labels)
        step.capture()  # as fit does
        for _ in range(step.calls_to_capture):
            train()
        rows.append({"what": "train", **kind, **measure(train, device, steps)})
        network = arrange(model, arrangement)
        if compile:
            network.compile()
        evaluate = partial(infer, network, images, precision)
        rows.append({"what": "evaluate", **kind, **measure(evaluate, device, steps)})
    machine = describe_machine(device)
    return {"machine": machine, "batch_size": batch_size, "steps": steps, "rows": rows}


@torch.no_grad()
def infer(network: nn.Module, images: Tensor, precision: str) -> None:
    with autocast(images.device, precision):
        network(images)


def measure(call: Callable[[], Any], device: torch.device, repeats: int) -> dict[str, float]:
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


def table(result: dict[str, Any]) -> str:
    """A benchmark's result as text."""
    machine, batch = result["machine"], result["batch_size"]
    rows = [("what", "arrangement", "precision", "compile", "images/s", "ms a step", "")]
    for row in result["rows"]:
        kind = row["what"], row["arrangement"], row["precision"], "yes" if row["compile"] else "no"
        times = f"{1e3 * batch / row['median']:.0f}", f"{row['median']:.1f}"
        rows.append((*kind, *times, f"({row['min']:.1f} … {row['max']:.1f})"))
    return (
        f"{machine['device']}, torch {machine['torch']}, {machine['threads']} threads, "
        f"batch {batch}, median of {result['steps']} (least … most)\n{columns(rows)}"
    )
