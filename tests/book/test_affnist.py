"""Digits that are bent as affNIST's, against SciPy's."""

import numpy as np
import pytest
import torch
from scipy import ndimage

from capsnet import data
from capsnet.data import ImageSet
from capsnet_book.affnist import LIMITS, bend, matrix, sweep
from helpers.tiny import some_digits, tiny_model


@pytest.fixture(scope="module")
def digits() -> ImageSet:
    return some_digits(300)


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
