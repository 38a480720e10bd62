"""Labelled images in memory."""

import torch

from capsnet.data import ImageSet, hold_out, load, to_float
from helpers.tiny import some_digits


def test_image_set(refuses) -> None:
    digits = some_digits(20)
    assert len(digits.subset(slice(3, 10))) == 7
    chosen = digits.subset([4, 2])
    assert torch.equal(chosen.images[1], digits.images[2])
    assert chosen.labels.tolist() == [int(digits.labels[4]), int(digits.labels[2])]
    assert digits.to("cpu").classes == digits.classes
    images, labels = digits.images[:3], digits.labels[:3]
    with refuses("uint8", "[1, 28, 28]"):
        digits.subset(torch.tensor(0))
    with refuses("uint8", "float32"):
        ImageSet(images.float(), labels, digits.classes, "x")
    with refuses("uint8", "[3, 28, 28]"):
        ImageSet(images[:, 0], labels, digits.classes, "x")
    with refuses("int64 [3]", "int64 [2]"):
        ImageSet(images, labels[:2], digits.classes, "x")
    with refuses("int64", "int32"):
        ImageSet(images, labels.int(), digits.classes, "x")
    with refuses("0..1", "9"):
        ImageSet(images, torch.tensor([0, 1, 9]), ("a", "b"), "x")
    with refuses("0..1", "-1"):
        ImageSet(images, torch.tensor([0, 1, -1]), ("a", "b"), "x")


def test_the_images_of_each_class() -> None:
    labels = torch.tensor([3, 1, 3, 0])
    images = torch.zeros(4, 1, 2, 2, dtype=torch.uint8)
    order, starts, present = ImageSet(images, labels, tuple("abcde"), "x").by_class
    assert order.tolist() == [3, 1, 0, 2]
    assert starts.tolist() == [0, 1, 2, 2, 4, 4]
    assert present == 3


def test_hold_out_is_the_last_sixth(refuses) -> None:
    everything = load("mnist", download=False)
    training, validation = hold_out(everything)
    assert (len(training), len(validation)) == (50000, 10000)
    assert torch.equal(validation.images, everything.images[50000:])
    assert torch.equal(training.labels, everything.labels[:50000])
    with refuses("at least 6", "5"):
        hold_out(everything.subset(slice(0, 5)))


def test_to_float(refuses) -> None:
    values = torch.tensor([0, 51, 255], dtype=torch.uint8)
    torch.testing.assert_close(to_float(values), torch.tensor([0.0, 0.2, 1.0]))
    with refuses("uint8", "float32"):
        to_float(values.float())
