"""Pairs of overlapping digits."""

import zlib
from collections import Counter
from typing import Any

import pytest
import torch

from capsnet.data import ImageSet, centred, to_float
from capsnet.multimnist import multimnist, overlaid_batch
from helpers.tiny import some_digits

EVERY = torch.arange(300)


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(0)


@pytest.fixture(scope="module")
def digits() -> ImageSet:
    return some_digits(300)


def test_a_seed_gives_the_same_images_as_ever(digits: ImageSet) -> None:
    """Otherwise the runs of the ledger could not be repeated."""
    images, labels, each = overlaid_batch(centred(digits, 36), EVERY, 4, seeded())
    assert zlib.crc32(images.numpy()) == 3475128818
    pairs = multimnist(digits, EVERY, seeded())  # it makes the same canvas
    assert torch.equal(images, to_float(pairs.images))
    assert torch.equal(each, to_float(pairs.digits)) and torch.equal(labels, pairs.labels)


def test_pairs(digits: ImageSet, refuses) -> None:
    index: Any = [*range(300)] * 10
    pairs = multimnist(digits, index, seeded())
    assert pairs.images.shape == (3000, 1, 36, 36) and pairs.images.dtype == torch.uint8
    assert pairs.digits.shape == (3000, 2, 1, 36, 36)
    assert torch.equal(pairs.labels[:, 0], digits.labels[index])
    assert (pairs.labels[:, 0] != pairs.labels[:, 1]).all()
    total = pairs.digits.int().sum(1)
    assert torch.equal(pairs.images.int(), total.clamp(max=255))
    assert (total > 255).any()
    # Each digit is a digit of its class, whole, somewhere within ±4 pixels of the centre.
    for digit, label in zip(pairs.digits[:20].flatten(0, 1), pairs.labels.flatten(), strict=False):
        windows = digit.unfold(1, 28, 1).unfold(2, 28, 1).flatten(0, 2)  # [81, 28, 28]
        known = digits.images[digits.labels == label]  # [n, 1, 28, 28]
        assert (windows == known).all(-1).all(-1).any()
    assert len(multimnist(digits, generator=seeded()).images) == 300
    with refuses("at least two classes"):
        multimnist(digits.subset((digits.labels == 3).nonzero().flatten()))
    with refuses("max_shift must be a whole number of at least 0, got -1"):
        multimnist(digits, max_shift=-1)
    with refuses("square", "28 × 27"):
        multimnist(ImageSet(digits.images[..., :27], digits.labels, digits.classes, "x"))


def test_the_second_digit_is_uniform_over_the_others(digits: ImageSet) -> None:
    small = digits.subset(torch.tensor([0, 1, 2, 3, 4, 5]))  # 5, 0, 4, 1, 9, 2: all different
    pairs = multimnist(small, torch.zeros(10_000, dtype=torch.int64), seeded())
    counts = Counter(pairs.labels[:, 1].tolist())
    assert set(counts) == {0, 4, 1, 9, 2}
    assert all(abs(count - 2000) < 200 for count in counts.values())
