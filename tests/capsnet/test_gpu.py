"""The network on CUDA, without a GPU."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from capsnet import CapsNet
from capsnet.fast import FastCapsNet, routing
from capsnet.functional import margin_loss, reconstruction_loss

SMALL: dict[str, Any] = {"conv_channels": 6, "capsule_types": 2, "hidden": (4, 5)}


@pytest.fixture
def cuda(fake_cuda: torch.device, monkeypatch: pytest.MonkeyPatch) -> Iterator[torch.device]:
    """Tensors are fake ones on CUDA, unless made elsewhere."""
    # Autocast looks for a GPU.
    monkeypatch.setattr(torch.cuda.amp.common, "amp_definitely_not_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda *_, **__: True)
    with fake_cuda:
        yield fake_cuda


def loss(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    out = model(images, labels)
    drawn = out.reconstruction.to(images.dtype)
    return margin_loss(out.lengths, labels) + 0.0005 * reconstruction_loss(drawn, images)


@pytest.mark.parametrize("fast", [False, True], ids=["plain", "fast"])
@pytest.mark.parametrize("bf16", [False, True], ids=["fp32", "bf16, with a prior"])
@pytest.mark.parametrize("gradients", [False, True])
def test_forward_and_losses(cuda: torch.device, fast: bool, bf16: bool, gradients: bool) -> None:
    model = CapsNet(**SMALL, learn_prior=bf16)
    arranged = FastCapsNet(model) if fast else model
    images, labels = torch.rand(3, 1, 28, 28), torch.randint(10, (3,))
    mask = torch.rand(3, 10) < 0.3
    with torch.set_grad_enabled(gradients), torch.autocast("cuda", torch.bfloat16, enabled=bf16):
        for targets in (None, labels, mask):
            assert [x.device for x in arranged(images, targets)] == [cuda] * 3
        assert loss(arranged, images, labels).device == cuda
        assert loss(arranged, images, mask).device == cuda


@pytest.mark.parametrize("with_prior", [False, True])
def test_backward_of_the_fast_routing(
    cuda: torch.device, with_prior: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our own formula, without autograd around it."""
    monkeypatch.setattr(torch.func, "vjp", lambda f, x: (f(x), lambda grad: (grad,)))
    options = routing.RoutingOptions(
        routing.coupling, routing.squash, stop_gradient=False, compile=False
    )
    u, weight = torch.rand(routing.LANES + 1, 6, 3), torch.rand(6, 4, 3, 5)
    prior = torch.rand(6, 4) if with_prior else None
    context = SimpleNamespace(needs_input_grad=(True, True, with_prior))
    context.save_for_backward = lambda *tensors: setattr(context, "saved_tensors", tensors)
    v = routing.RoutedCapsules.forward(context, u, weight, prior, 3, options, True)
    with torch.no_grad():
        gradients = routing.RoutedCapsules.backward(context, torch.rand_like(v))[: 2 + with_prior]
    assert [grad.device for grad in gradients] == [cuda] * len(gradients)
    for gradient, of in zip(gradients, (u, weight, prior), strict=False):
        assert of is not None and gradient.shape == of.shape
