"""The training step as a CUDA graph: on a machine with a GPU, the same steps as without one."""

import dataclasses
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from capsnet.functional import margin_loss
from capsnet.training import TrainingLoss, make_step
from capsnet.training.step import WARM_UP
from helpers.tiny import FP32, tiny_model

needs_a_gpu = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="there is no CUDA device here"
)
CUDA = torch.device("cuda")


def batches(count: int, size: int = 32) -> list[tuple[Tensor, Tensor]]:
    torch.manual_seed(1)
    images = torch.rand(count, size, 1, 28, 28, device=CUDA)
    return list(zip(images, torch.randint(10, (count, size), device=CUDA), strict=True))


def steps_of(
    model: nn.Module, capture: bool, data: Any, arrangement: str = "auto", **options: Any
) -> tuple[Any, Tensor]:
    """The step after all batches, and their losses."""
    config = dataclasses.replace(FP32, arrangement=arrangement)
    step = make_step(model, config=config, **options)
    losses = [step(*data[0])]
    if capture:
        step.capture()
    return step, torch.stack([*losses, *(step(*batch) for batch in data[1:])])


@needs_a_gpu
@pytest.mark.parametrize("arrangement", ["plain", "fast"])
def test_cuda_replays_make_the_same_steps(arrangement: str) -> None:
    data = batches(WARM_UP + 6)
    data.insert(WARM_UP + 4, batches(1, size=7)[0])  # of another size: not replayed
    ours, other = (tiny_model().to(CUDA) for _ in range(2))
    other.load_state_dict(ours.state_dict())
    step, losses = steps_of(ours, True, data, arrangement)
    assert step.graph is not None
    plain, expected = steps_of(other, False, data, arrangement)
    assert plain.graph is None
    assert_close(losses, expected, rtol=1e-4, atol=1e-5)
    for found, wanted in zip(ours.parameters(), other.parameters(), strict=True):
        assert (found - wanted).norm() < 1e-2 * wanted.norm()


class Noisy(TrainingLoss):
    """The loss, and a number that is drawn anew in each step."""

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        return super().forward(images, labels) + torch.rand((), device=images.device)


class Reading(TrainingLoss):
    """A loss at which the host waits for the device."""

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        loss = super().forward(images, labels)
        return loss if float(loss.detach()) > 0 else 2 * loss


@needs_a_gpu
def test_cuda_replays_draw_anew() -> None:
    data = batches(1) * (WARM_UP + 5)
    model = tiny_model().to(CUDA)
    still = torch.optim.Adam(model.parameters(), lr=0.0)
    _, losses = steps_of(model, True, data, optimizer=still, make_loss=Noisy)
    assert len(losses.unique()) == len(losses)


@needs_a_gpu
def test_cuda_says_why_a_step_is_not_captured() -> None:
    data = batches(WARM_UP + 4)
    with pytest.warns(UserWarning, match="no CUDA graph, so steps are slower: "):
        step, losses = steps_of(tiny_model().to(CUDA), True, data, make_loss=Reading)
    assert step.graph is None
    _, expected = steps_of(tiny_model().to(CUDA), False, data)
    assert_close(losses, expected, rtol=1e-4, atol=1e-5)
    torch.rand(1, device=CUDA)  # a capture that was broken off would have spoilt it


def test_on_a_processor_nothing_is_captured() -> None:
    step = make_step(tiny_model(), config=FP32, criterion=margin_loss)
    step.capture()
    assert step.calls_to_capture == 0
