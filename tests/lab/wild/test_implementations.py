"""Networks whose published code no longer runs, compared with its arithmetic, transcribed step by
step, in float64. (For the others see ``tests/experiments/test_originals.py``.)

A transcription takes our parameters, lays them out as the published code does, and returns what it
computes: lengths, reconstruction, loss.
"""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from capsnet import CapsNet
from capsnet.training.loss import TrainingLoss
from capsnet_lab.wild import IMPLEMENTATIONS, WildCapsNet, WildLoss

Weights = dict[str, Tensor]
Computed = tuple[Tensor, Tensor, Tensor]
CLASSES, DIMS, TYPES = 5, 8, 3
SMALL = {"num_classes": CLASSES, "conv_channels": 4, "capsule_types": TYPES, "capsule_dim": 6}
BATCH = 7


def first_maps(w: Weights, x: Tensor) -> Tensor:
    return F.conv2d(x, w["conv.weight"], w["conv.bias"]).clamp(min=0)


def decode(w: Weights, flat: Tensor) -> Tensor:
    h = (flat @ w["decoder.fc1.weight"].t() + w["decoder.fc1.bias"]).clamp(min=0)
    h = (h @ w["decoder.fc2.weight"].t() + w["decoder.fc2.bias"]).clamp(min=0)
    return 1 / (1 + torch.exp(-(h @ w["decoder.fc3.weight"].t() + w["decoder.fc3.bias"])))


def one_hot(y: Tensor) -> Tensor:
    return torch.eye(CLASSES, dtype=torch.float64).index_select(0, y)


def released_capsules(w: Weights, x: Tensor) -> Tensor:
    def squash(t: Tensor) -> Tensor:
        norm = torch.norm(t, dim=2, keepdim=True)
        return (t / norm) * (norm * norm / (1 + norm * norm))

    n = len(x)
    votes = F.conv2d(first_maps(w, x), w["primary.conv.weight"], stride=2)
    height, width = votes.shape[2:]
    votes = votes.view(n, 1, TYPES, DIMS, height, width)
    shares = torch.softmax(torch.zeros(n, 1, TYPES, height, width, dtype=x.dtype), 2).unsqueeze(3)
    biases = w["primary.conv.bias"].view(TYPES, DIMS, 1, 1)
    u = squash((shares * votes).sum(dim=1) + biases)
    u = u.permute(0, 1, 3, 4, 2).reshape(n, -1, DIMS)
    weight = w["digits.weight"].transpose(1, 2).flatten(2)  # [in, in_dim, out · out_dim]
    votes = (u.unsqueeze(3) * weight).sum(dim=2).view(n, u.shape[1], CLASSES, -1)
    logits = torch.zeros(n, u.shape[1], CLASSES, dtype=x.dtype)
    for _ in range(3):
        v = squash((torch.softmax(logits, dim=2).unsqueeze(3) * votes).sum(dim=1) + w["bias"])
        logits = logits + (votes * v.unsqueeze(1)).sum(dim=3)
    return v


def released_margin(length: Tensor, t: Tensor) -> Tensor:
    logits = length - 0.5
    positive = t * (logits < 0.4) * (logits - 0.4) ** 2
    negative = (1 - t) * (logits > -0.4) * (logits + 0.4) ** 2
    return (0.5 * positive + 0.5 * 0.5 * negative).mean()


def sarasra(w: Weights, x: Tensor, y: Tensor) -> Computed:
    v = released_capsules(w, x)
    length = v.norm(dim=-1)
    drawn = decode(w, (v * one_hot(y).unsqueeze(-1)).flatten(1))
    squares = ((drawn - x.flatten(1)) ** 2).sum(dim=-1).mean()
    return length, drawn, released_margin(length, one_hot(y)) + 0.0005 * squares


def positions_first(w: Weights) -> Tensor:
    """W [in, out, in_dim, out_dim] for children in the order of channels-last maps."""
    weight = w["digits.weight"]
    return weight.view(TYPES, -1, *weight.shape[1:]).transpose(0, 1).flatten(0, 1)


def channels_last_capsules(w: Weights, x: Tensor) -> Tensor:
    maps = F.conv2d(first_maps(w, x), w["primary.conv.weight"], w["primary.conv.bias"], stride=2)
    return F.relu(maps).permute(0, 2, 3, 1).reshape(len(x), -1, DIMS, 1)


def naturomics(w: Weights, x: Tensor, y: Tensor) -> Computed:
    def squash(t: Tensor) -> Tensor:
        squared = t.square().sum(-2, keepdim=True)
        return squared / (1 + squared) / (squared + 1e-9).sqrt() * t

    u, n = squash(channels_last_capsules(w, x)), len(x)
    weight = positions_first(w).transpose(2, 3).flatten(1, 2)[None, ..., None]
    u = u.reshape(n, -1, 1, DIMS, 1).tile(1, 1, weight.shape[2], 1, 1)
    u_hat = (weight * u).sum(dim=3).reshape(n, u.shape[1], CLASSES, -1, 1)
    stopped, biases = u_hat.detach(), w["bias"][None, None, :, :, None]
    b = torch.zeros(n, u.shape[1], CLASSES, 1, 1, dtype=x.dtype)
    for _ in range(2):
        v = squash((torch.softmax(b, dim=2) * stopped).sum(dim=1, keepdim=True) + biases)
        b = b + (stopped * v.tile(1, u.shape[1], 1, 1, 1)).sum(dim=3, keepdim=True)
    v = squash((torch.softmax(b, dim=2) * u_hat).sum(dim=1, keepdim=True) + biases).squeeze(1)
    length = (v.square().sum(dim=2, keepdim=True) + 1e-9).sqrt().reshape(n, -1)
    drawn = decode(w, (v.squeeze(-1) * one_hot(y).reshape(n, -1, 1)).reshape(n, -1))
    left, right = (0.9 - length).clamp(min=0).square(), (length - 0.1).clamp(min=0).square()
    margin = (one_hot(y) * left + 0.5 * (1 - one_hot(y)) * right).sum(dim=1).mean()
    return length, drawn, margin + 0.392 * (drawn - x.reshape(n, -1)).square().mean()


def geron(w: Weights, x: Tensor, y: Tensor) -> Computed:
    def safe_norm(t: Tensor, dim: int) -> Tensor:
        return (t.square().sum(dim, keepdim=True) + 1e-7).sqrt()

    def squash(t: Tensor, dim: int) -> Tensor:
        squared = t.square().sum(dim, keepdim=True)
        return squared / (1.0 + squared) * (t / safe_norm(t, dim))

    n = len(x)
    u = squash(channels_last_capsules(w, x).squeeze(-1), -1)
    tiled = u.unsqueeze(-1).unsqueeze(2).tile(1, 1, CLASSES, 1, 1)
    u_hat = positions_first(w).transpose(2, 3)[None].tile(n, 1, 1, 1, 1) @ tiled
    raw = torch.zeros(n, u.shape[1], CLASSES, 1, 1, dtype=x.dtype)
    first = squash((torch.softmax(raw, dim=2) * u_hat).sum(dim=1, keepdim=True), -2)
    raw = raw + u_hat.transpose(3, 4) @ first.tile(1, u.shape[1], 1, 1, 1)
    second = squash((torch.softmax(raw, dim=2) * u_hat).sum(dim=1, keepdim=True), -2)
    length = safe_norm(second, -2).reshape(n, -1)
    drawn = decode(w, (second * one_hot(y).reshape(n, 1, -1, 1, 1)).reshape(n, -1))
    present, absent = (0.9 - length).clamp(min=0).square(), (length - 0.1).clamp(min=0).square()
    margin = (one_hot(y) * present + 0.5 * (1.0 - one_hot(y)) * absent).sum(dim=1).mean()
    return length, drawn, margin + 0.0005 * (x.reshape(n, -1) - drawn).square().mean()


TRANSCRIPTIONS: dict[str, Callable[[Weights, Tensor, Tensor], Computed]] = {
    "sarasra": sarasra,
    "naturomics": naturomics,
    "geron": geron,
}


def small(name: str) -> tuple[WildCapsNet, Tensor, Tensor]:
    """A small network in float64 with capsules of all lengths, and a batch."""
    torch.manual_seed(0)
    model = IMPLEMENTATIONS[name].make(**SMALL, hidden=(9, 11)).double()
    images = torch.rand(BATCH, 1, 28, 28, dtype=torch.float64)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.2)
        while model(images).capsules.norm(dim=2).mean() < 0.5:
            model.digits.weight *= 1.5
    return model, images, torch.arange(BATCH) % CLASSES


def assert_close(name: str, ours: Tensor, theirs: Tensor) -> None:
    error = (ours - theirs).norm() / theirs.norm()
    assert error < 1e-9, f"{name}: {error:.1e}"


@pytest.mark.parametrize("name", TRANSCRIPTIONS)
def test_equals_the_published_arithmetic(name: str) -> None:
    model, images, labels = small(name)
    weights = dict(model.named_parameters())
    loss = WildLoss(model)(images, labels)
    out = model(images, labels)
    lengths, reconstruction, expected = TRANSCRIPTIONS[name](weights, images, labels)
    assert_close("lengths", out.lengths, lengths)
    assert_close("reconstruction", out.reconstruction, reconstruction.view_as(images))
    assert_close("loss", loss, expected)
    # Capsules on both sides of both margins, so that every term of the loss counts.
    assert lengths.max() > 0.1 and lengths.min() < 0.9
    ours = torch.autograd.grad(loss, [*weights.values()])
    theirs = torch.autograd.grad(expected, [*weights.values()])
    for part, a, b in zip(weights, ours, theirs, strict=True):
        assert b.norm() > 0
        assert_close(part, a, b)


def test_the_paper_is_ours_to_the_bit() -> None:
    torch.manual_seed(0)
    ours = CapsNet(**SMALL)
    torch.manual_seed(0)
    wild = IMPLEMENTATIONS["paper"].make(**SMALL)
    images, labels = torch.rand(BATCH, 1, 28, 28), torch.arange(BATCH) % CLASSES
    losses = TrainingLoss(ours)(images, labels), WildLoss(wild)(images, labels)
    assert torch.equal(*losses)
    for loss in losses:
        loss.backward()
    for one, other in zip(ours.parameters(), wild.parameters(), strict=True):
        assert torch.equal(one, other) and torch.equal(one.grad, other.grad)
    for one, other in zip(ours(images), wild(images), strict=True):
        assert torch.equal(one, other)
