"""A convolution with a stride as matrix products, in Fourier space or at points (Toom-Cook's).

A convolution of stride S is a sum of S² convolutions of stride 1, one for each phase: the rows and
the columns of image and kernel, modulo S. In Fourier space a convolution multiplies each frequency
by a number of its own, so for each frequency all phases and channels together are one matrix
product. The paper's primary capsules take 36 · 81 = 2916 multiplications directly for each image
and each pair of channels, and 50 frequencies · 4 phases · 4 = 800 this way (a complex product is
4 real ones).

A convolution is a product of polynomials, too, and those multiply point by point (Toom and Cook;
for networks Lavin and Gray 2016, after Winograd 1980). Points are real: 100 · 4 phases = 400
multiplications are left. But the transforms magnify errors of rounding, with ten points a side to
2e-5 of the result in float32 (TF32 makes 3e-4), and to far too much in bfloat16.

The transforms are matrix products too: images this small need no fast Fourier transform, and a
matrix product in bfloat16 is what processors are fastest at.
"""

import functools
import math
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from capsnet.fast.products import product, products_of_parts
from capsnet.functional import require_floating

MOST_POINTS = 10  # a side: one more makes the error three times as large


class PhaseGrid(NamedTuple):
    """Where the phases of an image lie, and what a convolution makes of them."""

    height: int  # of the convolution's result
    width: int
    stride: int  # S
    rows: int  # of each phase of the image; in Fourier space an even number
    columns: int
    at_points: bool = False  # else in Fourier space

    @classmethod
    def of(
        cls, height: int, width: int, kernel_size: int, stride: int, at_points: bool = False
    ) -> "PhaseGrid":
        """At points where asked, if they are few enough; else in Fourier space, on the smallest
        grid on which no result that is kept wraps around the edge.
        """
        h, w = ((side - kernel_size) // stride + 1 for side in (height, width))
        if min(h, w) < 1:
            raise ValueError(
                f"images must be at least {kernel_size} × {kernel_size} for such a kernel, got "
                f"{height} × {width}"
            )
        taps = math.ceil(kernel_size / stride)  # of a kernel's phase, along one side
        rows, columns = h + taps - 1, w + taps - 1
        if at_points and max(rows, columns) <= MOST_POINTS:
            return cls(h, w, stride, rows, columns, True)
        return cls(h, w, stride, rows + rows % 2, columns)

    def fit(self, x: Tensor, margin: int = 0) -> Tensor:
        """Images cut, or filled up with zeros, to the grid's size and a margin beyond."""
        down = self.stride * self.rows + margin - x.shape[2]
        right = self.stride * self.columns + margin - x.shape[3]
        return F.pad(x, (0, right, 0, down))

    def split(self, x: Tensor) -> Tensor:
        """[n, channels, S · rows, S · columns, …] → [rows, columns, n, S, S, channels, …]."""
        x = x.unflatten(2, (self.rows, self.stride)).unflatten(4, (self.columns, self.stride))
        return x.permute(2, 4, 0, 3, 5, 1, *range(6, x.dim()))


def fast_conv2d(
    x: Tensor, weight: Tensor, bias: Tensor | None, stride: int = 1, at_points: bool = False
) -> Tensor:
    """``F.conv2d`` with a square kernel and no padding, computed in Fourier space or at points.

    Args:
        x: images, [n, channels, height, width].
        weight: [out_channels, channels, k, k].
        bias: [out_channels], or None.
        stride: S, in pixels.
        at_points: not in Fourier space, if so few points are needed that the result is exact to
            2e-5 in float32.

    Returns:
        [n, out_channels, (height − k) // S + 1, (width − k) // S + 1], in the dtype of ``x``.

    Raises:
        ValueError: the images are smaller than the kernel, or not floating point; the kernel is
            not square, or has other channels.
    """
    require_floating("x", x)
    if x.dim() != 4 or x.shape[1] != weight.shape[1]:
        raise ValueError(
            f"x must be [batch, {weight.shape[1]}, height, width], got shape {list(x.shape)}"
        )
    if weight.shape[2] != weight.shape[3]:
        raise ValueError(f"the kernel must be square, got shape {list(weight.shape)}")
    height, width = x.shape[2:]
    grid = PhaseGrid.of(height, width, weight.shape[2], stride, at_points)
    return correlate(grid.split(grid.fit(x)), transform_kernel(weight, grid, x.dtype), bias, grid)


def relu_conv2d(x: Tensor, weight: Tensor, bias: Tensor | None, grid: PhaseGrid) -> Tensor:
    """ReLU of a convolution of stride 1, as one matrix product; ``grid`` is the next one's.

    [n, channels, height, width] → [rows, columns, n, S, S, out_channels], for :func:`correlate`.
    """
    k = weight.shape[2]
    patches = grid.fit(x, margin=k - 1).unfold(2, k, 1).unfold(3, k, 1)
    patches = grid.split(patches)  # [rows, columns, n, S, S, channels, k, k]
    maps = product(patches.flatten(5).flatten(0, 4), weight.to(x.dtype).flatten(1).t())
    maps = maps.view(*patches.shape[:5], len(weight))
    if bias is not None:
        maps = maps + bias.to(x.dtype)
    y: Tensor = Relu.apply(maps)
    return y


def points_suffice(x: Tensor) -> bool:
    """Whether points are faster for such images and exact enough: float32 on a processor that is
    not allowed to round it to fewer bits.
    """
    return x.dtype == torch.float32 and x.device.type == "cpu" and float32_is_whole()


@torch.compiler.assume_constant_result  # guarded all the same
def float32_is_whole() -> bool:
    """Whether matrix products of float32 keep all of its bits."""
    try:
        return torch.get_float32_matmul_precision() == "highest"
    except RuntimeError:  # set for one device or library alone: PyTorch does not say then
        return False


class Transform(NamedTuple):
    """A convolution as products: ``back`` · ((``kernel`` · the kernel) × (``image`` · the image)).

    (The field's filter, input and output transform.) It multiplies wave by wave, or point by point:
    each part of one with each part of the other. A wave has two parts, real and imaginary, a point
    has one.
    """

    parts: int
    kernel: Tensor  # [waves or points · parts, most taps down, most across]
    image: Tensor  # [waves or points · parts, rows · columns]
    back: Tensor  # [height · width, waves or points · parts · parts]

    @classmethod
    def of(cls, grid: PhaseGrid, device: torch.device) -> "Transform":
        height, width, _, rows, columns, at_points = grid
        if at_points:
            bases = point_basis(height, rows, device), point_basis(width, columns, device)
            kernel, image, back = (torch.kron(*both) for both in zip(*bases, strict=True))
            most = rows - height + 1, columns - width + 1
            return cls(1, kernel.unflatten(1, most), image, back.t())
        basis = fourier_basis(rows, columns, device)  # [waves, 2, rows, columns]
        # And back: y = conj(w) x, so Re y = Re w Re x + Im w Im x, Im y = Re w Im x − Im w Re x.
        # Only the results that did not wrap around the grid's edge are computed.
        real, imaginary = basis[:, :, :height, :width].flatten(2).unbind(1)
        back = torch.stack([real, imaginary, -imaginary, real], dim=1).flatten(0, 1).t()
        pairs = basis.flatten(0, 1)
        return cls(2, pairs, pairs.flatten(1), back * math.sqrt(rows * columns / 2))


def transform_kernel(weight: Tensor, grid: PhaseGrid, dtype: torch.dtype) -> Tensor:
    """A kernel as :func:`correlate` wants it: a matrix for every point, two for every wave.

    [out_channels, channels, k, k] → [waves or points, parts · out_channels, S · S · channels], in
    ``dtype``.
    """
    out_channels, channels, k, _ = weight.shape
    taps = math.ceil(k / grid.stride)
    transform = Transform.of(grid, weight.device)
    basis = transform.kernel[:, :taps, :taps].flatten(1)
    own_grid = grid._replace(rows=taps, columns=taps)
    phases = own_grid.split(own_grid.fit(weight.to(dtype)))  # [taps, taps, out, S, S, channels]
    weight_hat = product(basis.to(dtype), phases.reshape(taps * taps, -1))
    return weight_hat.view(-1, transform.parts * out_channels, grid.stride**2 * channels)


def correlate(x: Tensor, weight_hat: Tensor, bias: Tensor | None, grid: PhaseGrid) -> Tensor:
    """:func:`fast_conv2d` of images in phases and a kernel from :func:`transform_kernel`.

    [rows, columns, n, S, S, channels] → [n, out_channels, height, width].
    """
    n, dtype = x.shape[2], x.dtype
    count, rows, inner = weight_hat.shape  # of waves or points; what each product sums over
    transform = Transform.of(grid, x.device)
    parts = transform.parts

    x_hat = product(transform.image.to(dtype), x.reshape(len(x) * x.shape[1], n * inner))
    x_hat = x_hat.view(count, parts * n, inner)
    products = products_of_parts(weight_hat, x_hat, parts)  # [count · parts², out_channels · n]
    y = product(transform.back.to(dtype), products)
    y = y.view(grid.height, grid.width, rows // parts, n).permute(3, 2, 0, 1)
    return y if bias is None else y + bias.to(dtype).view(-1, 1, 1)


def point_basis(results: int, points: int, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """A convolution along one side at points: the transforms of kernel, image and results.

    Kernel and results are taken as coefficients of polynomials. The values at as many points as
    their product has coefficients say what it is, and convolution is the transpose of this product.
    A point is a direction, cosine and sine, in place of their quotient (homogeneous coordinates;
    infinity is one of them); directions evenly around the half circle keep errors small.

    Returns:
        [points, points − results + 1], [points, points], [points, results], float64.
    """
    angles = math.pi / points * torch.arange(points, dtype=torch.float64, device=device)[:, None]

    def powers(count: int) -> Tensor:
        i = torch.arange(count, device=device)
        return angles.cos() ** (count - 1 - i) * angles.sin() ** i

    return powers(points - results + 1), torch.linalg.inv(powers(points)).t(), powers(results)


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
