"""EM routing: Procedure 1 with written loops, derivatives, extreme numbers, refusals."""

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd import gradcheck
from torch.testing import assert_close

from capsnet.functional import RoutingStep
from capsnet_lab.routings import EMCapsules, em_routing, spread_loss
from helpers import Refuses

Array = NDArray[np.float64]
F64 = torch.float64


def procedure_1(
    a: Array, v: Array, beta_u: Array, beta_a: Array, iterations: int, final: float, floor: float
) -> list[tuple[Array, Array, Array]]:
    """Procedure 1 for one image, line by line: R before, poses and activations of each iteration.

    ``a`` [i], ``v`` [i, j, h].
    """
    children, parents, numbers = v.shape
    r = np.full((children, parents), 1 / parents)
    steps = []
    for t in range(iterations):
        lam = final * (1 - 0.95 ** (t + 1))
        before = r.copy()
        mu, var = np.zeros((parents, numbers)), np.zeros((parents, numbers))
        active = np.zeros(parents)
        for j in range(parents):  # M-step
            for i in range(children):
                r[i, j] = r[i, j] * a[i]
            mass = sum(r[i, j] for i in range(children))
            cost = 0.0
            for h in range(numbers):
                mu[j, h] = sum(r[i, j] * v[i, j, h] for i in range(children)) / mass
                spread = sum(r[i, j] * (v[i, j, h] - mu[j, h]) ** 2 for i in range(children))
                var[j, h] = spread / mass + floor
                cost += (beta_u[j] + math.log(math.sqrt(var[j, h]))) * mass
            active[j] = 1 / (1 + math.exp(-lam * (beta_a[j] - cost)))
        steps.append((before, mu, active))
        for i in range(children):  # E-step
            p = np.zeros(parents)
            for j in range(parents):
                exponent, product = 0.0, 1.0
                for h in range(numbers):
                    exponent -= (v[i, j, h] - mu[j, h]) ** 2 / (2 * var[j, h])
                    product *= 2 * math.pi * var[j, h]
                p[j] = math.exp(exponent) / math.sqrt(product)
            for j in range(parents):
                r[i, j] = active[j] * p[j] / sum(active[k] * p[k] for k in range(parents))
    return steps


def problem(children: int = 6, parents: int = 3, numbers: int = 4) -> tuple[Tensor, ...]:
    """Votes, activations, β_u and β_a for two images, in float64."""
    votes = torch.randn(2, children, parents, numbers, dtype=F64)
    activations = torch.rand(2, children, dtype=F64) * 0.9 + 0.05
    return votes, activations, torch.randn(parents, dtype=F64), torch.randn(parents, dtype=F64)


@pytest.mark.parametrize("iterations", [1, 2, 3])
@pytest.mark.parametrize("floor", [0.0, 0.05])
def test_em_routing_is_procedure_1(iterations: int, floor: float) -> None:
    votes, activations, beta_u, beta_a = problem()
    trace: list[RoutingStep] = []
    out = em_routing(votes, activations, beta_u, beta_a, iterations, 2.0, floor, trace)
    assert len(trace) == iterations
    for n in range(2):
        numbers = (x.numpy() for x in (activations[n], votes[n], beta_u, beta_a))
        steps = procedure_1(*numbers, iterations, 2.0, floor)
        for (r, mu, active), seen in zip(steps, trace, strict=True):
            assert_close(seen.c[n], torch.tensor(r))
            assert_close(seen.b[n].exp(), seen.c[n])
            assert_close(seen.s[n], torch.tensor(mu))
            assert_close(seen.v[n].norm(dim=1), torch.tensor(active))
        assert_close(out[0][n], torch.tensor(mu))
        assert_close(out[1][n], torch.tensor(active))


def test_the_layer_routes_products_of_matrices() -> None:
    """β_a is stored as what it adds to the last logit; λ grows with the parents for each child."""
    layer = EMCapsules(6, 8, 3, 12).double()
    torch.nn.init.normal_(layer.beta_u)
    torch.nn.init.normal_(layer.beta_a)
    assert layer.inverse_temperature == 0.5 and layer.weight.shape == (6, 3, 2, 3)
    poses, activations = torch.randn(2, 6, 8, dtype=F64), torch.rand(2, 6, dtype=F64)
    seen = layer((poses, activations))
    w, u = layer.weight.detach().numpy(), layer.beta_u.detach().numpy()
    b = layer.beta_a.detach().numpy() / (0.5 * (1 - 0.95**3))
    for n in range(2):
        v = np.zeros((6, 3, 12))
        for i, j in np.ndindex(6, 3):
            v[i, j] = (poses[n, i].numpy().reshape(4, 2) @ w[i, j]).ravel()
        _, mu, active = procedure_1(activations[n].numpy(), v, u, b, 3, 0.5, 1e-6)[-1]
        assert_close(seen[0][n], torch.tensor(mu))
        assert_close(seen[1][n], torch.tensor(active))
    none = layer((poses, torch.zeros(2, 6, dtype=F64)))[1]
    assert_close(none, layer.beta_a.sigmoid().expand(2, 3))  # nobody votes


def test_em_gradcheck() -> None:
    given = [part.requires_grad_() for part in problem(3, 2, 3)]
    assert gradcheck(lambda *x: em_routing(*x, 3, 1.0, 0.01), given, atol=1e-6)


def test_autocast_changes_nothing() -> None:
    given = [part.float() for part in problem()]
    with torch.autocast("cpu", torch.bfloat16):
        half = em_routing(*given)
    assert_close(half, em_routing(*given), rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("scale", "active"), [(0.0, 1.0), (1.0, 0.0), (1e-6, 1.0), (1e4, 1.0)])
def test_em_is_finite(dtype: torch.dtype, scale: float, active: float) -> None:
    layer = EMCapsules(5, 8, 3, 16).to(dtype)
    poses = (scale * torch.randn(2, 5, 8)).to(dtype).requires_grad_()
    activations = torch.full((2, 5), active, dtype=dtype, requires_grad=True)
    out = layer((poses, activations))
    assert out[0].dtype == dtype and out[1].dtype == torch.float32
    (out[0].float().square().sum() + out[1].sum()).backward()
    for tensor in (*out, poses.grad, activations.grad, *(p.grad for p in layer.parameters())):
        assert tensor is not None and tensor.isfinite().all()


def test_spread_loss_is_eq_3() -> None:
    activations, targets = torch.rand(4, 3, dtype=F64, requires_grad=True), [2, 0, 0, 1]
    for margin in (0.2, 0.9):
        total = 0.0
        for row, t in zip(activations.tolist(), targets, strict=True):
            total += sum(max(0, margin - (row[t] - a)) ** 2 for i, a in enumerate(row) if i != t)
        seen = spread_loss(activations, torch.tensor(targets), margin)
        assert float(seen.detach()) == pytest.approx(total / 4, rel=1e-12)
        assert gradcheck(lambda x, m=margin: spread_loss(x, torch.tensor(targets), m), activations)


def test_refuses(refuses: Refuses) -> None:
    layer, votes = EMCapsules(5, 8, 3, 16), torch.rand(2, 5, 3, 4)
    right = {"activations": torch.rand(2, 5), "beta_u": torch.rand(3), "beta_a": torch.rand(3)}
    for name, expected in ("activations", [2, 5]), ("beta_u", [3]), ("beta_a", [3]):
        with refuses(f"{name} must be of shape {expected}, got [4]"):
            em_routing(votes, **{**right, name: torch.rand(4)})
    with refuses("votes must be [batch, in_capsules", "got shape [5, 3, 4]"):
        em_routing(votes[0], **right)
    with refuses("capsules must be [batch, 5, 8]", "got shape [2, 5, 16]"):
        layer((torch.rand(2, 5, 16), torch.rand(2, 5)))
    with refuses("capsules must be torch.float32, as the weights are, got torch.float64"):
        layer((torch.rand(2, 5, 8, dtype=F64), torch.rand(2, 5)))
    with refuses("routing_iterations must be a whole number of at least 1", "got 2.5"):
        EMCapsules(5, 8, 3, 16, 2.5)  # type: ignore[arg-type]
    with refuses("multiples of 4", "got 8, 10"):
        EMCapsules(5, 8, 3, 10)
    with refuses("0 … 2", "got 3"):
        spread_loss(torch.rand(1, 3), torch.tensor([3]))
    with refuses("class indices [batch]", "[2, 3]"):
        spread_loss(torch.rand(2, 3), torch.ones(2, 3))
