"""New images from images: shifts, and pairs that overlap.

Numbers are drawn from the ``torch.Generator`` that is passed in (PyTorch's own when it is None), on
its device, and then moved: a CPU generator gives the same result for images on any device.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from capsnet.data.imageset import ImageSet, kind, to_float


def random_offsets(
    n: int,
    max_shift: int = 2,
    generator: torch.Generator | None = None,
    device: torch.device | str | None = None,
) -> Tensor:
    """Draw offsets (dy, dx), int64 [n, 2] in pixels, uniform in -max_shift..max_shift.

    Raises:
        ValueError: max_shift is negative.
    """
    if max_shift < 0:
        raise ValueError(f"max_shift must be at least 0 pixels, got {max_shift}")
    randint = partial(torch.randint, 2 * max_shift + 1)
    return draw(randint, (n, 2), generator, device) - max_shift


def shift(images: Tensor, offsets: Tensor) -> Tensor:
    """Move images [n, c, h, w] by offsets (down, right), int64 [n, 2] in pixels; zeros come in.

    Raises:
        ValueError: the shapes do not fit together.
    """
    if images.dim() != 4 or offsets.shape != (images.shape[0], 2):
        got = f"{kind(images)} and {kind(offsets)}"
        raise ValueError(f"expected images [n, c, h, w] and offsets [n, 2], got {got}")
    h, w = images.shape[2:]
    framed = F.pad(images, (1, 1, 1, 1))  # whatever lies outside is on this frame of zeros
    image, channel, row, column = (torch.arange(s, device=images.device) for s in images.shape)
    row = (1 + row - offsets[:, :1]).clamp(0, h + 1)[:, None, :, None]  # where it comes from
    column = (1 + column - offsets[:, 1:]).clamp(0, w + 1)[:, None, None, :]
    return framed[image[:, None, None, None], channel[:, None, None], row, column]


def random_shift(
    images: Tensor, max_shift: int = 2, generator: torch.Generator | None = None
) -> Tensor:
    """Move each of images [n, c, h, w] at random, by up to max_shift pixels in each direction.

    The paper's only augmentation on MNIST (section 5).

    Raises:
        ValueError: max_shift is negative.
    """
    if max_shift == 0:
        return images
    return shift(images, random_offsets(len(images), max_shift, generator, images.device))


def shifted(
    image_set: ImageSet, index: Tensor, max_shift: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Make a batch to learn from: images float32 [n, c, h, w] in 0..1, and labels int64 [n].

    They are the images at ``index`` [n], moved by up to max_shift pixels. Under torchrun each of W
    processes makes the whole batch and keeps its share, so that the numbers do not depend on W:
    W times the work.
    """
    images = random_shift(image_set.images[index], max_shift, generator)
    return to_float(images), image_set.labels[index]


def overlaid(
    image_set: ImageSet, index: Tensor, max_shift: int, generator: torch.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """Make a batch of pairs: images [n, c, h, w], labels [n, 2], each alone [n, 2, c, h, w].

    :func:`multimnist` on the set's own canvas, as float32 in 0..1. Enlarge the canvas with
    :func:`centred` first, so that nothing is moved beyond its edge. It raises the same.
    """
    size = image_set.images.shape[-1]
    pairs = multimnist(image_set, index, generator, max_shift=max_shift, size=size)
    return to_float(pairs.images), pairs.labels, to_float(pairs.digits)


def centred(image_set: ImageSet, size: int) -> ImageSet:
    """Return the same set with each image in the middle of size × size pixels of zeros.

    Raises:
        ValueError: the images do not fit.
    """
    return replace(image_set, images=in_the_middle(image_set.images, size), trusted=True)


class MultiMNIST(NamedTuple):
    """Pairs of overlapping digits, made by :func:`multimnist`."""

    images: Tensor  # uint8 [n, c, size, size], the two digits of a pair overlaid
    labels: Tensor  # int64 [n, 2], their classes, which differ
    digits: Tensor  # uint8 [n, 2, c, size, size], each digit alone: the decoder's two targets


def multimnist(
    image_set: ImageSet,
    index: Tensor | None = None,
    generator: torch.Generator | None = None,
    *,
    max_shift: int = 4,
    size: int | None = None,
) -> MultiMNIST:
    """Make the paper's MultiMNIST (section 6): two digits of different classes, overlaid.

    Each digit moves by up to max_shift pixels in each direction, from the middle of a canvas of
    size × size pixels, and the sum of the two is cut off at 255. When size is None, the canvas just
    holds both (28 + 2 · 4 = 36); on a smaller one, what is moved beyond its edge is lost.

    ``index``, int64 [n], names the first digit of each pair (None: every image once, in order), and
    the second is drawn uniformly from all images of another class. For the paper's 1,000 pairs of
    each digit, index is ``torch.arange(len(image_set)).repeat(1000)``.

    Raises:
        ValueError: the images are not square, are all of one class, or do not fit.
    """
    h, w = image_set.images.shape[-2:]
    if h != w:
        raise ValueError(f"multimnist takes square images, got {h} × {w}")
    index = torch.arange(len(image_set)) if index is None else index
    index = index.to(image_set.labels.device)
    order, starts, present = image_set.by_class
    if present < 2:
        raise ValueError(f"pairs of different classes take at least two classes, got {present}")
    own = image_set.labels[index]
    start, count = starts[own], starts.diff()[own]  # of the image's own class in `order`
    place = below(len(image_set) - count, generator)
    pair = torch.stack([index, order[place + count * (place >= start)]], dim=1)  # [n, 2]
    size = h + 2 * max_shift if size is None else size
    middle = in_the_middle(image_set.images[pair].flatten(0, 1), size)
    digits = random_shift(middle, max_shift, generator).unflatten(0, (len(index), 2))
    first, second = digits.unbind(1)
    both = first + torch.minimum(second, 255 - first)  # a uint8 sum that stops at 255
    return MultiMNIST(both, image_set.labels[pair], digits)


def in_the_middle(images: Tensor, size: int) -> Tensor:
    """Pad images with zeros to size × size pixels."""
    h, w = images.shape[-2:]
    if size < h or size < w:
        raise ValueError(f"images of {h} × {w} pixels do not fit in {size} × {size}")
    top, left = (size - h) // 2, (size - w) // 2
    return F.pad(images, (left, size - w - left, top, size - h - top))


def below(bounds: Tensor, generator: torch.Generator | None) -> Tensor:
    """For each of bounds [n], an integer uniform in 0..bound-1."""
    # 2^53 is so large that the remainder is as good as uniform.
    randint = partial(torch.randint, 2**53)
    return draw(randint, bounds.shape, generator, bounds.device) % bounds


def draw(
    sampler: Callable[..., Tensor],
    shape: tuple[int, ...],
    generator: torch.Generator | None,
    device: torch.device | str | None,
) -> Tensor:
    """Draw where the generator is, then move to `device`; the host does not wait for it."""
    drawn = sampler(shape, generator=generator, device=generator.device if generator else device)
    if device is not None and torch.device(device).type == "cuda" and not drawn.is_cuda:
        return drawn.pin_memory().to(device, non_blocking=True)
    return drawn.to(device)
