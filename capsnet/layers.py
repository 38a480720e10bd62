"""The layers of the paper's network (section 4): primary capsules, routed capsules, decoder."""

from collections.abc import Sequence
from math import prod

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from capsnet.checks import as_image_shape, as_int, as_sizes, check_dtype, class_mask, require_bool
from capsnet.functional import RoutingStep, dynamic_routing, squash


def channels_to_capsules(maps: Tensor, capsule_dim: int) -> Tensor:
    """Neighbouring channels as vectors, [n, types · dim, h, w] → [n, types · h · w, dim].

    Raises:
        ValueError: ``maps`` is not 4-D, or its channels are not a multiple of ``capsule_dim``.
    """
    if maps.dim() != 4 or capsule_dim < 1 or maps.shape[1] % capsule_dim:
        raise ValueError(
            f"maps must be [batch, a multiple of capsule_dim = {capsule_dim}, height, width], got "
            f"shape {list(maps.shape)}"
        )
    maps = maps.unflatten(1, (-1, capsule_dim))  # [batch, types, dim, h, w]
    return maps.permute(0, 1, 3, 4, 2).flatten(1, 3)


def check_capsules(u: Tensor, count: int, dim: int, dtype: torch.dtype | None = None) -> None:
    """Raise ValueError if capsules are not [batch, count, dim], or not of the weights' dtype."""
    check_dtype("capsules", u, dtype)
    if u.shape[1:] != (count, dim):
        raise ValueError(f"capsules must be [batch, {count}, {dim}], got shape {list(u.shape)}")


class PrimaryCapsules(nn.Module):
    """A convolution whose channels are read as capsules, squashed (section 4).

    Every position of the output grid holds ``capsule_types`` capsules of ``capsule_dim`` numbers;
    neighbouring channels belong to one capsule.

    Args:
        in_channels: channels of the input feature map.
        capsule_types: kinds of capsule at each position (32 in the paper).
        capsule_dim: components of a capsule (8 in the paper).
        kernel_size: side of the square kernel in pixels.
        stride: step of the kernel in pixels.

    Shape:
        [batch, in_channels, height, width] → [batch, capsule_types · h · w, capsule_dim], where
        h = (height − kernel_size) // stride + 1, and w of the width. Capsules are ordered by type,
        then row, then column.

    Raises:
        ValueError: an argument is not an integer ≥ 1, or the features have other channels or
            another dtype than the weights, or are smaller than the kernel.
    """

    def __init__(
        self,
        in_channels: int,
        capsule_types: int = 32,
        capsule_dim: int = 8,
        kernel_size: int = 9,
        stride: int = 2,
    ) -> None:
        super().__init__()
        self.capsule_dim = as_int("capsule_dim", capsule_dim)
        channels = as_int("capsule_types", capsule_types) * self.capsule_dim
        in_channels = as_int("in_channels", in_channels)
        kernel_size, stride = as_int("kernel_size", kernel_size), as_int("stride", stride)
        self.conv = nn.Conv2d(in_channels, channels, kernel_size, stride)

    def forward(self, features: Tensor) -> Tensor:
        check_dtype("features", features, self.conv.weight.dtype)
        channels, (side, _) = self.conv.in_channels, self.conv.kernel_size
        if features.dim() != 4 or features.shape[1] != channels or min(features.shape[2:]) < side:
            raise ValueError(
                f"features must be [batch, {channels}, height, width] of at least {side} × {side}, "
                f"got shape {list(features.shape)}"
            )
        maps = self.conv(features)  # [batch, types · dim, h, w]
        return squash(channels_to_capsules(maps, self.capsule_dim))


class CapsuleLayer(nn.Module):
    """Capsules that are routed to by agreement (eq. 2 and Procedure 1); the paper's DigitCaps.

    Args:
        in_capsules: children i.
        in_dim: components of a child.
        out_capsules: parents j.
        out_dim: components of a parent.
        routing_iterations: r of Procedure 1, at least 1.
        learn_prior: learn the initial logits b_ij (they start at 0) instead of fixing them at 0.

    Attributes:
        weight: W_ij, [in_capsules, out_capsules, in_dim, out_dim].
        prior: b_ij, [in_capsules, out_capsules], or None.

    Shape:
        [batch, in_capsules, in_dim] → [batch, out_capsules, out_dim].

    Raises:
        ValueError: ``routing_iterations`` or one of the four sizes is not an integer ≥ 1,
            ``learn_prior`` is not a bool, or the children have another shape, or another dtype than
            the weights.
    """

    def __init__(
        self,
        in_capsules: int,
        in_dim: int,
        out_capsules: int,
        out_dim: int,
        routing_iterations: int = 3,
        learn_prior: bool = False,
    ) -> None:
        super().__init__()
        self.routing_iterations = as_int("routing_iterations", routing_iterations)
        in_capsules = as_int("in_capsules", in_capsules)
        in_dim = as_int("in_dim", in_dim)
        out_capsules = as_int("out_capsules", out_capsules)
        out_dim = as_int("out_dim", out_dim)
        require_bool("learn_prior", learn_prior)
        self.weight = nn.Parameter(torch.empty(in_capsules, out_capsules, in_dim, out_dim))
        self.prior = nn.Parameter(torch.zeros(in_capsules, out_capsules)) if learn_prior else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw W anew from a normal distribution, cut off at 2 σ.

        The paper does not say how W is initialised; its authors' released code has this σ of 0.1.
        """
        nn.init.trunc_normal_(self.weight, std=0.1, a=-0.2, b=0.2)
        if self.prior is not None:
            nn.init.zeros_(self.prior)

    def predict(self, u: Tensor) -> Tensor:
        """The predictions û_{j|i} = W_ij u_i (eq. 2).

        Args:
            u: u_i, the children, [batch, in_capsules, in_dim].

        Returns:
            û_{j|i}, [batch, in_capsules, out_capsules, out_dim].

        Raises:
            ValueError: ``u`` has another shape, or another dtype than the weights.
        """
        in_capsules, _, in_dim, _ = self.weight.shape
        check_capsules(u, in_capsules, in_dim, self.weight.dtype)
        return torch.einsum("nik,ijkd->nijd", u, self.weight)

    def forward(self, u: Tensor, trace: list[RoutingStep] | None = None) -> Tensor:
        return dynamic_routing(self.predict(u), self.routing_iterations, self.prior, trace)


class Decoder(nn.Module):
    """Reconstruct an image from the capsule of one class (section 4.1, Fig. 2).

    All other capsules are masked with zeros; three fully connected layers follow, with ReLU, ReLU
    and a sigmoid.

    Args:
        num_classes: capsules, one per class.
        capsule_dim: components of each.
        image_shape: [channels, height, width] of the reconstruction.
        hidden: units of the two hidden layers.

    Shape:
        capsules [batch, num_classes, capsule_dim] and classes, indices [batch] or a mask [batch,
        num_classes] that is 0 where a capsule is masked, → [batch, channels, height, width], in
        0 … 1.

    Raises:
        ValueError: one of the sizes is not an integer ≥ 1, the capsules have another shape, or
            another dtype than the weights, or the classes are refused by
            :func:`capsnet.checks.class_mask`.
    """

    def __init__(
        self,
        num_classes: int,
        capsule_dim: int,
        image_shape: Sequence[int],
        hidden: Sequence[int] = (512, 1024),
    ) -> None:
        super().__init__()
        first, second = as_sizes("hidden", hidden, 2, "the units of two layers")
        self.num_classes = as_int("num_classes", num_classes)
        self.capsule_dim = as_int("capsule_dim", capsule_dim)
        self.image_shape = tuple(as_image_shape(image_shape))
        self.fc1 = nn.Linear(self.num_classes * self.capsule_dim, first)
        self.fc2 = nn.Linear(first, second)
        self.fc3 = nn.Linear(second, prod(self.image_shape))

    def forward(self, capsules: Tensor, classes: Tensor) -> Tensor:
        check_capsules(capsules, self.num_classes, self.capsule_dim, self.fc1.weight.dtype)
        mask = class_mask(classes, *capsules.shape[:2])  # [batch, 10] for MNIST
        masked = torch.where(mask.bool().unsqueeze(2), capsules, 0)  # [batch, 10, 16]
        hidden = F.relu(self.fc1(masked.flatten(1)))
        hidden = F.relu(self.fc2(hidden))
        return torch.sigmoid(self.fc3(hidden)).unflatten(1, self.image_shape)
