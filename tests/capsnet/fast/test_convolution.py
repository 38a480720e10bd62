"""The fast convolution against ``F.conv2d``: random shapes, derivatives, precision, bad input."""

import math
from unittest.mock import Mock

import pytest
import torch
import torch.nn.functional as F
from hypothesis import assume, given
from hypothesis import strategies as st
from torch import nn
from torch.testing import assert_close

from capsnet.device import ieee_float32
from capsnet.fast.convolution import (
    Transform,
    correlate,
    fast_conv2d,
    phases_of,
    relu_conv2d,
    relu_conv2d_channels_last,
    toom_cook_is_accurate,
    transform_kernel,
)
from helpers import Refuses

F64 = torch.float64
CPU = torch.device("cpu")


@given(
    size=st.tuples(st.integers(1, 24), st.integers(1, 24)),
    kernel_size=st.integers(1, 9),
    stride=st.integers(1, 4),
    channels=st.integers(1, 3),
    batch=st.integers(0, 3),
    with_bias=st.booleans(),
    toom_cook=st.booleans(),
)
def test_it_is_conv2d(
    size: tuple[int, int],
    kernel_size: int,
    stride: int,
    channels: int,
    batch: int,
    with_bias: bool,
    toom_cook: bool,
) -> None:
    assume(min(size) >= kernel_size)
    x = torch.randn(batch, channels, *size, dtype=F64, requires_grad=True)
    weight = torch.randn(4, channels, kernel_size, kernel_size, dtype=F64, requires_grad=True)
    bias = torch.randn(4, dtype=F64, requires_grad=True) if with_bias else None
    expected = F.conv2d(x, weight, bias, stride)
    y = fast_conv2d(x, weight, bias, stride, toom_cook)
    assert_close(y, expected, rtol=1e-10, atol=1e-10)

    inputs = [tensor for tensor in (x, weight, bias) if tensor is not None]
    grad = torch.randn_like(expected)
    ours, theirs = (torch.autograd.grad(result, inputs, grad) for result in (y, expected))
    assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("dtype", "toom_cook", "limit"),
    [(torch.float32, False, 1e-6), (torch.bfloat16, False, 1e-2), (torch.float32, True, 5e-5)],
)
def test_precision_at_the_papers_size(
    dtype: torch.dtype, toom_cook: bool, limit: float, device: torch.device
) -> None:
    """Of the result and both gradients, compared with the direct convolution in float64."""
    x = torch.rand(2, 256, 20, 20, dtype=F64)
    weight = torch.randn(32, 256, 9, 9, dtype=F64) / math.sqrt(256 * 81)
    grad = torch.randn(2, 32, 6, 6, dtype=F64).to(device)
    exact = [each.to(device).requires_grad_() for each in (x, weight)]
    types = dtype, torch.float32
    rounded = [e.detach().to(kind).requires_grad_() for e, kind in zip(exact, types, strict=True)]
    y = F.conv2d(*exact, stride=2)
    expected = [y, *torch.autograd.grad(y, exact, grad)]
    with ieee_float32(device, "fp32"):
        y = fast_conv2d(*rounded, None, 2, toom_cook)
        found = [y, *torch.autograd.grad(y, rounded, grad.to(dtype))]
    assert y.dtype == dtype
    for ours, wanted in zip(found, expected, strict=True):
        assert (ours.double() - wanted).norm() < limit * wanted.norm()


@pytest.mark.parametrize("with_bias", [True, False])
def test_one_product_is_a_convolution_and_relu(with_bias: bool, device: torch.device) -> None:
    x, weight = torch.randn(3, 2, 9, 8, dtype=F64), torch.randn(5, 2, 4, 4, dtype=F64)
    bias = torch.randn(5, dtype=F64).to(device) if with_bias else None
    inputs = [each.to(device).requires_grad_() for each in (x, weight)]
    found = relu_conv2d_channels_last(*inputs, bias)
    wanted = F.relu(F.conv2d(*inputs, bias))
    assert found.is_contiguous(memory_format=torch.channels_last)
    assert_close(found, wanted)
    grad = torch.randn_like(wanted)
    gradients = [torch.autograd.grad(y, inputs, grad) for y in (found, wanted)]
    assert_close(gradients[0], gradients[1])


def test_points_are_for_whole_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.rand(1, 1, 5, 5)
    assert toom_cook_is_accurate(x)
    assert not any(
        toom_cook_is_accurate(x.to(dtype)) for dtype in (F64, torch.bfloat16, torch.float16)
    )
    assert not toom_cook_is_accurate(x.to("meta"))
    monkeypatch.setattr(torch, "get_float32_matmul_precision", lambda: "medium")
    assert not toom_cook_is_accurate(x)
    monkeypatch.setattr(torch, "get_float32_matmul_precision", Mock(side_effect=RuntimeError))
    assert not toom_cook_is_accurate(x)
    x, weight = torch.rand(2, 16, 10, 10), torch.randn(8, 16, 5, 5)
    wanted = F.conv2d(x.double(), weight.double())
    results = fast_conv2d(x, weight, None), fast_conv2d(x, weight, None, toom_cook=True)
    by_default, asked = ((result - wanted).norm() / wanted.norm() for result in results)
    assert by_default < 1e-6 < asked


def test_what_does_not_fit_is_refused(refuses: Refuses) -> None:
    kernel = torch.rand(1, 2, 3, 3)
    for x, weight, parts in [
        (torch.ones(1, 2, 5, 5).long(), kernel, ("x must be floating point", "torch.int64")),
        (torch.rand(1, 3, 5, 5), kernel, ("[batch, 2, height, width]", "got shape [1, 3, 5, 5]")),
        (torch.rand(1, 2, 5, 5), kernel[..., :2], ("square", "got shape [1, 2, 3, 2]")),
        (torch.rand(1, 2, 5, 2), kernel, ("at least 3 × 3", "got 5 × 2")),
    ]:
        with refuses(*parts):
            fast_conv2d(x, weight, None)
    with refuses("stride must be a whole number of at least 1, got 0"):
        fast_conv2d(torch.rand(1, 2, 9, 9), torch.rand(4, 2, 3, 3), None, stride=0)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("toom_cook", [True, False])
def test_both_convolutions_of_a_network(bias: bool, toom_cook: bool) -> None:
    first = nn.Conv2d(2, 5, 3, bias=bias).to(F64)
    second = nn.Conv2d(5, 4, 5, stride=2, bias=bias).to(F64)
    images = torch.rand(3, 2, 12, 15, dtype=F64, requires_grad=True)

    phases = phases_of(10, 13, 5, 2, toom_cook)
    assert all(each.toom_cook == toom_cook for each in phases)
    features = relu_conv2d(images, first.weight, first.bias, phases)
    for each, x in zip(phases, features, strict=True):
        here = each.down[1] - each.down[0], each.across[1] - each.across[0]
        assert x.shape == (each.rows, each.columns, 3, *here, 5)
        _, *matrices = Transform.of(each, torch.device("meta"))
        assert {matrix.device.type for pair in matrices for matrix in pair} == {"meta"}
    kernels = transform_kernel(second.weight, phases, F64)
    with pytest.raises(ValueError, match="argument 3 is shorter"):
        correlate(features, kernels, second.bias, phases[:-1])
    ours = correlate(features, kernels, second.bias, phases)
    expected = second(F.relu(first(images)))
    assert_close(ours, expected, rtol=1e-10, atol=1e-12)
    inputs = [images, *first.parameters(), *second.parameters()]
    grad = torch.randn_like(expected)
    gradients, theirs = (torch.autograd.grad(y, inputs, grad) for y in (ours, expected))
    assert_close(gradients, theirs, rtol=1e-10, atol=1e-12)


def test_there_are_as_few_points_as_a_convolution_needs() -> None:
    """At points for each phase by itself, in Fourier space for all together."""
    found = phases_of(20, 17, 9, 2, toom_cook=True)
    assert [(each.rows, each.columns) for each in found] == [(10, 9), (10, 8), (9, 9), (9, 8)]
    assert len(phases_of(9, 9, 1, 3, toom_cook=True)) == 1
    (together,) = phases_of(20, 21, 9, 2, toom_cook=True)  # 11 across
    assert not together.toom_cook
    for size, kernel_size, stride, expected in [
        ((20, 20), 9, 2, (10, 10)),  # the paper's
        ((22, 20), 9, 2, (12, 10)),  # 11 rows would do, but they must be even
        ((3, 4), 3, 1, (4, 4)),
        ((9, 6), 1, 3, (4, 2)),  # in other phases the kernel has no tap
    ]:
        (together,) = phases_of(*size, kernel_size, stride)
        assert (together.rows, together.columns) == expected
