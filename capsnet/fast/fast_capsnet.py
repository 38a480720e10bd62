"""The fast arrangement of :class:`CapsNet`, and when it pays."""

import contextlib
from typing import Any, cast

import torch
from torch import Tensor, nn

from capsnet.checks import device_of
from capsnet.fast.convolution import (
    Phases,
    correlate,
    phases_of,
    relu_conv2d,
    relu_conv2d_channels_last,
    toom_cook_is_accurate,
    transform_kernel,
)
from capsnet.fast.routing import compile_once, has_triton, routed_capsules
from capsnet.functional import squash
from capsnet.layers import CapsuleLayer, PrimaryCapsules, channels_to_capsules
from capsnet.model import CapsNet, CapsNetOutput

ARRANGEMENTS = ("auto", "plain", "fast")
FAST_DEVICES = ("cpu", "cuda")  # MPS lacks the float64 in which the Fourier basis is computed
LARGEST_SIDE = 64  # pixels; the transforms, matrix products themselves, grow with its fourth power


def arrange(model: CapsNet, arrangement: str = "auto") -> nn.Module:
    """A network in an arrangement; it is called, and compiled, as :class:`CapsNet` is.

    Args:
        model: the network; its parameters are shared.
        arrangement: "plain", the model itself; "fast", a :class:`FastCapsNet`; "auto", fast where
            that pays and computes the same: on a processor and, for up to 16 classes and with
            Triton, on a GPU; for images of up to 64 pixels a side, and for a network whose layers
            and code are neither replaced nor hooked into. A subclass of :class:`CapsNet` has a fast
            arrangement if it defines a ``fast_arrangement`` itself.

    Raises:
        ValueError: another arrangement, or "fast" on a device other than "cpu" and "cuda", of a
            network for which there is none, or of one with such a layer.
    """
    if arrangement not in ARRANGEMENTS:
        raise ValueError(f"arrangement must be one of {', '.join(ARRANGEMENTS)}, got {arrangement}")
    device = device_of(model).type
    if arrangement == "fast" and device not in FAST_DEVICES:
        raise ValueError(f"arrangement fast needs {' or '.join(FAST_DEVICES)}, got device {device}")
    fast_class = FastCapsNet if type(model) is CapsNet else None
    if "fast_arrangement" in vars(type(model)):  # not one inherited: a subclass may change methods
        fast_class = cast(Any, model).fast_arrangement
    if arrangement == "fast" and fast_class is None:
        raise ValueError(f"there is no arrangement fast of this {type(model).__name__}")
    if fast_class is None or arrangement == "plain":
        return model
    modified = modified_layers(model, fast_class)
    if arrangement == "fast" and modified:
        raise ValueError(
            f"arrangement fast computes what CapsNet does, but {', '.join(modified)} of this "
            "network was replaced, changed or hooked into"
        )
    if arrangement == "auto" and (modified or not pays_off(model, fast_class, device)):
        return model
    return fast_class(model)


def pays_off(model: CapsNet, fast_class: "type[FastCapsNet]", device: str) -> bool:
    """Whether the fast arrangement of an unmodified network is faster on a device."""
    return (
        device in FAST_DEVICES
        and max(model.image_shape[1:]) <= LARGEST_SIDE
        and (device == "cpu" or fast_class.has_kernels(model))
    )


def modified_layers(model: CapsNet, fast_class: "type[FastCapsNet]") -> list[str]:
    """The names of the layers of which the fast arrangement would compute something else."""
    names = {module: name or "the whole" for name, module in model.named_modules()}
    modified = [
        names.get(layer, "a layer")
        for layer, expected_class in fast_class.bypassed_layers(model)
        if type(layer) is not expected_class or not is_unmodified(layer)
    ]
    if not is_unmodified(model):
        modified.append(names[model])
    if not modified and model.conv.stride != (1, 1):
        modified.append(names[model.conv])
    if not modified and not fast_equals_plain():
        modified.append("the code (in capsnet.functional or capsnet.layers)")
    return modified


@torch.no_grad()
def fast_equals_plain() -> bool:
    """Whether a small network computes what its fast arrangement does: no code was changed."""
    sizes: dict[str, Any] = {
        "conv_channels": 2,
        "capsule_types": 2,
        "primary_dim": 2,
        "capsule_dim": 2,
    }
    # Code that is for other sizes raises: no reason to stop here.
    with contextlib.suppress(Exception), torch.random.fork_rng(devices=[]), torch.device("cpu"):
        plain = CapsNet((1, 5, 7), 2, kernel_size=3, learn_prior=True, reconstruct=False, **sizes)
        for parameter in plain.double().parameters():  # which autocast leaves as they are
            parameter.copy_(torch.arange(1, 1 + parameter.numel()).sin().view_as(parameter))
        images = torch.arange(70).double().cos().view(2, 1, 5, 7)
        (v, lengths, _), (v_fast, lengths_fast, _) = plain(images), FastCapsNet(plain)(images)
        return torch.allclose(v, v_fast) and torch.allclose(lengths, lengths_fast)
    return False


def prefers_cudnn(images: Tensor) -> bool:
    """Whether to use cuDNN for the second convolution: in half precision on CUDA.

    It is one launch. In Fourier space there are dozens, and not much less time, even in a graph.
    """
    return images.device.type == "cuda" and images.dtype in (torch.bfloat16, torch.float16)


def is_unmodified(layer: nn.Module) -> bool:
    """Whether a layer has its own methods and no hooks, and is no convolution of another kind."""
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    patched = any(callable(getattr(type(layer), name, None)) for name in vars(layer))
    if patched or any(getattr(layer, name) for name in hooks):
        return False
    if not isinstance(layer, nn.Conv2d):
        return True
    square = len({*layer.kernel_size}) == len({*layer.stride}) == 1
    return square and (layer.groups, *layer.dilation, *layer.padding) == (1, 1, 1, 0, 0)


class FastCapsNet(nn.Module):
    """:class:`CapsNet` with its convolutions as matrix products, its routing in chunks or kernels.

    Where gradients are recorded on a processor in float32, the second convolution is exact to 2e-5
    and the gradients to 1e-4 (see :mod:`capsnet.fast.convolution`); all else is as exact as its
    dtype allows.

    Gradients are of first order (else RuntimeError), and not for torch.func; hooks on the model and
    on its convolutions and routed capsules are not called. For all of these there is the model.

    Shapes and errors are those of :class:`CapsNet`; the parameters are the model's own. Under
    autocast the routing's capsules are float32 on every device; the plain ones are on CUDA, but on
    a processor autocast rounds them.
    """

    def __init__(self, model: CapsNet) -> None:
        super().__init__()
        self.model = model
        self.compiled = False
        # The second kernel, its phases, and what transform_once made of them.
        self.transformed_kernel: tuple[Tensor, list[Phases], list[Tensor]] | None = None

    @staticmethod
    def bypassed_layers(model: Any) -> list[tuple[Any, type[nn.Module]]]:
        """The layers whose parameters it uses and whose code it does not run; and their classes."""
        return [
            (model.conv, nn.Conv2d),
            (model.primary, PrimaryCapsules),
            (getattr(model.primary, "conv", None), nn.Conv2d),
            (model.digits, CapsuleLayer),
        ]

    @staticmethod
    def has_kernels(model: Any) -> bool:
        """Whether its routing has kernels of its own on CUDA, if Triton works there."""
        if not has_triton():
            return False
        from capsnet.fast import fused

        return fused.shape_is_supported(model.digits.weight)

    def compile(self) -> None:
        """torch.compile for the convolutions and for the loops of the routing, each by itself."""
        self.compiled = True

    def forward(self, images: Tensor, labels: Tensor | None = None) -> CapsNetOutput:
        model = self.model
        model.check_images(images)
        device_type = images.device.type
        # Autocast leaves float64 as it is.
        autocast = torch.is_autocast_enabled(device_type) and images.dtype != torch.float64
        if autocast:
            images = images.to(torch.get_autocast_dtype(device_type))
        children = self.primary_capsules(images).to(images.dtype)
        capsules = self.class_capsules(children)
        if not autocast:
            capsules = capsules.to(images.dtype)
        return model.read_out(capsules, labels)

    def primary_capsules(self, images: Tensor) -> Tensor:
        """Images to primary capsules, [n, channels, height, width] → [n, children, dim]."""
        if prefers_cudnn(images):
            conv = self.model.conv
            features = relu_conv2d_channels_last(images, conv.weight, conv.bias)
            return cast(Tensor, self.model.primary(features))

        conv, primary = self.model.conv, self.model.primary
        function = compute_primary_capsules
        compute = compile_once(function) if self.compiled else function
        phases = self.phases_of(images)
        kernel, transformed = primary.conv.weight, None
        # On a GPU the comparison with the kept kernel would wait for the device.
        if not torch.is_grad_enabled() and images.device.type == "cpu":
            transformed = self.transform_once(kernel, phases, images.dtype)
        first, second = (conv.weight, conv.bias), (kernel, primary.conv.bias)
        children: Tensor = compute(images, first, second, transformed, phases, primary.capsule_dim)
        return children

    def phases_of(self, images: Tensor) -> list[Phases]:
        """The phases of the second convolution; at points, which are less exact, while training."""
        first, second = self.model.conv, self.model.primary.conv
        height, width = (side - first.weight.shape[2] + 1 for side in images.shape[2:])
        kernel, stride = second.weight.shape[2], second.stride[0]
        # torch.compile cannot read the precision of matrix products, on which points depend.
        may_depend = torch.is_grad_enabled() and not torch.compiler.is_compiling()
        toom_cook = may_depend and toom_cook_is_accurate(images)
        return phases_of(height, width, kernel, stride, toom_cook)

    def class_capsules(self, children: Tensor) -> Tensor:
        """Primary capsules to those of the classes, [n, out_capsules, out_dim]."""
        digits = self.model.digits
        return routed_capsules(
            children, digits.weight, digits.routing_iterations, digits.prior, compile=self.compiled
        )

    def transform_once(
        self, kernel: Tensor, phases: list[Phases], dtype: torch.dtype
    ) -> list[Tensor]:
        """:func:`transform_kernel`, computed again only where the kernel has changed."""
        # Compared value by value, which takes a tenth of the transform's time: changes through
        # ``.data`` leave the tensor's version as it is.
        if self.transformed_kernel is not None:
            seen, its_phases, transformed = self.transformed_kernel
            kind = its_phases, transformed[0].dtype, seen.device
            if kind == (phases, dtype, kernel.device) and torch.equal(seen, kernel):
                return transformed
        with torch.inference_mode(False):
            seen = kernel.detach().clone()
            transformed = transform_kernel(seen, phases, dtype)
        self.transformed_kernel = seen, phases, transformed
        return transformed


def compute_primary_capsules(
    images: Tensor,
    first: tuple[Tensor, Tensor | None],
    second: tuple[Tensor, Tensor | None],
    transformed: list[Tensor] | None,
    phases: list[Phases],
    capsule_dim: int,
) -> Tensor:
    """:meth:`FastCapsNet.primary_capsules`, from both convolutions' kernels and biases.

    ``transformed`` is the second kernel transformed, where it is known already.
    """
    features = relu_conv2d(images, *first, phases)
    kernel, bias = second
    if transformed is None:
        transformed = transform_kernel(kernel, phases, images.dtype)
    maps = correlate(features, transformed, bias, phases)  # [n, 256, 6, 6]
    return squash(channels_to_capsules(maps, capsule_dim))
