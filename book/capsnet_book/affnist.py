"""Digits changed as affNIST's are (section 5.2), in one way at a time.

Source: T. Tieleman, https://www.cs.toronto.edu/~tijmen/affNIST/
"""

import dataclasses
import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from capsnet.data import ImageSet, to_float
from capsnet.training.evaluation import evaluate

# How far affNIST goes, and what :func:`sweep` tries.
LIMITS = {"size a = b": (0.8, 1.2), "rotation θ, °": (-20.0, 20.0), "shear k": (-0.2, 0.2)}
SIZES = (0.4, 0.6, 0.8, 1.0, 1.2, 1.4)
ANGLES = (-60, -40, -20, 0, 20, 40, 60)
SHEARS = (-1.0, -0.6, -0.2, 0.0, 0.2, 0.6, 1.0)
Sweep = tuple[Sequence[float], Sequence[float], Sequence[float]]  # amounts, % right, lengths


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
