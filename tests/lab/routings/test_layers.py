"""Self-attention, inverted attention, and no routing at all, each with written loops."""

import math
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.autograd import gradcheck
from torch.func import functional_call
from torch.testing import assert_close

from capsnet.functional import RoutingStep
from capsnet.layers import CapsuleLayer
from capsnet_lab.routings import (
    AttentionCapsules,
    SelfAttentionCapsules,
    UniformCapsules,
    attention_routing,
    exponential_squash,
    self_attention_routing,
)
from helpers import Refuses, reference

F64 = torch.float64
LAYERS = {
    "self-attention": SelfAttentionCapsules,
    "attention": partial(AttentionCapsules, routing_iterations=3),
    "uniform": UniformCapsules,
    "shared": partial(UniformCapsules, positions=3),
}


def squash(s: reference.Array) -> reference.Array:
    norm = reference.length(s)
    return (1 - math.exp(-norm)) * s / norm


def self_attention(u_hat: reference.Array, prior: reference.Array) -> reference.Array:
    """With A itself: [i, j, d] → [j, d]."""
    children, parents, numbers = u_hat.shape
    summed = np.zeros((children, parents))
    for j in range(parents):
        for i in range(children):
            for k in range(children):
                dot = sum(u_hat[i, j, d] * u_hat[k, j, d] for d in range(numbers))
                summed[i, j] += dot / math.sqrt(numbers)
    s = reference.total_input(reference.coupling(summed) + prior, u_hat)
    return np.stack([squash(s[j]) for j in range(parents)])


def layer_norm(s: reference.Array) -> reference.Array:
    """Without gain and shift."""
    mean = sum(s) / len(s)
    variance = sum((x - mean) ** 2 for x in s) / len(s)
    return np.array([(x - mean) / math.sqrt(variance + 1e-5) for x in s])


def inverted_attention(votes: reference.Array, iterations: int) -> reference.Array:
    """Procedure 1: [i, j, d] → [j, d]."""
    children, parents, numbers = votes.shape
    poses = np.zeros((parents, numbers))
    for _ in range(iterations):
        agreement = np.zeros((children, parents))
        for i in range(children):
            for j in range(parents):
                dot = sum(poses[j, d] * votes[i, j, d] for d in range(numbers))
                agreement[i, j] = dot / math.sqrt(numbers)
        s = reference.total_input(reference.coupling(agreement), votes)
        poses = np.stack([layer_norm(s[j]) for j in range(parents)])
    return poses


def test_exponential_squash() -> None:
    vectors = torch.tensor([[3e-7, -4e-7], [3e-4, 4e-4], [0.3, 0.4], [30, -40]], dtype=F64)
    expected = np.stack([squash(vector) for vector in vectors.numpy()])
    assert_close(exponential_squash(vectors), torch.tensor(expected), rtol=1e-8, atol=0)
    assert_close(exponential_squash(vectors.T, dim=0), exponential_squash(vectors).T)
    assert gradcheck(exponential_squash, vectors.requires_grad_(), atol=1e-5)
    zero = torch.zeros(2, 3, requires_grad=True)
    exponential_squash(zero).sum().backward()
    assert_close(zero.grad, torch.ones(2, 3))


def test_self_attention_is_the_sum_of_a() -> None:
    layer = SelfAttentionCapsules(6, 4, 3, 2).double()
    assert layer.prior is not None
    nn.init.normal_(layer.weight)
    nn.init.normal_(layer.prior)
    u = torch.randn(2, 6, 4, dtype=F64)
    weight, prior = (p.detach().numpy() for p in (layer.weight, layer.prior))
    expected = [self_attention(reference.predictions(weight, x), prior) for x in u.numpy()]
    assert_close(layer(u), torch.tensor(np.stack(expected)), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("iterations", [1, 2, 3])
def test_attention_is_procedure_1(iterations: int) -> None:
    layer = AttentionCapsules(6, 4, 3, 8, iterations).double()
    nn.init.normal_(layer.weight)
    u = torch.randn(2, 6, 4, dtype=F64)
    votes = [reference.predictions(layer.weight.detach().numpy(), x) for x in u.numpy()]
    expected = torch.tensor(np.stack([inverted_attention(v, iterations) for v in votes]))
    assert_close(layer(u), expected, rtol=1e-10, atol=1e-10)
    if iterations == 1:
        nn.init.constant_(layer.norm.weight, 2)
        nn.init.constant_(layer.norm.bias, 1)
        assert_close(layer(u), 2 * expected + 1)


def test_no_routing_is_one_iteration() -> None:
    plain, routed = UniformCapsules(6, 4, 3, 2).double(), CapsuleLayer(6, 4, 3, 2, 1).double()
    routed.load_state_dict(plain.state_dict())
    u = torch.randn(2, 6, 4, dtype=F64) * 10
    assert_close(plain(u), routed(u))

    shared = UniformCapsules(6, 4, 3, 2, positions=3).double()
    assert shared.weight.shape == (2, 3, 4, 2)
    with torch.no_grad():  # children are ordered by type, then by position
        routed.weight.copy_(shared.weight.repeat_interleave(3, dim=0))
    assert_close(shared(u), routed(u))


@pytest.mark.parametrize("name", LAYERS)
def test_gradcheck(name: str) -> None:
    layer = LAYERS[name](3, 2, 2, 3)
    weights = {name: torch.randn_like(p, dtype=F64) for name, p in layer.named_parameters()}

    def forward(u: Tensor, *values: Tensor) -> Tensor:
        return functional_call(layer, dict(zip(weights, values, strict=True)), u)

    given = torch.randn(1, 3, 2, dtype=F64), *weights.values()
    assert gradcheck(forward, [x.requires_grad_() for x in given], atol=1e-5)


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_shares_sum_to_one_and_gradients_are_finite(name: str, dtype: torch.dtype) -> None:
    layer = LAYERS[name](6, 4, 3, 2).to(dtype)
    u = (100 * torch.randn(2, 6, 4)).to(dtype).requires_grad_()
    trace: list[RoutingStep] = []
    v = layer(u, trace)
    assert v.shape == (2, 3, 2) and v.dtype == dtype and trace[-1].v is v
    assert len(trace) == (3 if name == "attention" else 1)
    for step in trace:
        assert step.b.shape == (2, 6, 3)
        assert_close(step.c.sum(dim=2).float(), torch.ones(2, 6), rtol=0, atol=0.02)
    v.float().square().sum().backward()
    for tensor in (v, u.grad, *(p.grad for p in layer.parameters())):
        assert tensor is not None and tensor.isfinite().all()


def test_initial_weights_are_those_of_the_released_codes() -> None:
    weight = SelfAttentionCapsules(16, 8, 10, 16).weight.detach()
    assert float(weight.std()) == pytest.approx(math.sqrt(2 / (16 * 10 * 8)), rel=0.02)
    assert float(weight.abs().max()) < 2.3 * math.sqrt(2 / (16 * 10 * 8))
    weight = AttentionCapsules(32, 16, 10, 16).weight.detach()
    assert float(weight.std()) == pytest.approx(math.sqrt(10 / (16 * 32)), rel=0.03)


def test_refuses(refuses: Refuses) -> None:
    for make in LAYERS.values():
        with refuses("capsules must be [batch, 6, 4]", "got shape [2, 6, 3]"):
            make(6, 4, 3, 2)(torch.rand(2, 6, 3))
        with refuses("capsules must be torch.float32, as the weights are, got torch.float64"):
            make(6, 4, 3, 2)(torch.rand(2, 6, 4, dtype=F64))
    for route in (self_attention_routing, lambda votes: attention_routing(votes, nn.Identity())):
        with refuses("must be [batch, in_capsules, out_capsules, out_dim]", "[2, 6, 3]"):
            route(torch.rand(2, 6, 3))
    with refuses("prior must be [in_capsules, out_capsules] = [6, 3]", "got shape [3]"):
        self_attention_routing(torch.rand(2, 6, 3, 2), torch.rand(3))
    with refuses("multiple of positions = 4", "got 6"):
        UniformCapsules(6, 4, 3, 2, positions=4)
