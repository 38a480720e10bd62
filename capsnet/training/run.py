"""A training run and its folder: checkpoint, metrics and TensorBoard events."""

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor
from torch.optim.lr_scheduler import LRScheduler
from torch.optim.swa_utils import AveragedModel

from capsnet.checkpoint import (
    check_state,
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
        # What draws from torch's own generators, such as dropout, goes on as well.
        tensors |= {f"random.{name}": state for name, state in self._random().items()}
        document = {
            "identity": self.identity,
            "step": self.step,
            "records": self.records,
            "optimizer": state["param_groups"],
            "schedule": self.schedule.state_dict(),
        }
        write_tensors(path, tensors, document)

    def restore(self, tensors: dict[str, Tensor], document: dict[str, Any], path: Path) -> None:
        """Take over the state of a checkpoint that was read from ``path``.

        Raises:
            ValueError: it is damaged, or of another run.
        """
        if "identity" not in document:
            raise ValueError(f"{path} is no checkpoint")
        try:
            self._restore(tensors, document, path)
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            raise ValueError(f"{path} is damaged: {type(error).__name__} {error}") from error

    def _random(self) -> dict[str, Tensor]:
        """States of the generators that torch draws from: the processor's, and the GPU's."""
        states = {"cpu": torch.get_rng_state()}
        device = next(self.model.parameters()).device
        if device.type == "cuda":
            states["cuda"] = torch.cuda.get_rng_state(device)
        return states

    def _restore(self, tensors: dict[str, Tensor], document: dict[str, Any], path: Path) -> None:
        for part, expected in self.identity.items():
            found = document["identity"].get(part, {})
            for key in [*expected, *sorted(found.keys() - expected.keys())]:
                if expected.get(key) != found.get(key):
                    raise ValueError(
                        f"{path} is of another run: its {part} has {key} = {found.get(key)}, this "
                        f"one has {expected.get(key)}; choose another folder or remove it"
                    )
        groups: dict[str, dict[str, Tensor]] = {
            "model": {}, "averaged": {}, "optimizer": {}, "random": {}
        }  # fmt: skip
        for name, tensor in tensors.items():
            group, _, rest = name.partition(".")
            groups[group][rest] = tensor
        state: dict[int, dict[str, Tensor]] = {}
        for index, parameter in enumerate(self.model.parameters()):
            moments = {
                key: groups["optimizer"][f"{index}.{key}"] for key in ("exp_avg", "exp_avg_sq")
            }
            if any(moment.shape != parameter.shape for moment in moments.values()):
                raise ValueError(f"{path} is damaged: optimiser state {index} has another shape")
            # Adam's fused kernel wants its moments laid out like the weights.
            state[index] = {k: torch.empty_like(parameter).copy_(m) for k, m in moments.items()}
            state[index]["step"] = groups["optimizer"][f"{index}.step"].clone()
        records, step = document["records"], document["step"]
        random = groups["random"]
        for name, now in self._random().items():
            then = random.get(name, now)  # it was another device's
            if (then.dtype, then.shape) != (now.dtype, now.shape):
                raise ValueError(f"{path} is damaged: random.{name} is no generator's state")

        check_state(self.model, groups["model"], path)
        if self.averaged is not None:
            count = groups["averaged"].pop("count")
            check_state(self.best_model(), groups["averaged"], path)
            self.averaged.n_averaged.copy_(count)
            self.best_model().load_state_dict(groups["averaged"])
        self.model.load_state_dict(groups["model"])
        self.optimizer.load_state_dict({"state": state, "param_groups": document["optimizer"]})
        self.schedule.load_state_dict(document["schedule"])
        device = next(self.model.parameters()).device
        if "cpu" in random:
            torch.set_rng_state(random["cpu"])
        if device.type == "cuda" and "cuda" in random:
            torch.cuda.set_rng_state(random["cuda"], device)
        self.records, self.step = records, step


class RunFolder:
    """Where a run is written as it goes, by one process at a time.

    Args:
        path: the folder; it is made if it is missing.
        checkpoint_seconds: the least time between checkpoints.

    Raises:
        OSError: it cannot be made.
        ValueError: another process is training there.
    """

    def __init__(self, path: Path, checkpoint_seconds: float = 0.0) -> None:
        self.path = path
        self.checkpoint_seconds = checkpoint_seconds
        self.saved = time.monotonic()
        path.mkdir(parents=True, exist_ok=True)
        self._lock = os.open(path, os.O_RDONLY)  # the system lets go of it, after SIGKILL too
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise ValueError(f"another process is training in {path}") from None

    def read(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """The checkpoint's tensors and document, or None where there is no checkpoint."""
        path = self.path / CHECKPOINT
        return read_tensors(path) if path.exists() else None

    def start(self, run: Run) -> None:
        """Bring metrics and events to the state of the run, new or restored."""
        from torch.utils.tensorboard import SummaryWriter

        self.run = run
        self.events = SummaryWriter(str(self.path / EVENTS), purge_step=run.step + 1)
        self._write_metrics()

    def log_loss(self, loss: float) -> None:
        """A step's loss, for TensorBoard."""
        with self._writing_events():
            self.events.add_scalar("loss", loss, self.run.step)

    def end_epoch(self, last: bool) -> None:
        """Write events and metrics, which a restored run cuts off, and a checkpoint if it is time.

        After the last epoch it is.
        """
        with self._writing_events():
            for key, value in self.run.records[-1].items():
                if key not in ("epoch", "step"):
                    name = key if key.startswith("validation") else f"epoch_{key}"
                    self.events.add_scalar(name, value, self.run.step)
            self.events.flush()
        if last or time.monotonic() - self.saved >= self.checkpoint_seconds:
            self.run.save(self.path / CHECKPOINT)
            self.saved = time.monotonic()
        self._write_metrics()

    def finish(self, metadata: dict[str, Any]) -> None:
        """Write the weights."""
        save_weights(self.path / WEIGHTS, self.run.best_model(), metadata)

    def close(self) -> None:
        """Let go of the events, and let another process train here."""
        try:
            if hasattr(self, "events"):
                with self._writing_events():
                    self.events.close()
        finally:
            os.close(self._lock)

    @contextlib.contextmanager
    def _writing_events(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:  # TensorBoard's, which names no file
            reason = error.strerror or str(error)
            raise OSError(f"cannot write {self.path / EVENTS}: {reason}") from error

    def _write_metrics(self) -> None:
        text = "".join(json.dumps(record) + "\n" for record in self.run.records)
        write_atomically(self.path / METRICS, text.encode())
