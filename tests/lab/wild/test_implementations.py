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
from capsnet.data import ImageSet
from capsnet.training import TrainingConfig
from capsnet.training.loss import TrainingLoss
from capsnet_lab.wild import IMPLEMENTATIONS, WildCapsNet, WildLoss
from helpers.tiny import some_digits

Weights = dict[str, Tensor]
Computed = tuple[Tensor, Tensor | None, Tensor]
CLASSES, DIMS, TYPES = 5, 8, 3
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


def paper(w: Weights, x: Tensor, y: Tensor) -> Computed:
    """Sections 2 to 4 and Procedure 1, a capsule at a time."""

    def squash(s: Tensor) -> Tensor:  # eq. 1, of one capsule of each image
        length = (s * s).sum(dim=1, keepdim=True).sqrt()
        return length * length / (1 + length * length) * s / length

    maps = F.conv2d(first_maps(w, x), w["primary.conv.weight"], w["primary.conv.bias"], stride=2)
    blocks = maps.split(DIMS, dim=1)  # a type each
    places = [(i, j) for i in range(maps.shape[2]) for j in range(maps.shape[3])]
    u = [squash(of_type[:, :, i, j]) for of_type in blocks for i, j in places]
    u_hat = [[u_i @ w_ij for w_ij in w_i] for u_i, w_i in zip(u, w["digits.weight"], strict=True)]
    b = torch.zeros(len(x), len(u), CLASSES, dtype=x.dtype)
    for _ in range(3):
        c = b.exp() / b.exp().sum(dim=2, keepdim=True)  # eq. 3
        v = []
        for j in range(CLASSES):
            s_j = sum(c[:, i, j, None] * u_hat[i][j] for i in range(len(u)))  # eq. 2
            assert isinstance(s_j, Tensor)
            v.append(squash(s_j))
        agreements = [[(of[j] * v[j]).sum(dim=1) for j in range(CLASSES)] for of in u_hat]
        b = b + torch.stack([torch.stack(of_child, dim=1) for of_child in agreements], dim=1)
    length = torch.stack([(v_j * v_j).sum(dim=1).sqrt() for v_j in v], dim=1)
    t = torch.eye(CLASSES, dtype=x.dtype)[y]
    terms = t * (0.9 - length).clamp(min=0) ** 2 + 0.5 * (1 - t) * (length - 0.1).clamp(min=0) ** 2
    drawn = decode(w, torch.cat([t[:, j : j + 1] * v[j] for j in range(CLASSES)], dim=1))
    missed = ((drawn - x.flatten(1)) ** 2).sum(dim=1)
    return length, drawn, (terms.sum(dim=1) + 0.0005 * missed).mean()  # eq. 4, section 4.1


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


def one_hot(y: Tensor) -> Tensor:
    return torch.eye(CLASSES, dtype=torch.float64).index_select(0, y)


def xifengguo(w: Weights, x: Tensor, y: Tensor) -> Computed:
    def squash(t: Tensor) -> Tensor:
        norm = torch.norm(t, p=2, dim=-1, keepdim=True)
        return norm**2 / (1 + norm**2) / (norm + 1e-8) * t

    maps = F.conv2d(first_maps(w, x), w["primary.conv.weight"], w["primary.conv.bias"], stride=2)
    u = squash(maps.view(len(x), -1, DIMS))
    weight = w["digits.weight"].permute(1, 0, 3, 2)  # [out, in, out_dim, in_dim]
    u_hat = torch.matmul(weight, u[:, None, :, :, None]).squeeze(-1)
    fixed = u_hat.detach()
    b = torch.zeros(u_hat.shape[:3], dtype=x.dtype)
    for _ in range(2):
        v = squash((torch.softmax(b, dim=1)[..., None] * fixed).sum(dim=-2, keepdim=True))
        b = b + (v * fixed).sum(dim=-1)
    v = squash((torch.softmax(b, dim=1)[..., None] * u_hat).sum(dim=-2))
    length, t = v.norm(dim=-1), one_hot(y)
    drawn = decode(w, (v * t[:, :, None]).view(len(x), -1)).view(x.shape)
    terms = t * (0.9 - length).clamp(min=0) ** 2 + 0.5 * (1 - t) * (length - 0.1).clamp(min=0) ** 2
    return length, drawn, terms.sum(dim=1).mean() + 0.0005 * 784 * F.mse_loss(drawn, x)


def jindongwang(w: Weights, x: Tensor, y: Tensor) -> Computed:
    def squash(t: Tensor) -> Tensor:
        squared = (t**2).sum(-1, keepdim=True)
        return squared * t / ((1.0 + squared) * torch.sqrt(squared))

    x, n = (x - 0.1307) / 0.3081, len(x)
    features = first_maps(w, x)
    blocks = zip(
        w["primary.conv.weight"].split(TYPES), w["primary.conv.bias"].split(TYPES), strict=True
    )
    u = torch.stack([F.conv2d(features, k, b, stride=2) for k, b in blocks], dim=1)
    u = squash(u.view(n, u[0].numel() // DIMS, -1))
    u = torch.stack([u] * CLASSES, dim=2).unsqueeze(4)
    weight = torch.cat([w["digits.weight"].transpose(2, 3)[None]] * n)
    u_hat = weight @ u  # [batch, in, out, out_dim, 1]
    b = torch.zeros(1, u.shape[1], CLASSES, 1, dtype=x.dtype)
    for left in (2, 1, 0):
        c = torch.cat([torch.softmax(b, dim=1)] * n).unsqueeze(4)
        v = squash((c * u_hat).sum(dim=1, keepdim=True))  # the last dimension is of one number
        if left:
            agreed = u_hat.transpose(3, 4) @ torch.cat([v] * u.shape[1], dim=1)
            b = b + agreed.squeeze(4).mean(dim=0, keepdim=True)
    v = v.squeeze(1)
    length = torch.sqrt((v**2).sum(dim=2, keepdim=True))
    leading = torch.softmax(torch.sqrt((v**2).sum(2)), dim=0).max(dim=1)[1].squeeze(1)
    drawn = decode(w, (v * one_hot(leading)[:, :, None, None]).view(n, -1))
    left, right = F.relu(0.9 - length).view(n, -1), F.relu(length - 0.1).view(n, -1)
    margin = (one_hot(y) * left + 0.5 * (1.0 - one_hot(y)) * right).sum(dim=1).mean()
    return length.view(n, -1), drawn, margin + F.mse_loss(drawn, x.view(n, -1)) * 0.0005


def gram_ai(w: Weights, x: Tensor, y: Tensor) -> Computed:
    v, t = with_classes_first(w, x), one_hot(y)
    classes = torch.softmax((v**2).sum(dim=-1) ** 0.5, dim=-1)
    drawn = decode(w, (v * t[:, :, None]).reshape(len(x), -1))
    margin = t * F.relu(0.9 - classes) ** 2 + 0.5 * (1.0 - t) * F.relu(classes - 0.1) ** 2
    squares = ((drawn - x.view(len(x), -1)) ** 2).sum()
    return classes, drawn, (margin.sum() + 0.0005 * squares) / len(x)


def released_capsules(w: Weights, x: Tensor, leaky: bool) -> Tensor:
    def squash(t: Tensor) -> Tensor:
        norm = torch.norm(t, dim=2, keepdim=True)
        return (t / norm) * (norm * norm / (1 + norm * norm))

    def route(logits: Tensor) -> Tensor:
        if not leaky:
            return torch.softmax(logits, dim=2)
        leak = torch.zeros_like(logits).sum(dim=2, keepdim=True)
        return torch.softmax(torch.cat([leak, logits], dim=2), dim=2)[:, :, 1:]

    n = len(x)
    maps = F.conv2d(F.pad(x, (4, 4, 4, 4)) if leaky else x, w["conv.weight"], w["conv.bias"])
    maps = F.pad(F.relu(maps), (3, 4, 3, 4)) if leaky else F.relu(maps)
    votes = F.conv2d(maps, w["primary.conv.weight"], stride=2)
    height, width = votes.shape[2:]
    votes = votes.view(n, 1, TYPES, DIMS, height, width)
    shares = route(torch.zeros(n, 1, TYPES, height, width, dtype=x.dtype)).unsqueeze(3)
    biases = w["primary.conv.bias"].view(TYPES, DIMS, 1, 1)
    u = squash((shares * votes).sum(dim=1) + biases)
    u = u.permute(0, 1, 3, 4, 2).reshape(n, -1, DIMS)
    weight = w["digits.weight"].transpose(1, 2).flatten(2)  # [in, in_dim, out · out_dim]
    votes = (u.unsqueeze(3) * weight).sum(dim=2).view(n, u.shape[1], CLASSES, -1)
    logits = torch.zeros(n, u.shape[1], CLASSES, dtype=x.dtype)
    for _ in range(3):
        v = squash((route(logits).unsqueeze(3) * votes).sum(dim=1) + w["bias"])
        logits = logits + (votes * v.unsqueeze(1)).sum(dim=3)
    return v


def released_margin(length: Tensor, t: Tensor) -> Tensor:
    logits = length - 0.5
    positive = t * (logits < 0.4) * (logits - 0.4) ** 2
    negative = (1 - t) * (logits > -0.4) * (logits + 0.4) ** 2
    return (0.5 * positive + 0.5 * 0.5 * negative).mean()


def sarasra(w: Weights, x: Tensor, y: Tensor) -> Computed:
    v = released_capsules(w, x, leaky=False)
    length = v.norm(dim=-1)
    drawn = decode(w, (v * one_hot(y).unsqueeze(-1)).flatten(1))
    squares = ((drawn - x.flatten(1)) ** 2).sum(dim=-1).mean()
    return length, drawn, released_margin(length, one_hot(y)) + 0.0005 * squares


def sarasra_cifar10(w: Weights, x: Tensor, y: Tensor) -> Computed:
    flat = x.flatten(1)
    deviation = flat.var(dim=1, correction=0, keepdim=True).sqrt()
    flat = (flat - flat.mean(dim=1, keepdim=True)) / deviation
    length = released_capsules(w, flat.view(x.shape), leaky=True).norm(dim=-1)
    return length, None, released_margin(length, one_hot(y))


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


def timomernick(w: Weights, x: Tensor, y: Tensor) -> Computed:
    def squash(t: Tensor) -> Tensor:
        squared = torch.sum(t**2, dim=2, keepdim=True)
        return (squared / (1.0 + squared)) * (t / torch.sqrt(squared))

    x, n = (x - 0.1307) / 0.3081, len(x)
    weight, bias = by_dims(w)
    features = first_maps(w, x)
    units = [
        F.conv2d(features, k, b, stride=2)
        for k, b in zip(weight.split(TYPES), bias.split(TYPES), strict=True)
    ]
    u = squash(torch.stack(units, dim=1).view(n, DIMS, -1)).transpose(1, 2)
    u = torch.stack([u] * CLASSES, dim=2).unsqueeze(4)
    u_hat = torch.cat([w["digits.weight"].transpose(2, 3)[None]] * n) @ u
    b = torch.zeros(1, u.shape[1], CLASSES, 1, dtype=x.dtype)
    for _ in range(3):
        c = torch.cat([torch.softmax(b, dim=1)] * n).unsqueeze(4)
        v = squash((c * u_hat).sum(dim=1, keepdim=True))  # dimension 2 is that of the classes
        agreed = u_hat.transpose(3, 4) @ torch.cat([v] * u.shape[1], dim=1)
        b = b + agreed.squeeze(4).mean(dim=0, keepdim=True)
    v = v.squeeze(1).squeeze(-1)
    length = torch.sqrt((v**2).sum(dim=2))
    kept = torch.zeros_like(v)
    for image, longest in enumerate(length.max(dim=1)[1]):
        kept[image, longest] = v[image, longest]
    drawn = decode(w, kept.view(n, -1)).view(x.shape)
    left, right = (0.9 - length).clamp(min=0) ** 2, (length - 0.1).clamp(min=0) ** 2
    margin = (one_hot(y) * left + 0.5 * (1.0 - one_hot(y)) * right).sum(dim=1).mean()
    return length, drawn, margin + (((drawn - x).view(n, -1) ** 2).sum(dim=1) * 0.0005).mean()


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
    "paper": paper,
    "labml": labml,
    "labml-notebook": labml_layers,
    "adambielski": adambielski,
    "cezannec": cezannec,
    "xifengguo": xifengguo,
    "jindongwang": jindongwang,
    "gram-ai": gram_ai,
    "sarasra": sarasra,
    "sarasra-cifar10": sarasra_cifar10,
    "naturomics": naturomics,
    "timomernick": timomernick,
    "geron": geron,
}


def example(name: str) -> tuple[WildCapsNet, Tensor, Tensor]:
    """A small network in float64 with capsules of all lengths, and a batch."""
    torch.manual_seed(0)
    model = IMPLEMENTATIONS[name].make(**SMALL, hidden=(9, 11)).double()
    images = torch.rand(BATCH, *model.config["image_shape"], dtype=torch.float64)
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
    if drawn is None:
        assert out.reconstruction is None
    else:
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
    assert list(IMPLEMENTATIONS) == list(TRANSCRIPTIONS)


def test_the_paper_is_ours_to_the_bit() -> None:
    torch.manual_seed(0)
    ours = CapsNet(**SMALL)
    torch.manual_seed(0)
    wild = IMPLEMENTATIONS["paper"].make(**SMALL)
    images, labels = torch.rand(BATCH, 1, 28, 28), torch.arange(BATCH) % CLASSES
    losses = [
        TrainingLoss(ours)(images, labels),
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


@pytest.mark.parametrize(
    ("name", "epochs", "batch_size", "learning_rate", "schedule", "shift"),
    [
        ("paper", 640, 128, 1e-3, "exponential", 2),
        ("labml", 10, 64, 1e-3, "constant", 0),
        ("labml-notebook", 5, 16, 1e-4, "constant", 0),
        ("adambielski", 250, 128, 1e-3, "plateau", 2),
        ("cezannec", 3, 20, 1e-3, "constant", 0),
        ("xifengguo", 50, 100, 1e-3, "by-epoch", 2),
        ("jindongwang", 30, 100, 1e-3, "constant", 0),
        ("gram-ai", 500, 100, 1e-3, "constant", 2),
        ("sarasra", 640, 128, 1e-3, "exponential", 2),
        ("sarasra-cifar10", 1536, 128, 1e-3, "exponential", 0),
        ("naturomics", 50, 128, 1e-3, "constant", 0),
        ("geron", 10, 50, 1e-3, "constant", 0),
        ("timomernick", 10, 128, 1e-2, "constant", 0),
    ],
)
def test_recipes_are_the_published_ones(
    name: str, epochs: int, batch_size: int, learning_rate: float, schedule: str, shift: int
) -> None:
    config = TrainingConfig(**IMPLEMENTATIONS[name].recipe)
    published = epochs, batch_size, learning_rate, schedule, shift
    ours = config.epochs, config.batch_size, config.learning_rate, config.schedule, config.shift
    assert ours == published
    assert config.shuffle == (name != "cezannec")
    assert config.fresh_adam == (name == "timomernick")
    assert (config.average, config.precision) == (0.0, "fp32")


def test_one_shift_for_all_moves_a_batch_as_one() -> None:
    draw, digits = IMPLEMENTATIONS["gram-ai"].draw, some_digits(20)
    same = ImageSet(digits.images[:1].expand(20, -1, -1, -1), digits.labels, digits.classes, "one")
    generator, seen = torch.Generator().manual_seed(0), []
    for _ in range(8):
        images, _ = draw(same, torch.arange(20), 2, generator)
        assert torch.equal(images, images[:1].expand(20, -1, -1, -1))
        seen.append(images[0])
    assert len(torch.stack(seen).unique(dim=0)) > 4
