"""What the numbers of a capsule change in its reconstruction, measured, not guessed."""

import torch
from torch import Tensor

from capsnet import Decoder

PROPERTIES = ["ink", "slant", "width", "height", "x", "y"]
STEPS = torch.linspace(-0.25, 0.25, 11)


def image_moments(pictures: Tensor) -> Tensor:  # [n, 28, 28] -> [n, 6]
    """The properties of pictures by image moments, in the order of ``PROPERTIES``."""
    p = pictures[:, None]
    ink = p.sum((2, 3))
    y, x = (torch.arange(float(side)) for side in p.shape[2:])
    x, y = x.expand(p.shape[2:]), y[:, None].expand(p.shape[2:])

    def average(values: Tensor) -> Tensor:
        return (p * values).sum((2, 3)) / ink

    mean_x, mean_y = average(x), average(y)
    x, y = x - mean_x[:, :, None, None], y - mean_y[:, :, None, None]
    slant = -average(x * y) / average(y * y)
    width, height = average(x * x).sqrt(), average(y * y).sqrt()
    return torch.cat([ink, slant, width, height, mean_x, mean_y], dim=1)


@torch.no_grad()
def reconstruct(decoder: Decoder, v: Tensor, digit: int) -> Tensor:  # [n, 16] -> [n, 28, 28]
    """The decoder's pictures of capsules of one digit; those of all others are zeros."""
    slots = v.new_zeros(len(v), decoder.num_classes, decoder.capsule_dim)
    slots[:, digit] = v
    pictures: Tensor = decoder(slots, torch.full((len(v),), digit))[:, 0]
    return pictures


def sweep(
    decoder: Decoder, v: Tensor, digit: int, directions: Tensor, steps: Tensor = STEPS
) -> Tensor:
    """Reconstructions of capsules [n, 16], moved in steps along each direction [k, 16].

    Returns:
        [n, k, steps, height, width].
    """
    moved = v[:, None, None] + steps[:, None] * directions[:, None]
    return reconstruct(decoder, moved.flatten(0, 2), digit).unflatten(0, moved.shape[:3])


def changes(
    decoder: Decoder, v: Tensor, digit: int, directions: Tensor, spread: Tensor
) -> Tensor:  # [n, 16], [k, 16], [6] -> [k, 6]
    """The rise of each property along each direction, from end to end, in units of `spread`."""
    steps = STEPS[::2]
    pictures = sweep(decoder, v, digit, directions, steps)
    moments = image_moments(pictures.flatten(0, 2)).unflatten(0, pictures.shape[:3])
    slope = (steps[:, None] * moments).sum(2).mean(0) / steps.square().sum()
    return (steps[-1] - steps[0]) * slope / spread


def handwriting(pictures: Tensor) -> Tensor:  # [n, 28, 28] -> [n, 3]
    """Slant in degrees from the vertical, and width and stroke thickness in pixels.

    The width is that of an evenly inked box with the same spread of ink around the slanted middle
    line, √12 standard deviations. The thickness is twice the ink over the length of its outline,
    because a long stroke has two sides; the length is the sum of the gradient's norm.
    """
    ink, slant, width, height = image_moments(pictures)[:, :4].T
    upright_width = (width.square() - (slant * height).square()).clamp(min=0).sqrt()
    down, right = pictures.diff(dim=1)[:, :, 1:], pictures.diff(dim=2)[:, 1:]
    outline = torch.hypot(down, right).sum((1, 2))
    return torch.stack([slant.atan().rad2deg(), 12**0.5 * upright_width, 2 * ink / outline], dim=1)
