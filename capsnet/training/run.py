"""A training run and its folder: checkpoint, metrics and TensorBoard events."""

import contextlib
import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from filelock import FileLock, Timeout
from torch import Tensor, nn
from torch.optim.lr_scheduler import LRScheduler
from torch.optim.swa_utils import get_ema_multi_avg_fn

from capsnet.checkpoint import check_state, read_tensors, write_tensors
from capsnet.files import PARTIAL, write_atomically

if TYPE_CHECKING:
    from lightning_fabric import Fabric

CHECKPOINT, WEIGHTS = "checkpoint.safetensors", "weights.safetensors"
METRICS, EVENTS = "metrics.jsonl", "events"
LOCK = ".lock"  # held while a process trains in the folder; the file itself stays


@dataclass
class Run:
    """All that a checkpoint holds: with it, a run goes on as if it had never stopped."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    schedule: LRScheduler
    decay: float  # of the weights' moving average; 0 for none
    identity: dict[str, dict[str, Any]]  # must be equal for a checkpoint to be this run's
    records: list[dict[str, Any]] = field(default_factory=list)  # one per epoch
    step: int = 0
    averaged: nn.Module = field(init=False)  # the network to evaluate and to save

    def __post_init__(self) -> None:
        self.averaged = copy.deepcopy(self.model) if self.decay else self.model
        self.device = next(self.model.parameters()).device

    @torch.no_grad()
    def after_step(self) -> None:
        """Advance the learning rate and the average, after the optimiser's step."""
        self.schedule.step()
        self.step += 1
        if self.averaged is self.model:
            return
        # The average begins with the weights after the first step. Unlike
        # torch.optim.swa_utils.AveragedModel, this does not wait for a GPU.
        update = get_ema_multi_avg_fn(self.decay if self.step > 1 else 0.0)
        update([*self.averaged.parameters()], [*self.model.parameters()], self.step)
        for mean, current in zip(self.averaged.buffers(), self.model.buffers(), strict=True):
            mean.copy_(current)

    def save(self, path: Path) -> None:
        """Write the checkpoint atomically."""
        optimizer = self.optimizer.state_dict()
        tensors = self._networks()
        for index, state in optimizer["state"].items():
            tensors |= prefixed(f"optimizer.{index}", state)
        # Dropout, for example, draws from torch's own generators.
        tensors["random.cpu"] = torch.get_rng_state()
        if self.device.type == "cuda":
            tensors["random.cuda"] = torch.cuda.get_rng_state(self.device)
        document = {
            "identity": self.identity,
            "step": self.step,
            "records": self.records,
            "optimizer": optimizer["param_groups"],
            "stepped": sorted(optimizer["state"]),  # without parameters that are frozen or unused
            "schedule": self.schedule.state_dict(),
        }
        write_tensors(path, tensors, document)

    def restore(self, tensors: dict[str, Tensor], document: dict[str, Any], path: Path) -> None:
        """Load a checkpoint; raise ValueError if it is damaged or another run's."""
        try:
            difference = self._difference(document["identity"])
            if difference is None:
                self._load(tensors, document)
        except (LookupError, TypeError, AttributeError, ValueError, RuntimeError) as error:
            raise ValueError(f"{path} is damaged: {type(error).__name__} {error}") from error
        if difference is not None:
            raise ValueError(
                f"{path} belongs to another run: {difference}. To continue that run, give its "
                f"options; to begin a new one, choose another folder, or remove {path.parent}"
            )

    def _networks(self) -> dict[str, Tensor]:
        tensors = prefixed("model", self.model.state_dict())
        if self.averaged is not self.model:
            tensors |= prefixed("averaged", self.averaged.state_dict())
        return tensors

    def _difference(self, identity: dict[str, dict[str, Any]]) -> str | None:
        for part, expected in self.identity.items():
            saved = identity[part]
            for key in {**expected, **saved}:
                if expected.get(key) != saved.get(key):
                    return f"its {part} has {key} = {saved.get(key)}, yours has {expected.get(key)}"
        return None

    def _load(self, tensors: dict[str, Tensor], document: dict[str, Any]) -> None:
        """Check everything first, so that a damaged checkpoint changes no weight."""
        records, step = document["records"], document["step"]
        random = {name: tensors[name] for name in tensors if name.startswith("random.")}
        adam: dict[int, dict[str, Tensor]] = {}
        networks = self._networks()
        expected = dict(networks)
        parameters = [*self.model.parameters()]
        for index in document["stepped"]:
            parameter = parameters[index]
            # Adam's fused kernel needs its moments in the layout of the weights.
            mean, square = torch.empty_like(parameter), torch.empty_like(parameter)
            adam[index] = {"exp_avg": mean, "exp_avg_sq": square, "step": torch.zeros(())}
            expected |= prefixed(f"optimizer.{index}", adam[index])
        check_state(expected, {name: tensors[name] for name in tensors.keys() - random.keys()})
        for index, state in adam.items():
            for name, tensor in prefixed(f"optimizer.{index}", state).items():
                tensor.copy_(tensors[name])
        # The generators and the optimiser may still refuse their states. A generator of another
        # device is left as it is.
        torch.set_rng_state(random["random.cpu"])
        if self.device.type == "cuda" and "random.cuda" in random:
            torch.cuda.set_rng_state(random["random.cuda"], self.device)
        self.optimizer.load_state_dict({"state": adam, "param_groups": document["optimizer"]})
        self.schedule.load_state_dict(document["schedule"])
        for name, tensor in networks.items():
            tensor.copy_(tensors[name])
        self.records, self.step = records, step


def prefixed(group: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {f"{group}.{name}": tensor for name, tensor in tensors.items()}


@contextlib.contextmanager
def open_run(run: Run, out: Path | None, fabric: "Fabric") -> Iterator["RunFolder | None"]:
    """Lock the folder ``out``, restore the run from its checkpoint, and yield where to write.

    Every process restores the run. All but the first one get None instead of a folder, and so does
    the first without ``out``.

    Raises:
        ValueError: another process trains there, or the checkpoint is refused.
        OSError: the folder or its lock cannot be made.
    """
    if out is None:
        yield None
        return
    with contextlib.ExitStack() as stack:
        saved = None
        if fabric.is_global_zero:
            out.mkdir(parents=True, exist_ok=True)
            try:
                # The system releases the lock when a process ends, even by SIGKILL.
                stack.enter_context(FileLock(out / LOCK, timeout=0))
            except Timeout:
                raise ValueError(f"another process is training in {out}") from None
            for partial in out.glob(PARTIAL):  # left by a killed process: nobody else writes here
                partial.unlink()
            if (out / CHECKPOINT).exists():
                saved = read_tensors(out / CHECKPOINT)
        # Only the first process's machine is sure to have the file.
        saved = fabric.broadcast(saved)
        if saved is not None:
            run.restore(*saved, path=out / CHECKPOINT)
            del saved  # it maps the file, which Windows then does not let a new one replace
        if fabric.is_global_zero:
            yield stack.enter_context(contextlib.closing(RunFolder(out, run)))
        else:
            yield None


class RunFolder:
    """The folder of a run. Metrics and events beyond the run's last epoch are cut off."""

    def __init__(self, path: Path, run: Run) -> None:
        self.path, self.run = path, run
        self._write_metrics()  # first: if it fails, no writer of events is left open
        self.events = open_events(path / EVENTS, run.step + 1)

    def log(self, loss: float, step: int) -> None:
        """Write a step's loss for TensorBoard."""
        if self.events is not None:
            self.events.add_scalar("loss", loss, step)

    def after_epoch(self) -> None:
        """Write events, the checkpoint and metrics."""
        if self.events is not None:
            for name, value in self.run.records[-1].items():
                if name not in ("epoch", "step"):
                    tag = name if name.startswith("validation") else f"epoch_{name}"
                    self.events.add_scalar(tag, value, self.run.step)
            self.events.flush()
        self.run.save(self.path / CHECKPOINT)
        self._write_metrics()

    def close(self) -> None:
        if self.events is not None:
            self.events.close()

    def _write_metrics(self) -> None:
        text = "".join(json.dumps(record) + "\n" for record in self.run.records)
        write_atomically(self.path / METRICS, text.encode())


def open_events(folder: Path, first_step: int) -> Any:
    """TensorBoard's writer, or None where TensorBoard is not installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(folder), purge_step=first_step)
