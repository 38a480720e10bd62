"""The networks to compare ours with: the paper's CNNs, ours with other coupling coefficients, and
ours whose primary capsules a loss keeps short.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from capsnet.functional import margin_loss, squash
from capsnet.layers import Decoder
from capsnet.model import CapsNet, CapsNetOutput
from capsnet.training.loss import Criterion, TrainingLoss
from capsnet_book.play.cnn import PlainCNN
from capsnet_lab.routings import EfficientCapsNet, RoutedCapsNet, spread_loss
from capsnet_lab.wild import WildCapsNet, WildLoss
from capsnet_lab.wild.fast_wild_capsnet import FastWildCapsNet
from capsnet_lab.wild.parts import normal, over_parents


class CNN(nn.Module):
    """The paper's baselines: convolutions that keep the image's size, then hidden layers.

    The defaults make the baseline of section 5. Only convolutions that keep the size of the image
    give the 35.4 million parameters that the paper names. The paper says no more than "dropout";
    here half of the last hidden layer is dropped. ``pool`` halves height and width after each
    convolution. Where ``strides`` are given, the convolutions move by them and are not padded.
    Images [batch, *image_shape] → logits as ``lengths``, [batch, num_classes], and as
    capsules with one component; there is no reconstruction.
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
        strides: tuple[int, ...] = (),
    ) -> None:
        super().__init__()
        sizes = {"channels": list(channels), "kernels": list(kernels), "hidden": list(hidden)}
        shape = {"image_shape": list(image_shape), "num_classes": num_classes}
        self.config: dict[str, Any] = {**shape, **sizes, "pool": pool, "dropout": dropout}
        self.config["strides"] = list(strides)
        inputs, height, width = image_shape
        layers: list[nn.Module] = []
        for n, (outputs, side) in enumerate(zip(channels, kernels, strict=True)):
            if strides:
                layers.append(nn.Conv2d(inputs, outputs, side, strides[n]))
                height, width = ((size - side) // strides[n] + 1 for size in (height, width))
            else:
                layers.append(nn.Conv2d(inputs, outputs, side, padding=side // 2))
            if pool:
                layers.append(nn.MaxPool2d(2))
                height, width = height // 2, width // 2
            layers.append(nn.ReLU())  # after pooling: the largest stays the largest
            inputs = outputs
        layers.append(nn.Flatten())
        inputs *= height * width
        for outputs in hidden:
            layers += [nn.Linear(inputs, outputs), nn.ReLU()]
            inputs = outputs
        self.layers = nn.Sequential(*layers, nn.Dropout(dropout), nn.Linear(inputs, num_classes))

    def forward(self, images: Tensor, labels: Tensor | None = None) -> CapsNetOutput:
        logits = self.layers(images)
        return CapsNetOutput(capsules=logits.unsqueeze(2), lengths=logits, reconstruction=None)


class ReconstructingCNN(CNN):
    """The paper's loss without its capsules: a CNN whose last layer's outputs, in groups of
    ``capsule_dim`` for each class, are squashed and read out as capsules, with a decoder.
    """

    def __init__(
        self,
        image_shape: tuple[int, int, int] = (1, 28, 28),
        num_classes: int = 10,
        capsule_dim: int = 16,
        **options: Any,
    ) -> None:
        super().__init__(image_shape, num_classes * capsule_dim, **options)
        self.config |= {"num_classes": num_classes, "capsule_dim": capsule_dim}
        self.num_classes, self.capsule_dim = num_classes, capsule_dim
        self.decoder = Decoder(num_classes, capsule_dim, image_shape)

    def forward(self, images: Tensor, labels: Tensor | None = None) -> CapsNetOutput:
        capsules = self.layers(images).unflatten(1, (-1, self.capsule_dim))
        return CapsNet.read_out(cast(CapsNet, self), squash(capsules), labels)


def capsnet_with_w(std: float, *args: Any, **options: Any) -> CapsNet:
    """The paper's network, whose W starts as a normal of this standard deviation."""
    model = CapsNet(*args, **options)
    normal(std)(model.digits.weight)
    return model


def without_competition(logits: Tensor) -> Tensor:
    """Coupling coefficients that begin equal and grow with a child's agreement with one parent,
    whatever its agreement with the others.
    """
    return logits.exp() / logits.shape[2]


GAIN = 4.0  # a little less than three iterations do to s_j of the true digit, once trained


def amplified_softmax(logits: Tensor) -> Tensor:
    """The softmax's coupling coefficients times :data:`GAIN`, as if the votes were longer."""
    return GAIN * over_parents(logits)


def with_coupling(
    coupling: Callable[[Tensor], Tensor],
    *args: Any,
    same_start: bool = False,
    **options: Any,
) -> WildCapsNet:
    """The paper's network with coupling coefficients c_ij(b_ij) other than a softmax's.

    With ``same_start`` W starts :data:`GAIN` times as small, so that with :func:`amplified_softmax`
    votes are as long as usual at first.
    """
    model = WildCapsNet(*args, **options)
    model.parts = dataclasses.replace(model.parts, share=coupling)
    if same_start:
        with torch.no_grad():
            model.digits.weight.div_(GAIN)
    return model


class FastReportingCapsNet(FastWildCapsNet):
    """Keeps the primary capsules of its last call, as ``last_children``."""

    def class_capsules(self, children: Tensor) -> Tensor:
        self.last_children = children
        return super().class_capsules(children)


class ReportingCapsNet(WildCapsNet):
    """Our network, whose primary capsules a loss may ask for."""

    fast_arrangement = FastReportingCapsNet


class PenalisedLoss(WildLoss):
    """:class:`WildLoss` plus 0.1 times the mean squared length of the primary capsules."""

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        loss = super().forward(images, labels)
        children = cast(Tensor, self.model.last_children)
        return loss + 0.1 * children.float().square().sum(dim=2).mean()


class DecayedLoss(WildLoss):
    """:class:`WildLoss` plus 0.0005 times the sum of all squared weights."""

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        squares = [weight.square().sum() for weight in self.model.parameters()]
        return super().forward(images, labels) + 0.5e-3 * torch.stack(squares).sum()


def presence_loss(logits: Tensor, present: Tensor) -> Tensor:
    """Binary cross-entropy of each class: is it present?"""
    return F.binary_cross_entropy_with_logits(logits, present.to(logits.dtype))


class Kind(NamedTuple):
    """How a network is made and trained."""

    make: Callable[..., nn.Module]
    criterion: Criterion = margin_loss
    arrangement: str = "auto"
    make_loss: type[TrainingLoss] | None = None  # in place of the task's


def cnn(criterion: Criterion = F.cross_entropy, **options: Any) -> Kind:
    return Kind(functools.partial(CNN, **options), criterion, "plain")


def reconstructing_cnn(**options: Any) -> Kind:
    return Kind(functools.partial(ReconstructingCNN, **options), arrangement="plain")


def coupled(coupling: Callable[[Tensor], Tensor], **options: Any) -> Kind:
    return Kind(functools.partial(with_coupling, coupling), **options)


# With pooling and dropout, of which the paper says no more.
POOLED: dict[str, Any] = {"channels": (64, 128), "kernels": (5, 5), "pool": True, "hidden": (1024,)}
KINDS = {
    "capsnet": Kind(CapsNet),
    # For tasks with a loss of their own.
    "capsnet-small-w": Kind(functools.partial(capsnet_with_w, 0.01)),
    # As a stack's first layer starts.
    "capsnet-stack-w": Kind(functools.partial(capsnet_with_w, 0.24)),
    "wild": Kind(WildCapsNet, make_loss=WildLoss),
    "routed": Kind(RoutedCapsNet),
    "routed-em": Kind(RoutedCapsNet, spread_loss),
    "efficient": Kind(EfficientCapsNet, arrangement="plain"),
    "uncontested": coupled(without_competition, make_loss=WildLoss),
    "amplified": coupled(amplified_softmax, make_loss=WildLoss),
    "amplified-pairs": coupled(amplified_softmax),  # with the task's loss
    "penalised": Kind(ReportingCapsNet, arrangement="fast", make_loss=PenalisedLoss),
    "decayed": Kind(WildCapsNet, make_loss=DecayedLoss),
    "cnn": cnn(),
    # As many parameters as the capsule network without its decoder.
    "cnn-small": cnn(channels=(64, 64, 32), hidden=(256, 128)),
    # On 40 × 40 pixels as many as the capsule network with its decoder, on 28 × 28 as without.
    "cnn-pooled": cnn(**POOLED),
    "cnn-page": Kind(PlainCNN, F.cross_entropy, "plain"),  # the front page's
    # On 28 × 28 pixels as many as the capsule network with its decoder.
    "cnn-drawing": reconstructing_cnn(**POOLED),
    # The paper's network with a dense layer in place of primary capsules, votes and routing.
    "cnn-dense": reconstructing_cnn(
        channels=(256, 256), kernels=(9, 9), strides=(1, 2), hidden=(), dropout=0.0
    ),
    # The paper's baseline for two overlapping digits (section 6), of 24.56 million parameters.
    "cnn-pairs": cnn(
        presence_loss, channels=(512, 256), kernels=(9, 5), pool=True, hidden=(1024,), dropout=0.0
    ),
}
