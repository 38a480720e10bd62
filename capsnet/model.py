"""The paper's network (section 4, Fig. 1 and 2)."""

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from capsnet.checks import (
    as_image_shape,
    as_int,
    as_sizes,
    check_dtype,
    class_mask,
    require_bool,
    require_tensor,
)
from capsnet.functional import RoutingStep
from capsnet.layers import CapsuleLayer, Decoder, PrimaryCapsules, check_capsules


class CapsNetOutput(NamedTuple):
    """What :class:`CapsNet` returns."""

    capsules: Tensor  # v, one per class: [batch, num_classes, capsule_dim]
    lengths: Tensor  # ‖v‖, how present each class is: [batch, num_classes], float32 or wider
    reconstruction: Tensor | None  # shaped like the images, in 0 … 1; None without a decoder


# torch.export.save writes this name. PyTorch asks for it here, and has no public function for it.
pytree._register_namedtuple(CapsNetOutput, serialized_type_name="capsnet.model.CapsNetOutput")


class CapsNet(nn.Module):
    """Convolution, primary capsules, one routed capsule per class, and a decoder.

    The defaults are the paper's network for MNIST: 8,215,568 parameters, 6,804,224 without the
    decoder.

    Args:
        image_shape: [channels, height, width]; height and width of at least 17 with the default
            kernels, so that one primary capsule of each type is left.
        num_classes: parents j, one per class; at least 1.
        routing_iterations: r of Procedure 1, at least 1.
        learn_prior: learn the routing's initial logits.
        reconstruct: have a decoder.
        conv_channels: kernels of the first convolution.
        kernel_size: side of both convolutions' kernels, in pixels.
        capsule_types: types of primary capsule.
        primary_dim: components of a primary capsule.
        capsule_dim: components d of a class's capsule.
        hidden: units of the decoder's hidden layers.

    Attributes:
        arguments: the arguments above, and those that a subclass adds.
        num_primary_capsules: children i of the routing, of all types together; 1152 for MNIST.

    Raises:
        ValueError: an argument is out of its range, or no capsule is left of such an image.
    """

    def __init__(
        self,
        image_shape: Sequence[int] = (1, 28, 28),
        num_classes: int = 10,
        routing_iterations: int = 3,
        *,
        learn_prior: bool = False,
        reconstruct: bool = True,
        conv_channels: int = 256,
        kernel_size: int = 9,
        capsule_types: int = 32,
        primary_dim: int = 8,
        capsule_dim: int = 16,
        hidden: Sequence[int] = (512, 1024),
    ) -> None:
        super().__init__()
        channels, height, width = self.image_shape = shape = as_image_shape(image_shape)
        self.num_classes = num_classes = as_int("num_classes", num_classes)
        self.capsule_dim = capsule_dim = as_int("capsule_dim", capsule_dim)
        routing_iterations = as_int("routing_iterations", routing_iterations)
        conv_channels = as_int("conv_channels", conv_channels)
        kernel_size = as_int("kernel_size", kernel_size)
        capsule_types = as_int("capsule_types", capsule_types)
        primary_dim = as_int("primary_dim", primary_dim)
        hidden = as_sizes("hidden", hidden, 2, "the units of two layers")
        require_bool("reconstruct", reconstruct)
        self.arguments: dict[str, Any] = {
            "image_shape": shape,
            "num_classes": num_classes,
            "routing_iterations": routing_iterations,
            "learn_prior": learn_prior,
            "reconstruct": reconstruct,
            "conv_channels": conv_channels,
            "kernel_size": kernel_size,
            "capsule_types": capsule_types,
            "primary_dim": primary_dim,
            "capsule_dim": capsule_dim,
            "hidden": hidden,
        }

        stride = 2
        smallest = 2 * kernel_size - 1
        if min(height, width) < smallest:
            raise ValueError(
                f"images must be at least {smallest} × {smallest} pixels for kernels of "
                f"{kernel_size}, got {height} × {width}"
            )
        grid = [(side - smallest) // stride + 1 for side in (height, width)]
        self.num_primary_capsules = capsule_types * grid[0] * grid[1]
        self.conv = nn.Conv2d(channels, conv_channels, kernel_size)
        self.primary = PrimaryCapsules(
            conv_channels, capsule_types, primary_dim, kernel_size, stride
        )
        self.digits = CapsuleLayer(
            self.num_primary_capsules,
            primary_dim,
            num_classes,
            capsule_dim,
            routing_iterations,
            learn_prior,
        )
        self.decoder = Decoder(num_classes, capsule_dim, shape, hidden) if reconstruct else None

    @property
    def config(self) -> dict[str, Any]:
        """The arguments that make this network again, with the iterations that it routes now."""
        config = copy.deepcopy(self.arguments)
        if "routing_iterations" in config:
            config["routing_iterations"] = self.digits.routing_iterations
        return config

    def encode(self, images: Tensor, trace: list[RoutingStep] | None = None) -> Tensor:
        """Images → one capsule per class (section 4).

        Args:
            images: as :meth:`forward`.
            trace: a list that receives one :class:`RoutingStep` per iteration.

        Returns:
            v_j, [batch, num_classes, capsule_dim].

        Raises:
            ValueError: as :meth:`check_images`.
        """
        self.check_images(images)
        features = F.relu(self.conv(images))  # [batch, 256, 20, 20] for MNIST
        primary = self.primary(features)  # [batch, 1152, 8]
        return self.digits(primary, trace)  # [batch, 10, 16]

    def check_images(self, images: Tensor) -> None:
        """Check the shape and dtype of ``images``.

        Raises:
            ValueError: the images have another shape, are not floating point, or have another dtype
                than the weights where autocast does not convert them.
        """
        require_tensor("images", images)
        channels, height, width = self.image_shape
        if images.shape[1:] != (channels, height, width):
            raise ValueError(
                f"images must be [batch, {channels}, {height}, {width}], got shape "
                f"{list(images.shape)}"
            )
        if not images.is_floating_point():
            raise ValueError(
                f"images must be floating point with intensities in 0 … 1, got {images.dtype} "
                "(capsnet.data.to_float converts)"
            )
        check_dtype("images", images, self.digits.weight.dtype)

    def forward(self, images: Tensor, labels: Tensor | None = None) -> CapsNetOutput:
        """Classify and reconstruct (section 4, Fig. 1 and 2).

        Args:
            images: [batch, channels, height, width], floating point, intensities in 0 … 1.
            labels: class indices [batch] or a mask [batch, num_classes], in training: the decoder
                sees the capsules that they name; without them, the longest. A mask only selects:
                where its number is not 0, be it 0.1, the decoder sees the capsule in full.

        Returns:
            the capsules v_j, their lengths, and the reconstruction of the images.

        Raises:
            ValueError: as :meth:`check_images`; labels of another shape, class indices that are not
                integers or are out of range.
        """
        return self.read_out(self.encode(images), labels)

    def read_out(self, capsules: Tensor, labels: Tensor | None = None) -> CapsNetOutput:
        """Capsules of the classes → their lengths (section 3), and a reconstruction (section 4.1).

        Args:
            capsules: v_j, [batch, num_classes, capsule_dim].
            labels: as :meth:`forward`.

        Returns:
            as :meth:`forward`.

        Raises:
            ValueError: labels as :meth:`forward` refuses, capsules of another shape, or of another
                dtype than the decoder's weights.
        """
        check_capsules(capsules, self.num_classes, self.capsule_dim)
        # Lengths meet the margins 0.9 and 0.1: half precision is too coarse for that.
        wide = torch.promote_types(capsules.dtype, torch.float32)
        lengths = torch.linalg.vector_norm(capsules, dim=2, dtype=wide)
        classes = lengths.argmax(dim=1) if labels is None else labels
        if self.decoder is not None:
            return CapsNetOutput(capsules, lengths, self.decoder(capsules, classes))
        class_mask(classes, *lengths.shape)  # refuses what the decoder would
        if torch.jit.is_tracing():  # type: ignore[attr-defined]
            raise ValueError("torch.jit.trace takes no None, the reconstruction: use torch.export")
        return CapsNetOutput(capsules, lengths, None)

    @torch.no_grad()
    def routing_trace(self, images: Tensor) -> list[RoutingStep]:
        """Every routing iteration's logits, coupling coefficients and outputs (Procedure 1).

        Returns:
            one :class:`RoutingStep` per iteration of :meth:`encode`, without gradients.
        """
        trace: list[RoutingStep] = []
        self.encode(images, trace)
        return trace
