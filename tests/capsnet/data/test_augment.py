"""Augmentation, against SciPy's."""

import zlib
from collections import Counter
from collections.abc import Callable

import pytest
import torch
from scipy import ndimage
from torch import Tensor

from capsnet import data
from capsnet.data import ImageSet
from helpers.tiny import some_digits

EVERY = torch.arange(300)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def digits() -> ImageSet:
    return some_digits(300)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda s: data.shifted(s, EVERY, 2, seeded())[0], 1632583980),
        (lambda s: data.overlaid(data.centred(s, 36), EVERY, 4, seeded())[0], 3475128818),
        (lambda s: data.multimnist(s, EVERY, seeded()).images, 615742910),
    ],
)
def test_a_seed_gives_the_same_images_as_ever(
    digits: ImageSet, make: Callable[[ImageSet], Tensor], expected: int
) -> None:
    """Otherwise the runs of the ledger could not be repeated."""
    assert zlib.crc32(make(digits).contiguous().numpy()) == expected


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.float64])
def test_shift_is_scipys(dtype: torch.dtype) -> None:
    images = (torch.rand(9, 3, 7, 5, generator=seeded()) * 255).to(dtype)
    offsets = [(0, 0), (2, -2), (-2, 2), (2, 2), (-2, -2), (1, 0), (0, -1), (7, 0), (0, 5)]
    moved = data.shift(images, torch.tensor(offsets))
    assert moved.dtype == dtype
    for before, after, offset in zip(images, moved, offsets, strict=True):
        assert (after.numpy() == ndimage.shift(before.numpy(), (0, *offset), order=0)).all()


def test_shift_refuses_what_does_not_fit(refuses) -> None:
    with refuses("[n, 2]", "[2, 2]"):
        data.shift(torch.zeros(3, 1, 4, 4), torch.zeros(2, 2, dtype=torch.int64))
    with refuses("[n, c, h, w]", "[3, 4, 4]"):
        data.shift(torch.zeros(3, 4, 4), torch.zeros(3, 2, dtype=torch.int64))


def test_offsets_are_uniform_and_independent() -> None:
    offsets = data.random_offsets(50_000, 2, seeded())
    counts = Counter(map(tuple, offsets.tolist()))
    assert len(counts) == 25
    assert offsets.dtype == torch.int64
    # 2000 expected of each; five standard deviations of a binomial are 219.
    assert all(abs(count - 2000) < 219 for count in counts.values())


def test_random_shift_is_per_image(digits: ImageSet, refuses) -> None:
    same = digits.images[:1].expand(100, -1, -1, -1)
    moved = data.random_shift(same, 2, seeded())
    assert len({m.numpy().tobytes() for m in moved}) > 20
    assert torch.equal(moved, data.shift(same, data.random_offsets(100, 2, seeded())))
    assert data.random_shift(same, 0) is same
    with refuses("at least 0", "-1"):
        data.random_shift(same, -1)


def test_random_shift_is_one_graph(digits: ImageSet) -> None:
    compiled = torch.compile(data.random_shift, fullgraph=True, backend="aot_eager")
    found = compiled(digits.images, 2)
    torch.manual_seed(0)  # as before each test
    assert torch.equal(found, data.random_shift(digits.images, 2))


def test_centred(digits: ImageSet, refuses) -> None:
    large = data.centred(digits, 40)
    assert large.images.shape == (300, 1, 40, 40)
    assert torch.equal(large.images[:, :, 6:34, 6:34], digits.images)
    assert int(large.images.sum()) == int(digits.images.sum())
    assert (large.labels is digits.labels, large.classes) == (True, digits.classes)
    with refuses("28 × 28", "27 × 27"):
        data.centred(digits, 27)


def test_batches_to_learn_from(digits: ImageSet) -> None:
    index = torch.tensor([4, 2])
    images, labels = data.shifted(digits, index, 2, seeded())
    assert torch.equal(images, data.to_float(data.random_shift(digits.images[index], 2, seeded())))
    assert torch.equal(labels, digits.labels[index])
    canvas = data.centred(digits, 36)
    images, labels, each = data.overlaid(canvas, index, 4, seeded())
    pairs = data.multimnist(digits, index, seeded())
    for mine, theirs in ((images, pairs.images), (each, pairs.digits)):
        assert torch.equal(mine, data.to_float(theirs))
    assert torch.equal(labels, pairs.labels)


def test_multimnist_pairs(digits: ImageSet, refuses) -> None:
    index = EVERY.repeat(10)
    pairs = data.multimnist(digits, index, seeded())
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
    assert len(data.multimnist(digits, generator=seeded()).images) == 300
    with refuses("at least two classes"):
        data.multimnist(digits.subset((digits.labels == 3).nonzero().flatten()))


def test_the_second_digit_is_uniform_over_the_others(digits: ImageSet) -> None:
    small = digits.subset(torch.tensor([0, 1, 2, 3, 4, 5]))  # 5, 0, 4, 1, 9, 2: all different
    pairs = data.multimnist(small, torch.zeros(10_000, dtype=torch.int64), seeded())
    counts = Counter(pairs.labels[:, 1].tolist())
    assert set(counts) == {0, 4, 1, 9, 2}
    assert all(abs(count - 2000) < 200 for count in counts.values())
