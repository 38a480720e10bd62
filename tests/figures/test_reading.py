"""Figures are checked by what they draw, not by their pixels."""

import matplotlib as mpl
import numpy as np
import pytest
import torch

from capsnet.figures import style
from capsnet_book import figures


def drawn(figure):
    return [axes for axes in figure.axes if axes.images]


def test_a_gallery_shows_each_image_under_its_title():
    images = torch.rand(3, 1, 4, 4)
    figure = figures.gallery(images, ["a", "b\n2", "c"], per_row=2)
    for axes, image, title in zip(drawn(figure), images, ["a", "b\n2", "c"], strict=True):
        assert np.array_equal(axes.images[0].get_array(), image[0].numpy())
        assert axes.get_title() == title
    assert figure.get_figwidth() == style.WIDTH


@pytest.mark.parametrize(("shape", "titles"), [((2, 1, 4, 4), ["a"]), ((2, 4, 4), ["a", "b"])])
def test_a_gallery_takes_a_title_for_each_image(shape, titles):
    with pytest.raises(ValueError, match=r"with n titles, .* got \[2, .*\] and . titles"):
        figures.gallery(torch.zeros(shape), titles)
    with pytest.raises(ValueError, match="at least 1"):
        figures.gallery(torch.zeros(0, 1, 4, 4), [])


def test_mistakes_say_both_classes_and_both_lengths():
    lengths = torch.tensor([[0.25, 0.75, 0.0], [0.5, 0.0, 0.375]])
    figure = figures.mistakes(torch.rand(2, 1, 4, 4), [0, 2], lengths, ["a", "b", "c"])
    first, second = drawn(figure)
    assert [axes.get_title() for axes in (first, second)] == ["a → b", "c → a"]
    assert [axes.get_xlabel() for axes in (first, second)] == [".25 → .75", ".38 → .50"]
    assert first.title.get_color() == style.MISTAKE


def test_what_is_read_rightly_is_no_mistake():
    lengths = torch.tensor([[0.9, 0.1], [0.2, 0.8]])
    with pytest.raises(ValueError, match="image 1 is read rightly"):
        figures.mistakes(torch.zeros(2, 1, 4, 4), [1, 1], lengths, ["a", "b"])
    with pytest.raises(ValueError, match=r"lengths must be \[1, 2\], got \[2, 2\]"):
        figures.mistakes(torch.zeros(1, 1, 4, 4), [1], lengths, ["a", "b"])


def test_intervals_are_lines_with_a_dot_in_percent():
    (axes,) = figures.intervals({"one": (0.5, 0.25, 0.75), "two": (1.0, 0.5, 1.0)}).axes
    segments = axes.collections[0].get_segments()
    assert [list(segment[:, 0]) for segment in segments] == [[25, 75], [50, 100]]
    assert list(axes.lines[0].get_xdata()) == [50, 100]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["one", "two"]
    assert axes.yaxis_inverted()
    assert "%" in axes.get_xlabel()


@pytest.mark.parametrize(
    ("shares", "message"),
    [({}, "at least one"), ({"a": (0.1, 0.2, 0.3)}, "a: 0.1 does not lie in its interval")],
)
def test_intervals_hold_their_share(shares, message):
    with pytest.raises(ValueError, match=message):
        figures.intervals(shares)


def test_reliability_draws_groups_and_the_diagonal():
    (axes,) = figures.reliability([0.25, 0.75], [0.5, 1.0], [(0.25, 0.75), (0.5, 1.0)]).axes
    diagonal, dots = axes.lines
    assert list(diagonal.get_xdata()) == list(diagonal.get_ydata()) == [0, 1]
    assert list(dots.get_xdata()) == [0.25, 0.75]
    assert list(dots.get_ydata()) == [0.5, 1.0]
    assert mpl.colors.to_hex(dots.get_color()).upper() == figures.QUANTITIES["v"].colour
    segments = axes.collections[0].get_segments()
    assert [list(segment[:, 1]) for segment in segments] == [[0.25, 0.75], [0.5, 1.0]]
    with pytest.raises(ValueError, match=r"got \[2\], \[1\] and \[2, 2\]"):
        figures.reliability([0.1, 0.2], [0.5], [(0, 1), (0, 1)])


def test_right_and_wrong_are_shares_of_their_own_group():
    figure = figures.right_and_wrong(torch.arange(100.0), [10.0, 90.0], "length (pixels)")
    (axes,) = figure.axes
    right, wrong = axes.patches
    assert sum(right.get_data().values) == pytest.approx(100)
    assert sorted(wrong.get_data().values)[-2:] == [50, 50]
    assert axes.get_xlabel() == "length (pixels)"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "right answers",
        "wrong answers",
    ]
    with pytest.raises(ValueError, match=r"wrong answers must be .* got \[0\]"):
        figures.right_and_wrong([1.0], [], "length")


def test_rejection_draws_percentages():
    curves = {"short": [1.0, 0.5], "small": torch.tensor([1.0, 0.75])}
    (axes,) = figures.rejection([0.5, 1.0], curves).axes
    assert [list(line.get_xdata()) for line in axes.lines] == [[50, 100]] * 2
    assert [list(line.get_ydata()) for line in axes.lines] == [[100, 50], [100, 75]]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["short", "small"]
    with pytest.raises(ValueError, match=r"one shape, got \[2\] and \[1\]"):
        figures.rejection([0.5, 1.0], {"short": [1.0]})
    with pytest.raises(ValueError, match="one way or two, got 0"):
        figures.rejection([0.5, 1.0], {})
