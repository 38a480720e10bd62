"""A training run and its folder: checkpoint, metrics and TensorBoard events."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor
from torch.optim.lr_scheduler import LRScheduler
from torch.optim.swa_utils import AveragedModel

from capsnet.checkpoint import (
    load_state,
    read_tensors,
    save_weights,
    write_atomically,
    write_tensors,
)
from capsnet.model import CapsNet

CHECKPOINT, WEIGHTS = "checkpoint.safetensors", "weights.safetensors"
METRICS, EVENTS = "metrics.jsonl", "events"


@dataclass
class Run:
    """Everything that a checkpoint holds: with it, a run goes on as if nothing had happened."""

    model: CapsNet
    averaged: AveragedModel | None
    optimizer: torch.optim.Optimizer
    schedule: LRScheduler
    identity: dict[str, dict[str, Any]]  # what must be equal for a checkpoint to be this run's
    records: list[dict[str, Any]] = field(default_factory=list)  # one an epoch
    step: int = 0

    def best_model(self) -> CapsNet:
        """The network to evaluate and to keep: of averaged weights, where there are any."""
        return self.model if self.averaged is None else cast(CapsNet, self.averaged.module)

    def save(self, path: Path) -> None:
        """Write the checkpoint atomically."""
        tensors = {f"model.{name}": t for name, t in self.model.state_dict().items()}
        if self.averaged is not None:
            tensors["averaged.count"] = self.averaged.n_averaged
            for name, tensor in self.best_model().state_dict().items():
                tensors[f"averaged.{name}"] = tensor
        state = self.optimizer.state_dict()
        for index, entries in state["state"].items():
            for name, tensor in entries.items():
                tensors[f"optimizer.{index}.{name}"] = tensor
        document = {
            "identity": self.identity,
            "step": self.step,
            "records": self.records,
            "optimizer": state["param_groups"],
            "schedule": self.schedule.state_dict(),
        }
        write_tensors(path, tensors, document)

    def load(self, path: Path) -> None:
        """Take over a checkpoint's state.

        Raises:
            ValueError: it is damaged, or of another run.
        """
        tensors, document = read_tensors(path)
        if "identity" not in document:
            raise ValueError(f"{path} is no checkpoint")
        for part, expected in self.identity.items():
            found = document["identity"][part]
            for key in sorted(expected.keys() | found.keys()):
                if expected.get(key) != found.get(key):
                    raise ValueError(
                        f"{path} is of another run: its {part} has {key} = {found.get(key)}, this "
                        f"one has {expected.get(key)}; choose another folder or remove it"
                    )
        groups: dict[str, dict[str, Tensor]] = {"model": {}, "averaged": {}, "optimizer": {}}
        for name, tensor in tensors.items():
            group, rest = name.split(".", 1)
            groups[group][rest] = tensor
        load_state(self.model, groups["model"], path)
        if self.averaged is not None:
            self.averaged.n_averaged.copy_(groups["averaged"].pop("count"))
            load_state(self.best_model(), groups["averaged"], path)
        parameters = list(self.model.parameters())
        state: dict[int, dict[str, Tensor]] = {}
        for name, tensor in groups["optimizer"].items():
            index, key = name.split(".")
            if tensor.dim() > 0:  # Adam's fused kernel wants its moments laid out like the weights
                tensor = torch.empty_like(parameters[int(index)]).copy_(tensor)
            state.setdefault(int(index), {})[key] = tensor
        self.optimizer.load_state_dict({"state": state, "param_groups": document["optimizer"]})
        self.schedule.load_state_dict(document["schedule"])
        self.records, self.step = document["records"], document["step"]


class RunFolder:
    """Where a run is written as it goes, by one process.

    Args:
        path: the folder; it is made if it is missing.
        run: the run; after a resume, the folder is brought to the state of its checkpoint.
    """

    def __init__(self, path: Path, run: Run) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.path, self.run = path, run
        self.events = SummaryWriter(str(path / EVENTS), purge_step=run.step + 1)
        self._write_metrics()

    def log_loss(self, loss: float) -> None:
        """A step's loss, for TensorBoard."""
        self.events.add_scalar("loss", loss, self.run.step)

    def end_epoch(self) -> None:
        """Write the checkpoint, then what follows from it: metrics and events."""
        self.run.save(self.path / CHECKPOINT)
        self._write_metrics()
        for key, value in self.run.records[-1].items():
            if key not in ("epoch", "step"):
                name = key if key.startswith("validation") else f"epoch_{key}"
                self.events.add_scalar(name, value, self.run.step)
        self.events.flush()

    def finish(self, metadata: dict[str, Any]) -> None:
        """Write the weights."""
        save_weights(self.path / WEIGHTS, self.run.best_model(), metadata)
        self.events.close()

    def _write_metrics(self) -> None:
        text = "".join(json.dumps(record) + "\n" for record in self.run.records)
        write_atomically(self.path / METRICS, text.encode())
