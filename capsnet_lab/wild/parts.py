"""What a capsule network and its loss are made of: the paper's parts, and other people's."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from capsnet.checks import class_mask
from capsnet.fast.routing import Squash
from capsnet.functional import margin_loss, squash
from capsnet.layers import channels_to_capsules
from capsnet.model import CapsNet
from capsnet.training.loss import Criterion

Share = Callable[[Tensor], Tensor]  # b_ij → c_ij, both [n, in_capsules, out_capsules]
RELEASED_BIAS = 0.1  # initial value of every bias in the authors' released code


def unchanged(values: Tensor) -> Tensor:
    return values


def normalise_mnist(images: Tensor) -> Tensor:
    """MNIST's mean and standard deviation taken out."""
    return (images - 0.1307) / 0.3081


def neighbours_in_space(maps: Tensor, capsule_dim: int) -> Tensor:
    """The maps' numbers as they lie in memory, a row of a map at a time, cut into capsules."""
    return maps.reshape(maps.shape[0], -1, capsule_dim)


def bare_squash(s: Tensor, dim: int) -> Tensor:
    """Eq. 1 as it stands: 0 / 0 at s = 0."""
    squared = s.square().sum(dim, keepdim=True)
    return squared / (1 + squared) * s / squared.sqrt()


def guarded_squash(epsilon: float) -> Squash:
    """Eq. 1 with ε under the root."""

    def squash(s: Tensor, dim: int) -> Tensor:
        squared = s.square().sum(dim, keepdim=True)
        return squared / (1 + squared) * s / (squared + epsilon).sqrt()

    return squash


def squash_beside(epsilon: float) -> Squash:
    """Eq. 1 with ε beside the norm."""

    def squash(s: Tensor, dim: int) -> Tensor:
        norm = torch.linalg.vector_norm(s, dim=dim, keepdim=True)
        return norm.square() / (1 + norm.square()) / (norm + epsilon) * s

    return squash


def squash_capsules(s: Tensor, by: Squash, axis: int) -> Tensor:
    """Squash capsules [batch, capsules, dim]; axis 3 makes each number a capsule of its own."""
    return by(s.unsqueeze(3), axis).squeeze(3)


def guarded_lengths(epsilon: float) -> Callable[[Tensor], Tensor]:
    return lambda lengths: (lengths.square() + epsilon).sqrt()


def softmax_of_lengths(lengths: Tensor) -> Tensor:
    return F.softmax(lengths, dim=1)


def over_parents(logits: Tensor) -> Tensor:
    return F.softmax(logits, dim=2)


def over_children(logits: Tensor) -> Tensor:
    return F.softmax(logits, dim=1)


def leaky(logits: Tensor) -> Tensor:
    """A softmax with one more logit, of 0, whose share goes nowhere."""
    return F.softmax(F.pad(logits, (1, 0)), dim=2)[:, :, 1:]


def uniform(logits: Tensor) -> Tensor:
    return torch.full_like(logits, 1 / logits.shape[2])


def by_label(lengths: Tensor, labels: Tensor | None) -> Tensor | None:
    return labels


def by_prediction(lengths: Tensor, labels: Tensor | None) -> Tensor | None:
    return None


def by_softmax_over_batch(lengths: Tensor, labels: Tensor | None) -> Tensor | None:
    return F.softmax(lengths, dim=0).argmax(dim=1)


def unsquared_margin_loss(lengths: Tensor, targets: Tensor) -> Tensor:
    present = class_mask(targets, *lengths.shape).to(lengths.dtype)
    loss = present * F.relu(0.9 - lengths) + 0.5 * (1 - present) * F.relu(lengths - 0.1)
    return loss.sum(dim=1).mean()


def released_start(model: CapsNet) -> None:
    for name, parameter in model.named_parameters():
        if name.endswith(".bias"):
            nn.init.constant_(parameter, RELEASED_BIAS)
        elif not name.startswith("digits."):
            std = 0.05 if name == "conv.weight" else 0.1
            nn.init.trunc_normal_(parameter, std=std, a=-2 * std, b=2 * std)


def glorot_start(model: CapsNet) -> None:
    """TensorFlow's own, in which a bias without a start of its own is drawn as weights are."""
    for name, parameter in model.named_parameters():
        if name.endswith(".bias"):
            nn.init.zeros_(parameter)
        elif name == "bias":  # of shape [1, 1, classes, dim, 1] there
            bound = (6 / (len(parameter) * (parameter.shape[1] + 1))) ** 0.5
            nn.init.uniform_(parameter, -bound, bound)
        elif not name.startswith("digits."):
            nn.init.xavier_uniform_(parameter)


def normal(std: float) -> Callable[[Tensor], object]:
    return lambda weight: nn.init.normal_(weight, std=std)


def uniform_by_children(weight: Tensor) -> None:
    nn.init.uniform_(weight, -(len(weight) ** -0.5), len(weight) ** -0.5)


@dataclass(frozen=True)
class Parts:
    """Of a network, of its initial weights, and of its loss: by default the paper's."""

    prepare: Callable[[Tensor], Tensor] = unchanged  # images → input, and target of the decoder
    routed_to_types: bool = False  # one iteration of routing after the second convolution
    activation: Callable[[Tensor], Tensor] = unchanged  # of the second convolution
    group: Callable[[Tensor, int], Tensor] = channels_to_capsules
    squash: Squash = squash
    primary_axis: int = 2  # of [batch, in_capsules, in_dim, 1], along which lengths are computed
    digits_axis: int = 2  # of [batch, out_capsules, out_dim, 1], along which lengths are computed
    shared_w: bool = False  # by the positions of a type
    bias: bool = False  # learned, added to s_j
    share: Share = over_parents
    batch_logits: bool = False  # agreements are averaged over the batch
    stop_gradient: bool = False  # none through û but in the last iteration
    routing_iterations: int | None = None  # in place of the network's
    learn_prior: bool | None = None  # in place of the network's
    hidden: tuple[int, int] | None = None  # in place of the network's
    lengths: Callable[[Tensor], Tensor] = unchanged  # before they meet the margins
    mask: Callable[[Tensor, Tensor | None], Tensor | None] = by_label
    start_w: Callable[[Tensor], object] | None = None
    start: Callable[[CapsNet], object] | None = None  # of all parameters but W
    margin: Criterion = margin_loss
    margin_weight: float = 1.0
    mean_over_classes: bool = False  # in the margin loss, in place of their sum
    mean_over_pixels: bool = False  # in the reconstruction loss, in place of their sum
