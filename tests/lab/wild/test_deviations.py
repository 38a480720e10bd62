"""Deviations put on our network: what those alone change that no implementation has, that the fast
arrangement computes the same, and what is refused.
"""

from typing import Any

import pytest
import torch
from torch import Tensor

from capsnet.fast import FastCapsNet, arrange
from capsnet_lab.wild import DEVIATIONS, WildCapsNet, WildLoss
from helpers import Refuses

CLASSES = 5


def network(*deviations: str, **options: Any) -> WildCapsNet:
    torch.manual_seed(0)
    small = {"conv_channels": 4, "capsule_types": 3, "capsule_dim": 6, "hidden": (9, 11)}
    return WildCapsNet(num_classes=CLASSES, deviations=deviations, **small | options).double()


def batch() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    images = torch.rand(8, 1, 28, 28, dtype=torch.float64, generator=generator)
    return images, torch.arange(8) % CLASSES


def weighted(*deviations: str) -> WildCapsNet:
    """A network whose capsules are neither short nor long."""
    model = network(*deviations)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.2)
    return model


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["no-such-thing"], "no deviation is called no-such-thing; known are softmax-over-"),
        (["unit-w", "uniform-w"], "deviations unit-w and uniform-w both replace start_w$"),
        ("leak", "no deviation is called l; known are "),
    ],
)
def test_refuses(names: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        WildCapsNet(deviations=names)


def test_refuses_labels_that_no_mask_needs_and_what_is_no_capsule(refuses: Refuses) -> None:
    images, _ = batch()
    for name in ("prediction-mask", "batch-mask"):
        with refuses("class indices must lie in 0 … 4, got 5"):
            network(name)(images, torch.arange(8) % 6)
    with refuses("capsules must be [batch, 5, 6], got shape [2, 4]"):
        network().read_out(torch.rand(2, 4))


IN_NETWORK = [[name] for name, deviation in DEVIATIONS.items() if deviation.parts]


@pytest.mark.parametrize("names", [[], *IN_NETWORK])
def test_the_fast_arrangement_computes_the_same(names: list[str]) -> None:
    """Lengths, reconstruction, loss and every gradient, in float64."""
    images, labels = batch()
    model, found = weighted(*names), []
    for arrangement in ("plain", "fast"):
        network = arrange(model, arrangement)
        out = network(images, labels)
        model.zero_grad()
        loss = WildLoss(network)(images, labels)
        loss.backward()
        # The gradient of a prior that is not used is None, or zeros.
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in model.parameters()]
        found.append([out.lengths, out.reconstruction, loss, *gradients])
    torch.testing.assert_close(*found, rtol=1e-10, atol=1e-12)


def test_the_fast_arrangement_is_traced_as_one_at_points_too() -> None:
    model, images = weighted("softmax-over-children").float(), batch()[0].float()
    network = arrange(model, "fast")
    assert isinstance(network, FastCapsNet)
    assert all(each.toom_cook for each in network.phases_of(images))
    traced = torch.compile(network.primary_capsules, backend="eager", dynamic=False, fullgraph=True)
    torch.testing.assert_close(traced(images), model.primary_capsules(images), rtol=1e-3, atol=1e-4)


def test_another_criterion_takes_the_place_of_the_margin_loss() -> None:
    model = weighted("unsquared-margin", "mean-reconstruction")
    model.decoder = None
    images, labels = batch()
    loss = WildLoss(model, criterion=lambda lengths, labels: lengths.sum())(images, labels)
    assert torch.equal(loss, model(images).lengths.sum())
