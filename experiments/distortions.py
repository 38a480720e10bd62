"""Digits changed and moved at random as affNIST's are (section 5.2).

Source: T. Tieleman, https://www.cs.toronto.edu/~tijmen/affNIST/
"""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from capsnet.data import sample_on, shift
from capsnet.multimnist import random_integers

LOW, HIGH = 0.8, 1.2  # the factors of width and height


def affine(
    images: Tensor, generator: torch.Generator | None, degrees: float = 20.0, shear: float = 0.2
) -> Tensor:
    """Change uint8 images [n, c, h, w] at random, each about its middle.

    Each is scaled by two factors (width, height) uniform from LOW to HIGH, sheared (x += k · y) by
    k uniform in ±shear, and rotated by an angle uniform in ±degrees, with bilinear interpolation.
    """
    uniform = sample_on(torch.rand, (len(images), 4), generator, images.device)
    angle = (2 * uniform[:, 0] - 1) * math.radians(degrees)
    k = (2 * uniform[:, 1] - 1) * shear
    scale_x, scale_y = (LOW + (HIGH - LOW) * uniform[:, 2:]).unbind(1)
    # The sampler asks, for each pixel of the result, where it comes from: the inverse of
    # rotation · shear · scaling.
    cos, sin, zero = angle.cos(), angle.sin(), torch.zeros_like(angle)
    row_x = [(cos + k * sin) / scale_x, (sin - k * cos) / scale_x, zero]
    row_y = [-sin / scale_y, cos / scale_y, zero]
    inverse = torch.stack(row_x + row_y, dim=1).view(-1, 2, 3)
    grid = F.affine_grid(inverse, list(images.shape), align_corners=False)
    return F.grid_sample(images.float(), grid, align_corners=False).round().to(torch.uint8)


def moved_whole(images: Tensor, generator: torch.Generator | None) -> Tensor:
    """Move each of images [n, c, h, w] to any place, uniformly, at which no ink is cut off.

    affNIST moves its digits like this, by whole pixels. A blank image stays as it is.
    """
    ink = images.ne(0).any(dim=1)  # [n, h, w]
    offsets = []
    for has_ink in (ink.any(dim=2), ink.any(dim=1)):  # of the rows, of the columns
        before = has_ink.int().argmax(dim=1)  # free pixels above, or to the left
        after = has_ink.flip(1).int().argmax(dim=1)
        offsets.append(random_integers(before + after + 1, generator) - before)
    return shift(images, torch.stack(offsets, dim=1))
