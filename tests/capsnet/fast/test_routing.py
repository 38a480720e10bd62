"""The routed layer in chunks: against ``dynamic_routing``, in two steps; derivatives."""

from typing import Any
from unittest.mock import Mock

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from capsnet.fast import routing
from capsnet.fast.routing import (
    LANES,
    chunk_size,
    routed_capsules,
    routed_capsules_plainly,
    routing_logits,
)
from capsnet.functional import dynamic_routing
from experiments.bench.memory import tensor_peak

F64 = torch.float64


def plain(u: Tensor, weight: Tensor, iterations: int, prior: Tensor | None) -> Tensor:
    return dynamic_routing(torch.einsum("nik,ijkd->nijd", u, weight), iterations, prior)


def random(
    batch: int, i: int, j: int, k: int, d: int, with_prior: bool, dtype: torch.dtype = F64
) -> tuple[Tensor, Tensor, Tensor | None]:
    u, weight = torch.randn(batch, i, k, dtype=F64), torch.randn(i, j, k, d, dtype=F64)
    prior = torch.randn(i, j, dtype=F64).to(dtype) if with_prior else None
    return u.to(dtype), weight.to(dtype), prior


def with_gradients(*tensors: Tensor | None) -> list[Tensor]:
    return [tensor.requires_grad_() for tensor in tensors if tensor is not None]


@pytest.mark.equation("procedure 1")
@pytest.mark.equation(2)
@pytest.mark.equation(3)
@given(
    batch=st.integers(0, 2 * LANES + 3),
    i=st.sampled_from([1, 2, 7, 12, 32, 64]),
    j=st.integers(1, 4),
    k=st.integers(1, 3),
    d=st.integers(1, 4),
    iterations=st.integers(1, 4),
    with_prior=st.booleans(),
    seed=st.integers(0, 99),
)
def test_values_and_gradients_are_those_of_dynamic_routing(
    batch: int, i: int, j: int, k: int, d: int, iterations: int, with_prior: bool, seed: int
) -> None:
    torch.manual_seed(seed)
    u, weight, prior = random(batch, i, j, k, d, with_prior)
    inputs = with_gradients(u, weight, prior)
    grad = torch.randn(batch, j, d, dtype=F64)
    values, gradients = [], []
    for route in (plain, routed_capsules_plainly, routed_capsules):
        v = route(u, weight, iterations, prior)
        values.append(v)
        gradients.append(torch.autograd.grad(v, inputs, grad))
    for earlier, later in ((0, 1), (1, 2)):  # F1; then F2 and the chunks
        assert_close(values[later], values[earlier], rtol=1e-9, atol=1e-11)
        assert_close(gradients[later], gradients[earlier], rtol=1e-8, atol=1e-10)


def test_chunks_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    u, weight, prior = random(2 * LANES + 5, 8, 3, 2, 4, True)
    inputs = with_gradients(u, weight, prior)
    grad = torch.randn(len(u), 3, 4, dtype=F64)
    assert chunk_size(len(u), weight, F64) > len(u)
    whole = routed_capsules(u, weight, 3, prior)
    on_a_gpu = Mock(shape=weight.shape, device=torch.device("cuda"))
    assert chunk_size(len(u), on_a_gpu, F64) == len(u)
    theirs = torch.autograd.grad(whole, inputs, grad)
    for fitting, size in ((1, LANES), (2 * LANES + 9, 2 * LANES)):
        monkeypatch.setattr(routing, "CACHE", fitting * 8 * 3 * 4 * F64.itemsize)
        assert chunk_size(len(u), weight, F64) == size
        parts = routed_capsules(u, weight, 3, prior)
        assert_close(parts, whole)
        assert_close(torch.autograd.grad(parts, inputs, grad), theirs)


def test_the_loops_are_compiled_where_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them; that torch.compile computes the same, slower tests show."""
    u, weight, prior = random(3, 8, 3, 2, 4, True)
    inputs = with_gradients(u, weight, prior)
    loops: list[Any] = [
        routing.weighted_predictions,
        routing.squash_backward,
        routing.weighted_predictions_backward,
        routing.sum_of_outer_products,
    ]
    asked: list[Any] = []
    monkeypatch.setattr(routing, "compile_once", lambda loop: asked.append(loop) or loop)
    gradients = []
    for options, expected in (({}, []), ({"compile": True}, loops)):
        v = routed_capsules(u, weight, 3, prior, **options)
        gradients.append(torch.autograd.grad(v.square().sum(), inputs))
        assert asked == expected
    assert_close(gradients[1], gradients[0], rtol=0, atol=0)


def test_the_logits_are_added_up_in_float32(device: torch.device) -> None:
    """In bfloat16 64 + 0.2 is 64: the agreements would be lost in the logits."""
    u, weight, _ = random(3, 6, 4, 2, 3, False, torch.bfloat16)
    u, weight = u.to(device), weight.to(device)
    large = torch.full((6, 4), 64.0, device=device, dtype=torch.bfloat16)  # for all parents
    without = routed_capsules(u, weight)
    assert (without - routed_capsules(u, weight, 1)).abs().max() > 0.1
    assert_close(routed_capsules(u, weight, 3, large), without, rtol=0, atol=0.01)
    for dtype, wide in ((F64, F64), (torch.bfloat16, torch.float32)):
        first = routing_logits(torch.empty(2, 3, 4, 5, dtype=dtype, device="meta"), None, None)
        assert (first.shape, first.dtype, first.device.type) == ((2, 3, 5), wide, "meta")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_autocast_changes_nothing(dtype: torch.dtype, device: torch.device) -> None:
    u, weight, _ = random(3, 6, 4, 2, 3, False, torch.float32)
    inputs = u, weight = with_gradients(u.to(device), weight.to(device))
    results = []
    for enabled in (False, True):
        with torch.autocast(device.type, torch.bfloat16, enabled=enabled):
            v = routed_capsules(u.to(dtype), weight)
        results.append((v, *torch.autograd.grad(v.sum(), inputs)))
    assert_close(results[1], results[0], rtol=0, atol=0)


def test_only_gradients_that_are_asked_for() -> None:
    u, weight, prior = random(LANES + 1, 6, 3, 2, 4, True)
    assert prior is not None
    inputs = with_gradients(u, weight, prior)
    every = torch.autograd.grad(routed_capsules(u, weight, 3, prior).sum(), inputs)
    for number in range(3):
        alone = [t.detach() for t in (u, weight, prior)]
        alone[number].requires_grad_()
        routed_capsules(alone[0], alone[1], 3, alone[2]).sum().backward()
        assert [t.grad is not None for t in alone] == [i == number for i in range(3)]
        assert_close(alone[number].grad, every[number])


def test_a_prior_of_half_precision_learns_as_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its gradient is summed over the chunks in float32 and rounded once."""
    monkeypatch.setattr(routing, "CACHE", 1)
    u, weight, prior = random(8 * LANES, 5, 3, 2, 4, True, torch.float32)
    assert prior is not None
    half = prior.bfloat16()
    gradients = []
    for start in (half, half.float()):
        start.requires_grad_()
        routed_capsules(u, weight, 3, start).square().sum().backward()
        assert start.grad is not None
        gradients.append(start.grad)
    assert gradients[0].dtype == torch.bfloat16
    assert_close(gradients[0], gradients[1].bfloat16())


def test_matrices_of_half_precision_learn_as_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their gradient is summed over the chunks in float32, too, and rounded once."""
    u, weight, _ = random(64 * LANES, 5, 3, 2, 4, False, torch.bfloat16)
    gradients = []
    for cache in (1, 2**40):  # many chunks, and a single one
        monkeypatch.setattr(routing, "CACHE", cache)
        (leaf,) = with_gradients(weight.clone())
        routed_capsules(u, leaf, 3).float().square().sum().backward()
        gradients.append(leaf.grad)
    assert_close(gradients[0], gradients[1], rtol=0.01, atol=0.05)


@pytest.mark.parametrize("differentiate", [torch.autograd.grad, torch.autograd.backward])
def test_a_second_derivative_is_refused(differentiate: Any) -> None:
    """In the first pass: the second one may not come by here, and would then be wrong."""
    u, weight, _ = random(1, 2, 2, 2, 2, False)
    with_gradients(u)
    loss = routed_capsules(u**2, weight).square().sum()
    with pytest.raises(RuntimeError, match=r"^the fast arrangement has no second derivatives"):
        differentiate(loss, inputs=[u], create_graph=True)


def test_inference_keeps_nothing_of_an_iteration(device: torch.device) -> None:
    """The peak of the memory that tensors take does not depend on the number of iterations."""
    u, weight, _ = random(LANES, 64, 10, 8, 16, False, torch.float32)
    u, weight = u.to(device), weight.to(device).requires_grad_()

    def peak(iterations: int) -> int:
        with torch.no_grad():
            return tensor_peak(lambda: routed_capsules(u, weight, iterations), device)

    u_hat = LANES * 64 * 10 * 16 * 4
    assert (peak(3) > u_hat) == (device.type == "cpu")  # CUDA's kernels never store it
    assert peak(12) == peak(3)
