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
from capsnet.routings import EfficientCapsNet, RoutedCapsNet, spread_loss
from capsnet.training.loss import Criterion, TrainingLoss
from capsnet.wild import WildCapsNet, WildLoss
from capsnet.wild.parts import truncated


class CNN(nn.Module):
    """The paper's baselines: convolutions that keep the image's size, then hidden layers.

    With the options as they are it is the baseline of section 5. Its convolutions keep the size of
    the image: only so has it the 35.4 million parameters that the paper names. Where the paper says
    no more than "dropout", half of the last hidden layer is dropped.

    Args:
        image_shape: [channels, height, width].
        num_classes: classes.
        channels: of the convolutions.
        kernels: their sides, odd.
        pool: halve height and width after each convolution.
        hidden: of the hidden layers.
        dropout: share of the last hidden layer that is dropped in training.

    Shape:
        images [batch, *image_shape] → logits as ``lengths``, [batch, num_classes], and as capsules
        with one component; there is no reconstruction.
    """

    def __init__(
        self,
        image_shape: tuple[int, int, int] = (1, 28, 28),
        num_classes: int = 10,
        channels: tuple[int, ...] = (256, 256, 128),
        kernels: tuple[int, ...] = (5, 5, 5),
        pool: bool = False,
        hidden: tuple[int, ...] = (328, 192),
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        self.config: dict[str, Any] = {
            "image_shape": list(image_shape),
            "num_classes": num_classes,
            "channels": list(channels),
            "kernels": list(kernels),
            "pool": pool,
            "hidden": list(hidden),
            "dropout": dropout,
        }
        before, height, width = image_shape
        layers: list[nn.Module] = []
        for after, side in zip(channels, kernels, strict=True):
            layers.append(nn.Conv2d(before, after, side, padding=side // 2))
            if pool:
                layers.append(nn.MaxPool2d(2))
                height, width = height // 2, width // 2
            layers.append(nn.ReLU())  # after pooling: the largest stays the largest
            before = after
        layers.append(nn.Flatten())
        before *= height * width
        for after in hidden:
            layers += [nn.Linear(before, after), nn.ReLU()]
            before = after
        self.layers = nn.Sequential(*layers, nn.Dropout(dropout), nn.Linear(before, num_classes))

    def forward(self, images: Tensor, labels: Tensor | None = None) -> CapsNetOutput:
        logits = self.layers(images)
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
            truncated(self.primary.conv.weight, 0.1)
            nn.init.constant_(self.primary.conv.bias, 0.1)
        shape = self.digits.weight.shape[1::2]
        self.bias = nn.Parameter(torch.full(shape, 0.1)) if bias else None
        self.config |= {"released_primary": released_primary, "bias": bias, "detach": detach}

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
        u_hat = self.digits.predict(squash(channels_to_capsules(maps, self.primary.capsule_dim)))
        # dynamic_routing, with a bias, and without a gradient through the agreements
        seen = u_hat.detach() if self.detach else u_hat
        b = u_hat.new_zeros(u_hat.shape[:3])
        if self.digits.prior is not None:
            b = b + self.digits.prior
        for left in reversed(range(self.digits.routing_iterations)):
            c = F.softmax(b, dim=2)
            s = torch.einsum("nij,nijd->njd", c.to(u_hat.dtype), seen if left else u_hat)
            if self.bias is not None:
                s = s + self.bias
            v = squash(s)
            if trace is not None:
                trace.append(RoutingStep(b, c, s, v))
            if left:
                b = b + torch.einsum("nijd,njd->nij", seen, v.detach() if self.detach else v)
        return v


def smaller_weights(*args: Any, **options: Any) -> CapsNet:
    """The paper's network, its W_ij drawn with a standard deviation of 0.01, not 0.1."""
    model = CapsNet(*args, **options)
    truncated(model.digits.weight, 0.01)
    return model


class Kind(NamedTuple):
    """How a network is made and trained."""

    make: Callable[..., nn.Module]
    criterion: Criterion = margin_loss
    arrangement: str = "auto"
    loss: type[TrainingLoss] | None = None  # in place of the task's


def presence_loss(logits: Tensor, present: Tensor) -> Tensor:
    """Cross-entropy of each class by itself: is it there?"""
    return F.binary_cross_entropy_with_logits(logits, present.to(logits.dtype))


KINDS = {
    "capsnet": Kind(CapsNet),
    "wild": Kind(WildCapsNet, loss=WildLoss),
    "routed": Kind(RoutedCapsNet),
    "routed-em": Kind(RoutedCapsNet, spread_loss),
    "efficient": Kind(EfficientCapsNet, arrangement="plain"),
    "variant": Kind(Variant, arrangement="plain"),
    "smaller-w": Kind(smaller_weights),
    "cnn": Kind(CNN, F.cross_entropy, "plain"),
    # As many parameters as the capsule network without its decoder.
    "cnn-small": Kind(
        functools.partial(CNN, channels=(64, 64, 32), hidden=(256, 128)), F.cross_entropy, "plain"
    ),
    # On 40 × 40 pixels as many as the capsule network with its decoder; with pooling and dropout,
    # of which the paper says no more.
    "cnn-pooled": Kind(
        functools.partial(CNN, channels=(64, 128), kernels=(5, 5), pool=True, hidden=(1024,)),
        F.cross_entropy,
        "plain",
    ),
    # The paper's baseline for two overlapping digits (section 6), of 24.56 million parameters.
    "cnn-pairs": Kind(
        functools.partial(
            CNN, channels=(512, 256), kernels=(9, 5), pool=True, hidden=(1024,), dropout=0.0
        ),
        presence_loss,
        "plain",
    ),
}
