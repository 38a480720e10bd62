"""How others train, where :class:`capsnet.training.TrainingConfig` has no option for it."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import ConstantLR, LRScheduler, ReduceLROnPlateau, StepLR

from capsnet.data import ImageSet, random_offsets, shift, to_float
from capsnet.training import TrainingConfig


def constant(optimizer: Optimizer, config: TrainingConfig, steps: int) -> LRScheduler:
    """The learning rate as it is."""
    return ConstantLR(optimizer, factor=1.0)


def by_epoch(optimizer: Optimizer, config: TrainingConfig, steps: int) -> LRScheduler:
    """The learning rate times 0.9 after each epoch."""
    return StepLR(optimizer, steps // config.epochs, 0.9)


class Plateau(ReduceLROnPlateau):
    """The learning rate ÷ 10 after more than 15 epochs without a lower loss."""

    def __init__(self, optimizer: Optimizer, config: TrainingConfig, steps: int) -> None:
        super().__init__(optimizer, factor=0.1, patience=15)

    def step(self, loss: float | None = None) -> None:  # type: ignore[override]
        """Follow the loss of an epoch; a training step, which has none, changes nothing."""
        if loss is not None:
            super().step(loss)


def follow_loss(optimizer: Optimizer, schedule: Any, record: Mapping[str, Any]) -> None:
    """Give a plateau the validation loss, or without validation images the training loss."""
    schedule.step(record.get("validation_loss", record["loss"]))


def forget_moments(optimizer: Optimizer, schedule: Any, record: Mapping[str, Any]) -> None:
    """Make Adam anew."""
    optimizer.state.clear()


def in_order(count: int, generator: torch.Generator) -> Tensor:
    """The images as they come."""
    return torch.arange(count)


def shifted_together(
    image_set: ImageSet, index: Tensor, max_shift: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """As :func:`capsnet.data.shifted_batch`, but one shift for all images of the batch."""
    images = image_set.images[index]
    offset = random_offsets(1, max_shift, generator, images.device)
    return to_float(shift(images, offset.expand(len(images), -1))), image_set.labels[index]


# What a recipe says -> what ``fit`` does for it.
FIT_OPTIONS_BY_RECIPE: dict[tuple[str, Any], dict[str, Any]] = {
    ("schedule", "constant"): {"make_schedule": constant},
    ("schedule", "by-epoch"): {"make_schedule": by_epoch},
    ("schedule", "plateau"): {"make_schedule": Plateau, "on_epoch": follow_loss},
    ("fresh_adam", True): {"on_epoch": forget_moments},
    ("shuffle", False): {"make_order": in_order},
    ("shift_together", True): {"make_batch": shifted_together},
}


def split_recipe(recipe: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A recipe as options of :class:`TrainingConfig`, and as options of ``fit`` for the rest."""
    config: dict[str, Any] = {}
    options: dict[str, Any] = {}
    for key, value in recipe.items():
        if (key, value) in FIT_OPTIONS_BY_RECIPE:
            options |= FIT_OPTIONS_BY_RECIPE[key, value]
        else:
            config[key] = value
    return config, options
