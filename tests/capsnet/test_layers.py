"""The layers: contracts with ``reference.py``, derivatives, masks, stacking."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from capsnet import CapsuleLayer, Decoder, PrimaryCapsules
from capsnet.functional import RoutingStep
from capsnet.layers import channels_to_capsules
from helpers import reference

F64 = torch.float64
PRECISION = [(torch.float64, 1e-10), (torch.float32, 1e-5)]


def array(tensor: Tensor | None) -> reference.Array:
    assert tensor is not None
    return tensor.detach().to(F64).numpy()


def stacked(images: list[reference.Array], dtype: torch.dtype = F64) -> Tensor:
    return torch.tensor(np.stack(images)).to(dtype)


@pytest.mark.equation(1)
@pytest.mark.parametrize(("dtype", "rtol"), PRECISION)
@pytest.mark.parametrize(("height", "width"), [(7, 7), (8, 11), (3, 3)])
@pytest.mark.parametrize("stride", [1, 2])
def test_primary_capsules_are_channels_grouped_by_type_row_column(
    dtype: torch.dtype, rtol: float, height: int, width: int, stride: int, device: torch.device
) -> None:
    layer = PrimaryCapsules(2, capsule_types=3, capsule_dim=4, kernel_size=3, stride=stride)
    layer.to(dtype)
    features = torch.rand(2, 2, height, width, dtype=F64).to(dtype)
    expected = []
    for image in features:
        maps = reference.convolution(
            array(image), array(layer.conv.weight), array(layer.conv.bias), stride
        )
        expected.append(reference.primary_capsules(maps, 4))
    capsules = layer.to(device)(features.to(device)).cpu()
    rows, columns = (height - 3) // stride + 1, (width - 3) // stride + 1
    assert capsules.shape == (2, 3 * rows * columns, 4)
    assert_close(capsules, stacked(expected, dtype), rtol=rtol, atol=rtol * 0.1)


def test_the_defaults_are_the_papers_and_a_capsule_may_have_one_number() -> None:
    primary, layer = PrimaryCapsules(256), CapsuleLayer(5, 4, 3, 2)
    assert (primary.conv.kernel_size, primary.conv.stride) == ((9, 9), (2, 2))
    assert primary(torch.rand(1, 256, 20, 20)).shape == (1, 1152, 8)
    units = [layer.out_features for layer in Decoder(10, 16, (1, 28, 28)).children()]
    assert units == [512, 1024, 784]
    assert layer.routing_iterations == 3 and layer.prior is None
    numbers = torch.arange(8.0).view(1, 2, 2, 2)
    assert torch.equal(channels_to_capsules(numbers, 1), numbers.view(1, 8, 1))


def test_capsule_layer_learns_a_prior_that_starts_at_zero_and_is_reset() -> None:
    layer = CapsuleLayer(5, 4, 3, 2, learn_prior=True)
    assert [name for name, _ in layer.named_parameters()] == ["weight", "prior"]
    assert layer.prior is not None and (layer.prior == 0).all()
    layer(torch.randn(2, 5, 4) * 10).square().sum().backward()
    assert layer.prior.grad is not None and layer.prior.grad.abs().max() > 1e-4
    nn.init.ones_(layer.prior)
    before = layer.weight.detach().clone()
    layer.reset_parameters()
    assert (layer.weight != before).all() and (layer.prior == 0).all()


def test_capsule_layer_traces_every_iteration() -> None:
    trace: list[RoutingStep] = []
    v = CapsuleLayer(5, 4, 3, 2, routing_iterations=2)(torch.randn(2, 5, 4), trace)
    assert len(trace) == 2 and trace[-1].v is v


def test_capsule_layer_draws_its_weight_from_a_truncated_normal() -> None:
    """σ = 0.1 cut at 2 σ: the standard deviation of what is left is 0.08796."""
    weight = CapsuleLayer(40, 10, 10, 10).weight.detach()
    assert weight.shape == (40, 10, 10, 10)
    assert float(weight.abs().max()) <= 0.2
    assert float(weight.min()) < -0.19 and float(weight.max()) > 0.19
    assert float(weight.mean()) == pytest.approx(0, abs=0.002)
    assert float(weight.std()) == pytest.approx(0.08796, abs=0.001)


@pytest.mark.parametrize("garbage", [1e30, float("inf"), float("nan")])
def test_decoder_sees_nothing_of_the_other_capsules(garbage: float) -> None:
    decoder = Decoder(3, 4, (1, 2, 2), hidden=(5, 6))
    capsules, classes = torch.randn(2, 3, 4), torch.tensor([2, 0])
    others = torch.ones(2, 3, 1, dtype=torch.bool)
    others[[0, 1], classes] = False
    expected = decoder(capsules, classes)
    spoiled = capsules.masked_fill(others, garbage).requires_grad_()
    reconstruction = decoder(spoiled, classes)
    assert_close(reconstruction, expected, rtol=0, atol=0)

    inputs = [spoiled, *decoder.parameters()]
    gradient, *others_gradients = torch.autograd.grad(reconstruction.square().sum(), inputs)
    assert (gradient.masked_select(others) == 0).all()
    assert (gradient.masked_select(~others) != 0).any()
    assert all(each.isfinite().all() for each in others_gradients)


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.float32])
def test_decoder_takes_a_mask_of_one_or_several_capsules(dtype: torch.dtype) -> None:
    decoder = Decoder(3, 4, (1, 2, 2), hidden=(5, 6))
    capsules, classes = torch.randn(2, 3, 4), torch.tensor([2, 0])
    mask = nn.functional.one_hot(classes, 3).to(dtype)
    assert_close(decoder(capsules, mask), decoder(capsules, classes), rtol=0, atol=0)
    mask[0, 1] = 1
    both = capsules.clone()
    both[0, 0] = 0
    everything = torch.ones(2, 3)
    assert_close(decoder(capsules, mask)[0], decoder(both, everything)[0], rtol=0, atol=0)
