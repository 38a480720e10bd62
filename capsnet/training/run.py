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
from torch.optim.lr_scheduler import LRScheduler

from capsnet.checkpoint import (
    check_state,
    partial_files,
    write_atomically,
    write_tensors,
)

CHECKPOINT, WEIGHTS = "checkpoint.safetensors", "weights.safetensors"
METRICS, EVENTS = "metrics.jsonl", "events"
LOCK = ".lock"  # held while a process trains in the folder; the file itself stays


@dataclass
class Run:
    """Everything that a checkpoint holds: with it, a run goes on as if nothing had happened."""

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

    @torch.no_grad()
    def end_step(self) -> None:
        """Move the learning rate and the average on, after the optimiser's step."""
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
        tensors = {f"model.{name}": t for name, t in self.model.state_dict().items()}
        if self.averaged is not self.model:
            tensors |= {f"averaged.{name}": t for name, t in self.averaged.state_dict().items()}
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
        if self.averaged is not self.model:
            check_state(self.averaged, groups["averaged"], path)
            self.averaged.load_state_dict(groups["averaged"])
        self.model.load_state_dict(groups["model"])
        self.optimizer.load_state_dict({"state": state, "param_groups": document["optimizer"]})
        self.schedule.load_state_dict(document["schedule"])
        device = next(self.model.parameters()).device
        if "cpu" in random:
            torch.set_rng_state(random["cpu"])
        if device.type == "cuda" and "cuda" in random:
            torch.cuda.set_rng_state(random["cuda"], device)
        self.records, self.step = records, step


@contextlib.contextmanager
def only_process_in(folder: Path) -> Iterator[None]:
    """Make a folder, and let no other process train in it until the block's end.

    The system gives the lock back when a process ends, after SIGKILL too.

    Raises:
        OSError: the folder cannot be made, or the file ``.lock`` in it cannot be locked.
        ValueError: another process is training there.
    """
    from filelock import FileLock, Timeout

    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise ValueError(f"another process is training in {folder}") from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise OSError(f"cannot lock {folder / LOCK}: {reason}") from error
    try:
        for partial in partial_files(folder):  # nobody else writes here now
            partial.unlink(missing_ok=True)
        yield
    finally:
        lock.release()


class RunFolder:
    """Where a run is written as it goes; :func:`only_process_in` keeps others away.

    Args:
        path: the folder.
        run: the run, new or restored: what the folder has beyond it is cut off.
        checkpoint_seconds: the least time between checkpoints.
        hint: say on stderr where TensorBoard is missing; the metrics are the record.
    """

    def __init__(self, path: Path, run: Run, checkpoint_seconds: float, hint: bool) -> None:
        self.path, self.run, self.checkpoint_seconds = path, run, checkpoint_seconds
        self.saved = time.monotonic()
        self.events = open_events(path / EVENTS, run.step + 1, hint)
        self._write_metrics()

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
            reason = error.strerror or str(error)
            raise OSError(f"cannot write {self.path / EVENTS}: {reason}") from error

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
