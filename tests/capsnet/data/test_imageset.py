"""Labelled images in memory."""

import numpy as np
import pytest
import torch

from capsnet.data import ImageSet, Source, hold_out, to_float
from helpers.tiny import some_digits


def test_image_set(refuses) -> None:
    digits = some_digits(20)
    assert len(digits.subset(slice(3, 10))) == 7
    chosen = digits.subset([4, 2])
    assert torch.equal(chosen.images[1], digits.images[2])
    assert chosen.labels.tolist() == [int(digits.labels[4]), int(digits.labels[2])]
    assert digits.to("cpu").classes == digits.classes
    with refuses("uint8", "[1, 28, 28]"):
        digits.subset(torch.tensor(0))
    images, labels = digits.images[:3], digits.labels[:3]
    for wrong_images, wrong_labels, expected, got in (
        (images.float(), labels, "uint8", "float32"),
        (images[:, 0], labels, "uint8", "[3, 28, 28]"),
        (images.numpy(), labels, "a tensor, uint8", "got ndarray"),
        (images, labels.numpy(), "a tensor, int64 [3]", "got ndarray"),
        (images, labels[:2], "int64 [3]", "int64 [2]"),
        (images, labels.int(), "int64", "int32"),
        (images, torch.tensor([0, 1, 10]), "0..9", "10"),
        (images, torch.tensor([0, 1, -1]), "0..9", "-1"),
    ):
        with refuses(expected, got):
            ImageSet(wrong_images, wrong_labels, digits.classes, "x")


@pytest.mark.parametrize("made", [list, np.array, torch.tensor])
def test_a_subset_by_a_mask(refuses, made) -> None:
    digits = some_digits(32)
    chosen = digits.subset(made([i in (5, 9) for i in range(32)]))
    assert torch.equal(chosen.images, digits.images[[5, 9]])
    assert chosen.labels.tolist() == digits.labels[[5, 9]].tolist()
    with refuses("a mask must be bool [32]", "got bool [3]"):
        digits.subset(made([True, False, True]))


def test_a_subset_by_indices(refuses) -> None:
    digits = some_digits(32)
    for dtype in (np.uint8, np.int32, np.int64):
        chosen = digits.subset(np.array([9, 5], dtype))
        assert torch.equal(chosen.images, digits.images[[9, 5]])
    assert len(digits.subset([])) == len(digits.subset(np.array([]))) == 0
    with refuses("integers or a mask", "got float32 [2]"):
        digits.subset([1.0, 2.5])
    with refuses("integers or a mask", "got float64 [1]"):
        digits.subset(np.array([1.0]))


def test_the_images_of_each_class() -> None:
    labels = torch.tensor([3, 1, 3, 0])
    images = torch.zeros(4, 1, 2, 2, dtype=torch.uint8)
    order, starts, present = ImageSet(images, labels, tuple("abcde"), "x").by_class
    assert order.tolist() == [3, 1, 0, 2]
    assert starts.tolist() == [0, 1, 2, 2, 4, 4]
    assert present == 3


def test_hold_out_is_the_last_sixth(refuses) -> None:
    everything = some_digits(14)
    training, validation = hold_out(everything)
    assert torch.equal(training.images, everything.images[:12])
    assert torch.equal(validation.labels, everything.labels[12:])
    with refuses("at least 6", "5"):
        hold_out(everything.subset(slice(0, 5)))


def test_what_is_not_read_is_said_in_order() -> None:
    source = Source("x", ("a",), (1, 1, 1), "by hand")
    lines = source.describe((("3",), ("5",)), {str(i): [0] * i for i in range(9)}).splitlines()
    assert lines[4:] == [f"  {i}: {i}, not read now" for i in (0, 1, 2, 4, 6, 7, 8)]


def test_to_float(refuses) -> None:
    values = torch.tensor([0, 51, 255], dtype=torch.uint8)
    torch.testing.assert_close(to_float(values), torch.tensor([0.0, 0.2, 1.0]))
    with refuses("uint8", "float32"):
        to_float(values.float())
    with refuses("a tensor, uint8", "got ndarray"):
        to_float(values.numpy())
