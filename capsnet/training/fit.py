"""Training, epoch by epoch: ``fit``."""

import dataclasses
import datetime as dt
import json
import math
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import ExponentialLR, LRScheduler, OneCycleLR

from capsnet.checkpoint import check_savable, full_name, save_weights, unwrapped
from capsnet.data import ImageSet, shifted_batch
from capsnet.device import describe_machine, make_fabric
from capsnet.functional import margin_loss
from capsnet.text import bar_interval
from capsnet.training.config import WORTH_COMPILING, TrainingConfig
from capsnet.training.diagnosis import diagnose
from capsnet.training.evaluation import Evaluation, evaluate, images_for
from capsnet.training.loss import Criterion, TrainingLoss
from capsnet.training.run import WEIGHTS, Run, RunFolder, open_run
from capsnet.training.step import Step, make_optimizer, make_step

if TYPE_CHECKING:
    from lightning_fabric import Fabric

# Image set, indices, largest shift and generator → what the loss takes.
MakeBatch = Callable[[ImageSet, Tensor, int, torch.Generator], tuple[Tensor, ...]]
MakeSchedule = Callable[[torch.optim.Optimizer, TrainingConfig, int], LRScheduler]
READ_EVERY = 10  # steps between reads of the loss, each of which waits for the device


class TrainingError(RuntimeError):
    """Training cannot go on; the last checkpoint is untouched."""


def make_schedule(
    optimizer: torch.optim.Optimizer, config: TrainingConfig, steps: int
) -> LRScheduler:
    """The configuration's schedule of the learning rate over so many steps."""
    if config.schedule == "exponential":
        return ExponentialLR(optimizer, gamma=0.96 ** (1 / 2000))
    if steps < 2:
        raise ValueError(
            f"one-cycle needs at least 2 steps, got {steps}: take more epochs or smaller batches"
        )
    return OneCycleLR(optimizer, config.learning_rate, total_steps=steps, cycle_momentum=False)


class Batches:
    """The batches of a run; of each batch, the rows of this process."""

    def __init__(
        self,
        training: ImageSet,
        config: TrainingConfig,
        make_batch: MakeBatch,
        make_order: Callable[..., Tensor],
        fabric: "Fabric",
    ) -> None:
        processes = fabric.world_size
        if config.batch_size % processes:
            raise ValueError(
                f"batch_size must be divisible by the number of processes, {processes}, got "
                f"{config.batch_size}"
            )
        share = min(config.batch_size, len(training)) // processes
        self.training, self.config, self.fabric = training.to(fabric.device), config, fabric
        self.make_batch, self.make_order = make_batch, make_order
        self.size = share * processes  # images per batch, over all processes
        self.images = len(training) // self.size * self.size  # an epoch, over all processes
        self.rows = slice(fabric.global_rank * share, (fabric.global_rank + 1) * share)

    def __len__(self) -> int:
        return self.images // self.size

    def epoch_batches(self, epoch: int) -> Iterator[tuple[Tensor, ...]]:
        """What ``make_batch`` returns and the step takes, batch by batch."""
        # All randomness of an epoch comes from its own seed, so a resumed run repeats it exactly.
        generator = torch.Generator().manual_seed(self.config.seed * 1_000_003 + epoch)
        order = self.make_order(len(self.training), generator=generator)
        order = order.to(self.training.images.device)
        for index in order[: self.images].split(self.size):
            # Every process draws the whole batch, so that their number changes no batch. With W
            # processes this is W times the work.
            batch = self.make_batch(self.training, index, self.config.shift, generator)
            yield tuple(tensor[self.rows] for tensor in batch)


def fit(
    model: nn.Module,
    training: Any,
    validation: Any = None,
    config: TrainingConfig | None = None,
    *,
    out: str | Path | None = None,
    fabric: "Fabric | None" = None,
    criterion: Criterion = margin_loss,
    make_batch: MakeBatch = shifted_batch,
    make_loss: Callable[..., nn.Module] = TrainingLoss,
    make_order: Callable[..., Tensor] = torch.randperm,
    make_schedule: MakeSchedule = make_schedule,
    on_epoch: Callable[[torch.optim.Optimizer, LRScheduler, dict[str, Any]], None] | None = None,
    tag: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    stop_after: int | None = None,
    progress: bool = True,
) -> list[dict[str, Any]]:
    """Train a model; if ``out`` holds a checkpoint of the same run, resume it.

    Under ``torchrun`` every process takes its share of each batch, on one or several machines. On a
    single GPU the step becomes a CUDA graph (:meth:`capsnet.training.step.Step.capture`).

    Args:
        model: a :class:`CapsNet`, or another network with its ``config`` and its output, or its
            wrapper by torch.compile or DataParallel; it ends with the trained (averaged) weights,
            on the device used.
        training: images to learn from, in any form that :func:`capsnet.data.as_image_set` takes.
        validation: images to evaluate on, unshifted, after each epoch.
        config: how to train; :meth:`TrainingConfig.for_model` of this network and these images
            where not given.
        out: a folder for ``checkpoint.safetensors``, ``metrics.jsonl``, TensorBoard's ``events``
            (where it is installed) and, at the end, ``weights.safetensors``.
        fabric: where to train, from :func:`capsnet.device.make_fabric`; CUDA where there is one.
        criterion: lengths and labels → the loss without the reconstruction's.
        make_batch: as :func:`capsnet.data.shifted_batch`.
        make_loss: as :class:`TrainingLoss`, a module that takes what ``make_batch`` returns.
        make_order: number of images, generator → the indices of an epoch, shuffled by default.
        make_schedule: optimizer, config, number of steps → a scheduler that follows each step, in
            place of the configuration's.
        on_epoch: called in every process with optimizer, scheduler and the epoch's record, after
            each epoch and before its checkpoint.
        tag: distinguishes runs that differ in something else, such as the weights that training
            starts from, or the arguments of a partial.
        metadata: more to store with the weights, as JSON; it replaces nothing that ``fit`` stores.
        stop_after: stop after so many epochs, with the schedule for all; a later call goes on.
        progress: show a bar with rate and time left, and a line per epoch, on stderr.

    A checkpoint belongs to this run if the model's class and config, the configuration, the images,
    ``tag`` and the names of the functions passed are the same.

    Returns:
        one record per epoch: "epoch", "step", "loss", "learning_rate", "seconds" and
        "images_per_second" of training, and with validation images "validation_accuracy", with a
        decoder "validation_reconstruction", and of a :class:`CapsNet` "validation_margin" and
        "validation_loss", which are of the margin loss, whatever the criterion.

    Raises:
        ValueError: the images do not fit the model, a batch cannot be divided among the processes,
            or ``out`` holds another run's checkpoint or a damaged one.
        TrainingError: the loss or a weight is not finite.
        OSError: ``out`` cannot be written.
    """
    fabric = fabric or make_fabric()
    model = unwrapped(model)
    if out is not None:
        check_savable(model, metadata or {})
    training = images_for(model, training)
    config = config_for(model, training, config)
    if validation is not None:
        validation = images_for(model, validation).to(fabric.device)
    functions = {
        "criterion": criterion, "make_batch": make_batch, "make_loss": make_loss,
        "make_order": make_order, "make_schedule": make_schedule, "on_epoch": on_epoch,
    }  # fmt: skip
    identity = {} if out is None else identify(model, training, config, functions, tag)
    batches = Batches(training, config, make_batch, make_order, fabric)
    model.to(fabric.device).train()
    optimizer = make_optimizer(model, config)
    arithmetic = config
    if config.compile is None and config.epochs * batches.images < WORTH_COMPILING:
        arithmetic = dataclasses.replace(config, compile=False)
    step = make_step(model, optimizer, arithmetic, fabric, criterion, make_loss)
    step.capture()
    scheduler = make_schedule(optimizer, config, config.epochs * len(batches))
    run = Run(model, optimizer, scheduler, config.average, identity)
    show = progress and fabric.is_global_zero and sys.stderr is not None
    path = None if out is None else Path(out)
    last = config.epochs if stop_after is None else min(config.epochs, stop_after)

    with open_run(run, path, fabric) as folder:
        if run.records and show:
            print_to_stderr(f"continuing after epoch {len(run.records)} of {config.epochs}")
        if show and step.compiled:
            print_to_stderr("compiling during the first batch, for half a minute or so")
        result = None
        while len(run.records) < last:
            start = time.perf_counter()
            record = train_epoch(run, step, batches, folder, show)
            if fabric.is_global_zero and validation is not None:
                result = evaluate(
                    run.averaged,
                    validation,
                    precision=config.precision,
                    arrangement=config.arrangement,
                    compile=step.compiled,
                )
                record |= validation_record(result, config)
            record = fabric.broadcast(record)
            if on_epoch is not None:
                on_epoch(optimizer, scheduler, record)
            run.records.append(record)
            if folder is not None:
                folder.after_epoch()
            fabric.barrier()
            if show:
                print_to_stderr(describe(record, config.epochs, time.perf_counter() - start))
        finished = len(run.records) == config.epochs
        if show and finished and result is not None:
            diagnosis = diagnose(result, config.learning_rate)
            if diagnosis is not None:
                print_to_stderr(diagnosis)
        model.load_state_dict(run.averaged.state_dict())
        model.eval()
        if folder is not None and finished:
            described = {
                **(metadata or {}),
                "classes": list(training.classes),
                "dataset": training.name,
                "images": len(training),
                "config": dataclasses.asdict(config) | {"compile": step.compiled},
                "task": identity["task"],
                "machine": describe_machine(fabric.device, fabric.world_size),
            }
            save_weights(folder.path / WEIGHTS, model, described)
    fabric.barrier()
    return run.records


def config_for(model: Any, training: ImageSet, config: TrainingConfig | None) -> TrainingConfig:
    """How to train this network on these images; a CNN, say, as MNIST where not given."""
    if config is None:
        suits = hasattr(model, "num_primary_capsules")
        config = TrainingConfig.for_model(model, len(training)) if suits else TrainingConfig()
    if not isinstance(config, TrainingConfig):
        raise ValueError(f"config must be a TrainingConfig, got {type(config).__name__}")
    config.check_shift(training.images.shape[1:])
    return config


def train_epoch(
    run: Run, step: Step, batches: Batches, folder: RunFolder | None, show: bool
) -> dict[str, Any]:
    """Train for the next epoch, and return its record."""
    from tqdm import tqdm

    config, fabric = batches.config, batches.fabric
    epoch = len(run.records)
    start = time.perf_counter()
    unread: list[Tensor] = []
    losses: list[float] = []
    with tqdm(
        desc=f"epoch {epoch + 1}/{config.epochs}", total=batches.images, unit=" images",
        leave=False, disable=not show, mininterval=bar_interval(),
    ) as bar:  # fmt: skip
        for i, batch in enumerate(batches.epoch_batches(epoch)):
            unread.append(step(*batch))
            rate = run.schedule.get_last_lr()[0]
            run.after_step()
            bar.update(batches.size)
            if i % READ_EVERY == 0 or i == len(batches) - 1:
                # Over all processes; this waits for the device.
                mean = cast(Tensor, fabric.all_reduce(torch.stack(unread), reduce_op="mean"))
                for number, loss in enumerate(mean.tolist(), start=run.step - len(unread) + 1):
                    check_finite("the loss", loss, number)
                    if folder is not None:
                        folder.log(loss, number)
                    losses.append(loss)
                unread.clear()
                bar.set_postfix(loss=f"{losses[-1]:.4f}")
    seconds = time.perf_counter() - start
    sums = {name: p.detach().sum() for name, p in run.model.named_parameters()}
    for name, total in zip(sums, torch.stack([*sums.values()]).tolist(), strict=True):
        check_finite(f"the sum of {name}", total, run.step)
    return {
        "epoch": epoch + 1,
        "step": run.step,
        "loss": sum(losses) / len(losses),
        "learning_rate": rate,  # of the last step
        "seconds": round(seconds, 3),
        "images_per_second": round(batches.images / seconds, 1),
    }


def check_finite(name: str, value: float, step: int) -> None:
    if not math.isfinite(value):
        raise TrainingError(
            f"{name} is {value} at step {step}; try a lower learning rate (the last checkpoint is "
            "untouched)"
        )


def validation_record(result: Evaluation, config: TrainingConfig) -> dict[str, float]:
    """What an epoch's record says of the validation images."""
    record = {"validation_accuracy": result.accuracy}
    if result.reconstruction is not None:
        record["validation_reconstruction"] = result.reconstruction
    if result.margin is not None:
        weighted = config.reconstruction_weight * (result.reconstruction or 0.0)
        record["validation_margin"] = result.margin
        record["validation_loss"] = result.margin + weighted
    return record


def identify(
    model: nn.Module,
    training: ImageSet,
    config: TrainingConfig,
    functions: dict[str, Any],
    tag: str | None,
) -> dict[str, Any]:
    """What must be equal for a checkpoint to belong to this run, in four groups."""
    # Another arithmetic computes the same, so a run may go on with it.
    ignored = ("arrangement", "compile")
    arrays = [part.cpu().contiguous().numpy().data for part in (training.images, training.labels)]
    identity = {
        "config": {k: v for k, v in dataclasses.asdict(config).items() if k not in ignored},
        "model": {"class": full_name(type(model)), **cast(Any, model).config},
        "data": {
            "classes": list(training.classes),
            "images": len(training),
            "crc32": [zlib.crc32(array) for array in arrays],
        },
        "task": {
            **{key: name_of(function) for key, function in functions.items() if function},
            "tag": tag,
        },
    }
    return cast(dict[str, Any], json.loads(json.dumps(identity)))  # as a checkpoint returns it


def name_of(function: Any) -> str:
    """Module and name of a function, or of the class of another callable."""
    return f"{function.__module__}.{getattr(function, '__qualname__', type(function).__name__)}"


def describe(record: dict[str, Any], epochs: int, seconds: float) -> str:
    """A line for an epoch, which took so many seconds with its evaluation and its checkpoint."""
    line = (
        f"epoch {record['epoch']}/{epochs}  loss {record['loss']:.4f}  "
        f"{record['images_per_second']:.0f} images/s  {record['seconds']:.0f} s"
    )
    if "validation_accuracy" in record:
        line += f"  validation {record['validation_accuracy']:.2%}"
    if left := epochs - record["epoch"]:
        line += f"  about {dt.timedelta(seconds=round(left * seconds))} left"
    return line


def print_to_stderr(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
