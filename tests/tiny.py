"""A small run that a test starts as a process: ``python tests/tiny.py OUT [KEY=VALUE ...]``."""

import sys
from typing import Any

import torch

from capsnet import CapsNet
from capsnet.data import ImageSet, load
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
    config = {**CONFIG, **{k: type(CONFIG[k])(v) for k, v in (c.split("=") for c in changes)}}
    fit(tiny_model(), some_digits(640), None, TrainingConfig(**config), out=out, progress=False)


if __name__ == "__main__":
    main()
