"""Pictures of the decoder's drawings are checked by what they show, not by their pixels."""

import numpy as np
import pytest
import torch

from capsnet.figures import style
from capsnet_book import figures


def test_a_gallery_shows_every_picture_in_its_row():
    pictures = torch.rand(5, 1, 4, 4)
    titles = ["a", "b", "c", "", ""]
    figure = figures.gallery(pictures, titles, per_row=3, rows=("up", "down"), mistakes=[1])
    shown = [axes for axes in figure.axes if axes.images]
    assert len(shown) == 5
    for i, axes in enumerate(shown):
        assert np.array_equal(axes.images[0].get_array(), pictures[i, 0].numpy())
        assert axes.images[0].get_clim() == (0, 1)
        place = axes.get_subplotspec()
        assert (place.rowspan.start, place.colspan.start) == divmod(i, 3)
    assert [axes.get_title() for axes in shown] == titles
    assert [axes.title.get_color() for axes in shown[:3]] == [
        style.INK,
        style.MISTAKE,
        style.INK,
    ]
    assert [axes.get_ylabel() for axes in shown] == ["up", "", "", "down", ""]


@pytest.mark.parametrize(
    ("pictures", "titles"),
    [(torch.rand(2, 1, 4, 4), ["a"]), (torch.rand(1, 4, 4), ["a"]), (torch.rand(0, 1, 4, 4), [])],
)
def test_a_gallery_of_other_shapes_is_an_error(pictures, titles):
    with pytest.raises(ValueError, match="with n titles"):
        figures.gallery(pictures, titles)


def test_a_gallery_names_all_its_rows_or_none():
    with pytest.raises(ValueError, match="must be 2 names, got 1"):
        figures.gallery(torch.rand(6, 1, 4, 4), [""] * 6, rows=("one",))


def test_squared_errors_mark_every_class_once_for_each_way():
    errors = {"black": torch.tensor([9.0, 8.0]), "decoder": [3.0, 2.0]}
    figure = figures.squared_errors(errors, ["zero", "one"])
    (axes,) = figure.axes
    assert [list(line.get_xdata()) for line in axes.lines] == [[9, 8], [3, 2]]
    assert [line.get_color() for line in axes.lines] == [style.FAINT, style.INK]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["zero", "one"]
    assert "squared" in axes.get_xlabel()
    assert axes.get_xlim()[0] == 0
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["black", "decoder"]


@pytest.mark.parametrize("errors", [{}, {"a": [1.0]}])
def test_squared_errors_of_another_shape_are_an_error(errors):
    with pytest.raises(ValueError, match=r"must be \[2\] each"):
        figures.squared_errors(errors, ["a", "b"])
