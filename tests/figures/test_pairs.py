"""Figures of two digits in one image are checked by what they draw, not by their pixels."""

import io
import itertools

import numpy as np
import pytest
import torch
from matplotlib.patches import Rectangle
from PIL import Image

from capsnet.figures import style
from capsnet_book import figures
from capsnet_book.figures.pairs import FIRST, SECOND
from test_figures import VISION, lab, linear


def shown(axes_list):
    return [np.asarray(axes.images[0].get_array()) for axes in axes_list]


def test_a_bounding_box_holds_its_pixels_wholly():
    images = torch.rand(2, 1, 8, 8)
    boxes = torch.tensor([[[1, 2, 4, 7], [0, 0, 8, 8]], [[3, 3, 4, 4], [1, 1, 2, 6]]])
    figure = figures.bounding_boxes(images, boxes, ["a", "b"])
    assert [axes.get_title() for axes in figure.axes] == ["a", "b"]
    assert np.array_equal(shown(figure.axes), images[:, 0].numpy())
    for axes, pair in zip(figure.axes, boxes.tolist(), strict=True):
        drawn = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
        for patch, (top, left, bottom, right) in zip(drawn, pair, strict=True):
            # A pixel reaches half a pixel beyond its number.
            assert patch.get_xy() == (left - 0.5, top - 0.5)
            assert (patch.get_width(), patch.get_height()) == (right - left, bottom - top)
        assert [patch.get_linestyle() for patch in drawn] == ["-", "--"]  # not by colour alone
    assert figure._repr_png_().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("images", "boxes", "titles"),
    [((2, 1, 4, 4), (2, 2, 4), 3), ((2, 1, 4, 4), (2, 4), 2), ((0, 1, 4, 4), (0, 2, 4), 0)],
)
def test_boxes_of_other_images_are_an_error(images, boxes, titles):
    with pytest.raises(ValueError, match="n at least 1, got"):
        figures.bounding_boxes(torch.zeros(images), torch.zeros(boxes), ["a"] * titles)


def test_two_drawings_are_green_magenta_and_white_together():
    images = torch.rand(1, 1, 1, 4)
    pair = torch.tensor([[1.0, 0, 1, 0], [0, 1, 1, 0]]).view(1, 2, 1, 1, 4)
    figure = figures.taken_apart(images, {"both": pair}, ["3 and 5"], alone=True)
    image, first, second, both = shown(figure.axes)
    assert np.array_equal(image, images[0, 0].numpy())
    assert np.allclose(both[0], [FIRST, SECOND, (1, 1, 1), (0, 0, 0)])
    assert np.allclose(first[0], [FIRST, (0, 0, 0), FIRST, (0, 0, 0)])
    assert np.allclose(second[0], [(0, 0, 0), SECOND, SECOND, (0, 0, 0)])
    assert [axes.get_ylabel() for axes in figure.axes] == ["image", "first", "second", "both"]
    (legend,) = figure.legends
    named = {
        text.get_text(): patch.get_facecolor()[:3]
        for text, patch in zip(legend.get_texts(), legend.get_patches(), strict=True)
    }
    assert named == {"first digit": FIRST, "second digit": SECOND, "both": (1, 1, 1)}


def test_each_row_and_column_has_its_own_drawings():
    images = torch.rand(3, 1, 4, 4)
    one, other = torch.rand(2, 3, 2, 1, 4, 4)
    figure = figures.taken_apart(images, {"a": one, "b": other}, ["x", "y", "z"], mistakes=[1])
    grid = np.array(figure.axes).reshape(3, 3)
    for row, pairs in zip(grid[1:], (one, other), strict=True):
        for axes, pair in zip(row, pairs, strict=True):
            first, second = pair[:, 0, :, :, None].numpy()
            expected = first * FIRST + second * SECOND
            assert np.allclose(axes.images[0].get_array(), expected, atol=1e-6)
    assert [axes.get_title() for axes in grid[0]] == ["x", "y", "z"]
    colours = [axes.title.get_color() for axes in grid[0]]
    assert colours == [style.INK, style.MISTAKE, style.INK]
    assert [axes.get_ylabel() for axes in grid[:, 0]] == ["image", "a", "b"]
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_the_file_keeps_the_colours_of_the_legend():
    faint = torch.rand(5, 2, 1, 36, 36) / 2  # of so many shades that 256 colours would not do
    figure = figures.taken_apart(torch.rand(5, 1, 36, 36), {"a": faint}, ["a"] * 5, [0, 1])
    png = figure._repr_png_()
    colours = np.asarray(Image.open(io.BytesIO(png)).convert("RGB")) / 255
    for wanted in (FIRST, SECOND):
        assert np.abs(colours - wanted).max(axis=2).min() < 0.01
    assert b"atplotlib" not in png  # the same file whatever the version


@pytest.mark.parametrize(
    ("shape", "titles"),
    [((2, 1, 4, 4), 2), ((2, 2, 1, 4, 5), 2), ((2, 2, 1, 4, 4), 3), ((2, 3, 1, 4, 4), 2)],
)
def test_drawings_of_another_shape_are_an_error(shape, titles):
    with pytest.raises(ValueError, match="drawings must be"):
        figures.taken_apart(torch.zeros(2, 1, 4, 4), {"a": torch.zeros(shape)}, ["a"] * titles)


def test_no_drawings_are_an_error():
    with pytest.raises(ValueError, match="drawings must be"):
        figures.taken_apart(torch.zeros(1, 1, 4, 4), {}, ["a"])


@pytest.mark.parametrize("vision", VISION)
def test_the_two_digits_keep_apart_from_each_other_and_from_none_and_both(vision):
    assert np.allclose(np.add(FIRST, SECOND), 1)
    seen = [
        lab(np.array(VISION[vision]) @ linear(colour))
        for colour in (FIRST, SECOND, (0, 0, 0), (1, 1, 1))
    ]
    for one, other in itertools.combinations(seen, 2):
        assert np.linalg.norm(one - other) > 50  # as the palette's, but twice as far
