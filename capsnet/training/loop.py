"""Training, epoch by epoch: ``fit``."""

import contextlib
import dataclasses
import functools
import json
import math
import sys
import time
import types
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import (
    ExponentialLR,
    LRScheduler,
    OneCycleLR,
    ReduceLROnPlateau,
    StepLR,
)

from capsnet.checkpoint import read_tensors, save_weights
from capsnet.data import ImageSet, shifted
from capsnet.device import describe_machine, make_fabric, resolve_compile
from capsnet.functional import margin_loss
from capsnet.text import bar_interval
from capsnet.training.config import FEWEST_SEEN, TrainingConfig
from capsnet.training.evaluation import Evaluation, check_fits, evaluate
from capsnet.training.loss import Criterion, TrainingLoss
from capsnet.training.run import CHECKPOINT, WEIGHTS, Run, RunFolder, only_process_in
from capsnet.training.step import Step, make_optimizer

if TYPE_CHECKING:
    from lightning_fabric import Fabric
    from tqdm import tqdm

# Image set, indices, largest shift and generator → what the loss takes.
Draw = Callable[[ImageSet, Tensor, int, torch.Generator], tuple[Tensor, ...]]
READ_EVERY = 10  # steps between reads of the loss, each of which waits for the device


class TrainingError(RuntimeError):
    """Training cannot go on; the last checkpoint is untouched."""


def make_schedule(
    optimizer: torch.optim.Optimizer, config: TrainingConfig, steps: int
) -> LRScheduler:
    """The learning rate's schedule over so many steps; its ``step()`` follows each of them, that of
    a plateau each evaluation.
    """
    if config.schedule == "exponential":
        return ExponentialLR(optimizer, gamma=0.96 ** (1 / 2000))
    if config.schedule == "plateau":
        return ReduceLROnPlateau(optimizer, factor=0.1, patience=15)
    if config.schedule != "one-cycle":
        gamma = 0.9 if config.schedule == "by-epoch" else 1.0
        return StepLR(optimizer, steps // config.epochs, gamma)
    if steps < 2:
        raise ValueError(f"one-cycle needs at least 2 steps, got {steps}: take more epochs")
    return OneCycleLR(optimizer, config.learning_rate, total_steps=steps, cycle_momentum=False)


class Batches:
    """The batches of a run, of each this process's share."""

    def __init__(
        self, training: ImageSet, config: TrainingConfig, draw: Draw, fabric: "Fabric"
    ) -> None:
        processes = fabric.world_size
        if config.batch_size % processes:
            raise ValueError(
                f"batch_size must be divisible by the number of processes, {processes}, got "
                f"{config.batch_size}"
            )
        share = min(config.batch_size, len(training)) // processes
        if share == 0:
            raise ValueError(f"{len(training)} images are too few for {processes} processes")
        self.training, self.config, self.draw = training.to(fabric.device), config, draw
        self.size = share * processes  # images a batch, over all processes
        self.mine = slice(fabric.global_rank * share, (fabric.global_rank + 1) * share)

    def __len__(self) -> int:
        return len(self.training) // self.size

    @property
    def images(self) -> int:
        """How many an epoch has, over all processes."""
        return len(self) * self.size

    def of_epoch(self, epoch: int) -> Iterator[tuple[Tensor, ...]]:
        """What ``draw`` returns and the step takes, batch by batch."""
        # All randomness of an epoch comes from its own seed, so a resumed run repeats it exactly.
        generator = torch.Generator().manual_seed(self.config.seed * 1_000_003 + epoch)
        order = torch.randperm(len(self.training), generator=generator)
        order = order if self.config.shuffle else torch.arange(len(order))
        order = order.to(self.training.images.device)
        for index in order[: self.images].split(self.size):
            # Every process draws the whole batch, so that their number changes nothing.
            drawn = self.draw(self.training, index, self.config.shift, generator)
            yield tuple(part[self.mine] for part in drawn)


def fit(
    model: nn.Module,
    training: ImageSet,
    validation: ImageSet | None = None,
    config: TrainingConfig | None = None,
    *,
    out: str | Path | None = None,
    fabric: "Fabric | None" = None,
    criterion: Criterion = margin_loss,
    draw: Draw = shifted,
    loss: Callable[..., nn.Module] = TrainingLoss,
    start: str | None = None,
    stop_after: int | None = None,
    until: Callable[[dict[str, Any]], bool] | None = None,
    checkpoint_seconds: float = 0.0,
    capture: bool = True,
    progress: bool = True,
) -> list[dict[str, Any]]:
    """Train a model; where ``out`` holds a checkpoint of this very run, go on from it.

    Under ``torchrun`` every process takes its share of each batch, on one or several machines. On a
    single GPU the step is captured as a graph: see ``capture``.

    Args:
        model: a :class:`CapsNet`, or another network with its ``config`` and its output; it ends
            with the trained (averaged) weights, on the device used.
        training: images to learn from.
        validation: images of one object each to evaluate on, as they are, after each epoch.
        config: how to train.
        out: a folder for ``checkpoint.safetensors``, ``metrics.jsonl``, TensorBoard's ``events``
            (where it is installed) and, at the end, ``weights.safetensors``.
        fabric: where to train, from :func:`capsnet.device.make_fabric`; CUDA where there is one.
        criterion: lengths and labels → the loss beside the reconstruction's.
        draw: image set, indices, largest shift, generator → a batch, as
            :func:`capsnet.data.shifted`.
        loss: makes a module of the network and its loss, which takes what ``draw`` returns. For
            pairs: ``draw=capsnet.multimnist.overlaid, loss=capsnet_book.pairs.PairsLoss``.
        start: a name of the model's first weights, where they are not made from the seed: a
            checkpoint in ``out`` of another start is another run's.
        stop_after: stop after so many epochs, with the schedule for all; a later call goes on.
        until: an epoch's record → whether that was the last epoch; asked in the first process.
        checkpoint_seconds: least time between checkpoints; there is one after the last epoch.
        capture: on a single GPU, capture the step after a few (:meth:`Step.capture`). Not for a
            loss or criterion of which Python decides more than once, such as a margin that grows;
            where one reads a value, a warning says that it cannot be captured.
        progress: show a bar with rate and time left, and a line an epoch, on stderr.

    Returns:
        one record an epoch: "epoch", "step", "loss", "learning_rate", "seconds" and
        "images_per_second" of training, and with validation images "validation_accuracy", with a
        decoder "validation_reconstruction", and of a :class:`CapsNet` "validation_margin" and
        "validation_loss", which are of the margin loss, whatever the criterion.

    Raises:
        ValueError: the images do not fit the model, a batch cannot be divided among the processes,
            ``out`` holds another run's checkpoint or a damaged one, or, with ``out``, criterion,
            draw or loss has no name of its own, as a lambda.
        TrainingError: the loss or a weight is not finite.
        OSError: ``out`` cannot be written.
    """
    config = config or TrainingConfig()
    fabric = fabric or make_fabric()
    check_fits(model, training)
    if validation is not None:
        check_fits(model, validation)
        validation = validation.to(fabric.device)
    config.check_shift(training.images.shape[1:])
    identity = {}
    if out is not None:
        task = {"draw": name_of(draw), "criterion": name_of(criterion), "loss": name_of(loss)}
        identity = identify(model, training, config) | {"task": task | {"start": start}}
        identity = json.loads(json.dumps(identity))  # as a checkpoint gives it back
    batches = Batches(training, config, draw, fabric)
    model.to(fabric.device).train()
    optimizer = make_optimizer(model, config)
    uncompiled = dataclasses.replace(config, compile=False)
    step = Step(model, optimizer, uncompiled, fabric, criterion, loss)
    schedule = make_schedule(optimizer, config, config.epochs * len(batches))
    run = Run(model, optimizer, schedule, config.average, identity)
    show = progress and fabric.is_global_zero and sys.stderr is not None
    trainer = Trainer(run, batches, validation, config, fabric, step, until, show, capture)
    with contextlib.ExitStack() as stack:
        saved, folder = None, Path(out or "")
        writes = out is not None and fabric.is_global_zero
        if writes:
            stack.enter_context(only_process_in(folder))
            if (folder / CHECKPOINT).exists():
                saved = read_tensors(folder / CHECKPOINT)
        # Only the first process's machine is sure to have the file.
        saved = fabric.broadcast(saved)
        if saved is not None:
            run.restore(*saved, path=folder / CHECKPOINT)
        if writes:
            trainer.folder = RunFolder(folder, run, checkpoint_seconds, show)
            stack.callback(trainer.folder.close)
        done = trainer.train(config.epochs if stop_after is None else stop_after)
        model.load_state_dict(run.averaged.state_dict())
        model.eval()
        if writes and done:
            metadata = {
                "classes": list(training.classes),
                "dataset": training.name,
                "images": len(training),
                "config": dataclasses.asdict(config) | {"compile": step.compiled},
                "machine": describe_machine(fabric.device, fabric.world_size),
            }
            save_weights(folder / WEIGHTS, model, metadata)
    fabric.barrier()
    return run.records


@dataclasses.dataclass
class Trainer:
    """A run at work: its epochs, one after the other."""

    run: Run
    batches: Batches
    validation: ImageSet | None
    config: TrainingConfig
    fabric: "Fabric"
    step: Step
    until: Callable[[dict[str, Any]], bool] | None
    show: bool  # a bar, and a line an epoch, on stderr
    capture: bool = True  # the step as a CUDA graph
    folder: RunFolder | None = None  # of the first process alone
    trouble: str | None = None  # what the last evaluation says is wrong

    def train(self, last: int) -> bool:
        """Run the epochs that are left up to ``last``; whether the run is then done."""
        records, epochs = self.run.records, self.config.epochs
        if records:  # a new run does so after its first batch, which shows at once that it works
            self.speed_up()
            self.say(f"continuing after epoch {len(records)} of {epochs}")
        done = self.done()
        while not done and len(records) < last:
            record = self.epoch(len(records))
            if self.validation is not None and self.fabric.is_global_zero:
                record |= self.evaluate(self.validation)
            if isinstance(self.run.schedule, ReduceLROnPlateau):
                loss = record.get("validation_loss", record["loss"])
                self.run.schedule.step(self.fabric.broadcast(loss))
            records.append(record)
            done = self.done()
            if self.folder is not None:
                self.folder.end_epoch(last=done or len(records) == last)
            self.fabric.barrier()
            self.say(describe(record, epochs))
            self.warn(done)
        return done

    def warn(self, done: bool) -> None:
        """Say what is wrong: from the rate's peak on, before which every network is at chance."""
        records, epochs = self.run.records, self.config.epochs
        if done and self.show and self.validation is None:
            images = self.batches.training  # any of them: they may be in the order of classes
            order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
            self.evaluate(images.subset(order[:500]))
        losses = [record["loss"] for record in records[-3:]]
        still = len(losses) == 3 and max(losses) - min(losses) < 0.005 * losses[0]
        if self.trouble and (done or len(records) >= 0.3 * epochs):
            self.say(self.trouble)
        elif still and 0.3 <= len(records) / epochs <= 0.8:
            self.say(f"the loss stands still at {losses[-1]:.4f}: try another learning rate")

    def done(self) -> bool:
        """Whether the run has all its epochs, or ``until`` ends it."""
        if len(self.run.records) == self.config.epochs:
            return True
        # The first process alone has evaluated.
        asked = self.until if self.fabric.is_global_zero else None
        return self.fabric.broadcast(asked is not None and any(map(asked, self.run.records)))

    def epoch(self, number: int) -> dict[str, Any]:
        """Train for one epoch, counted from 0, and return its record."""
        start = time.perf_counter()
        if self.config.fresh_adam:
            self.run.optimizer.state.clear()
        unread: list[Tensor] = []
        losses: list[float] = []
        images = self.batches.images
        with progress_bar(images, number, self.config.epochs, self.show) as bar:
            for i, batch in enumerate(self.batches.of_epoch(number)):
                unread.append(self.step(*batch))
                rate = self.run.schedule.get_last_lr()[0]
                self.run.end_step()
                bar.update(self.batches.size)
                if i % READ_EVERY == 0 or i == len(self.batches) - 1:
                    losses += self.read(unread)
                    unread.clear()
                    bar.set_postfix(loss=f"{losses[-1]:.4f}")
                    if self.run.step == 1:
                        if self.show:
                            bar.write(f"first batch: loss {losses[0]:.4f}", file=sys.stderr)
                        self.speed_up()
        seconds = time.perf_counter() - start
        sums = {name: p.detach().sum() for name, p in self.run.model.named_parameters()}
        for name, total in zip(sums, torch.stack([*sums.values()]).tolist(), strict=True):
            check_finite(f"the sum of {name}", total, self.run.step)
        return {
            "epoch": number + 1,
            "step": self.run.step,
            "loss": sum(losses) / len(losses),
            "learning_rate": rate,  # of the last step
            "seconds": round(seconds, 3),
            "images_per_second": round(images / seconds, 1),
        }

    def read(self, unread: list[Tensor]) -> list[float]:
        """The losses of the latest steps, over all processes; this waits for the device."""
        mean = cast(Tensor, self.fabric.all_reduce(torch.stack(unread), reduce_op="mean"))
        losses = mean.tolist()
        for step, loss in enumerate(losses, start=self.run.step - len(losses) + 1):
            check_finite("the loss", loss, step)
            if self.folder is not None:
                self.folder.log(loss, step)
        return losses

    def evaluate(self, validation: ImageSet) -> dict[str, float]:
        """What an epoch's record says of the validation images."""
        how: Any = {"precision": self.config.precision, "arrangement": self.config.arrangement}
        result = evaluate(self.run.averaged, validation, compile=self.step.compiled, **how)
        record = {"validation_accuracy": result.accuracy}
        if result.reconstruction is not None:
            record["validation_reconstruction"] = result.reconstruction
        if result.margin is not None:
            seen = self.config.epochs * self.batches.images
            self.trouble = diagnose(result, self.config.learning_rate, seen)
            weighted = self.config.reconstruction_weight * (result.reconstruction or 0.0)
            record["validation_margin"] = result.margin
            record["validation_loss"] = result.margin + weighted
        return record

    def speed_up(self) -> None:
        if resolve_compile(self.config.compile, self.fabric.device):
            self.step.compile()
        if self.capture:
            self.step.capture()

    def say(self, text: str) -> None:
        if self.show:
            print(text, file=sys.stderr, flush=True)


def identify(model: nn.Module, training: ImageSet, config: TrainingConfig) -> dict[str, Any]:
    """What tells a run from another: a checkpoint goes on only with the same."""
    # How the arithmetic is done may change on the way; what is computed may not.
    free = ("arrangement", "compile")
    arrays = [part.cpu().contiguous().numpy().data for part in (training.images, training.labels)]
    return {
        "config": {k: v for k, v in dataclasses.asdict(config).items() if k not in free},
        "model": model.config,
        "data": {
            "classes": list(training.classes),
            "images": len(training),
            "crc32": [zlib.crc32(array) for array in arrays],
        },
    }


def name_of(value: object) -> str:
    """What a checkpoint calls a function: its module and name, and of a partial, its arguments."""
    if isinstance(value, functools.partial):
        named = [f"{key}={name_of(given)}" for key, given in sorted(value.keywords.items())]
        arguments = ", ".join([*map(name_of, value.args), *named])
        return f"{name_of(value.func)}({arguments})"
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    name = f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '<object>')}"
    if "<" in name or isinstance(value, types.MethodType):
        raise ValueError(
            "with a folder to write to, criterion, draw and loss must be functions or classes of a "
            f"module, or functools.partial of one, so that the run is known again; got {name}"
        )
    return name


def check_finite(name: str, value: float, step: int) -> None:
    if not math.isfinite(value):
        raise TrainingError(
            f"{name} is {value} at step {step}; try a lower learning rate (the last checkpoint is "
            "untouched)"
        )


def diagnose(result: Evaluation, rate: float, seen: int = FEWEST_SEEN) -> str | None:
    """What the capsules do, and what to try, where a network answers no better than the most
    frequent class would, which is right this often by chance; None where it does, or where there is
    one class.

    Args:
        result: of the network.
        rate: at which it is trained.
        seen: the images of the whole training, each counted as often as it is seen.
    """
    usual = int(result.labels.bincount().max())
    if usual == result.total:  # of one class, which tells nothing
        return None
    spread = math.sqrt(usual * (1 - usual / result.total))  # of a binomial distribution
    if result.correct > min(usual + 2 * spread, result.total - 1):
        return None
    shortest, longest = (float(bound.mean()) for bound in result.lengths.aminmax(dim=1))
    lengths = f"{shortest:.2f} to {longest:.2f} long on average"
    lower = f"a lower rate, such as {rate / 3:.1g}"
    if shortest > 0.5:
        found, advice = "saturated", lower
    elif longest < 0.15:
        found, advice = "silent", f"more epochs, or a rate of {3 * rate:.1g}"
    else:
        found, advice = "alike", f"more epochs, or {lower}"
    if seen < FEWEST_SEEN:
        advice = f"more epochs first ({seen:,} images are few, each counted as often as it is seen)"
    return (
        f"no better than one answer for all ({result.correct} of {result.total} right): the "
        f"capsules are {found}, {lengths}; try {advice}"
    )


def progress_bar(images: int, epoch: int, epochs: int, show: bool) -> "tqdm":
    from tqdm import tqdm

    return tqdm(
        desc=f"epoch {epoch + 1}/{epochs}", total=images, unit=" images", leave=False,
        disable=not show, mininterval=bar_interval(),
    )  # fmt: skip


def describe(record: dict[str, Any], epochs: int) -> str:
    line = (
        f"epoch {record['epoch']}/{epochs}  loss {record['loss']:.4f}  "
        f"{record['images_per_second']:.0f} images/s  {record['seconds']:.0f} s"
    )
    if "validation_accuracy" in record:
        line += f"  validation {record['validation_accuracy']:.2%}"
    return line
