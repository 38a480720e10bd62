"""Digits that are changed and moved at random."""

import zlib
from collections import Counter

import pytest
import torch

from capsnet import data
from capsnet.data import ImageSet
from capsnet_book.affnist import bend, matrix
from experiments.distortions import affine, moved_whole
from helpers.tiny import some_digits


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(0)


@pytest.fixture(scope="module")
def digits() -> ImageSet:
    return data.centred(some_digits(300), 40)


def test_a_seed_gives_the_same_places_as_ever(digits: ImageSet) -> None:
    """Otherwise the runs of the ledger could not be repeated."""
    moved = moved_whole(digits.images, seeded())
    assert zlib.crc32(moved.contiguous().numpy()) == 3776639878


def test_moved_whole_reaches_every_place_and_cuts_nothing() -> None:
    image = torch.zeros(1, 2, 6, 7, dtype=torch.uint8)
    image[0, 0, 2, 3], image[0, 1, 3, 5] = 8, 9  # ink of two rows and three columns
    moved = moved_whole(image.expand(2000, -1, -1, -1), seeded())
    places = Counter(tuple((m[0] == 8).nonzero()[0].tolist()) for m in moved)
    assert set(places) == {(row, column) for row in range(5) for column in range(5)}
    assert max(places.values()) < 2 * min(places.values())
    for m in moved:
        (row, column), (row_1, column_1) = (m[0] == 8).nonzero()[0], (m[1] == 9).nonzero()[0]
        assert (row_1 - row, column_1 - column) == (1, 2) and int(m.sum()) == 17
    blank = torch.zeros(3, 1, 4, 4)
    assert torch.equal(moved_whole(blank, None), blank)


def test_affine_makes_the_same_images_as_bend_to_a_grey_level(digits: ImageSet) -> None:
    changes = [
        matrix(40 * angle - 20, 0.4 * k - 0.2, 0.8 + 0.4 * width, 0.8 + 0.4 * height)
        for angle, k, width, height in torch.rand(50, 4, generator=seeded()).tolist()
    ]
    bent = 255 * bend(data.to_float(digits.images[:50]), torch.stack(changes))
    assert (bent.round() - affine(digits.images[:50], seeded())).abs().max() <= 1


def test_images_are_made_without_waiting_for_a_gpu(
    digits: ImageSet, fake_cuda: torch.device
) -> None:
    images = digits.images.to(fake_cuda)
    for make in (affine, moved_whole):
        for generator in (seeded(), None):  # numbers that are drawn here, and there
            assert make(images, generator).device.type == "cuda"
