"""Ways to train that others have: schedules by epoch, images in order, Adam made anew."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch

from capsnet.data import shifted
from capsnet.device import make_fabric
from capsnet.training.fit import Batches
from capsnet_lab.wild.recipes import in_order, split_recipe
from helpers.tiny import FP32, fit, parameters, some_digits, tiny_model

IMAGES = some_digits(128)


def train(
    recipe: dict[str, Any], validation: Any = None, **options: Any
) -> tuple[torch.Tensor, list[float]]:
    """The weights, and the learning rate at the end of each epoch."""
    config, by_functions = split_recipe(recipe)
    model = tiny_model()
    config = dataclasses.replace(FP32, **config)
    records = fit(model, IMAGES, validation, config, **by_functions, **options)
    return parameters(model), [record["learning_rate"] for record in records]


@pytest.mark.parametrize(("schedule", "factor"), [("by-epoch", 0.9), ("constant", 1.0)])
def test_the_rate_changes_after_an_epoch_only(schedule: str, factor: float) -> None:
    _, rates = train({"schedule": schedule, "learning_rate": 1e-3})
    assert rates == pytest.approx([1e-3 * factor**epoch for epoch in range(4)])


@pytest.mark.parametrize("validation", [IMAGES, None])
def test_a_plateau_of_fifteen_epochs_divides_the_rate_by_ten(validation: Any) -> None:
    recipe = {"schedule": "plateau", "learning_rate": 1e-7, "shift": 0, "epochs": 20}
    # The first is the best; fifteen more are borne, and the next one is too many.
    _, rates = train(recipe, validation)
    assert rates == pytest.approx([1e-7] * 17 + [1e-8] * 3)


def test_without_shuffling_the_images_come_in_their_order() -> None:
    _, by_functions = split_recipe({"shuffle": False})
    assert by_functions == {"order": in_order}
    config = dataclasses.replace(FP32, shift=0)
    batches = Batches(IMAGES, config, shifted, in_order, make_fabric("cpu"))
    for epoch in (0, 1):
        labels = torch.cat([labels for _, labels in batches.of_epoch(epoch)])
        assert torch.equal(labels, IMAGES.labels)


@pytest.mark.parametrize(("epochs", "equal"), [(1, True), (2, False)])
def test_adam_made_anew_forgets_its_moments(epochs: int, equal: bool) -> None:
    usual, _ = train({"epochs": epochs})
    fresh, _ = train({"epochs": epochs, "fresh_adam": True})
    assert torch.equal(usual, fresh) is equal


@pytest.mark.parametrize(
    "recipe",
    [
        {"schedule": "by-epoch", "fresh_adam": True},
        {"schedule": "plateau"},
        {"schedule": "constant", "shuffle": False},
    ],
)
def test_an_interrupted_run_ends_bit_identical(recipe: dict[str, Any], tmp_path: Path) -> None:
    train(recipe, out=tmp_path, stop_after=2)
    assert torch.equal(train(recipe, out=tmp_path)[0], train(recipe)[0])
