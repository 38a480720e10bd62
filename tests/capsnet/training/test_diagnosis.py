"""A network that does not learn says so, and what to try."""

import dataclasses

import pytest
import torch

from capsnet.training.diagnosis import diagnose
from capsnet.training.evaluation import Evaluation
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


@pytest.mark.parametrize(
    ("right", "total", "baseline", "found"),
    [
        # Too few images, or more of the rare ones right than chance has.
        (5, 6, 5, None),
        (8, 9, 8, None),
        (19, 20, 18, None),
        (10, 29, 15, None),
        (98, 100, 95, None),
        (33, 50, 25, None),
        (60, 60, 60, None),  # of one class, which tells nothing
        # No better than chance.
        (30, 30, 29, None),
        (10, 30, 15, "10 of 30 right, 15 with"),
        (95, 100, 95, "95 of 100 right, 95 with"),
        (32, 50, 25, "32 of 50 right, 25 with"),
    ],
)
def test_chance_is_the_most_frequent_class(
    right: int, total: int, baseline: int, found: str | None
) -> None:
    labels = (torch.arange(total) >= baseline).long()
    answers = torch.where(torch.arange(total) < right, labels, 1 - labels)
    lengths = 0.3 + 0.5 * torch.nn.functional.one_hot(answers, 2)
    text = diagnose(Evaluation(lengths, labels, TEN[:2], 0.0, 0.0), 0.003)
    if found is None:
        assert text is None
    else:
        assert text is not None and found in text
        assert "long for the wrong classes, with mean lengths from 0.30 to 0.80" in text


def test_a_rate_that_is_too_high_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    config = dataclasses.replace(FP32, learning_rate=1.0, epochs=1)
    validation = some_digits(200, train=False)
    fit(tiny_model(), some_digits(320), validation, config, progress=True)
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("hardly better than giving every image")
