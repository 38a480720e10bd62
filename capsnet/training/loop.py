"""Training, epoch by epoch: ``fit``."""

import dataclasses
import math
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor
from torch.optim.lr_scheduler import ExponentialLR, LRScheduler, OneCycleLR
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from capsnet.data import ImageSet, shifted
from capsnet.device import can_compile, describe_machine, make_fabric
from capsnet.functional import margin_loss
from capsnet.model import CapsNet
from capsnet.training.config import TrainingConfig
from capsnet.training.evaluation import check_fits, evaluate
from capsnet.training.loss import Criterion
from capsnet.training.run import CHECKPOINT, Run, RunFolder
from capsnet.training.step import Step, make_optimizer, make_step

if TYPE_CHECKING:
    from lightning_fabric import Fabric
    from tqdm import tqdm

# Image set, indices, largest shift and generator → what TrainingLoss takes.
Draw = Callable[[ImageSet, Tensor, int, torch.Generator], tuple[Tensor, ...]]
READ_EVERY = 10  # steps between reads of the loss, each of which waits for the device


class TrainingError(RuntimeError):
    """Training cannot go on; the last checkpoint is untouched."""


def make_schedule(
    optimizer: torch.optim.Optimizer, config: TrainingConfig, steps: int
) -> LRScheduler:
    """The learning rate's schedule, one call of its ``step()`` after each training step.

    Args:
        optimizer: whose rate is set.
        config: ``schedule`` and ``learning_rate`` count.
        steps: training steps in all; "exponential" does not depend on it.

    Raises:
        ValueError: "one-cycle" over fewer than 2 steps.
    """
    if config.schedule == "exponential":
        return ExponentialLR(optimizer, gamma=0.96 ** (1 / 2000))
    if steps < 2:
        raise ValueError(
            f"one-cycle needs at least 2 steps, got {steps}: train for more epochs, or in smaller "
            "batches"
        )
    return OneCycleLR(optimizer, config.learning_rate, total_steps=steps, cycle_momentum=False)


@dataclasses.dataclass(frozen=True)
class Batches:
    """The batches of a run, of each this process's share.

    Raises:
        ValueError: a batch cannot be divided among the processes (in :meth:`of`).
    """

    training: ImageSet  # on the device
    config: TrainingConfig
    draw: Draw
    size: int  # images a batch, over all processes
    mine: slice  # this process's, of a batch

    @classmethod
    def of(
        cls, training: ImageSet, config: TrainingConfig, draw: Draw, fabric: "Fabric"
    ) -> "Batches":
        processes = fabric.world_size
        if config.batch_size % processes:
            raise ValueError(
                f"batch_size must be divisible by the number of processes, {processes}, got "
                f"{config.batch_size}"
            )
        share = min(config.batch_size, len(training)) // processes
        if share == 0:
            raise ValueError(f"{len(training)} images are too few for {processes} processes")
        mine = slice(fabric.global_rank * share, (fabric.global_rank + 1) * share)
        return cls(training.to(fabric.device), config, draw, share * processes, mine)

    def __len__(self) -> int:
        """Batches in an epoch."""
        return len(self.training) // self.size

    def of_epoch(self, epoch: int) -> Iterator[tuple[Tensor, ...]]:
        """What the step takes, batch by batch: what ``draw`` returned."""
        # All randomness of an epoch comes from its own seed, so a resumed run repeats it exactly.
        generator = torch.Generator().manual_seed(self.config.seed * 1_000_003 + epoch)
        order = torch.randperm(len(self.training), generator=generator)
        order = order.to(self.training.images.device)
        for index in order[: len(self) * self.size].split(self.size):
            # Every process draws the whole batch, so that their number changes nothing.
            drawn = self.draw(self.training, index, self.config.shift, generator)
            yield tuple(part[self.mine] for part in drawn)


def fit(
    model: CapsNet,
    training: ImageSet,
    validation: ImageSet | None = None,
    config: TrainingConfig | None = None,
    *,
    out: str | Path | None = None,
    fabric: "Fabric | None" = None,
    criterion: Criterion = margin_loss,
    draw: Draw = shifted,
    start: str | None = None,
    stop_after: int | None = None,
    until: Callable[[dict[str, Any]], bool] | None = None,
    checkpoint_seconds: float = 0.0,
    progress: bool = True,
) -> list[dict[str, Any]]:
    """Train a model; where ``out`` holds a checkpoint of this very run, go on from it.

    Under ``torchrun`` every process takes its share of each batch, on one or several machines.

    Args:
        model: the network; it ends with the trained (averaged) weights, on the device used.
        training: images to learn from.
        validation: images of one object each to evaluate on, as they are, after each epoch.
        config: how to train.
        out: a folder for ``checkpoint.safetensors``, ``metrics.jsonl``, TensorBoard
            events and, at the end, ``weights.safetensors``; nothing is written if None.
        fabric: where to train, from :func:`capsnet.device.make_fabric`; CUDA where there is one
            if None.
        criterion: as :func:`make_step`.
        draw: makes a batch of the images at some indices, at random: :func:`capsnet.data.shifted`,
            or :func:`capsnet.data.overlaid`, for pairs.
        start: names the model's first weights, where they are not its own, by a checksum, say: a
            checkpoint in ``out`` of another start is another run's.
        stop_after: leave off once so many epochs are done, although the schedule is made for all of
            ``config.epochs``; the next call goes on from there.
        until: an epoch's record → whether the training is done with it, before ``config.epochs``;
            asked in the first process, whose records alone have "validation_…".
        checkpoint_seconds: write a checkpoint after an epoch only where the last is as old as this;
            always after the last epoch.
        progress: show a bar with rate and time left, and a line an epoch, on stderr.

    Returns:
        one record an epoch: "epoch", "step", "loss", "learning_rate", "seconds" and
        "images_per_second" of training, and with validation images "validation_loss",
        "validation_margin", "validation_reconstruction" and "validation_accuracy"; loss and margin
        are of the margin loss there, whatever the criterion.

    Raises:
        ValueError: the images do not fit the model, the batch cannot be divided among the
            processes, or ``out`` holds another run's checkpoint, or a damaged one.
        TrainingError: the loss or a weight is not finite.
        OSError: ``out`` cannot be written.
    """
    config = config or TrainingConfig()
    fabric = fabric or make_fabric()
    check_fits(model, training)
    if validation is not None:
        check_fits(model, validation)

    if config.shift >= min(training.images.shape[2:]):
        raise ValueError(f"shift must be smaller than the images, got {config.shift}")
    batches = Batches.of(training, config, draw, fabric)
    model.to(fabric.device).train()
    optimizer = make_optimizer(model, config)
    uncompiled = dataclasses.replace(config, compile=False)
    step = make_step(model, optimizer, uncompiled, fabric, criterion)
    schedule = make_schedule(optimizer, config, config.epochs * len(batches))
    averaged = None
    if config.average:
        averaged = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(config.average))
    identity = {
        # How the arithmetic is done may change on the way; what is computed may not.
        "config": {
            name: value
            for name, value in dataclasses.asdict(config).items()
            if name not in ("arrangement", "compile")
        },
        "model": model.config,
        "data": {
            "classes": list(training.classes),
            "images": len(training),
            "crc32": [
                zlib.crc32(t.cpu().numpy().tobytes()) for t in (training.images, training.labels)
            ],
        },
        "task": {"draw": name_of(draw), "criterion": name_of(criterion), "start": start},
    }
    run = Run(model, averaged, optimizer, schedule, identity)
    folder = None
    if out is not None and fabric.is_global_zero:
        folder = RunFolder(Path(out), checkpoint_seconds)
    try:
        # Only the first process's machine is sure to have the file.
        saved = fabric.broadcast(folder.read() if folder is not None else None)
        if saved is not None:
            run.restore(*saved, path=Path(out or "") / CHECKPOINT)
        last = config.epochs if stop_after is None else min(stop_after, config.epochs)
        done = train_epochs(
            run, batches, validation, config, fabric, step, last, until, folder, progress
        )
        model.load_state_dict(run.best_model().state_dict())
        model.eval()
        if folder is not None and done:
            folder.finish(
                {
                    "classes": list(training.classes),
                    "dataset": training.name,
                    "images": len(training),
                    "config": dataclasses.asdict(config) | {"compile": step.compiled},
                    "machine": describe_machine(fabric.device, fabric.world_size),
                }
            )
    finally:
        if folder is not None:
            folder.close()
    fabric.barrier()
    return run.records


def train_epochs(
    run: Run,
    batches: Batches,
    validation: ImageSet | None,
    config: TrainingConfig,
    fabric: "Fabric",
    step: Step,
    last: int,
    until: Callable[[dict[str, Any]], bool] | None,
    folder: RunFolder | None,
    progress: bool,
) -> bool:
    """The epochs that are left up to ``last``; whether the training is then done."""

    def done() -> bool:
        if len(run.records) == config.epochs:
            return True
        # The first process alone has evaluated.
        asked = until if fabric.is_global_zero else None
        return fabric.broadcast(asked is not None and any(map(asked, run.records)))

    finished = done()

    show = progress and fabric.is_global_zero
    if show and run.records:
        print_line(f"continuing after epoch {len(run.records)} of {config.epochs}")
    if folder is not None:
        folder.start(run)
    new = not run.records  # a new run compiles later, so that it says at once that it works
    if not new:
        compile_step(step, config, fabric)
    if validation is not None:
        validation = validation.to(fabric.device)
    for epoch in range(len(run.records), last):
        if finished:
            break
        start = time.perf_counter()
        unread: list[Tensor] = []
        losses: list[float] = []
        images = len(batches) * batches.size
        with progress_bar(images, epoch, config.epochs, show) as bar:
            for i, batch in enumerate(batches.of_epoch(epoch)):
                unread.append(step(*batch))
                rate = run.schedule.get_last_lr()[0]
                run.schedule.step()
                if run.averaged is not None:
                    run.averaged.update_parameters(run.model)
                bar.update(batches.size)
                if i % READ_EVERY == 0 or i == len(batches) - 1:
                    mean = fabric.all_reduce(torch.stack(unread), reduce_op="mean")
                    for loss in cast(Tensor, mean).tolist():
                        run.step += 1
                        check_finite("the loss", loss, run.step)
                        losses.append(loss)
                        if folder is not None:
                            folder.log_loss(loss)
                    bar.set_postfix(loss=f"{losses[-1]:.4f}")
                    if show and i == 0 and epoch == len(run.records):
                        bar.write(f"first batch: loss {losses[0]:.4f}", file=sys.stderr)
                    if new and run.step == 1:
                        compile_step(step, config, fabric)
                    unread.clear()
        seconds = time.perf_counter() - start
        for name, parameter in run.model.named_parameters():
            check_finite(f"the sum of {name}", parameter.sum().item(), run.step)

        record: dict[str, Any] = {
            "epoch": epoch + 1,
            "step": run.step,
            "loss": sum(losses) / len(losses),
            "learning_rate": rate,  # of the last step
            "seconds": round(seconds, 3),
            "images_per_second": round(images / seconds, 1),
        }
        if validation is not None and fabric.is_global_zero:
            result = evaluate(
                run.best_model(),
                validation,
                precision=config.precision,
                arrangement=config.arrangement,
                compile=step.compiled,
            )
            weighted = config.reconstruction_weight * result.reconstruction
            record |= {
                "validation_loss": result.margin + weighted,
                "validation_margin": result.margin,
                "validation_reconstruction": result.reconstruction,
                "validation_accuracy": result.accuracy,
            }
        run.records.append(record)
        finished = done()
        if folder is not None:
            folder.end_epoch(last=finished or epoch == last - 1)
        fabric.barrier()
        if show:
            print_line(describe(record, config.epochs))
    return finished


def name_of(function: Callable[..., Any]) -> str:
    """What a checkpoint calls a function."""
    return getattr(function, "__qualname__", repr(function))


def compile_step(step: Step, config: TrainingConfig, fabric: "Fabric") -> None:
    """Compile, where the configuration and the machine let it."""
    if config.compile or (config.compile is None and can_compile(fabric.device)):
        step.compile()


def check_finite(name: str, value: float, step: int) -> None:
    """See that a number of the training is finite.

    Args:
        name: what it is, for the message.
        value: the number.
        step: after how many training steps, for the message.

    Raises:
        TrainingError: it is infinite, or not a number.
    """
    if not math.isfinite(value):
        raise TrainingError(
            f"{name} is {value} at step {step}; try a lower learning rate (the last checkpoint is "
            "untouched)"
        )


def progress_bar(images: int, epoch: int, epochs: int, show: bool) -> "tqdm":
    """A bar over an epoch's images, with rate and time left."""
    from tqdm import tqdm

    return tqdm(
        total=images,
        desc=f"epoch {epoch + 1}/{epochs}",
        unit=" images",
        disable=not show,
        leave=False,
        # A file or a pipe gets a line now and then instead of a moving bar.
        mininterval=0.2 if sys.stderr.isatty() else 15,
    )


def print_line(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def describe(record: dict[str, Any], epochs: int) -> str:
    """An epoch's record as a line of text."""
    line = (
        f"epoch {record['epoch']}/{epochs}  loss {record['loss']:.4f}  "
        f"{record['images_per_second']:.0f} images/s  {record['seconds']:.0f} s"
    )
    if "validation_accuracy" in record:
        line += f"  validation {record['validation_accuracy']:.2%}"
    return line
