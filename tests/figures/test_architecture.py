"""Pictures of the layers are checked by what they draw, not by their pixels."""

import matplotlib as mpl
import numpy as np
import pytest
import torch

from capsnet.figures import style
from capsnet_book import figures
from capsnet_book.figures import Stage

U = figures.QUANTITIES["u"].colour


def filled(axes):
    """Lower left corners of what is drawn in the colour of a child, as (column, row)."""
    return [
        patch.get_xy()
        for patch in axes.patches
        if mpl.colors.to_hex(patch.get_facecolor()).upper() == U
    ]


def test_the_architecture_says_every_name_shape_and_layer():
    stages = [
        Stage("image", (1, 8, 8), "convolution"),
        Stage("u", (12, 4), "matrices", "u"),
        Stage("predictions", (12, 3, 5), "routing", "u_hat"),
        Stage("v", torch.zeros(3, 5).shape, "mask", "v", "the answer"),
        Stage("kept", (15,), quantity="v"),
    ]
    figure = figures.architecture(stages)
    (axes,) = figure.axes
    written = [text.get_text() for text in axes.texts]
    for words in ("image", "1 × 8 × 8", "12 × 4", "12 × 3 × 5", "3 × 5", "15", "the answer"):
        assert words in written
    assert [words for words in written if words.startswith("↓")] == [
        "↓ convolution",
        "↓ matrices",
        "↓ routing",
        "↓ mask",
    ]
    colours = {text.get_text(): text.get_color() for text in axes.texts}
    assert colours["image"] == style.INK
    assert colours["u"] == U
    assert colours["v"] == colours["kept"] == figures.QUANTITIES["v"].colour
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_nothing_of_the_architecture_is_cut_off():
    stages = [Stage("a" * 12, (256, 28, 28), "b" * 20, "u_hat", "c" * 22)] * 3
    figure = figures.architecture(stages)
    figure.draw_without_rendering()
    (axes,) = figure.axes
    for text in axes.texts:
        box = text.get_window_extent()
        assert box.x0 >= 0 and box.x1 <= figure.bbox.x1 and box.y0 >= 0


@pytest.mark.parametrize("stages", [[], [Stage("x", ())], [Stage("x", (1, 2, 3, 4))]])
def test_an_architecture_of_other_shapes_is_an_error(stages):
    with pytest.raises(ValueError, match="shape of one to three numbers"):
        figures.architecture(stages)


def test_channel_grouping_fills_the_channels_the_place_and_the_child():
    figure = figures.channel_grouping(195, types=32, dim=8, grid=(6, 6))
    channels, *maps, listed = figure.get_axes()
    assert filled(channels) == [(40, 0)]
    assert len(maps) == 8
    assert [axes.get_title() for axes in maps] == [str(channel) for channel in range(40, 48)]
    assert all(filled(axes) == [(3, 2)] for axes in maps)
    grey, own = (
        [segment[0][0] - 0.5 for segment in lines.get_segments()] for lines in listed.collections
    )
    assert own == [195]
    assert sorted([*grey, *own]) == [36 * kind + 15 for kind in range(32)]
    assert channels.get_xlabel() == "channel"
    assert listed.get_xlabel() == "place in the list of children"
    assert listed.get_xlim() == (0, 1152)


@pytest.mark.parametrize("child", [-1, 1152])
def test_a_child_that_is_not_there_is_an_error(child):
    with pytest.raises(ValueError, match=f"0 … 1151, got {child}"):
        figures.channel_grouping(child, types=32, dim=8, grid=(6, 6))


def test_capsule_members_are_filled_in_their_channel():
    members = {
        "right": torch.tensor([[2, 0, 1], [3, 0, 1]]),
        "wrong": np.array([[2, 1, 1], [2, 1, 2]]),
    }
    figure = figures.capsule_members(members, grid=(2, 3))
    assert [axes.get_title() for axes in figure.get_axes()] == ["2", "3", "2", "3"]
    assert [filled(axes) for axes in figure.get_axes()] == [
        [(1, 0)],
        [(1, 0)],
        [(1, 1), (2, 1)],
        [],
    ]


@pytest.mark.parametrize("members", [{}, {"a": [1, 2, 3]}, {"a": [[1, 2]]}])
def test_members_of_another_shape_are_an_error(members):
    with pytest.raises(ValueError, match=r"must be \[dim, 3\] each"):
        figures.capsule_members(members, grid=(2, 3))


def test_receptive_fields_frame_whole_pixels():
    image = torch.rand(1, 9, 9)
    figure = figures.receptive_fields(image, {"a": (0, 4, 2, 6), "b": (1, 1, 8, 8)})
    (axes,) = figure.axes
    assert np.array_equal(axes.images[0].get_array(), image[0].numpy())
    frames = [
        (*frame.get_xy(), frame.get_width(), frame.get_height(), frame.get_label())
        for frame in axes.patches
    ]
    assert frames == [(1.5, -0.5, 5, 5, "a"), (7.5, 0.5, 1, 1, "b")]
    assert axes.get_xlabel() == "column, pixels"
    assert axes.get_ylabel() == "row, pixels"
    with pytest.raises(ValueError, match="one to 3, got 0"):
        figures.receptive_fields(image, {})
