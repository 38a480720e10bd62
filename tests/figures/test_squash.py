"""Pictures of the squashing function and of the error of computing it."""

import numpy as np
import pytest
import torch

from capsnet_book import figures


def test_squash_curves_draw_length_and_gradient():
    r = torch.linspace(0, 2, 5)
    figure = figures.squash_curves(r, r / 4, r / 3, r / 2)
    left, right = figure.axes
    assert left.lines[-1].get_ydata() == pytest.approx((r / 4).numpy())
    assert [list(line.get_ydata()) for line in right.lines] == [
        (r / 3).tolist(),
        (r / 2).tolist(),
    ]
    assert [text.get_text() for text in right.get_legend().get_texts()] == ["along s", "across s"]
    assert left.get_xlabel() == right.get_xlabel() == "input length ‖s‖"
    assert left.get_ylabel() == "output length ‖v‖"
    assert left.get_xlim() == (0, 2)


def test_squash_curves_of_other_lengths_are_an_error():
    with pytest.raises(ValueError, match=r"must all be \[n\], got \[3\] and \[3\], \[2\], \[3\]"):
        figures.squash_curves(np.ones(3), np.ones(3), np.ones(2), np.ones(3))


def test_relative_errors_draw_every_way_on_logarithmic_axes():
    x = np.logspace(-2, 2, 5)
    (axes,) = figures.relative_errors(x, {"ours": 1e-7 + 0 * x, "theirs": 1 / x}).axes
    drawn = {line.get_label(): list(line.get_ydata()) for line in axes.lines}
    assert drawn["ours"] == [1e-7] * 5
    assert drawn["theirs"] == list(1 / x)
    assert axes.get_xscale() == axes.get_yscale() == "log"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["ours", "theirs"]
    assert axes.get_ylabel() == "relative error of v"


def test_relative_errors_may_be_zero():
    (axes,) = figures.relative_errors([1.0, 2.0], {"exact": [0.0, 0.0]}).axes
    assert axes.get_ylim()[0] > 0


def test_relative_errors_of_other_shapes_are_an_error():
    with pytest.raises(ValueError, match="1 to 4 ways to compute, got 0"):
        figures.relative_errors([1.0], {})
    with pytest.raises(ValueError, match=r"every error must be \[2\], got \[1\]"):
        figures.relative_errors([1.0, 2.0], {"a": [1.0]})
