"""A convolution with a stride as matrix products, in Fourier space or at points (Toom-Cook's).

A convolution of stride S is a sum of S² convolutions of stride 1, one for each phase: the rows and
the columns of image and kernel, modulo S. In Fourier space a convolution multiplies each frequency
by a number of its own, so for each frequency all phases and channels together are one matrix
product. The paper's primary capsules take 36 · 81 = 2916 multiplications directly for each image
and each pair of channels, and 50 frequencies · 4 phases · 4 = 800 this way (a complex product is
4 real ones).

A convolution is a product of polynomials, too, and those multiply point by point (Toom and Cook;
for networks Lavin and Gray 2016, after Winograd 1980). Points are real, and 10 or 9 a side are
enough for a phase in which the kernel has 5 taps or 4: (10 + 9)² = 361 multiplications are left.
But the transforms magnify errors of rounding, with ten points a side to 2e-5 of the result in
float32 (TF32 makes 3e-4), and to far too much in bfloat16.

The transforms are matrix products too: images this small need no fast Fourier transform, and a
matrix product in bfloat16 is what processors are fastest at.
"""

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from capsnet.checks import as_int, require_floating

MAX_POINTS = 10  # a side: one more makes the error three times as large


class Phases(NamedTuple):
    """Phases of an image and of a kernel that are transformed together: all of them, or one.

    In Fourier space all share a grid, and are added up by one product. At points each has a grid of
    its own: a kernel of 9 has 5 taps in one phase and 4 in the next, which needs a point less.
    """

    stride: int  # S
    down: tuple[int, int]  # those of the rows, from and to
    across: tuple[int, int]
    taps: tuple[int, int]  # of a kernel's phase, down and across; the most that one has
    height: int  # of the convolution's result
    width: int
    rows: int  # of an image's phase; in Fourier space an even number
    columns: int
    toom_cook: bool  # else in Fourier space

    def pad_to_grid(self, x: Tensor, margin: int = 0) -> Tensor:
        """Images cut, or filled up with zeros, to the grid's size and a margin beyond."""
        down = self.stride * self.rows + margin - x.shape[2]
        right = self.stride * self.columns + margin - x.shape[3]
        return F.pad(x, (0, right, 0, down))

    def split(self, x: Tensor) -> Tensor:
        """[n, channels, S · rows, S · columns, …] → [rows, columns, n, *phases, channels, …]."""
        x = x.unflatten(2, (self.rows, self.stride)).unflatten(4, (self.columns, self.stride))
        x = x[:, :, :, slice(*self.down), :, slice(*self.across)]
        return x.permute(2, 4, 0, 3, 5, 1, *range(6, x.dim()))


def phases_of(
    height: int, width: int, kernel_size: int, stride: int, toom_cook: bool = False
) -> list[Phases]:
    """At points where asked, if they are few enough; else in Fourier space, on the smallest grid on
    which no result that is kept wraps around the edge.
    """
    h, w = ((side - kernel_size) // stride + 1 for side in (height, width))
    if min(h, w) < 1:
        raise ValueError(
            f"images must be at least {kernel_size} × {kernel_size} for such a kernel, got "
            f"{height} × {width}"
        )
    # Of the kernel's phases along a side; later ones have none.
    taps = [math.ceil((kernel_size - first) / stride) for first in range(min(stride, kernel_size))]
    rows, columns = h + taps[0] - 1, w + taps[0] - 1
    if toom_cook and max(rows, columns) <= MAX_POINTS:
        return [
            Phases(stride, (i, i + 1), (j, j + 1), (m, n), h, w, h + m - 1, w + n - 1, True)
            for i, m in enumerate(taps)
            for j, n in enumerate(taps)
        ]
    every, most = (0, len(taps)), (taps[0], taps[0])
    return [Phases(stride, every, every, most, h, w, rows + rows % 2, columns, False)]


def fast_conv2d(
    x: Tensor, weight: Tensor, bias: Tensor | None, stride: int = 1, toom_cook: bool = False
) -> Tensor:
    """``F.conv2d`` with a square kernel and no padding, computed in Fourier space or at points.

    Args:
        x: images, [n, channels, height, width].
        weight: [out_channels, channels, k, k].
        bias: [out_channels], or None.
        stride: S, in pixels.
        toom_cook: not in Fourier space, if so few points are needed that the result is exact to
            2e-5 in float32.

    Returns:
        [n, out_channels, (height − k) // S + 1, (width − k) // S + 1], in the dtype of ``x``.

    Raises:
        ValueError: the images are smaller than the kernel, or not floating point; the kernel is
            not square, or has other channels; the stride is not an integer ≥ 1.
    """
    require_floating("x", x)
    stride = as_int("stride", stride)
    if x.dim() != 4 or x.shape[1] != weight.shape[1]:
        raise ValueError(
            f"x must be [batch, {weight.shape[1]}, height, width], got shape {list(x.shape)}"
        )
    if weight.shape[2] != weight.shape[3]:
        raise ValueError(f"the kernel must be square, got shape {list(weight.shape)}")
    height, width = x.shape[2:]
    groups = phases_of(height, width, weight.shape[2], stride, toom_cook)
    images = [phases.split(phases.pad_to_grid(x)) for phases in groups]
    return correlate(images, transform_kernel(weight, groups, x.dtype), bias, groups)


def relu_conv2d(
    x: Tensor, weight: Tensor, bias: Tensor | None, groups: Sequence[Phases]
) -> list[Tensor]:
    """ReLU of a convolution of stride 1, as matrix products; ``groups`` are the next one's phases.

    [n, channels, height, width] → [rows, columns, n, *phases, out_channels] of each, for
    :func:`correlate`.
    """
    k, matrix = weight.shape[2], weight.to(x.dtype).flatten(1).t()
    features = []
    for phases in groups:
        patches = phases.split(phases.pad_to_grid(x, margin=k - 1).unfold(2, k, 1).unfold(3, k, 1))
        maps = patches.flatten(5) @ matrix  # of [rows, columns, n, *phases, channels · k · k]
        if bias is not None:
            maps = maps + bias.to(x.dtype)
        features.append(Relu.apply(maps))
    return features


def relu_conv2d_channels_last(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """ReLU of a convolution of stride 1 as one matrix product, for a few channels.

    [n, channels, height, width] → [n, out_channels, …, …], channels last in memory.
    """
    k = weight.shape[2]
    patches = x.unfold(2, k, 1).unfold(3, k, 1).permute(0, 2, 3, 1, 4, 5).flatten(3)
    return F.relu(F.linear(patches, weight.flatten(1), bias)).permute(0, 3, 1, 2)


def toom_cook_is_accurate(x: Tensor) -> bool:
    """Whether points are faster for such images and exact enough: float32 on a processor that is
    not allowed to round it to fewer bits.
    """
    if x.dtype != torch.float32 or x.device.type != "cpu":
        return False
    try:
        return torch.get_float32_matmul_precision() == "highest"
    except RuntimeError:  # set for one device or library alone: PyTorch does not say then
        return False


class Transform(NamedTuple):
    """A convolution as products: ``back`` · ((``kernel`` · the kernel) × (``image`` · the image)).

    (The field's filter, input and output transform.) It multiplies wave by wave, or point by point:
    each part of one with each part of the other. A wave has two parts, real and imaginary, a point
    has one. For waves a transform is one matrix, for points two: one across, one down. Then points,
    taps and results are those of a side.
    """

    parts: int
    kernel: tuple[Tensor, ...]  # [waves · parts, taps · taps], or [points, taps] and [points, taps]
    image: tuple[Tensor, ...]  # [waves · parts, rows · columns], or twice [points, points]
    back: tuple[Tensor, ...]  # [height · width, waves · parts · parts], or twice [results, points]

    @classmethod
    def of(cls, phases: Phases, device: torch.device) -> "Transform":
        """The one of these phases; on a GPU it is kept, for it takes many small kernels to make."""
        if device.type == "cuda" and not torch.compiler.is_compiling():  # pragma: no mutate block
            return cached_transform(phases, device)
        return cls.build(phases, device)

    @classmethod
    def build(cls, phases: Phases, device: torch.device) -> "Transform":
        *_, (m, n), height, width, rows, columns, toom_cook = phases
        if toom_cook:
            kernel_across, image_across, back_across = point_basis(width, columns, device)
            kernel_down, image_down, back_down = point_basis(height, rows, device)
            kernel, image = (kernel_across, kernel_down), (image_across, image_down)
            return cls(1, kernel, image, (back_across, back_down))
        basis = fourier_basis(rows, columns, device)  # [waves, 2, rows, columns]
        of_kernel = basis[:, :, :m, :n].flatten(2).flatten(0, 1)
        of_image = basis.flatten(2).flatten(0, 1)
        # And back: y = conj(w) x, so Re y = Re w Re x + Im w Im x, Im y = Re w Im x − Im w Re x.
        # Only the results that did not wrap around the grid's edge are computed.
        real, imaginary = basis[:, :, :height, :width].flatten(2).unbind(1)
        back = torch.stack([real, imaginary, -imaginary, real], dim=1).flatten(0, 1).t()
        return cls(2, (of_kernel,), (of_image,), (back * math.sqrt(rows * columns / 2),))


@functools.cache
def cached_transform(phases: Phases, device: torch.device) -> Transform:
    with torch.inference_mode(False):
        return Transform.build(phases, device)


def transform(x: Tensor, matrices: tuple[Tensor, ...]) -> Tensor:
    """Numbers at [rows, columns] by one of a :class:`Transform`'s, at waves, points or results."""
    *across, last = (matrix.to(x.dtype) for matrix in matrices)
    for matrix in across:
        rows, columns = last.shape[1], matrix.shape[1]
        x = matrix @ x.reshape(rows, columns, x.numel() // (rows * columns))
    return last @ x.reshape(last.shape[1], x.numel() // last.shape[1])


def transform_kernel(weight: Tensor, groups: Sequence[Phases], dtype: torch.dtype) -> list[Tensor]:
    """A kernel as :func:`correlate` wants it: a matrix for every point, two for every wave.

    [out_channels, channels, k, k] → [waves or points, parts · out_channels, phases · channels] of
    each, in ``dtype``.
    """
    kernels = []
    for phases in groups:
        grid = phases._replace(rows=phases.taps[0], columns=phases.taps[1])
        padded = grid.pad_to_grid(weight.to(dtype))
        split = grid.split(padded)  # [*taps, out_channels, *phases, channels]
        parts, matrices, *_ = Transform.of(phases, weight.device)
        inner = split.shape[3:].numel()
        kernels.append(transform(split, matrices).view(-1, parts * len(weight), inner))
    return kernels


def correlate(
    images: Sequence[Tensor],
    kernels: Sequence[Tensor],
    bias: Tensor | None,
    groups: Sequence[Phases],
) -> Tensor:
    """:func:`fast_conv2d` of images in phases and a kernel from :func:`transform_kernel`.

    [rows, columns, n, *phases, channels] of each → [n, out_channels, height, width].
    """
    results = []
    for x, w_hat, phases in zip(images, kernels, groups, strict=True):
        n = x.shape[2]
        count, filters, inner = w_hat.shape  # waves or points; parts · out_channels; summed over
        parts, _, matrices, back = Transform.of(phases, x.device)
        x_hat = transform(x, matrices).view(count, parts * n, inner)
        y_hat = split_parts(RowsByRows.apply(w_hat, x_hat), parts)
        y = transform(y_hat, back).view(phases.height, phases.width, filters // parts, n)
        results.append(y)
    y = sum(results[1:], results[0]).permute(3, 2, 0, 1)
    return y if bias is None else y + bias.to(y.dtype).view(-1, 1, 1)


class RowsByRows(torch.autograd.Function):
    """``w @ x.mT``, whose gradients are laid out as w and x are: autograd would transpose one."""

    @staticmethod
    def forward(ctx: Any, w: Tensor, x: Tensor) -> Tensor:
        ctx.save_for_backward(w, x)
        return w @ x.mT

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
        w, x = ctx.saved_tensors
        needs_w, needs_x = ctx.needs_input_grad
        return grad @ x if needs_w else None, grad.mT @ w if needs_x else None


def split_parts(products: Tensor, parts: int) -> Tensor:
    """Each part of one with each of the other: […, parts·m, parts·n] → […, parts, parts, m, n]."""
    products = products.unflatten(-1, (parts, -1)).unflatten(-3, (parts, -1))
    return products.transpose(-3, -2)


def point_basis(results: int, points: int, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """A convolution along one side at points: the transforms of kernel, image and results.

    Kernel and results are taken as coefficients of polynomials. The values at as many points as
    their product has coefficients say what it is, and convolution is the transpose of this product.
    A point is a direction, cosine and sine, in place of their quotient (homogeneous coordinates;
    infinity is one of them); directions evenly around the half circle keep errors small.

    Returns:
        [points, points − results + 1], [points, points], [results, points], float64.
    """
    angles = math.pi / points * torch.arange(points, dtype=torch.float64, device=device)[:, None]

    def powers(count: int) -> Tensor:
        i = torch.arange(count, device=device)
        return angles.cos() ** (count - 1 - i) * angles.sin() ** i

    return powers(points - results + 1), torch.linalg.inv(powers(points)).t(), powers(results).t()


def fourier_basis(rows: int, columns: int, device: torch.device) -> Tensor:
    """Cosines and negative sines on a grid: an orthonormal basis of the images on it.

    Down the rows the frequencies are odd multiples of half a cycle. Then no frequency is its own
    conjugate, and every one takes a pair of real numbers. The number of rows must be even.

    Returns:
        [waves, 2, rows, columns], float64, where waves = rows · columns / 2.
    """
    arange = functools.partial(torch.arange, dtype=torch.float64, device=device)
    down = torch.outer((arange(rows // 2) + 0.5) / rows, arange(rows))
    across = torch.outer(arange(columns) / columns, arange(columns))
    angle = 2 * math.pi * (down[:, None, :, None] + across[None, :, None, :])
    basis = torch.stack([angle.cos(), -angle.sin()], dim=2).flatten(0, 1)
    return basis * math.sqrt(2 / (rows * columns))


class Relu(torch.autograd.Function):
    """``F.relu``, whose gradient is computed from its result.

    With F.relu's own gradient torch.compile keeps a mask of bytes, and loops over those are slow
    on a processor.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = F.relu(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return grad * y.sign()  # a comparison would be kept as that mask
