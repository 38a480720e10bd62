"""Digits that are bent and moved as affNIST's, against SciPy's."""

import zlib
from collections import Counter

import numpy as np
import pytest
import torch
from scipy import ndimage

from capsnet import data
from capsnet.data import ImageSet
from capsnet_book.affnist import LIMITS, affine, bend, matrix, moved_whole, sweep
from helpers.tiny import some_digits, tiny_model


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def digits() -> ImageSet:
    return some_digits(300)


def test_a_seed_gives_the_same_places_as_ever(digits: ImageSet) -> None:
    """Otherwise the runs of the ledger could not be repeated."""
    moved = moved_whole(data.centred(digits, 40).images, seeded())
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
    assert torch.equal(moved_whole(blank), blank)


def test_affine_without_change_is_the_centred_image(digits: ImageSet, refuses) -> None:
    still = affine(digits.images[:20], degrees=0, shear=0, scale=(1, 1))
    assert still.shape == (20, 1, 40, 40) and still.dtype == torch.uint8
    assert torch.equal(still[:, :, 6:34, 6:34], digits.images[:20])
    assert still[:, :, :6].eq(0).all() and still[:, :, :, 34:].eq(0).all()
    with refuses("uint8", "float32"):
        affine(data.to_float(digits.images))
    with refuses("28 × 28", "20 × 20"):
        affine(digits.images, size=20)


def test_bend_is_scipys(digits: ImageSet) -> None:
    A = matrix(-17, 0.15, 1.1, 0.9)
    cos, sin = np.cos(np.radians(-17)), np.sin(np.radians(-17))
    product = np.array([[cos, -sin], [sin, cos]]) @ [[1, 0.15], [0, 1]] @ np.diag([1.1, 0.9])
    assert np.allclose(A, product)
    inverse = np.linalg.inv(product)[::-1, ::-1]  # SciPy's points are (y, x)
    offset = 13.5 - inverse @ (13.5, 13.5)
    image = data.to_float(digits.images[:1])
    expected = ndimage.affine_transform(image[0, 0].double().numpy(), inverse, offset, order=1)
    assert np.abs(bend(image, A)[0, 0].numpy() - expected).max() < 1e-4


def test_bend_makes_the_same_images_as_affine_to_a_grey_level(digits: ImageSet) -> None:
    changes = [
        matrix(40 * angle - 20, 0.4 * k - 0.2, 0.8 + 0.4 * width, 0.8 + 0.4 * height)
        for angle, k, width, height in torch.rand(50, 4, generator=seeded()).tolist()
    ]
    bent = 255 * bend(data.to_float(data.centred(digits, 40).images[:50]), torch.stack(changes))
    assert (bent.round() - affine(digits.images[:50], seeded())).abs().max() <= 1


def test_sweep_counts_right_answers_and_lengths(digits: ImageSet) -> None:
    some = digits.subset(slice(40))
    torch.manual_seed(0)
    model = tiny_model().eval()
    swept = sweep(model, some)
    assert swept.keys() == LIMITS.keys()
    amounts, right, length = swept["rotation θ, °"]
    turned = bend(data.to_float(some.images), matrix(degrees=amounts[-1]))
    with torch.no_grad():
        lengths = model((255 * turned).round() / 255).lengths
    found = (lengths.argmax(dim=1) == some.labels).double().mean().item()
    assert right[-1] == pytest.approx(100 * found)
    true = lengths.gather(1, some.labels[:, None]).mean().item()
    assert length[-1] == pytest.approx(true, abs=1e-5)


def test_images_are_made_without_waiting_for_a_gpu(
    digits: ImageSet, fake_cuda: torch.device
) -> None:
    images = digits.images.to(fake_cuda)
    for make in (affine, moved_whole):
        for generator in (seeded(), None):  # numbers that are drawn here, and there
            assert make(images, generator).device.type == "cuda"
