"""The same network arranged for speed on a processor.

Same parameters, same equations, full gradients: only the order of the arithmetic and the layout of
the memory differ from :mod:`capsnet.model`, which is the one to read. Two layers take nearly all of
the time, and each has its module: :mod:`capsnet.fourier` and :mod:`capsnet.routing`.
"""

import torch
from torch import Tensor, nn

from capsnet.fourier import PhaseGrid, correlate, relu_conv2d
from capsnet.model import CapsNet, CapsNetOutput
from capsnet.routing import routed_capsules

ARRANGEMENTS = ("auto", "plain", "fast")


def arrange(model: CapsNet, arrangement: str = "auto", compile: bool = False) -> nn.Module:
    """A network in an arrangement; it is called as :class:`CapsNet` is.

    Args:
        model: the network; its parameters are shared.
        arrangement: "plain", the model itself; "fast", a :class:`FastCapsNet`; "auto", fast on a
            processor and plain on any other device.
        compile: torch.compile for the inner loops of the fast one.

    Raises:
        ValueError: another arrangement.
    """
    if arrangement not in ARRANGEMENTS:
        raise ValueError(f"arrangement must be one of {', '.join(ARRANGEMENTS)}, got {arrangement}")
    on_cpu = next(model.parameters()).device.type == "cpu"
    if arrangement == "fast" or (arrangement == "auto" and on_cpu):
        return FastCapsNet(model, compile)
    return model


class FastCapsNet(nn.Module):
    """:class:`CapsNet` with its convolutions as matrix products, and its routing in chunks.

    Gradients are of first order, and not for torch.func: for anything else there is the model.

    Args:
        model: the network; its parameters are shared.
        compile: torch.compile for the inner loops of the routing.

    Shape, Raises:
        as :class:`CapsNet`.
    """

    def __init__(self, model: CapsNet, compile: bool = False) -> None:
        super().__init__()
        self.model = model
        self.compile_loops = compile
        # An outer torch.compile leaves the routing to its own compiled loops.
        self.route = torch.compiler.disable(routed_capsules) if compile else routed_capsules

    def forward(self, images: Tensor, labels: Tensor | None = None) -> CapsNetOutput:
        model, primary, digits = self.model, self.model.primary.conv, self.model.digits
        model.check_images(images)
        kind = images.device.type
        if torch.is_autocast_enabled(kind):
            images = images.to(torch.get_autocast_dtype(kind))

        height, width = (side - model.conv.kernel_size[0] + 1 for side in images.shape[2:])
        grid = PhaseGrid.of(height, width, primary.kernel_size[0], primary.stride[0])
        features = relu_conv2d(images, model.conv, grid)  # [rows, columns, n, S, S, 256]
        maps = correlate(features, primary.weight, primary.bias, grid)  # [n, 256, 6, 6]
        capsules = self.route(
            model.primary.group(maps),
            digits.weight,
            digits.routing_iterations,
            digits.prior,
            compile=self.compile_loops,
        )
        return model.read_out(capsules, labels)
