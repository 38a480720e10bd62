"""A small run that a test starts as a process: ``python -m helpers.tiny OUT [KEY=VALUE ...]``.

KEY is an option of the training, or ``task=pairs``: it learns pairs, tests itself after each epoch
on single digits, and stops an epoch early.
"""

import functools
import sys
from typing import Any

import torch

from capsnet import CapsNet, training
from capsnet.data import ImageSet, load, overlaid
from capsnet.device import make_fabric
from capsnet.training import TrainingConfig
from capsnet_book.pairs import PairsLoss

CONFIG: dict[str, Any] = {
    "epochs": 4,
    "batch_size": 64,
    "learning_rate": 3e-3,
    "average": 0.9,
    "precision": "fp32",
}
FP32 = TrainingConfig(**CONFIG)


def tiny_model(seed: int = 0, **changes: Any) -> CapsNet:
    torch.manual_seed(seed)
    small = {"conv_channels": 16, "capsule_types": 4, "capsule_dim": 8, "hidden": (32, 64)}
    return CapsNet(**{**small, **changes})


@functools.cache
def mnist(train: bool) -> ImageSet:
    return load("mnist", train=train, download=False)


def some_digits(count: int, train: bool = True) -> ImageSet:
    return mnist(train).subset(slice(0, count))


def fit(model: CapsNet, images: ImageSet, *rest: Any, **options: Any) -> list[dict[str, Any]]:
    """:func:`capsnet.training.fit` without a word, and on the CPU: the same bits in every run."""
    fabric = make_fabric("cpu")
    return training.fit(model, images, *rest, **{"fabric": fabric, "progress": False, **options})


def main() -> None:
    out, *changes = sys.argv[1:]
    torch.set_num_threads(1)
    given = dict(change.split("=") for change in changes)
    pairs = given.pop("task", "digits") == "pairs"
    config = {**CONFIG, **{key: type(CONFIG[key])(value) for key, value in given.items()}}

    # Asked of the first process's records alone: the others' have no accuracy.
    def early(record: dict[str, Any]) -> bool:
        return record["validation_accuracy"] >= 0 and record["epoch"] == config["epochs"] - 1

    images, task = some_digits(640), {}
    if pairs:
        task = {"draw": overlaid, "loss": PairsLoss, "until": early}
    held = some_digits(50, train=False) if pairs else None
    fit(tiny_model(), images, held, TrainingConfig(**config), out=out, **task)


if __name__ == "__main__":
    main()
