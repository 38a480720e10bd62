"""Bent digits are checked by what is drawn."""

import matplotlib as mpl
import pytest

from capsnet.figures import style
from capsnet_book import figures
from capsnet_book.figures import Sweep

TURN = Sweep([-20, 0, 20], [0.5, 1.0, 0.75], [0.25, 0.9, 0.5], (-10, 10))
SIZE = Sweep([0.5, 1], [0.25, 1.0], [0.5, 0.9], (0.8, 1.2))


def colour(line):
    return mpl.colors.to_hex(line.get_color()).upper()


def test_each_change_has_a_column_of_accuracy_and_length():
    figure = figures.against_amount({"rotation, °": TURN, "size": SIZE})
    turn, size, turn_length, size_length = figure.axes
    for axes, sweep in ((turn, TURN), (size, SIZE)):
        (line,) = axes.lines
        assert list(line.get_xdata()) == sweep.amounts
        assert list(line.get_ydata()) == [100 * share for share in sweep.accuracy]
        assert colour(line) == style.INK
    for axes, sweep in ((turn_length, TURN), (size_length, SIZE)):
        (line,) = axes.lines
        assert list(line.get_ydata()) == sweep.length
        assert colour(line) == style.QUANTITIES["v"].colour
        (band,) = axes.patches
        assert (band.get_x(), band.get_x() + band.get_width()) == sweep.usual
    assert [axes.get_xlabel() for axes in (turn_length, size_length)] == ["rotation, °", "size"]
    assert turn.get_ylim() == size.get_ylim() == (0, 100)
    assert size_length.get_ylim() == (0, 1)


def test_a_sweep_has_two_numbers_for_each_amount():
    with pytest.raises(ValueError, match=r"size: .* got 1 and 2 for 2"):
        figures.against_amount({"turn": TURN, "size": SIZE._replace(accuracy=[1.0])})
    with pytest.raises(ValueError, match="at least one change"):
        figures.against_amount({})


def test_moved_and_bent_digits_of_each_network():
    accuracies = {"here": (99.5, 91.0, 85.0), "the paper": (99.0, None, 62.5)}
    figure = figures.moved_and_bent(accuracies, reported=["the paper"])
    (axes,) = figure.axes
    drawn = {
        (line.get_marker(), float(line.get_ydata()[0])): line
        for line in axes.lines
        if len(line.get_xdata()) == 1
    }
    assert list(drawn["^", 0].get_xdata()) == [91.0] and ("^", 1) not in drawn
    for height, (moved, _, bent) in enumerate(accuracies.values()):
        assert list(drawn["o", height].get_xdata()) == [moved]
        assert list(drawn["s", height].get_xdata()) == [bent]
    assert [drawn["o", height].get_markerfacecolor() for height in (0, 1)] == [style.INK, "white"]
    assert [label.get_text() for label in axes.get_yticklabels()] == list(accuracies)
    assert axes.yaxis_inverted()
    assert axes.get_xlim() == (60, 100)
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["as in training", "anywhere", "bent", "hollow: the paper"]


def test_what_is_reported_is_of_a_network():
    with pytest.raises(ValueError, match="no network: nobody"):
        figures.moved_and_bent({"here": (99.0, 90.0, 80.0)}, ["nobody"])
    for shares in ((99.0, 80.0), (None, None, None)):
        with pytest.raises(ValueError, match="here: expected three accuracies, one known, got"):
            figures.moved_and_bent({"here": shares})
    with pytest.raises(ValueError, match="at least one network"):
        figures.moved_and_bent({})
