"""The loss, one training step, and the schedules of the learning rate."""

import dataclasses

import pytest
import torch
from torch import Tensor

from capsnet.data import ImageSet, to_float
from capsnet.fast import arrange
from capsnet.functional import margin_loss, reconstruction_loss
from capsnet.multimnist import overlaid_batch
from capsnet.training import TrainingLoss, make_optimizer, make_step
from capsnet.training.fit import make_schedule
from capsnet_book.pairs import PairsLoss
from helpers import Refuses
from helpers.tiny import FP32, parameters, tiny_model


@pytest.fixture
def batch(digits: ImageSet) -> tuple[Tensor, Tensor]:
    return to_float(digits.images[:32]), digits.labels[:32]


@pytest.mark.parametrize("arrangement", ["plain", "fast"])
def test_several_objects_are_each_drawn_by_themselves(digits: ImageSet, arrangement: str) -> None:
    images, labels, objects = overlaid_batch(
        digits, torch.arange(20), 2, torch.Generator().manual_seed(0)
    )
    model = tiny_model()
    present = torch.nn.functional.one_hot(labels, 10).sum(dim=1)
    expected = margin_loss(model(images).lengths, present)
    for i, label in enumerate(labels.unbind(1)):
        drawing = model(images, label).reconstruction
        expected = expected + 0.0005 * reconstruction_loss(drawing, objects[:, i])
    loss = PairsLoss(arrange(model, arrangement), 0.0005, "fp32")(images, labels, objects)
    torch.testing.assert_close(loss, expected)
    without = tiny_model(reconstruct=False)
    loss = PairsLoss(without, 0.0005, "fp32")(images, labels, objects)
    torch.testing.assert_close(loss, margin_loss(without(images).lengths, present))


def test_objects_must_fit_the_labels(digits: ImageSet, refuses: Refuses) -> None:
    images, labels, objects = overlaid_batch(digits, torch.arange(4), 2, torch.Generator())
    loss = PairsLoss(tiny_model(), 0.0005, "fp32")
    for wrong in ((labels[:, 0], objects), (labels, objects[:, :1]), (labels, objects[..., 1:])):
        with refuses("[batch, m, channels, height, width]", str(list(wrong[1].shape))):
            loss(images, *wrong)
    labels[2, 1] = 10
    for model in (tiny_model(), tiny_model(reconstruct=False)):
        with refuses("0 … 9", "got 10"):
            PairsLoss(model, 0.0005, "fp32")(images, labels, objects)


@pytest.mark.parametrize("arrangement", ["plain", "fast"])
def test_step_is_one_step_of_adam(batch: tuple[Tensor, Tensor], arrangement: str) -> None:
    """In float64: Adam's first step magnifies what rounding does to a gradient that is nearly 0."""
    images, labels = batch[0].double(), batch[1]
    ours, theirs = tiny_model().double(), tiny_model().double()
    step = make_step(ours, config=dataclasses.replace(FP32, arrangement=arrangement))
    loss = step(images, labels)
    optimizer = torch.optim.Adam(theirs.parameters(), lr=FP32.learning_rate)
    out = theirs(images, labels)
    expected = margin_loss(out.lengths, labels)
    expected = expected + 0.0005 * reconstruction_loss(out.reconstruction, images)
    expected.backward()
    optimizer.step()
    torch.testing.assert_close(loss, expected.detach())
    assert not loss.requires_grad
    torch.testing.assert_close(parameters(ours), parameters(theirs), rtol=1e-6, atol=1e-9)


def test_bfloat16_step_is_close_to_float32(batch: tuple[Tensor, Tensor]) -> None:
    losses = {}
    for precision in ("fp32", "bf16"):
        config = dataclasses.replace(FP32, precision=precision)
        losses[precision] = make_step(tiny_model(), config=config)(*batch).item()
    assert losses["bf16"] == pytest.approx(losses["fp32"], rel=0.02)
    assert losses["bf16"] != losses["fp32"]


@pytest.mark.parametrize("arrangement", ["plain", "fast"])
def test_a_step_compiles_its_loss_or_the_parts_of_the_fast_arrangement(
    arrangement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, compiled = tiny_model(), []
    for kind in (TrainingLoss, type(arrange(model, "fast"))):
        monkeypatch.setattr(kind, "compile", lambda module: compiled.append(module))
    config = dataclasses.replace(FP32, arrangement=arrangement, compile=True)
    step = make_step(model, config=config)
    assert compiled == [step.loss if arrangement == "plain" else step.loss.model]
    assert step.compiled


def test_exponential_schedule_loses_4_percent_in_2000_steps() -> None:
    config = dataclasses.replace(FP32, schedule="exponential", learning_rate=1e-3)
    optimizer = make_optimizer(tiny_model(), config)
    schedule = make_schedule(optimizer, config, steps=10)
    optimizer.step()
    for _ in range(2000):
        schedule.step()
    assert schedule.get_last_lr()[0] == pytest.approx(0.96e-3)


def test_one_cycle_rises_to_the_rate_and_falls_to_nothing() -> None:
    optimizer = make_optimizer(tiny_model(), FP32)
    schedule = make_schedule(optimizer, FP32, steps=100)
    rates = []
    for _ in range(100):
        rates.append(schedule.get_last_lr()[0])
        optimizer.step()
        if len(rates) < 100:
            schedule.step()
    assert max(rates) == pytest.approx(FP32.learning_rate)
    assert 25 < rates.index(max(rates)) < 35
    assert rates[-1] < 1e-5 * FP32.learning_rate
    assert optimizer.param_groups[0]["betas"] == (0.9, 0.999)  # the schedule leaves momentum alone
