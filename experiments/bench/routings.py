"""A training step of every routing of the ledger: its time and its memory."""

import dataclasses
import functools
import statistics
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from capsnet.training import TrainingLoss, make_step
from experiments.bench.contestants import BATCH
from experiments.bench.memory import in_fresh_process, tensor_peak
from experiments.bench.speed import time_in_turn
from experiments.declared import EXPERIMENTS
from experiments.running import Training

ROUNDS = 9
ROUTINGS = EXPERIMENTS["routings"]


def run(device: torch.device) -> dict[str, Any]:
    """{"beside": a row, "rows": {row: :func:`row_step`}}, each in a process of its own."""
    rows = list(ROUTINGS.rows)
    measured = {row: in_fresh_process(row_step, row, device) for row in rows}
    return {"batch_size": BATCH, "rounds": ROUNDS, "beside": rows[0], "rows": measured}


def row_step(
    row: str, device: torch.device, batch_size: int = BATCH, compile: bool | None = None
) -> dict[str, float]:
    """A step as the ledger's trainings make it, compiled where that works.

    Returns:
        "parameters"; "tensors_mib", the peak of its tensors without parameters, gradients and
        Adam's moments; "step_ms", of a step, the median; "ratio", to a step of the first row, the
        two in turn, the median.
    """
    images = torch.rand(batch_size, 1, 28, 28).to(device)
    labels = torch.arange(batch_size, device=device) % 10

    def step_of(row: str) -> tuple[nn.Module, Callable[[], Any]]:
        training = Training("routings", "cpu", row, 0, ROUTINGS)
        kind = training.kind
        model = kind.make((1, 28, 28), 10, **training.row_options.network).to(device)
        make_loss = kind.make_loss or TrainingLoss
        config = dataclasses.replace(training.config, compile=compile)
        step = make_step(model, config=config, criterion=kind.criterion, make_loss=make_loss)
        return model, functools.partial(step, images, labels)

    model, step = step_of(row)
    step()
    peak = tensor_peak(step, device)
    _, first_step = step_of(next(iter(ROUTINGS.rows)))
    times = time_in_turn([step, first_step], device, ROUNDS)
    return {
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "tensors_mib": round(peak / 2**20, 1),
        "step_ms": round(statistics.median(time for time, _ in times), 1),
        "ratio": round(statistics.median(time / time_of_first for time, time_of_first in times), 3),
    }
