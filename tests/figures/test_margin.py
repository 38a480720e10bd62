"""Pictures of the margin loss, checked by what they draw."""

import numpy as np
import pytest
import torch

from capsnet_book import figures

MARGINS = (0.9, 0.1)


def test_curves_are_drawn_with_their_margins():
    at = torch.linspace(0, 1, 5, requires_grad=True)
    figure = figures.margin_curves(at, at**2, 1 - at, MARGINS, "loss")
    (axes,) = figure.axes
    present, absent, plus, minus = axes.lines
    assert np.allclose(present.get_ydata(), np.linspace(0, 1, 5) ** 2)
    assert np.allclose(absent.get_ydata(), 1 - np.linspace(0, 1, 5))
    assert [plus.get_xdata()[0], minus.get_xdata()[0]] == [0.9, 0.1]
    assert [text.get_text() for text in axes.texts] == ["m⁺ = 0.9", "m⁻ = 0.1"]
    assert axes.get_xlabel() == "length ‖v‖ of the capsule"
    assert axes.get_ylabel() == "loss"
    assert "T = 1" in figure.legends[0].get_texts()[0].get_text()


def test_curves_of_other_shapes_are_an_error():
    with pytest.raises(ValueError, match=r"one shape \[n\], got \[2\], \[2\] and \[3\]"):
        figures.margin_curves([0, 1], [0, 1], [0, 1, 2], MARGINS, "loss")


def test_histograms_are_in_percent_of_their_own_class():
    figure = figures.length_histogram([0.95, 0.85, 0.93, 0.99], [0.01] * 36, MARGINS, bins=10)
    true, others = figure.axes
    assert [bar.get_height() for bar in true.patches][-2:] == [25, 75]
    assert others.patches[0].get_height() == pytest.approx(100)
    assert [line.get_xdata()[0] for line in others.lines] == [0.9, 0.1]
    assert true.get_ylabel() == "capsules, %"
    assert others.get_xlabel() == "length ‖v‖ of the capsule"
    assert "true class" in [text.get_text() for text in true.texts]
    with pytest.raises(ValueError, match=r"of the other classes must be \[n\], got \[0\]"):
        figures.length_histogram([0.5], [], MARGINS)


def test_mean_lengths_are_a_curve_and_a_balance_for_each_weight():
    figure = figures.mean_lengths({0.5: [0.1, 0.2], 1.0: [0.1, 0.15]}, {0.5: 0.25, 1.0: 0.18})
    (axes,) = figure.axes
    half, half_balance, full, full_balance = axes.lines
    assert list(half.get_ydata()) == [0.1, 0.2] and list(half.get_xdata()) == [1, 2]
    assert list(full.get_ydata()) == [0.1, 0.15]
    assert half_balance.get_ydata()[0] == 0.25 and full_balance.get_ydata()[0] == 0.18
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert names == ["λ = 0.5", "λ = 1"]
    assert [text.get_text() for text in axes.texts] == ["balance 0.25", "balance 0.18"]


@pytest.mark.parametrize(
    ("curves", "balances", "message"),
    [
        ({}, {}, "at least one step"),
        ({0.5: []}, {0.5: 0.2}, "at least one step"),
        ({0.5: [0.1]}, {1.0: 0.2}, r"of λ = \[0.5\], got \[1.0\]"),
    ],
)
def test_mean_lengths_of_nothing_are_an_error(curves, balances, message):
    with pytest.raises(ValueError, match=message):
        figures.mean_lengths(curves, balances)
