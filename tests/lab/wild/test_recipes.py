"""Ways to train that others have: schedules by epoch, images in order, Adam made anew."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch

from capsnet.data import ImageSet, shifted_batch
from capsnet.device import make_fabric
from capsnet.training.fit import Batches
from capsnet_lab.wild.recipes import split_recipe
from helpers.tiny import FP32, fit, parameters, some_digits, tiny_model

IMAGES = some_digits(16)
CONFIG = dataclasses.replace(FP32, batch_size=8)


def train(
    recipe: dict[str, Any], validation: Any = None, **options: Any
) -> tuple[torch.Tensor, list[float]]:
    """The weights, and the learning rate at the end of each epoch."""
    config, by_functions = split_recipe(recipe)
    model = tiny_model()
    config = dataclasses.replace(CONFIG, **config)
    records = fit(model, IMAGES, validation, config, **by_functions, **options)
    return parameters(model), [record["learning_rate"] for record in records]


@pytest.mark.parametrize(("schedule", "factor"), [("by-epoch", 0.9), ("constant", 1.0)])
def test_the_rate_changes_after_an_epoch_only(schedule: str, factor: float) -> None:
    _, rates = train({"schedule": schedule, "learning_rate": 1e-3})
    assert rates == pytest.approx([1e-3 * factor**epoch for epoch in range(4)])


@pytest.mark.parametrize("validation", [IMAGES, None])
def test_a_plateau_of_fifteen_epochs_divides_the_rate_by_ten(
    validation: Any, tmp_path: Path
) -> None:
    recipe = {"schedule": "plateau", "learning_rate": 1e-7, "shift": 0, "batch_size": 16}
    train(recipe | {"epochs": 19}, validation, out=tmp_path, stop_after=10)
    # The first is the best; fifteen more are borne, and the next one is too many.
    _, rates = train(recipe | {"epochs": 19}, validation, out=tmp_path)
    assert rates == pytest.approx([1e-7] * 17 + [1e-8] * 2)


def test_without_shuffling_the_images_come_in_their_order() -> None:
    _, by_functions = split_recipe({"shuffle": False})
    batches = Batches(IMAGES, CONFIG, shifted_batch, by_functions["make_order"], make_fabric("cpu"))
    for epoch in (0, 1):
        labels = torch.cat([labels for _, labels in batches.epoch_batches(epoch)])
        assert torch.equal(labels, IMAGES.labels)


def test_one_shift_for_all_moves_a_batch_as_one() -> None:
    _, by_functions = split_recipe({"shift_together": True})
    first = IMAGES.images[:1].expand(16, -1, -1, -1)
    same = ImageSet(first, IMAGES.labels, IMAGES.classes, "one")
    generator, seen = torch.Generator().manual_seed(0), []
    for _ in range(8):
        images, _ = by_functions["make_batch"](same, torch.arange(16), 2, generator)
        assert torch.equal(images, images[:1].expand(16, -1, -1, -1))
        seen.append(images[0])
    assert len(torch.stack(seen).unique(dim=0)) > 4


@pytest.mark.parametrize(("epochs", "equal"), [(1, True), (2, False)])
def test_adam_made_anew_forgets_its_moments(epochs: int, equal: bool) -> None:
    usual, _ = train({"epochs": epochs})
    fresh, _ = train({"epochs": epochs, "fresh_adam": True})
    assert torch.equal(usual, fresh) is equal


def test_an_interrupted_run_ends_bit_identical(tmp_path: Path) -> None:
    recipe = {"schedule": "by-epoch", "fresh_adam": True, "shuffle": False}
    train(recipe, out=tmp_path, stop_after=2)
    assert torch.equal(train(recipe, out=tmp_path)[0], train(recipe)[0])
