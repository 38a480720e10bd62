"""The networks to compare ours with: the paper's CNNs, and ours with the released code's ways."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from capsnet.functional import RoutingStep, margin_loss, squash
from capsnet.layers import channels_to_capsules
from capsnet.model import CapsNet, CapsNetOutput
from capsnet.training.loss import Criterion


class BaselineCNN(nn.Module):
    """The paper's baseline (section 5): three convolutions and two hidden layers.

    Its convolutions keep the size of the image: only so has it the 35.4 million parameters that
    the paper names. Where the paper says no more than "dropout", half of the last hidden layer is
    dropped.

    Args:
        image_shape: [channels, height, width].
        num_classes: classes.
        channels: of the three convolutions, 5 × 5 each.
        hidden: of the two hidden layers.

    Shape:
        images [batch, *image_shape] → logits as ``lengths``, [batch, num_classes]; there are no
        capsules and no reconstruction.
    """

    def __init__(
        self,
        image_shape: tuple[int, int, int] = (1, 28, 28),
        num_classes: int = 10,
        channels: tuple[int, int, int] = (256, 256, 128),
        hidden: tuple[int, int] = (328, 192),
    ) -> None:
        super().__init__()
        self.config: dict[str, Any] = {
            "image_shape": list(image_shape),
            "num_classes": num_classes,
            "channels": list(channels),
            "hidden": list(hidden),
        }
        colours, height, width = image_shape
        self.features = nn.Sequential()
        for before, after in zip((colours, *channels), channels, strict=False):
            self.features += nn.Sequential(nn.Conv2d(before, after, 5, padding=2), nn.ReLU())
        self.classifier = nn.Sequential(
            nn.Flatten(),
            nn.Linear(channels[-1] * height * width, hidden[0]),
            nn.ReLU(),
            nn.Linear(hidden[0], hidden[1]),
            nn.ReLU(),
            nn.Dropout(0.5),
            nn.Linear(hidden[1], num_classes),
        )

    def forward(self, images: Tensor, labels: Tensor | None = None) -> CapsNetOutput:
        return output_of(self.classifier(self.features(images)))


class PooledCNN(nn.Module):
    """Two convolutions that keep the image's size, each followed by pooling, and a hidden layer.

    With the options as they are it is the paper's baseline for two overlapping digits (section 6),
    of 24.56 million parameters.

    Args:
        image_shape: [channels, height, width].
        num_classes: classes.
        channels: of the two convolutions.
        kernels: their sides, odd.
        dropout: share of the hidden layer of 1024 that is dropped in training.

    Shape:
        as :class:`BaselineCNN`.
    """

    def __init__(
        self,
        image_shape: tuple[int, int, int] = (1, 36, 36),
        num_classes: int = 10,
        channels: tuple[int, int] = (512, 256),
        kernels: tuple[int, int] = (9, 5),
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.config: dict[str, Any] = {
            "image_shape": list(image_shape),
            "num_classes": num_classes,
            "channels": list(channels),
            "kernels": list(kernels),
            "dropout": dropout,
        }
        colours, height, width = image_shape
        self.layers = nn.Sequential()
        for before, after, side in zip((colours, *channels), channels, kernels, strict=False):
            # ReLU after pooling, on a quarter of the numbers: the largest stays the largest.
            self.layers += nn.Sequential(
                nn.Conv2d(before, after, side, padding=side // 2), nn.MaxPool2d(2), nn.ReLU()
            )
        self.layers += nn.Sequential(
            nn.Flatten(),
            nn.Linear(channels[-1] * (height // 4) * (width // 4), 1024),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(1024, num_classes),
        )

    def forward(self, images: Tensor, labels: Tensor | None = None) -> CapsNetOutput:
        return output_of(self.layers(images))


def output_of(logits: Tensor) -> CapsNetOutput:
    """Logits [batch, classes] in the place of lengths, as of capsules with one component."""
    return CapsNetOutput(capsules=logits.unsqueeze(2), lengths=logits, reconstruction=None)


class Variant(CapsNet):
    """The network with what the authors' released code does and the paper does not, or with a
    stopped gradient, as others have it.

    Args:
        released_primary: the primary capsules as the released code makes them: their kernels begin
            with a standard deviation of 0.1, a softmax of equal logits over the types divides what
            they give by the number of types, and a bias that begins at 0.1 is added. (The division
            alone, of PyTorch's kernels of 0.004, leaves nothing to learn from.)
        bias: a learned bias of the digit capsules' input, which starts at 0.1.
        detach: no gradient through the routing logits.
        others: those of :class:`CapsNet`.
    """

    def __init__(
        self,
        *args: Any,
        released_primary: bool = False,
        bias: bool = False,
        detach: bool = False,
        **others: Any,
    ) -> None:
        super().__init__(*args, **others)
        self.released_primary, self.detach = released_primary, detach
        if released_primary:
            assert self.primary.conv.bias is not None
            draw_truncated(self.primary.conv.weight, 0.1)
            nn.init.constant_(self.primary.conv.bias, 0.1)
        shape = self.digits.weight.shape[1::2]
        self.bias = nn.Parameter(torch.full(shape, 0.1)) if bias else None
        self.config |= {
            "released_primary": released_primary,
            "bias": bias,
            "detach": detach,
        }

    def encode(self, images: Tensor, trace: list[RoutingStep] | None = None) -> Tensor:
        self.check_images(images)
        features, conv = F.relu(self.conv(images)), self.primary.conv
        if self.released_primary:
            assert conv.bias is not None
            types = conv.out_channels // self.primary.capsule_dim
            maps = F.conv2d(features, conv.weight, stride=conv.stride) / types
            maps = maps + conv.bias.view(-1, 1, 1)
        else:
            maps = conv(features)
        u = squash(channels_to_capsules(maps, self.primary.capsule_dim))
        u_hat = self.digits.predict(u)
        to_agree = u_hat.detach() if self.detach else u_hat
        prior = self.digits.prior
        b = u_hat.new_zeros(u_hat.shape[1:3]) if prior is None else prior
        b = b.expand(len(u_hat), -1, -1)
        for iteration in range(1, self.digits.routing_iterations + 1):
            last = iteration == self.digits.routing_iterations
            votes = u_hat if last else to_agree
            c = F.softmax(b, dim=2)
            s = torch.einsum("nij,nijd->njd", c.to(votes.dtype), votes)
            if self.bias is not None:
                s = s + self.bias
            v = squash(s)
            if trace is not None:
                trace.append(RoutingStep(b, c, s, v))
            if not last:
                seen = v.detach() if self.detach else v
                b = b + torch.einsum("nijd,njd->nij", to_agree, seen)
        return v


def smaller_weights(*args: Any, **options: Any) -> CapsNet:
    """The paper's network, its W_ij drawn with a standard deviation of 0.01, not 0.1."""
    model = CapsNet(*args, **options)
    draw_truncated(model.digits.weight, 0.01)
    return model


def draw_truncated(weight: Tensor, std: float) -> None:
    """As TensorFlow's truncated normal: nothing beyond two standard deviations."""
    nn.init.trunc_normal_(weight, std=std, a=-2 * std, b=2 * std)


class Kind(NamedTuple):
    """How a network is made and trained."""

    make: Callable[..., nn.Module]
    criterion: Criterion = margin_loss
    arrangement: str = "auto"


def presence_loss(logits: Tensor, present: Tensor) -> Tensor:
    """Cross-entropy of each class by itself: is it there?"""
    return F.binary_cross_entropy_with_logits(logits, present.to(logits.dtype))


KINDS = {
    "capsnet": Kind(CapsNet),
    "variant": Kind(Variant, arrangement="plain"),
    "smaller-w": Kind(smaller_weights),
    "cnn": Kind(BaselineCNN, F.cross_entropy, "plain"),
    # As many parameters as the capsule network without its decoder.
    "cnn-small": Kind(
        functools.partial(BaselineCNN, channels=(64, 64, 32), hidden=(256, 128)),
        F.cross_entropy,
        "plain",
    ),
    # On 40 × 40 pixels as many as the capsule network with its decoder; with pooling and dropout,
    # of which the paper says no more.
    "cnn-pooled": Kind(
        functools.partial(PooledCNN, channels=(64, 128), kernels=(5, 5), dropout=0.5),
        F.cross_entropy,
        "plain",
    ),
    "cnn-pairs": Kind(PooledCNN, presence_loss, "plain"),
}
