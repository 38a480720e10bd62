"""How routing goes on, checked by what is drawn."""

import matplotlib as mpl
import numpy as np
import pytest

from capsnet_book import figures

COLOUR = {name: quantity.colour for name, quantity in figures.QUANTITIES.items()}
ITERATIONS = [2, 3, 4, 5]
LINES = {"falling": [1.0, 0.1, 0.01, 0.001], "level": [0.5, 0.5, 0.5, 0.5]}


def draw(**options):
    figure = figures.by_iteration(ITERATIONS, LINES, ["b", ""], "mean change", **options)
    (axes,) = figure.axes
    return figure, axes


def test_each_line_is_drawn_in_its_quantity_s_colour_and_named():
    figure, axes = draw()
    for line, values in zip(axes.lines, LINES.values(), strict=True):
        assert list(line.get_xdata()) == ITERATIONS
        assert list(line.get_ydata()) == values
        assert line.get_linestyle() == "-"
    assert [mpl.colors.to_hex(line.get_color()).upper() for line in axes.lines] == [
        COLOUR["b"], "#1F2328",
    ]  # fmt: skip
    assert [text.get_text() for text in axes.texts] == list(LINES)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("iteration", "mean change")
    assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "linear")
    assert not figure.legends


@pytest.mark.parametrize("logarithmic", ["", "x", "y", "xy"])
def test_names_stand_at_the_ends_of_their_lines_on_any_axis(logarithmic):
    _, axes = draw(logarithmic=logarithmic)
    assert (axes.get_xscale() == "log") is ("x" in logarithmic)
    assert (axes.get_yscale() == "log") is ("y" in logarithmic)
    for text, values in zip(axes.texts, LINES.values(), strict=True):
        scale = np.log10 if "y" in logarithmic else np.asarray
        assert scale(text.xy[1]) == pytest.approx(scale(values[-1]))


def test_names_of_lines_that_end_together_keep_apart():
    same = {name: [1.0, 1.0] for name in "abcdefghi"}
    figure = figures.by_iteration([1, 2], same, ["c"] * 9, "share", logarithmic="y")
    (axes,) = figure.axes
    assert len(axes.lines) == len(axes.texts) == 9
    figure.draw_without_rendering()
    heights = sorted(axes.transData.transform((1, text.xy[1]))[1] for text in axes.texts)
    points = np.diff(heights) * 72 / figure.dpi
    assert points.min() > 9  # the size of the type


def test_a_line_is_dotted_beyond_what_its_network_was_trained_with():
    figure, axes = draw(trained=[3, 1])
    drawn = [(line.get_linestyle(), list(line.get_xdata())) for line in axes.lines]
    assert drawn == [(":", [3, 4, 5]), ("-", [2, 3]), (":", ITERATIONS)]
    (legend,) = figure.legends
    assert len(legend.get_texts()) == 2
    _, axes = draw(trained=[5, 10])
    assert [line.get_linestyle() for line in axes.lines] == ["-", "-"]


@pytest.mark.parametrize(
    ("iterations", "lines", "message"),
    [
        ([1, 2, 3], {"a": [1, 2]}, r"a must be \[3\], got \[2\]"),
        ([], {"a": []}, "expected a row of iterations and a line or more"),
        ([1, 2], {}, r"got \[2\] and 0 lines"),
    ],
)
def test_lines_that_do_not_fit_are_an_error(iterations, lines, message):
    with pytest.raises(ValueError, match=message):
        figures.by_iteration(iterations, lines, ["b"] * len(lines), "change")


def test_each_line_has_a_quantity():
    with pytest.raises(ValueError, match="quantities must be 2, one a line, got 1"):
        figures.by_iteration(ITERATIONS, LINES, ["b"], "change")
