"""The scene of *Parts and a whole*, and its pictures."""

import numpy as np
import pytest
import torch
from matplotlib.patches import Polygon

from capsnet_book import figures, parts


def outlines(axes, filled):
    """What is filled, or only framed, in an axes: [corners, 2] each."""
    drawn = [p for p in axes.patches if isinstance(p, Polygon)]
    return [p.get_xy()[:-1] for p in drawn if p.get_fill() == filled]


@pytest.mark.parametrize("whole", parts.WHOLES)
def test_a_whole_is_where_each_of_its_parts_predicts_it(whole) -> None:
    where = parts.pose(0.3, -1.2, 77)
    for kind, at in parts.build(whole, where, list(parts.OUTLINES)):
        predicted = parts.matrix(*parts.SEEN[kind, whole]) @ at
        torch.testing.assert_close(predicted, where)


def test_a_part_is_moved_to_its_right_and_to_its_top() -> None:
    lying = parts.pose(1, 2, 90)  # its top is on the left, so its right is up
    torch.testing.assert_close(parts.matrix(0.5, 0.25, 90) @ lying, parts.pose(0.75, 2.5, 180))


def test_the_house_s_four_parts_agree_about_it_and_nobody_about_a_boat() -> None:
    poses = parts.predictions()
    far = torch.cdist(poses[:, :, :2].transpose(0, 1), poses[:, :, :2].transpose(0, 1))
    assert far[0, :4, :4].max() < 0.15 and far[0, :4, 4:].min() > 0.5
    assert far[1][~torch.eye(6, dtype=torch.bool)].min() > 0.15
    lengths = parts.votes().norm(dim=3)
    assert lengths.min() > 0.5 and lengths.max() < 1.1
    sure = torch.tensor([part.sure for part in parts.SCENE])
    torch.testing.assert_close(lengths, sure[None, :, None].expand(1, 6, 2))


def test_a_ghost_lies_on_the_part_that_predicts_it() -> None:
    at = parts.pose(0.4, 0.1, 33)
    kind = "rectangle"
    ghost = parts.matrix(*parts.SEEN[kind, "boat"]) @ at
    scene = figures.Scene("", [("triangle", parts.pose(2, 2, 0)), (kind, at)], [("boat", ghost)])
    filled = outlines(figures.scenes([scene]).axes[0], filled=True)
    (part,) = (shape for shape in filled[:2] if len(shape) == 4)
    (same,) = (shape for shape in filled[2:] if len(shape) == 4)
    assert np.allclose(part, same, atol=1e-6)
    # Turned counter-clockwise by 33 degrees: the first corner was below, on the left.
    turn = np.exp(1j * np.deg2rad(33)) * complex(*parts.OUTLINES[kind][0])
    assert np.allclose(part[0], [0.4 + turn.real, 0.1 + turn.imag], atol=1e-6)


def test_scenes_are_on_one_scale() -> None:
    small = figures.Scene("", [("small triangle", parts.pose(0, 0, 0))])
    large = figures.Scene("", parts.build("house", parts.pose(0, 0, 0)), ground="boat")
    figure = figures.scenes([small, large])
    figure.draw_without_rendering()
    one, other = (axes.transData.get_matrix()[0, 0] for axes in figure.axes)
    assert one == pytest.approx(other, rel=0.02)


def test_of_two_ghosts_the_second_is_dashed_and_a_boat_brings_its_sea() -> None:
    house, lying = parts.build("house", parts.pose(0, 0, 0)), parts.pose(2, 0, 90)
    (axes,) = figures.scenes([figures.Scene("", house, [("boat", lying), ("house", lying)])]).axes
    (sea,) = axes.lines
    # The boat's top is on the left, so its sea is on the right, and upright.
    assert np.ptp(sea.get_ydata()) == pytest.approx(1) and sea.get_xdata().min() > 2.4
    assert sum(patch.get_linestyle() == "--" for patch in axes.patches) == 2
