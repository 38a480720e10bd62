"""A small run that a test starts as a process: ``python -m helpers.tiny OUT [KEY=VALUE ...]``.

KEY is an option of the training, or ``task=pairs``: it learns pairs, tests itself after each epoch
on single digits, and stops an epoch early.
"""

import sys
from typing import Any

import torch

from capsnet import CapsNet
from capsnet.data import ImageSet, load, overlaid, shifted
from capsnet.training import TrainingConfig, fit

CONFIG: dict[str, Any] = {
    "epochs": 4,
    "batch_size": 64,
    "learning_rate": 3e-3,
    "average": 0.9,
    "precision": "fp32",
}


def tiny_model(seed: int = 0, **changes: Any) -> CapsNet:
    torch.manual_seed(seed)
    small = {"conv_channels": 16, "capsule_types": 4, "capsule_dim": 8, "hidden": (32, 64)}
    return CapsNet(**{**small, **changes})


def some_digits(count: int, train: bool = True) -> ImageSet:
    return load("mnist", train=train, download=False).subset(slice(0, count))


def main() -> None:
    out, *changes = sys.argv[1:]
    torch.set_num_threads(1)
    given = dict(change.split("=") for change in changes)
    pairs = given.pop("task", "digits") == "pairs"
    config = {**CONFIG, **{key: type(CONFIG[key])(value) for key, value in given.items()}}

    # Asked of the first process's records alone: the others' have no accuracy.
    def early(record: dict[str, Any]) -> bool:
        return record["validation_accuracy"] >= 0 and record["epoch"] == config["epochs"] - 1

    fit(
        tiny_model(), some_digits(640), some_digits(50, train=False) if pairs else None,
        TrainingConfig(**config), out=out, draw=overlaid if pairs else shifted,
        until=early if pairs else None, progress=False,
    )  # fmt: skip


if __name__ == "__main__":
    main()
