"""Ways to train that others have: schedules by epoch, images in order, Adam made anew."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch

from capsnet.data import shifted
from capsnet.device import make_fabric
from capsnet.training.loop import Batches
from helpers.tiny import FP32, fit, some_digits, tiny_model

IMAGES = some_digits(128)


def weights(stop: int | None = None, out: Path | None = None, **options: Any) -> torch.Tensor:
    model = tiny_model()
    fit(model, IMAGES, None, dataclasses.replace(FP32, **options), out=out, stop_after=stop)
    return torch.cat([p.detach().flatten() for p in model.parameters()])


@pytest.mark.parametrize(("schedule", "factor"), [("by-epoch", 0.9), ("constant", 1.0)])
def test_the_rate_changes_after_an_epoch_only(schedule: str, factor: float) -> None:
    config = dataclasses.replace(FP32, schedule=schedule, learning_rate=1e-3)
    records = fit(tiny_model(), IMAGES, None, config)
    rates = [record["learning_rate"] for record in records]
    assert rates == pytest.approx([1e-3 * factor**epoch for epoch in range(4)])


@pytest.mark.parametrize("held", [IMAGES, None])
def test_a_plateau_of_fifteen_epochs_divides_the_rate_by_ten(held: Any) -> None:
    config = dataclasses.replace(FP32, schedule="plateau", learning_rate=1e-7, shift=0, epochs=20)
    records = fit(tiny_model(), IMAGES, held, config)
    # The first is the best; fifteen more are borne, and the next one is too many.
    expected = [1e-7] * 17 + [1e-8] * 3
    assert [record["learning_rate"] for record in records] == pytest.approx(expected)


def test_without_shuffling_the_images_come_in_their_order() -> None:
    config = dataclasses.replace(FP32, shuffle=False, shift=0)
    for epoch in (0, 1):
        batches = Batches(IMAGES, config, shifted, make_fabric("cpu")).of_epoch(epoch)
        assert torch.equal(torch.cat([labels for _, labels in batches]), IMAGES.labels)


def test_adam_made_anew_forgets_what_it_has_seen() -> None:
    assert torch.equal(weights(epochs=1), weights(epochs=1, fresh_adam=True))
    assert not torch.equal(weights(epochs=2), weights(epochs=2, fresh_adam=True))


@pytest.mark.parametrize(
    "options", [{"schedule": "by-epoch", "fresh_adam": True}, {"schedule": "plateau"}]
)
def test_they_go_on_where_they_were_cut_off(options: dict[str, Any], tmp_path: Path) -> None:
    weights(stop=2, out=tmp_path, **options)
    assert torch.equal(weights(out=tmp_path, **options), weights(**options))
