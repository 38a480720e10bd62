"""The same network arranged for speed on a processor.

Same parameters, same equations, full gradients: only the order of the arithmetic and the layout of
the memory differ from :mod:`capsnet.model`, which is the one to read. Two layers take nearly all of
the time, and each has its module: :mod:`capsnet.fourier` and :mod:`capsnet.routing`.
"""

import torch
from torch import Tensor, nn

from capsnet.fourier import PhaseGrid, correlate, relu_conv2d
from capsnet.functional import squash
from capsnet.layers import CapsuleLayer, PrimaryCapsules, channels_to_capsules
from capsnet.model import CapsNet, CapsNetOutput
from capsnet.routing import compiled, routed_capsules

ARRANGEMENTS = ("auto", "plain", "fast")
LARGEST_SIDE = 64  # pixels; the transforms, matrix products themselves, grow with its fourth power


def arrange(model: CapsNet, arrangement: str = "auto") -> nn.Module:
    """A network in an arrangement; it is called, and compiled, as :class:`CapsNet` is.

    Args:
        model: the network; its parameters are shared.
        arrangement: "plain", the model itself; "fast", a :class:`FastCapsNet`; "auto", fast where
            that pays and computes the same: on a processor, for images of up to 64 pixels a
            side, and for a network whose layers nobody has replaced or hooked into.

    Raises:
        ValueError: another arrangement.
    """
    if arrangement not in ARRANGEMENTS:
        raise ValueError(f"arrangement must be one of {', '.join(ARRANGEMENTS)}, got {arrangement}")
    if arrangement == "fast" or (arrangement == "auto" and pays(model)):
        return FastCapsNet(model)
    return model


def pays(model: CapsNet) -> bool:
    """Whether "auto" means fast."""
    parts = [model, model.conv, model.primary, model.primary.conv, model.digits]
    stock = [CapsNet, nn.Conv2d, PrimaryCapsules, nn.Conv2d, CapsuleLayer]
    return (
        next(model.parameters()).device.type == "cpu"
        and max(model.config["image_shape"][1:]) <= LARGEST_SIDE
        and [type(part) for part in parts] == stock
        and not any(part._forward_hooks or part._forward_pre_hooks for part in parts)
    )


class FastCapsNet(nn.Module):
    """:class:`CapsNet` with its convolutions as matrix products, and its routing in chunks.

    Gradients are of first order, and not for torch.func; hooks on the model and on its
    convolutions and routed capsules are not called. For all of these there is the model itself.

    Args:
        model: the network; its parameters are shared.

    Shape, Raises:
        as :class:`CapsNet`.
    """

    def __init__(self, model: CapsNet) -> None:
        super().__init__()
        self.model = model
        self.compiled = False

    def compile(self) -> None:
        """torch.compile for the convolutions and for the loops of the routing, each by itself."""
        self.compiled = True

    def forward(self, images: Tensor, labels: Tensor | None = None) -> CapsNetOutput:
        model, digits = self.model, self.model.digits
        model.check_images(images)
        kind = images.device.type
        autocast = torch.is_autocast_enabled(kind)
        if autocast:
            images = images.to(torch.get_autocast_dtype(kind))
        capsules = routed_capsules(
            self.children_of(images).to(images.dtype),
            digits.weight,
            digits.routing_iterations,
            digits.prior,
            compile=self.compiled,
        )
        if not autocast:
            capsules = capsules.to(images.dtype)
        return model.read_out(capsules, labels)

    def children_of(self, images: Tensor) -> Tensor:
        """Images to primary capsules, [n, channels, height, width] → [n, children, dim]."""
        conv, primary = self.model.conv, self.model.primary
        compute = compiled(primary_capsules) if self.compiled else primary_capsules
        children: Tensor = compute(
            images,
            conv.weight,
            conv.bias,
            primary.conv.weight,
            primary.conv.bias,
            primary.conv.stride[0],
            primary.capsule_dim,
        )
        return children


def primary_capsules(
    images: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    primary_weight: Tensor,
    primary_bias: Tensor | None,
    stride: int,
    capsule_dim: int,
) -> Tensor:
    """Images to primary capsules, [n, channels, height, width] → [n, in_capsules, capsule_dim]."""
    height, width = (side - weight.shape[2] + 1 for side in images.shape[2:])
    grid = PhaseGrid.of(height, width, primary_weight.shape[2], stride)
    features = relu_conv2d(images, weight, bias, grid)  # [rows, columns, n, S, S, 256]
    maps = correlate(features, primary_weight, primary_bias, grid)  # [n, 256, 6, 6]
    return squash(channels_to_capsules(maps, capsule_dim))
