"""A training step of every row of an experiment of the ledger: its time and its memory."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.contestants import BATCH
from benchmarks.memory import run_alone, tensor_peak
from capsnet.bench import measure
from capsnet.training import TrainingLoss, make_step
from experiments.declared import EXPERIMENTS
from experiments.networks import KINDS
from experiments.running import Training

REPEATS = 7


def run(experiment: str, device: torch.device) -> dict[str, Any]:
    """{"rows": {row: :func:`row_step`}}, each in a process of its own."""
    rows = {
        row: run_alone(row_step, experiment, row, device) for row in EXPERIMENTS[experiment].rows
    }
    return {"batch_size": BATCH, "rows": rows}


def row_step(
    experiment: str,
    row: str,
    device: torch.device,
    batch_size: int = BATCH,
    compile: bool | None = None,
) -> dict[str, float]:
    """A step as the ledger's trainings make it, compiled where that works.

    Returns:
        "parameters"; "step_ms", of a step, the median; "tensors_mib", which its
        tensors take at most beside parameters, gradients and Adam's moments.
    """
    training = Training(experiment, "cpu", row, 0, EXPERIMENTS[experiment])
    kind = KINDS[training.row_options.kind]
    model = kind.make((1, 28, 28), 10, **training.row_options.network).to(device)
    loss = kind.loss or TrainingLoss
    config = dataclasses.replace(training.config, compile=compile)
    step = make_step(model, config=config, criterion=kind.criterion, loss=loss)
    images, labels = torch.rand(batch_size, 1, 28, 28), torch.arange(batch_size) % 10
    call: Callable[[], Any] = functools.partial(step, images.to(device), labels.to(device))
    return {
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "step_ms": round(measure(call, device, REPEATS)["median"], 1),
        "tensors_mib": round(tensor_peak(call, device) / 2**20, 1),
    }
