"""The paper's equations: contracts with ``reference.py``, derivatives, invariants."""

import math
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck
from torch.func import jacrev, vmap
from torch.testing import assert_close

from capsnet.functional import (
    RoutingStep,
    dynamic_routing,
    margin_loss,
    reconstruction_loss,
    squash,
)
from helpers import reference

F64 = torch.float64
PRECISION = [(torch.float64, 1e-10), (torch.float32, 1e-5)]
DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]

small = st.integers(1, 5)
seeds = st.integers(0, 2**32 - 1)


def random(*shape: int, seed: int = 0, scale: float = 1.0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(*shape, dtype=F64, generator=generator)


@st.composite
def votes(draw: st.DrawFn) -> Tensor:
    """û of any small shape, from votes that hardly count to votes that decide at once."""
    shape = [draw(small) for _ in range(4)]
    return random(*shape, seed=draw(seeds), scale=draw(st.sampled_from([0.01, 1.0, 30.0])))


def reference_squash(s: Tensor) -> Tensor:
    """Eq. 1 over the last dimension."""
    rows = s.to(F64).reshape(-1, s.shape[-1]).numpy()
    return torch.tensor(np.stack([reference.squash(row) for row in rows])).reshape(s.shape)


def reference_routing(u_hat: Tensor, iterations: int, prior: Tensor | None) -> list[RoutingStep]:
    """Procedure 1 for every image of a batch, stacked like ``dynamic_routing``'s trace."""
    logits = None if prior is None else prior.to(F64).numpy()
    images = [reference.procedure_1(u.to(F64).numpy(), iterations, logits) for u in u_hat]
    return [
        RoutingStep(*(torch.tensor(np.stack(variable)) for variable in zip(*step, strict=True)))
        for step in zip(*images, strict=True)
    ]


@pytest.mark.equation(1)
@pytest.mark.parametrize(("dtype", "rtol"), PRECISION)
@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
def test_eq1_squash_is_the_papers(
    dtype: torch.dtype, rtol: float, scale: float, device: torch.device
) -> None:
    s = random(3, 4, 5, scale=scale).to(dtype)
    v = squash(s.to(device))
    assert v.device.type == device.type
    assert_close(v.cpu(), reference_squash(s).to(dtype), rtol=rtol, atol=0)


@pytest.mark.parametrize("dim", [0, 1, 2, -1, -2, -3])
def test_squash_takes_the_vectors_along_any_dimension(dim: int) -> None:
    s = random(3, 4, 5, scale=2)
    expected = reference_squash(s.movedim(dim, -1)).movedim(-1, dim)
    assert_close(squash(s, dim), expected, rtol=1e-10, atol=0)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0,)])
def test_squash_of_no_numbers_is_none(shape: tuple[int, ...]) -> None:
    """As of torch.nn.functional.normalize."""
    assert squash(torch.zeros(shape)).shape == squash(torch.zeros(shape), 0).shape == shape


def extremes(dtype: torch.dtype) -> Tensor:
    """Every pair of magnitudes from the smallest subnormal to the largest number, [n, 2]."""
    info = torch.finfo(dtype)
    values = [0.0, info.smallest_normal * info.eps, info.smallest_normal, info.tiny**0.5]
    values += [1e-3, 0.5, 1.0, 7.0, info.max**0.5, info.max / 4, info.max]
    magnitudes = torch.tensor(values, dtype=dtype)
    return torch.cat([torch.cartesian_prod(magnitudes, sign * magnitudes) for sign in (1, -1)])


def exact_squash(s: Tensor) -> tuple[Tensor, Tensor]:
    """Eq. 1 and its Jacobian for pairs [n, 2], in decimals, which neither overflow nor underflow.

    With f = ‖s‖² / (1 + ‖s‖²) and e = s / ‖s‖: v = f e, and ∂v/∂s = f/‖s‖ (1 − e eᵀ) + f' e eᵀ.
    """
    values, jacobians = [], []
    for row in s.tolist():
        pair = [Decimal(x) for x in row]
        square = sum(x * x for x in pair)
        if square == 0:
            values.append([0.0] * 2)
            jacobians.append([[0.0] * 2] * 2)
            continue
        norm = Decimal(square).sqrt()
        unit = [x / norm for x in pair]
        across = norm / (1 + square)  # f / ‖s‖
        along = 2 * norm / (1 + square) ** 2  # f'
        values.append([float(across * x) for x in pair])
        jacobians.append(
            [
                [float(across * (a == b) + (along - across) * unit[a] * unit[b]) for b in (0, 1)]
                for a in (0, 1)
            ]
        )
    return torch.tensor(values, dtype=F64), torch.tensor(jacobians, dtype=F64)


@pytest.mark.equation(1)
@pytest.mark.parametrize("dtype", DTYPES)
def test_eq1_squash_of_tiny_and_huge_vectors(dtype: torch.dtype, device: torch.device) -> None:
    """From 0 to finfo.max, by way of subnormals: finite, and right to the dtype's precision."""
    s = extremes(dtype)
    tolerance = 8 * torch.finfo(dtype).eps
    expected, expected_jacobian = exact_squash(s)
    s = s.to(device)
    assert_close(squash(s).to("cpu", F64), expected, rtol=tolerance, atol=tolerance)
    jacobian = vmap(jacrev(squash))(s)
    assert_close(jacobian.to("cpu", F64), expected_jacobian, rtol=tolerance, atol=tolerance)


@pytest.mark.equation(1)
@given(
    s=st.lists(st.floats(-1e8, 1e8, allow_subnormal=True), min_size=1, max_size=6),
)
def test_eq1_squash_keeps_the_direction_and_stays_below_length_1(s: list[float]) -> None:
    vector = torch.tensor(s, dtype=F64)
    v = squash(vector)
    norm = math.hypot(*s)
    length = float(v.norm())
    assert length < 1 or norm > 1e7  # beyond, 1 − ‖v‖ is below float64's precision
    assert length <= 1 + 1e-15
    assert length == pytest.approx(norm**2 / (1 + norm**2), rel=1e-12, abs=1e-150)
    assert_close(v * norm, vector * length, rtol=1e-12, atol=1e-150)


@pytest.mark.equation(2)
@pytest.mark.equation(3)
@pytest.mark.equation("procedure 1")
@pytest.mark.parametrize(("dtype", "rtol"), PRECISION)
@pytest.mark.parametrize("with_prior", [False, True])
@pytest.mark.parametrize("iterations", [1, 2, 3, 5])
def test_procedure_1_in_every_variable_of_every_iteration(
    dtype: torch.dtype, rtol: float, with_prior: bool, iterations: int, device: torch.device
) -> None:
    u_hat = random(2, 6, 4, 3, scale=0.7).to(dtype)
    prior = random(6, 4, seed=1).to(dtype) if with_prior else None
    trace: list[RoutingStep] = []
    v = dynamic_routing(
        u_hat.to(device), iterations, None if prior is None else prior.to(device), trace
    )

    expected = reference_routing(u_hat, iterations, prior)
    assert len(trace) == iterations
    for step, expected_step in zip(trace, expected, strict=True):
        for name, got, want in zip(RoutingStep._fields, step, expected_step, strict=True):
            assert (got.dtype, got.device.type) == (dtype, device.type)
            # Before the votes, one row of logits serves all images.
            got, want = got.cpu().expand(want.shape), want.to(dtype)
            assert_close(got, want, rtol=rtol, atol=rtol * 0.1, msg=(name + ": {}").format)
    assert_close(v.cpu(), expected[-1].v.to(dtype), rtol=rtol, atol=rtol * 0.1)


def test_routing_iterates_three_times_by_default_and_appends_to_the_trace() -> None:
    u_hat, before = random(2, 5, 4, 3), RoutingStep(*torch.zeros(4))
    trace = [before]
    v = dynamic_routing(u_hat, trace=trace)
    assert trace[0] is before and len(trace) == 1 + 3
    assert_close(v, dynamic_routing(u_hat, 3), rtol=0, atol=0)


@pytest.mark.parametrize("iterations", [1, 2, 3])
@pytest.mark.parametrize("votes_are", ["random", "zero for some", "all zero"])
def test_routing_gradcheck(iterations: int, votes_are: str) -> None:
    u_hat, prior = random(2, 3, 2, 3), random(3, 2, seed=1)
    if votes_are == "zero for some":
        u_hat[0, 1] = 0  # a silent child
        u_hat[1, :, 1] = 0  # a parent that nobody votes for
        u_hat[1, 2, 0] = 0
    elif votes_are == "all zero":
        u_hat.zero_()
    u_hat.requires_grad_()
    prior.requires_grad_()

    assert gradcheck(lambda u: dynamic_routing(u, iterations), u_hat, atol=2e-6)
    assert gradcheck(lambda u, b: dynamic_routing(u, iterations, b), (u_hat, prior), atol=2e-6)


@pytest.mark.equation(3)
@given(u_hat=votes(), iterations=st.integers(1, 4), seed=seeds)
def test_eq3_couplings_of_a_child_sum_to_1(u_hat: Tensor, iterations: int, seed: int) -> None:
    trace: list[RoutingStep] = []
    prior = random(*u_hat.shape[1:3], seed=seed, scale=3)
    v = dynamic_routing(u_hat, iterations, prior, trace)
    for step in trace:
        total = step.c.sum(2)
        assert_close(total, torch.ones_like(total), rtol=1e-12, atol=0)
        assert (step.c >= 0).all()
        assert (step.v.norm(dim=2) < 1).all()
    assert (v.norm(dim=2) < 1).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("autocast", [False, True])
def test_logits_are_added_up_in_float32(
    dtype: torch.dtype, autocast: bool, device: torch.device
) -> None:
    """In half precision 64 + 0.2 is 64: an agreement would be lost in the logits."""
    u_hat = random(2, 6, 4, 3).to(device, dtype)
    prior = torch.full((6, 4), 64.0, device=device, dtype=dtype)  # the same for all parents
    trace: list[RoutingStep] = []
    with torch.autocast(device.type, dtype, enabled=autocast):
        v = dynamic_routing(u_hat, 3, prior, trace)
        without = dynamic_routing(u_hat, 3)
        for before, after in pairwise(trace):
            agreement = torch.einsum("nijd,njd->nij", u_hat, before.v)
            assert_close(after.b, before.b + agreement.float(), rtol=0, atol=0)
    assert all(step.b.dtype == torch.float32 for step in trace)
    assert_close(v, without, rtol=0, atol=2 * torch.finfo(dtype).eps)
    one = dynamic_routing(u_hat, 1)
    assert (without - one).abs().max() > 20 * torch.finfo(dtype).eps  # agreement counts


@pytest.mark.equation(4)
@pytest.mark.parametrize(("dtype", "rtol"), PRECISION)
@pytest.mark.parametrize(
    "arguments", [{}, {"m_pos": 0.7}, {"m_neg": 0.25}, {"down_weight": 0.8}, {"down_weight": 0.0}]
)
@pytest.mark.parametrize("given_as", ["masks", "labels"])
def test_eq4_margin_loss_is_the_papers(
    dtype: torch.dtype,
    rtol: float,
    arguments: dict[str, float],
    given_as: str,
    device: torch.device,
) -> None:
    lengths = torch.rand(6, 5, dtype=F64).to(dtype)
    if given_as == "masks":
        targets = masks = torch.rand(6, 5) < 0.4  # none, one or several classes at once
    else:
        targets = torch.randint(5, (6,))
        masks = torch.eye(5)[targets]
    rows = zip(lengths.to(F64).numpy(), masks.to(F64).numpy(), strict=True)
    expected = np.mean([reference.margin_loss(*row, **arguments) for row in rows])
    loss = margin_loss(lengths.to(device), targets.to(device), **arguments)
    assert (loss.shape, loss.dtype, loss.device.type) == ((), dtype, device.type)
    assert float(loss) == pytest.approx(expected, rel=rtol)


@pytest.mark.equation(4)
@pytest.mark.parametrize("present", [True, False])
@pytest.mark.parametrize("length", [0.0, 0.05, 0.1, 0.1001, 0.5, 0.8999, 0.9, 0.95, 1.0])
def test_eq4_is_zero_exactly_when_every_margin_holds(length: float, present: bool) -> None:
    lengths = torch.tensor([[length]], dtype=F64, requires_grad=True)
    loss = margin_loss(lengths, torch.tensor([[present]]))
    (gradient,) = torch.autograd.grad(loss, lengths)
    holds = length >= 0.9 if present else length <= 0.1
    assert (loss == 0) == holds
    assert (gradient == 0) == holds


@pytest.mark.equation("reconstruction")
@pytest.mark.parametrize(("dtype", "rtol"), PRECISION)
@pytest.mark.parametrize("shape", [(3, 1, 4, 5), (1, 3, 2, 2), (4, 6)])
def test_reconstruction_loss_is_the_papers(
    dtype: torch.dtype, rtol: float, shape: tuple[int, ...], device: torch.device
) -> None:
    reconstruction, images = (torch.rand(shape, dtype=F64).to(dtype) for _ in range(2))
    rows = zip(reconstruction.to(F64).numpy(), images.to(F64).numpy(), strict=True)
    expected = np.mean([reference.reconstruction_loss(*row) for row in rows])
    loss = reconstruction_loss(reconstruction.to(device), images.to(device))
    assert (loss.shape, loss.dtype, loss.device.type) == ((), dtype, device.type)
    assert float(loss) == pytest.approx(expected, rel=rtol)


def test_a_loss_of_no_images_is_nan() -> None:
    """As are the losses of torch.nn.functional."""
    images, labels = torch.zeros(0, 3), torch.zeros(0, dtype=torch.int64)
    assert F.mse_loss(images, images).isnan() and F.cross_entropy(images, labels).isnan()
    assert reconstruction_loss(images, images).isnan() and margin_loss(images, labels).isnan()
