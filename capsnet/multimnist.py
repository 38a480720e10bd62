"""MultiMNIST, the paper's pairs of overlapping digits (section 6)."""

from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from capsnet.checks import as_int
from capsnet.data import ImageSet, pad_centred, random_shift, sample_on, to_float


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
        ValueError: the images are not square, are all of one class, or do not fit, or max_shift is
            negative.
    """
    h, w = image_set.images.shape[-2:]
    if h != w:
        raise ValueError(f"multimnist takes square images, got {h} × {w}")
    max_shift = as_int("max_shift", max_shift, 0)
    index = torch.arange(len(image_set)) if index is None else torch.as_tensor(index)
    index = index.to(image_set.labels.device)
    order, starts, present = image_set.by_class
    if present < 2:
        raise ValueError(f"pairs of different classes take at least two classes, got {present}")
    labels = image_set.labels[index]
    start, count = starts[labels], starts.diff()[labels]  # of the image's own class in `order`
    place = random_integers(len(image_set) - count, generator)
    pair = torch.stack([index, order[place + count * (place >= start)]], dim=1)  # [n, 2]
    size = h + 2 * max_shift if size is None else size
    middle = pad_centred(image_set.images[pair].flatten(0, 1), size)
    digits = random_shift(middle, max_shift, generator).unflatten(0, (len(index), 2))
    first, second = digits.unbind(1)
    overlaid = first + torch.minimum(second, 255 - first)  # a uint8 sum that stops at 255
    return MultiMNIST(overlaid, image_set.labels[pair], digits)


def overlaid_batch(
    image_set: ImageSet, index: Tensor, max_shift: int, generator: torch.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """Make a batch of pairs: images [n, c, h, w], labels [n, 2], each alone [n, 2, c, h, w].

    :func:`multimnist` on the set's own canvas, as float32 in 0..1. Enlarge the canvas with
    :func:`centred` first, so that nothing is moved beyond its edge. It raises the same.
    """
    size = image_set.images.shape[-1]
    pairs = multimnist(image_set, index, generator, max_shift=max_shift, size=size)
    return to_float(pairs.images), pairs.labels, to_float(pairs.digits)


def random_integers(bounds: Tensor, generator: torch.Generator | None) -> Tensor:
    """For each of bounds [n], an integer uniform in 0..bound-1."""
    # 2^53 is so large that the remainder is as good as uniform.
    randint = partial(torch.randint, 2**53)
    return sample_on(randint, bounds.shape, generator, bounds.device) % bounds
