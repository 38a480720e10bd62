"""Small networks and runs, some of them in processes that start at once: all is imported."""

import dataclasses
import functools
import json
import multiprocessing
import os
import signal
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from capsnet import CapsNet, training
from capsnet.data import ImageSet, load
from capsnet.device import make_fabric
from capsnet.multimnist import overlaid_batch
from capsnet.training import TrainingConfig
from capsnet.training.run import METRICS
from capsnet_book.pairs import PairsLoss

FP32 = TrainingConfig(epochs=4, batch_size=64, average=0.9, precision="fp32")


def tiny_model(seed: int = 0, **changes: Any) -> CapsNet:
    torch.manual_seed(seed)
    small = {"conv_channels": 16, "capsule_types": 4, "capsule_dim": 8, "hidden": (32, 64)}
    return CapsNet(**{**small, **changes})


def parameters(model: CapsNet) -> Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def records_in(out: Path) -> list[dict[str, Any]]:
    """What the metrics of a run say, which may not have begun."""
    metrics = out / METRICS
    lines = metrics.read_text().splitlines() if metrics.exists() else ()
    return [json.loads(line) for line in lines]


@functools.cache
def mnist(train: bool) -> ImageSet:
    return load("mnist", train=train, download=False)


def some_digits(count: int, train: bool = True) -> ImageSet:
    return mnist(train).subset(slice(0, count))


MODEL_DEPENDENT = ("epochs", "batch_size", "learning_rate", "average")  # in for_model


def fit(model: CapsNet, images: ImageSet, *rest: Any, **options: Any) -> list[dict[str, Any]]:
    """:func:`capsnet.training.fit` without a word, and on the CPU: the same bits in every run."""
    fabric = make_fabric("cpu")
    return training.fit(model, images, *rest, **{"fabric": fabric, "progress": False, **options})


def run(out: str | Path, task: str = "digits", stop_after: int | None = None) -> None:
    """Learn digits; or pairs, with a test on digits after each epoch."""
    config, images = dataclasses.replace(FP32, batch_size=16), some_digits(80)
    held, options = None, {}
    if task == "pairs":
        config, held = dataclasses.replace(config, epochs=3), some_digits(50, train=False)
        options = {"make_batch": overlaid_batch, "make_loss": PairsLoss}
    fit(tiny_model(), images, held, config, out=out, stop_after=stop_after, **options)


def start(
    out: str | Path, task: str, killed_at: int | None = None, **environment: str
) -> multiprocessing.Process:
    """:func:`run` in a process of its own, forked from one that has imported what it needs.

    It is killed just before it changes a file of ``out`` for the ``killed_at``-th time.
    """
    context: Any = multiprocessing.get_context("forkserver")  # there is none on Windows
    needs = ["capsnet_book.pairs", "lightning_fabric", "torch._dynamo", "torch.utils.tensorboard"]
    context.set_forkserver_preload(needs)
    words = (out, task, killed_at, environment)
    process = context.Process(target=run_in_this_process, args=words, daemon=True)
    process.start()
    return process


def run_in_this_process(
    out: str | Path, task: str, killed_at: int | None, environment: dict[str, str]
) -> None:
    changes = 0

    def count(event: str, args: tuple[Any, ...]) -> None:
        nonlocal changes
        if event in ("open", "os.rename", "os.remove") and str(args[0]).startswith(str(out)):
            changes += 1
            if changes == killed_at:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    torch.set_num_threads(1)
    os.environ.update(environment)
    run(out, task)
