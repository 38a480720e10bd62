"""A network that does not learn says so, and what to try."""

import dataclasses

import pytest
import torch

from capsnet.training.evaluation import Evaluation
from capsnet.training.trouble import diagnose
from helpers.tiny import FP32, fit, some_digits, tiny_model

TEN = tuple("0123456789")


def evaluation(lengths: float, right: int = 0) -> Evaluation:
    """1,000 images: so many classified rightly, the rest by luck."""
    labels, noise = torch.arange(1000) % 10, 0.01
    rows = lengths + noise * torch.rand(1000, 10)
    rows[torch.arange(right), labels[:right]] += 2 * noise
    return Evaluation(rows, labels, TEN, margin=0.0, reconstruction=0.0)


@pytest.mark.parametrize(
    ("lengths", "found"),
    [
        (0.97, "saturated, 0.97 to 0.98 long on average; try a lower rate, such as 0.001"),
        (
            0.02,
            "silent, 0.02 to 0.03 long on average; try more epochs, or a rate of 0.009",
        ),
        (0.24, "alike, 0.24 to 0.25 long on average; try more epochs, or a lower rate"),
    ],
)
def test_capsules_that_say_nothing(lengths: float, found: str) -> None:
    of_nothing = evaluation(lengths)
    text = diagnose(of_nothing, 0.003)
    assert text is not None and found in text
    assert text.startswith("no better than one answer for all (") and "of 1000 right)" in text
    few = diagnose(of_nothing, 0.003, 72)
    assert few == text.partition("try ")[0] + (
        "try more epochs first (72 images are few, each counted as often as it is seen)"
    )
    assert diagnose(evaluation(lengths, right=100), 0.003) is None


def test_chance_is_the_most_frequent_class() -> None:
    even = evaluation(0.24)
    lengths = even.lengths.index_fill(1, torch.tensor([3]), 0.5)  # always the same answer
    mostly = torch.where(torch.arange(1000) < 600, 3, even.labels)
    assert diagnose(dataclasses.replace(even, lengths=lengths, labels=mostly), 0.003) is not None


@pytest.mark.parametrize("labels", [[0, 1, 0, 1], [0] * 18 + [1] * 2])
def test_a_few_images_that_are_all_right_are_no_trouble(labels: list[int]) -> None:
    answers = torch.eye(2)[labels]
    assert diagnose(Evaluation(answers, torch.tensor(labels), TEN[:2], 0.0, 0.0), 0.003) is None


def test_images_of_one_class_are_no_trouble() -> None:
    labels = torch.tensor([0] * 1000)
    answers = torch.eye(2)[[0] * 998 + [1] * 2]
    assert diagnose(Evaluation(answers, labels, TEN[:2], 0.0, 0.0), 0.003) is None


def test_without_validation_images_all_classes_are_looked_at(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Not the first 500, which may be of one class."""
    digits = some_digits(1500)
    in_order = digits.subset(digits.labels.argsort())
    # In rotation, too: one in ten of these is always of one class.
    in_turn = in_order.subset(torch.arange(1500).view(10, 150).t().flatten())
    for images in (in_order, in_turn):
        too_high = dataclasses.replace(FP32, learning_rate=1.0)
        fit(tiny_model(), images, None, too_high, progress=True)
        said = capsys.readouterr().err.splitlines()[-1]
        assert said.startswith("no better than one answer") and " of 500 right)" in said
        most = int(said.partition("(")[2].partition(" ")[0])
        assert most <= 100  # of ten classes


@pytest.mark.parametrize("held", [True, False])
def test_a_rate_that_is_too_high_is_said(held: bool, capsys: pytest.CaptureFixture[str]) -> None:
    config = dataclasses.replace(FP32, learning_rate=1.0, epochs=3)
    validation = some_digits(200, train=False) if held else None
    fit(tiny_model(), some_digits(320), validation, config, progress=True)
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("no better than one answer") and "(960 images are few" in last
    fit(tiny_model(), some_digits(640), validation, FP32, progress=True)
    assert "no better" not in capsys.readouterr().err


def test_a_loss_that_stands_still_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    config = dataclasses.replace(FP32, learning_rate=1e-9, average=0.0, shift=0)
    model = tiny_model()
    fit(model, some_digits(640), None, FP32)  # better than chance
    fit(model, some_digits(640), some_digits(200, train=False), config, progress=True)
    said = capsys.readouterr().err
    assert "the loss stands still at" in said and "chance" not in said
