"""Errors against labels are checked by what is drawn."""

import matplotlib as mpl
import pytest
from matplotlib.collections import LineCollection

from capsnet import figures
from capsnet.figures import style

CURVES = {"capsules": {100: 5.0, 1: 60.0}, "CNN": {1: 50.0, 10: 20.0, 100: 6.0}}


def test_curves_over_labels_and_their_spread():
    spreads = {"CNN": {1: (45.0, 55.0), 10: (19.0, 22.0)}}
    (axes,) = figures.errors_by_labels(CURVES, spreads).axes
    capsules, cnn = axes.lines
    assert list(capsules.get_xdata()) == [1, 100]  # sorted, and without what is missing
    assert list(capsules.get_ydata()) == [60.0, 5.0]
    assert list(cnn.get_ydata()) == [50.0, 20.0, 6.0]
    assert capsules.get_linestyle() != cnn.get_linestyle()
    ranges = [line for line in axes.collections if isinstance(line, LineCollection)]
    segments = [line.get_segments()[0].tolist() for line in ranges]
    assert segments == [[[1, 45], [1, 55]], [[10, 19], [10, 22]]]
    ends = [dots for dots in axes.collections if dots not in ranges]
    assert [dots.get_offsets().tolist() for dots in ends] == segments
    assert mpl.colors.to_hex(ranges[0].get_color()[0]).upper() == style.INK
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "10", "100"]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == list(CURVES)


def test_spreads_are_of_curves_and_curves_are_few():
    with pytest.raises(ValueError, match="of no curve: neighbour"):
        figures.errors_by_labels(CURVES, {"neighbour": {1: (1.0, 2.0)}})
    with pytest.raises(ValueError, match="1 to 3, got 0"):
        figures.errors_by_labels({})
    with pytest.raises(ValueError, match="1 to 3, got 4"):
        figures.errors_by_labels({str(i): {1: 1.0} for i in range(4)})
