"""Errors against labels are checked by what is drawn."""

import matplotlib as mpl
import pytest

from capsnet.figures import style
from capsnet_book import figures

CURVES = {
    "capsules": {100: [5.0], 1: [50.0, 70.0]},
    "CNN": {1: [45.0, 49.0, 56.0], 10: [22.0, 18.0], 100: [6.0]},
}


def test_curves_are_means_and_upright_lines_are_all_draws():
    (axes,) = figures.errors_by_labels(CURVES).axes
    capsules, cnn = axes.lines
    assert list(capsules.get_ydata()) == [60.0, 5.0]  # sorted by count, without what is missing
    assert list(cnn.get_xdata()) == [1, 10, 100]
    assert list(cnn.get_ydata()) == [50.0, 20.0, 6.0]
    assert capsules.get_linestyle() != cnn.get_linestyle()
    ours, theirs = axes.collections
    assert [line[:, 1].tolist() for line in ours.get_segments()] == [[50, 70], [5, 5]]
    assert [line.tolist() for line in theirs.get_segments()] == [
        [[1, 45], [1, 56]], [[10, 18], [10, 22]], [[100, 6], [100, 6]]
    ]  # fmt: skip
    assert mpl.colors.to_hex(theirs.get_color()[0]).upper() == style.INK
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "10", "100"]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == list(CURVES)


def test_upright_lines_stand_beside_each_other():
    (axes,) = figures.errors_by_labels({name: {1: [1.0, 2.0]} for name in "abc"}).axes
    places = [line.get_xdata()[0] for line in axes.lines]
    assert 0.9 < places[0] < 0.95 < places[1] == 1 < 1.05 < places[2] < 1.1


def test_curves_are_few():
    with pytest.raises(ValueError, match="1 to 3, got 0"):
        figures.errors_by_labels({})
    with pytest.raises(ValueError, match="1 to 3, got 4"):
        figures.errors_by_labels({str(i): {1: [1.0]} for i in range(4)})
