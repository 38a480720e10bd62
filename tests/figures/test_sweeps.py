"""Figures of sweeps are checked by what they draw, not by their pixels."""

import numpy as np
import pytest
import torch

from capsnet_book import figures


def test_sweeps_put_each_picture_in_its_place():
    pictures = torch.rand(2, 3, 4, 5)
    figure = figures.sweeps(pictures, ["a", "b"], ["−1", "", "+1"], "added", "number")
    (axes,) = figure.axes
    sheet = np.asarray(axes.images[0].get_array())
    assert sheet.shape == (2 * 6 - 2, 3 * 7 - 2)
    assert np.allclose(sheet[6:10, 14:19], pictures[1, 2])
    assert (sheet[4:6] == 1).all()  # paper between the rows
    assert axes.images[0].get_clim() == (0, 1)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["−1", "", "+1"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("added", "number")
    assert figure._repr_png_().startswith(b"\x89PNG")


@pytest.mark.parametrize("shape", [(2, 3, 4), (3, 2, 4, 4), (2, 3, 0, 4)])
def test_sweeps_of_another_shape_are_an_error(shape):
    with pytest.raises(ValueError, match="2 rows, 3 columns"):
        figures.sweeps(torch.zeros(shape), ["a", "b"], ["", "", ""])


def test_a_property_map_writes_every_change():
    changes = [[0.04, -1.26], [2.0, 0.5]]
    figure = figures.property_map(changes, ["1", "2"], ["ink", "slant"], "number", "spreads")
    axes, bar = figure.axes
    assert [text.get_text() for text in axes.texts] == ["0", "−1.3", "+2.0", "+0.5"]
    assert [text.get_position() for text in axes.texts] == [(0, 0), (1, 0), (0, 1), (1, 1)]
    assert axes.images[0].get_clim() == (-2, 2)  # white is no change
    assert (axes.get_ylabel(), bar.get_ylabel()) == ("number", "spreads")


def test_a_property_map_without_changes_can_be_drawn():
    figure = figures.property_map(torch.zeros(1, 2), ["1"], ["a", "b"], "number", "spreads")
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_a_property_map_of_another_shape_is_an_error():
    with pytest.raises(ValueError, match=r"2 rows, 1 properties\], got \[1, 2\]"):
        figures.property_map([[1, 2]], ["1", "2"], ["ink"], "number", "spreads")


def test_walk_lengths_draw_one_line_a_walk():
    (axes,) = figures.walk_lengths([0, 0.5, 1], {"slerp": [1, 1, 1], "lerp": [1, 0.5, 1]}).axes
    assert [list(line.get_ydata()) for line in axes.lines] == [[1, 1, 1], [1, 0.5, 1]]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["slerp", "lerp"]
    assert "length" in axes.get_ylabel()
    with pytest.raises(ValueError, match=r"lengths of lerp must be \[3\], got \[2\]"):
        figures.walk_lengths([0, 0.5, 1], {"lerp": [1, 2]})


def test_a_plane_colours_its_points():
    points, values = torch.rand(5, 2), torch.arange(5.0)
    axes, bar = figures.plane(points, values, "slant", ["first", "second"]).axes
    (dots,) = axes.collections
    assert np.allclose(dots.get_offsets(), points)
    assert np.array_equal(dots.get_array(), values)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("first", "second")
    assert bar.get_ylabel() == "slant"
    with pytest.raises(ValueError, match=r"got \[5, 2\] and \[4\]"):
        figures.plane(points, values[:4], "slant", ["first", "second"])


def test_following_draws_a_panel_a_property_beside_the_diagonal():
    panels = {"slant": ([0, 1], [0.5, 0.75]), "ink, pixels": ([90, 110], [95, 120])}
    first, second = figures.following(panels).axes
    diagonal, line = first.lines
    assert list(diagonal.get_xdata()) == list(diagonal.get_ydata()) == [0, 1]
    assert (list(line.get_xdata()), list(line.get_ydata())) == ([0, 1], [0.5, 0.75])
    assert list(second.lines[0].get_xdata()) == [90, 120]
    assert [axes.get_title() for axes in (first, second)] == list(panels)


@pytest.mark.parametrize(
    ("panels", "message"),
    [({}, "at least one property"), ({"x": ([1, 2], [1])}, r"x: .* got \[2\] and \[1\]")],
)
def test_following_nothing_or_other_shapes_is_an_error(panels, message):
    with pytest.raises(ValueError, match=message):
        figures.following(panels)
