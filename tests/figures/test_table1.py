"""Figures are checked by what they draw, not by their pixels."""

import matplotlib as mpl
import pytest

from capsnet.figures import style
from capsnet_book import figures

PAPER = {"one": (0.5, 0.25), "two": (0.125, 0.5), "three": (-0.25, 0.125)}
HERE = {"one": (0.25, 0.125), "two": (0.375, 0.25), "three": (0.0, 0.5)}


def dots(axes):
    """Where each dot stands, with its colour, without those of the legend."""
    return [
        (line.get_xdata()[0], round(line.get_ydata()[0]), mpl.colors.to_hex(line.get_color()))
        for line in axes.lines
        if len(line.get_xdata()) == 1
    ]


def test_effects_stand_on_their_intervals():
    figure = figures.effects(HERE, PAPER)
    (axes,) = figure.axes
    ours, theirs = figures.QUANTITIES["v"].colour.lower(), style.INK.lower()
    assert dots(axes) == [
        (0.25, 0, ours), (0.375, 1, ours), (0.0, 2, ours),
        (0.5, 0, theirs), (0.125, 1, theirs), (-0.25, 2, theirs),
    ]  # fmt: skip
    bars = [list(bar.get_segments()[0][:, 0]) for bar in axes.collections]
    assert bars == [
        [0.125, 0.375], [0.125, 0.625], [-0.5, 0.5],
        [0.25, 0.75], [-0.375, 0.625], [-0.375, -0.125],
    ]  # fmt: skip
    assert [label.get_text() for label in axes.get_yticklabels()] == list(PAPER)
    assert axes.yaxis_inverted()
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["trainings here", "the paper"]


def test_a_zero_is_drawn_to_compare_effects_with():
    (axes,) = figures.effects(HERE, PAPER).axes
    assert [0, 0] in [list(line.get_xdata()) for line in axes.lines]


@pytest.mark.parametrize(("here", "paper"), [({"one": (0.5, 0.25)}, PAPER), ({}, {})])
def test_effects_here_are_those_of_the_paper(here, paper):
    with pytest.raises(ValueError, match="must be of the paper's changes"):
        figures.effects(here, paper)


def test_missed_by_draws_a_bar_and_a_stroke_for_each_count():
    (axes,) = figures.missed_by([5, 2, 4], [8.5, 1.5, 0.25]).axes
    assert [(bar.get_x() + bar.get_width() / 2, bar.get_height()) for bar in axes.patches] == [
        (1, 5), (2, 2), (3, 4)
    ]  # fmt: skip
    strokes = axes.collections[0].get_segments()
    assert [tuple(stroke[:, 1]) for stroke in strokes] == [(8.5, 8.5), (1.5, 1.5), (0.25, 0.25)]
    assert axes.get_yscale() == "log"
    assert {text.get_text() for text in axes.get_legend().get_texts()} == {
        "missed here",
        "if all images were equally hard",
    }


@pytest.mark.parametrize(("images", "by_chance"), [([], []), ([1, 2], [1.0])])
def test_missed_by_takes_a_number_for_each_count(images, by_chance):
    with pytest.raises(ValueError, match="one number for each count of networks, got"):
        figures.missed_by(images, by_chance)
