"""A training run and its folder: checkpoint, metrics and TensorBoard events."""

import contextlib
import copy
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from capsnet.checkpoint import check_state, write_tensors
from capsnet.files import PARTIAL, write_atomically
from capsnet.text import reason

CHECKPOINT, WEIGHTS = "checkpoint.safetensors", "weights.safetensors"
METRICS, EVENTS = "metrics.jsonl", "events"
LOCK = ".lock"  # held while a process trains in the folder; the file itself stays


@dataclass
class Run:
    """All that a checkpoint holds: with it, a run goes on as if nothing had happened."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    schedule: LRScheduler
    decay: float  # of the weights' moving average; 0 for none
    identity: dict[str, dict[str, Any]]  # what must be equal for a checkpoint to be this run's
    records: list[dict[str, Any]] = field(default_factory=list)  # one an epoch
    step: int = 0
    averaged: nn.Module = field(init=False)  # the network to evaluate and to save

    def __post_init__(self) -> None:
        self.averaged = copy.deepcopy(self.model) if self.decay else self.model
        self.device = next(self.model.parameters()).device

    @torch.no_grad()
    def end_step(self) -> None:
        """Move the learning rate and the average on, after the optimiser's step."""
        if not isinstance(self.schedule, ReduceLROnPlateau):  # which follows evaluations
            self.schedule.step()
        self.step += 1
        if self.averaged is self.model:
            return
        # The average begins with the weights after the first step. Nothing here waits for a GPU,
        # as torch.optim.swa_utils.AveragedModel does.
        weight = 1 - self.decay if self.step > 1 else 1.0
        now, average = self.model, self.averaged
        torch._foreach_lerp_([*average.parameters()], [*now.parameters()], weight)
        for mean, buffer in zip(average.buffers(), now.buffers(), strict=True):
            mean.copy_(buffer)

    def save(self, path: Path) -> None:
        """Write the checkpoint atomically."""
        optimizer = self.optimizer.state_dict()
        tensors = self._networks()
        for index, state in optimizer["state"].items():
            tensors |= named(f"optimizer.{index}", state)
        # What draws from torch's own generators, such as dropout, goes on as well.
        tensors["random.cpu"] = torch.get_rng_state()
        if self.device.type == "cuda":
            tensors["random.cuda"] = torch.cuda.get_rng_state(self.device)
        document = {
            "identity": self.identity,
            "step": self.step,
            "records": self.records,
            "optimizer": optimizer["param_groups"],
            "stepped": sorted(optimizer["state"]),  # not what is frozen, or of no use to the loss
            "schedule": self.schedule.state_dict(),
        }
        write_tensors(path, tensors, document)

    def restore(self, tensors: dict[str, Tensor], document: dict[str, Any], path: Path) -> None:
        """Take over a checkpoint; a ValueError where it is damaged or of another run."""
        if "identity" not in document:
            raise ValueError(f"{path} is no checkpoint")
        try:
            difference = self._difference(document["identity"])
            if difference is None:
                self._load(tensors, document)
        except torch.OutOfMemoryError:
            raise
        except (LookupError, TypeError, AttributeError, ValueError, RuntimeError) as error:
            raise ValueError(f"{path} is damaged: {type(error).__name__} {error}") from error
        if difference is not None:
            raise ValueError(
                f"{path} is of another run: {difference}; choose another folder, which can "
                "go on from these weights (--init), or remove it and its weights"
            )

    def _networks(self) -> dict[str, Tensor]:
        tensors = named("model", self.model.state_dict())
        if self.averaged is not self.model:
            tensors |= named("averaged", self.averaged.state_dict())
        return tensors

    def _difference(self, identity: dict[str, dict[str, Any]]) -> str | None:
        for part, expected in self.identity.items():
            found = identity.get(part, {})
            for key in [*expected, *sorted(found.keys() - expected.keys())]:
                if expected.get(key) != found.get(key):
                    return (
                        f"its {part} has {key} = {found.get(key)}, this one has {expected.get(key)}"
                    )
        return None

    def _load(self, tensors: dict[str, Tensor], document: dict[str, Any]) -> None:
        """Look at everything first, so that a damaged checkpoint changes no weight."""
        records, step = document["records"], document["step"]
        random = {name: tensors[name] for name in tensors if name.startswith("random.")}
        adam: dict[int, dict[str, Tensor]] = {}
        networks = self._networks()
        expected = dict(networks)
        parameters = [*self.model.parameters()]
        for index in document["stepped"]:
            parameter = parameters[index]
            # Adam's fused kernel wants its moments laid out like the weights.
            mean, square = torch.empty_like(parameter), torch.empty_like(parameter)
            adam[index] = {"exp_avg": mean, "exp_avg_sq": square, "step": torch.zeros(())}
            expected |= named(f"optimizer.{index}", adam[index])
        check_state(expected, {name: tensors[name] for name in tensors.keys() - random.keys()})
        for index, state in adam.items():
            for name, tensor in named(f"optimizer.{index}", state).items():
                tensor.copy_(tensors[name])
        # These two may still refuse what they get. Another device's generator is left alone.
        torch.set_rng_state(random["random.cpu"])
        if self.device.type == "cuda" and "random.cuda" in random:
            torch.cuda.set_rng_state(random["random.cuda"], self.device)
        self.optimizer.load_state_dict({"state": adam, "param_groups": document["optimizer"]})
        self.schedule.load_state_dict(document["schedule"])
        for name, tensor in networks.items():
            tensor.copy_(tensors[name])
        self.records, self.step = records, step


def named(group: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {f"{group}.{name}": tensor for name, tensor in tensors.items()}


@contextlib.contextmanager
def only_process_in(folder: Path) -> Iterator[None]:
    """Make a folder, and let no other process train in it until the block's end.

    The system gives the lock back when a process ends, after SIGKILL too. A ValueError where
    another process trains there, an OSError where the folder or its lock cannot be made.
    """
    from filelock import FileLock, Timeout

    folder.mkdir(parents=True, exist_ok=True)
    try:
        held = FileLock(folder / LOCK).acquire(timeout=0)
    except Timeout:
        raise ValueError(f"another process is training in {folder}") from None
    except OSError as error:
        raise OSError(f"cannot lock {folder / LOCK}: {reason(error)}") from error
    with held:
        for partial in folder.glob(PARTIAL):  # left by a killed process: nobody else writes here
            partial.unlink(missing_ok=True)
        yield


class RunFolder:
    """Where a run is written as it goes; what the folder has beyond the run is cut off."""

    def __init__(self, path: Path, run: Run, checkpoint_seconds: float, hint: bool) -> None:
        # Seconds: the least time between checkpoints. Hint: say where TensorBoard is missing.
        self.path, self.run, self.checkpoint_seconds = path, run, checkpoint_seconds
        self.saved = time.monotonic()
        self._write_metrics()  # if that fails, no writer of events is left open
        with self._writing_events():
            self.events = open_events(path / EVENTS, run.step + 1, hint)

    def log(self, loss: float, step: int) -> None:
        """A step's loss, for TensorBoard."""
        with self._writing_events():
            self.events.add_scalar("loss", loss, step)

    def end_epoch(self, last: bool) -> None:
        """Write events and metrics, and a checkpoint if it is time; after the last epoch it is."""
        with self._writing_events():
            for name, value in self.run.records[-1].items():
                if name not in ("epoch", "step"):
                    tag = name if name.startswith("validation") else f"epoch_{name}"
                    self.events.add_scalar(tag, value, self.run.step)
            self.events.flush()
        if last or time.monotonic() - self.saved >= self.checkpoint_seconds:
            self.run.save(self.path / CHECKPOINT)
            self.saved = time.monotonic()
        self._write_metrics()

    def close(self) -> None:
        """Let go of the events."""
        with self._writing_events():
            self.events.close()

    @contextlib.contextmanager
    def _writing_events(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:  # TensorBoard's, which names no file
            raise OSError(f"cannot write {self.path / EVENTS}: {reason(error)}") from error

    def _write_metrics(self) -> None:
        text = "".join(json.dumps(record) + "\n" for record in self.run.records)
        write_atomically(self.path / METRICS, text.encode())


def open_events(folder: Path, first_step: int, hint: bool) -> Any:
    """TensorBoard's writer; where TensorBoard is not installed, one that writes nothing."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        if hint:
            print("for curves in TensorBoard: pip install tensorboard", file=sys.stderr)
        nothing = dict.fromkeys(("add_scalar", "flush", "close"), lambda *_: None)
        return SimpleNamespace(**nothing)
    return SummaryWriter(str(folder), purge_step=first_step)
