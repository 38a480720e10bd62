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
        (0.97, "saturated, with mean lengths from 0.97 to 0.98; try a lower rate, such as 0.001"),
        (0.02, "silent, with mean lengths from 0.02 to 0.03; try more epochs, or a rate of 0.009"),
        (0.24, "alike, with mean lengths from 0.24 to 0.25; try more epochs, or a lower rate"),
    ],
)
def test_capsules_that_say_nothing(lengths: float, found: str) -> None:
    of_nothing = evaluation(lengths)
    text = diagnose(of_nothing, 0.003)
    assert text is not None and found in text and "of 1000 right, " in text
    assert diagnose(evaluation(lengths, right=100), 0.003) is None


def test_chance_is_the_most_frequent_class() -> None:
    even = evaluation(0.24)
    lengths = even.lengths.index_fill(1, torch.tensor([3]), 0.5)  # always the same answer
    mostly = torch.where(torch.arange(1000) < 600, 3, even.labels)
    assert diagnose(dataclasses.replace(even, lengths=lengths, labels=mostly), 0.003) is not None


@pytest.mark.parametrize(
    ("labels", "answers"),
    [
        ([0] * 18 + [1] * 2, [0] * 18 + [1] * 2),
        ([0] * 1000, [0] * 998 + [1] * 2),  # of one class, which tells nothing
    ],
)
def test_right_answers_and_a_single_class_are_no_trouble(
    labels: list[int], answers: list[int]
) -> None:
    lengths = torch.eye(2)[answers]
    assert diagnose(Evaluation(lengths, torch.tensor(labels), TEN[:2], 0.0, 0.0), 0.003) is None


def test_a_rate_that_is_too_high_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    config = dataclasses.replace(FP32, learning_rate=1.0, epochs=1)
    validation = some_digits(200, train=False)
    fit(tiny_model(), some_digits(320), validation, config, progress=True)
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("hardly better than giving every image")
