"""Each network against its published arithmetic, transcribed step by step in float64.

A transcription takes our parameters, lays them out as the published code does, and returns what it
computes: lengths, reconstruction, loss.
"""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from capsnet import CapsNet
from capsnet.training.loss import RECONSTRUCTION_WEIGHT, TrainingLoss
from capsnet.wild import IMPLEMENTATIONS, WildCapsNet, WildLoss

Weights = dict[str, Tensor]
Computed = tuple[Tensor, Tensor, Tensor]
CLASSES, DIMS, TYPES, POSITIONS = 5, 8, 3, 36
SMALL = {"num_classes": CLASSES, "conv_channels": 4, "capsule_types": TYPES, "capsule_dim": 6}
BATCH = 7


def by_dims(w: Weights) -> tuple[Tensor, Tensor]:
    """The second convolution with its channels as 8 blocks of a component, each of all types."""
    weight, bias = w["primary.conv.weight"], w["primary.conv.bias"]
    order = torch.arange(TYPES * DIMS).reshape(TYPES, DIMS).t().reshape(-1)
    return weight[order], bias[order]


def first_maps(w: Weights, x: Tensor) -> Tensor:
    return F.conv2d(x, w["conv.weight"], w["conv.bias"]).clamp(min=0)


def decode(w: Weights, flat: Tensor) -> Tensor:
    h = (flat @ w["decoder.fc1.weight"].t() + w["decoder.fc1.bias"]).clamp(min=0)
    h = (h @ w["decoder.fc2.weight"].t() + w["decoder.fc2.bias"]).clamp(min=0)
    return 1 / (1 + torch.exp(-(h @ w["decoder.fc3.weight"].t() + w["decoder.fc3.bias"])))


def labml_layers(w: Weights, x: Tensor, y: Tensor) -> Computed:
    def squash(s: Tensor) -> Tensor:
        s2 = (s * s).sum(-1, keepdim=True)
        return (s2 / (1 + s2)) * (s / torch.sqrt(s2 + 1e-8))

    maps = F.conv2d(first_maps(w, x), *by_dims(w), stride=2)
    u = squash(maps.view(len(x), DIMS, -1).permute(0, 2, 1))
    of_child = [
        torch.stack([u[:, i] @ w_ij for w_ij in w_i], 1) for i, w_i in enumerate(w["digits.weight"])
    ]
    u_hat = torch.stack(of_child, 1)  # [batch, in, out, out_dim]
    b = torch.zeros(u_hat.shape[:3], dtype=x.dtype)
    for _ in range(3):
        c = b.exp() / b.exp().sum(1, keepdim=True)
        v = squash((c[..., None] * u_hat).sum(1))
        b = b + (v[:, None] * u_hat).sum(-1)
    length = torch.sqrt((v * v).sum(-1))
    chosen = torch.eye(CLASSES, dtype=x.dtype)[(v * v).sum(-1).argmax(-1)]
    drawn = decode(w, (v * chosen[:, :, None]).reshape(len(x), -1)).view(x.shape)
    t = torch.eye(CLASSES, dtype=x.dtype)[y]
    terms = t * F.relu(0.9 - length) + 0.5 * (1 - t) * F.relu(length - 0.1)
    return length, drawn, terms.sum(-1).mean() + 0.0005 * F.mse_loss(drawn, x)


def labml(w: Weights, x: Tensor, y: Tensor) -> Computed:
    return labml_layers(w, (x - 0.1307) / 0.3081, y)


def adambielski(w: Weights, x: Tensor, y: Tensor) -> Computed:
    def squash(x: Tensor) -> Tensor:
        squared = x.pow(2).sum(dim=2)
        return x * (squared / (1 + squared) / squared.sqrt()).unsqueeze(2)

    maps = F.conv2d(first_maps(w, x), w["primary.conv.weight"], w["primary.conv.bias"], stride=2)
    n, _, height, width = maps.shape
    u = maps.view(n, TYPES, DIMS, height, width).permute(0, 1, 3, 4, 2).contiguous()
    u = squash(u.view(n, -1, DIMS))
    weight = w["digits.weight"].transpose(1, 2).flatten(2)  # [in, in_dim, out · out_dim]
    u_hat = (u.unsqueeze(2) @ weight).view(n, u.shape[1], CLASSES, -1)
    v = squash((torch.softmax(w["digits.prior"], 1).unsqueeze(2) * u_hat).sum(dim=1))
    b = w["digits.prior"].expand(n, -1, -1)
    for _ in range(3):
        b = b + (u_hat * v.unsqueeze(1)).sum(-1)
        c = torch.softmax(b.reshape(-1, CLASSES), dim=1).view(n, -1, CLASSES, 1)
        v = squash((c * u_hat).sum(dim=1))
    length = v.pow(2).sum(dim=2).sqrt()
    mask = torch.zeros(n, CLASSES, dtype=x.dtype).scatter_(1, y.view(-1, 1), 1.0)
    drawn = decode(w, (v * mask.unsqueeze(2)).view(n, -1))
    losses = mask * F.relu(0.9 - length).pow(2) + 0.5 * (1 - mask) * F.relu(length - 0.1).pow(2)
    return length, drawn, losses.mean() + 0.0005 * F.mse_loss(drawn, x.view(n, -1))


def with_classes_first(w: Weights, x: Tensor) -> Tensor:
    """Capsules of the classes [batch, classes, dim], as two projects share the code."""

    def squash(t: Tensor) -> Tensor:
        squared = (t**2).sum(dim=-1, keepdim=True)
        return squared / (1 + squared) * t / torch.sqrt(squared)

    weight, bias = by_dims(w)
    features = first_maps(w, x)
    units = [
        F.conv2d(features, k, b, stride=2).view(len(x), -1, 1)
        for k, b in zip(weight.split(TYPES), bias.split(TYPES), strict=True)
    ]
    u = squash(torch.cat(units, dim=-1))
    weight = w["digits.weight"].transpose(0, 1)  # [out, in, in_dim, out_dim]
    u_hat = u[None, :, :, None, :] @ weight[:, None]  # [out, batch, in, 1, out_dim]
    b = torch.zeros_like(u_hat)
    for left in (2, 1, 0):
        c = torch.softmax(b, dim=2)
        v = squash((c * u_hat).sum(dim=2, keepdim=True))
        if left:
            b = b + (u_hat * v).sum(dim=-1, keepdim=True)
    return v.squeeze().transpose(0, 1)


def cezannec(w: Weights, x: Tensor, y: Tensor) -> Computed:
    v = with_classes_first(w, x)
    length = torch.sqrt((v**2).sum(dim=2))
    longest = torch.softmax((v**2).sum(dim=-1) ** 0.5, dim=-1).max(dim=1)[1]
    chosen = torch.eye(CLASSES, dtype=x.dtype).index_select(0, longest)
    drawn = decode(w, (v * chosen[:, :, None]).reshape(len(x), -1))
    t = torch.eye(CLASSES, dtype=x.dtype).index_select(0, y)
    margin = (t * F.relu(0.9 - length) + 0.5 * (1 - t) * F.relu(length - 0.1)).sum()
    squares = ((drawn - x.view(len(x), -1)) ** 2).sum()
    return length, drawn, (margin + 0.0005 * squares) / len(x)


TRANSCRIPTIONS: dict[str, Callable[[Weights, Tensor, Tensor], Computed]] = {
    "labml": labml,
    "labml-notebook": labml_layers,
    "adambielski": adambielski,
    "cezannec": cezannec,
}


def example(name: str) -> tuple[WildCapsNet, Tensor, Tensor]:
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
    model, images, labels = example(name)
    weights = dict(model.named_parameters())
    loss = WildLoss(model)(images, labels)
    out = model(images, labels)
    lengths, drawn, expected = TRANSCRIPTIONS[name](weights, images, labels)
    assert_close("lengths", out.lengths, lengths)
    assert_close("reconstruction", out.reconstruction, drawn.view_as(images))
    assert_close("loss", loss, expected)
    # A capsule on both sides of both margins, or a part of the loss were not looked at.
    assert lengths.max() > 0.1 and lengths.min() < 0.9
    parameters = [p for p in weights.values() if p.requires_grad]
    ours = torch.autograd.grad(loss, parameters)
    theirs = torch.autograd.grad(expected, parameters)
    for part, a, b in zip(weights, ours, theirs, strict=True):
        assert b.norm() > 0
        assert_close(part, a, b)


def test_all_are_transcribed() -> None:
    assert list(IMPLEMENTATIONS) == ["paper", *TRANSCRIPTIONS]


def test_the_paper_is_ours_to_the_bit() -> None:
    torch.manual_seed(0)
    ours = CapsNet(**SMALL)
    torch.manual_seed(0)
    wild = IMPLEMENTATIONS["paper"].make(**SMALL)
    images, labels = torch.rand(BATCH, 1, 28, 28), torch.arange(BATCH) % CLASSES
    losses = [
        TrainingLoss(ours, RECONSTRUCTION_WEIGHT, "fp32")(images, labels),
        WildLoss(wild)(images, labels),
    ]
    assert torch.equal(*losses)
    for loss in losses:
        loss.backward()
    for one, other in zip(ours.parameters(), wild.parameters(), strict=True):
        assert torch.equal(one, other) and torch.equal(one.grad, other.grad)
    with torch.no_grad():
        for one, other in zip(ours(images), wild(images), strict=True):
            assert torch.equal(one, other)
