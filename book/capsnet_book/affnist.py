"""Digits changed and moved as affNIST's are (section 5.2).

Source: T. Tieleman, https://www.cs.toronto.edu/~tijmen/affNIST/
"""

import dataclasses
import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from capsnet.data import ImageSet, kind, pad_centred, sample_on, shift, to_float
from capsnet.multimnist import random_integers
from capsnet.training.evaluation import evaluate

SIDE = 40  # pixels
# How far affNIST goes, and what :func:`sweep` tries.
LIMITS = {"size a = b": (0.8, 1.2), "rotation θ, °": (-20.0, 20.0), "shear k": (-0.2, 0.2)}
SIZES = (0.4, 0.6, 0.8, 1.0, 1.2, 1.4)
ANGLES = (-60, -40, -20, 0, 20, 40, 60)
SHEARS = (-1.0, -0.6, -0.2, 0.0, 0.2, 0.6, 1.0)
Sweep = tuple[Sequence[float], Sequence[float], Sequence[float]]  # amounts, % right, lengths


def affine(
    images: Tensor,
    generator: torch.Generator | None = None,
    *,
    degrees: float = 20.0,
    shear: float = 0.2,
    scale: tuple[float, float] = (0.8, 1.2),
    size: int = SIDE,
) -> Tensor:
    """Change uint8 images [n, c, h, w] at random as affNIST does (section 5.2): [n, c, size, size].

    Each image is centred on zeros, scaled by two factors (width, height) uniform in `scale`,
    sheared (x += k · y) by k uniform in ±shear, and rotated by an angle uniform in ±degrees, with
    bilinear interpolation. Compose with :func:`capsnet.data.random_shift` to move it as well.

    Raises:
        ValueError: an image does not fit or is not uint8.
    """
    if images.dtype != torch.uint8:
        raise ValueError(f"images must be uint8, got {kind(images)}")
    low, high = scale
    canvas = pad_centred(images, size)
    uniform = sample_on(torch.rand, (len(images), 4), generator, images.device)
    angle = (2 * uniform[:, 0] - 1) * math.radians(degrees)
    k = (2 * uniform[:, 1] - 1) * shear
    scale_x, scale_y = (low + (high - low) * uniform[:, 2:]).unbind(1)
    # The sampler asks, for each pixel of the result, where it comes from: the inverse of
    # rotation · shear · scaling.
    cos, sin, zero = angle.cos(), angle.sin(), torch.zeros_like(angle)
    row_x = [(cos + k * sin) / scale_x, (sin - k * cos) / scale_x, zero]
    row_y = [-sin / scale_y, cos / scale_y, zero]
    inverse = torch.stack(row_x + row_y, dim=1).view(-1, 2, 3)
    grid = F.affine_grid(inverse, list(canvas.shape), align_corners=False)
    return F.grid_sample(canvas.float(), grid, align_corners=False).round().to(torch.uint8)


def moved_whole(images: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Move each of images [n, c, h, w] to any place, uniformly, at which no ink is cut off.

    affNIST moves its digits like this (section 5.2), by whole pixels. A blank image stays as it is.
    """
    ink = images.ne(0).any(dim=1)  # [n, h, w]
    offsets = []
    for has_ink in (ink.any(dim=2), ink.any(dim=1)):  # of the rows, of the columns
        before = has_ink.int().argmax(dim=1)  # free pixels above, or to the left
        after = has_ink.flip(1).int().argmax(dim=1)
        offsets.append(random_integers(before + after + 1, generator) - before)
    return shift(images, torch.stack(offsets, dim=1))


def matrix(
    degrees: float = 0.0, shear: float = 0.0, width: float = 1.0, height: float = 1.0
) -> Tensor:
    """The matrix A of one affine change: rotation · shear · scaling, [2, 2]."""
    angle = math.radians(degrees)
    cos, sin = math.cos(angle), math.sin(angle)
    rotation = torch.tensor([[cos, -sin], [sin, cos]])
    shearing = torch.tensor([[1.0, shear], [0.0, 1.0]])
    scaling = torch.tensor([[width, 0.0], [0.0, height]])
    return rotation @ shearing @ scaling


def bend(images: Tensor, A: Tensor) -> Tensor:
    """Change images [n, c, side, side] by A, [2, 2] or [n, 2, 2], about their middle."""
    inverse = F.pad(torch.linalg.inv(A), (0, 1))  # t = 0, [2, 3]
    inverse = inverse.expand(len(images), 2, 3)
    grid = F.affine_grid(inverse, list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, align_corners=False)


def sweep(model: nn.Module, images: ImageSet) -> dict[str, Sweep]:
    """How a network answers as digits change more and more, in one way at a time.

    Returns:
        By the name of the change, as in :data:`LIMITS`: its amounts, and for each amount the
        percentage of right answers and the mean length of the true digit's capsule.
    """
    ways = {
        "size a = b": (SIZES, [matrix(width=size, height=size) for size in SIZES]),
        "rotation θ, °": (ANGLES, [matrix(degrees=angle) for angle in ANGLES]),
        "shear k": (SHEARS, [matrix(shear=k) for k in SHEARS]),
    }
    swept: dict[str, Sweep] = {}
    for name, (amounts, changes) in ways.items():
        accuracy, length = [], []
        for change in changes:
            changed = (255 * bend(to_float(images.images), change)).round().to(torch.uint8)
            result = evaluate(model, dataclasses.replace(images, images=changed), precision="auto")
            accuracy.append(100 * result.accuracy)
            length.append(result.lengths.gather(1, result.labels[:, None]).mean().item())
        swept[name] = amounts, accuracy, length
    return swept
