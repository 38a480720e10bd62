"""Evaluation: counts, losses, and no dependence on how images are batched."""

import math
from dataclasses import replace
from typing import ClassVar

import pytest
import torch
from torch import Tensor

from capsnet.data import ImageSet, to_float
from capsnet.functional import margin_loss, reconstruction_loss
from capsnet.model import CapsNetOutput
from capsnet.training.evaluation import Evaluation, evaluate
from helpers.tiny import some_digits, tiny_model


@pytest.fixture(scope="module")
def digits() -> ImageSet:
    return some_digits(70)


def test_losses_are_those_of_all_images_at_once(digits: ImageSet) -> None:
    model = tiny_model().eval()
    images = to_float(digits.images)
    with torch.no_grad():
        out = model(images, digits.labels)
    for batch_size in (1, 32, 70, 1000):
        result = evaluate(model, digits, batch_size)
        torch.testing.assert_close(result.lengths, out.lengths)
        assert result.margin == pytest.approx(margin_loss(out.lengths, digits.labels).item())
        expected = reconstruction_loss(out.reconstruction, images).item()
        assert result.reconstruction == pytest.approx(expected, rel=1e-5)
    assert evaluate(tiny_model(reconstruct=False), digits).reconstruction is None


def test_mode_is_put_back_and_no_gradient_is_kept(digits: ImageSet) -> None:
    model = tiny_model()
    model.conv.eval()  # a layer of its own mode
    assert not evaluate(model, digits).lengths.requires_grad
    assert model.training and model.primary.training and not model.conv.training


def test_logits_are_no_lengths_and_have_no_margin_loss(digits: ImageSet) -> None:
    class Linear(torch.nn.Linear):
        config: ClassVar = {"image_shape": [1, 28, 28], "num_classes": 10}

        def forward(self, images: Tensor, labels: Tensor | None = None) -> CapsNetOutput:
            logits = super().forward(images.flatten(1))
            return CapsNetOutput(logits.unsqueeze(2), logits, None)

    result = evaluate(Linear(784, 10), digits, arrangement="plain")
    assert result.margin is None and 0 <= result.accuracy <= 1


def test_bfloat16_is_close(digits: ImageSet) -> None:
    model = tiny_model()
    full, half = (evaluate(model, digits, precision=p).lengths for p in ("fp32", "bf16"))
    assert half.dtype == torch.float32
    assert not torch.equal(full, half)
    torch.testing.assert_close(half, full, rtol=0.05, atol=0.01)


def test_what_does_not_fit_is_refused(digits: ImageSet, refuses) -> None:
    model = tiny_model()
    for size in (0, 2.5):
        with refuses(f"batch_size must be a whole number of at least 1, got {size}"):
            evaluate(model, digits, size)
    with refuses("[1, 28, 28]", "[1, 20, 28]", "mnist"):
        evaluate(model, replace(digits, images=digits.images[:, :, 4:24]))
    with refuses("10 classes", "11"):
        evaluate(model, replace(digits, classes=(*digits.classes, "ten")))
    none = digits.subset(slice(0, 0))
    for given in (none, (none.images, none.labels)):
        with refuses("holds no images"):
            evaluate(model, given)
    with refuses("images must be torch.float64, as the weights are, got torch.float32"):
        evaluate(tiny_model().double(), digits)
    torch.nn.init.constant_(model.digits.weight, math.nan)
    with refuses("the network's lengths are NaN for 70 of 70 images"):
        evaluate(model, digits)
    with refuses("dict config", "image_shape", "Linear has not"):
        evaluate(torch.nn.Linear(3, 2), digits)


def test_counts_by_hand() -> None:
    lengths = torch.tensor(
        [[0.9, 0.1, 0.2], [0.3, 0.2, 0.1], [0.1, 0.2, 0.8], [0.1, 0.7, 0.6], [0.0, 0.1, 0.2]]
    )
    labels = torch.tensor([0, 1, 2, 1, 1])
    result = Evaluation(lengths, labels, ("a", "b", "c"), margin=0.5, reconstruction=100.0)
    assert result.predictions.tolist() == [0, 0, 2, 1, 2]
    assert result.accuracy == 0.6
    assert result.summary() == {
        "correct": 3,
        "total": 5,
        "margin": 0.5,
        "reconstruction": 100.0,
        "classes": ["a", "b", "c"],
        "per_class": [(1, 1), (1, 3), (1, 1)],
        "confusion": [[1, 0, 0], [1, 1, 1], [0, 0, 1]],
        "errors": [1, 4],
    }
