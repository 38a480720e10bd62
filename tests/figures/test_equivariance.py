"""Pictures of pooled features, of vectors, and of how capsules follow a change."""

import numpy as np
import pytest
import torch

from capsnet_book import figures


def test_pooled_features_stand_beside_their_image():
    images = torch.rand(2, 1, 4, 6)
    pooled = torch.tensor([[1.0, 3.0, 2.0], [0.5, 0.0, 4.0]])
    figure = figures.pooled_features(images, pooled)
    left, bars, left_below, bars_below = figure.axes
    for axes, image in ((left, images[0]), (left_below, images[1])):
        assert np.array_equal(axes.images[0].get_array(), image[0].numpy())
    for axes, heights in ((bars, pooled[0]), (bars_below, pooled[1])):
        assert [bar.get_height() for bar in axes.patches] == heights.tolist()
    assert bars.get_ylim() == bars_below.get_ylim()  # one scale
    assert bars_below.get_xlabel() == "filter"


def test_pooled_features_may_all_be_zero_or_negative():
    images = torch.zeros(1, 1, 2, 2)
    assert figures.pooled_features(images, torch.zeros(1, 2)).axes[1].get_ylim() == (0, 1)
    low, _ = figures.pooled_features(images, -torch.ones(1, 2)).axes[1].get_ylim()
    assert low < -1


def test_pictured_vectors_are_arrows_on_one_scale():
    vectors = torch.tensor([[2.0, 0.0], [0.0, 1.0]])
    figure = figures.pictured_vectors(torch.rand(2, 1, 3, 3), vectors, ["0°", "45°"])
    above, below = figure.axes[:2], figure.axes[2:]
    assert [axes.get_title() for axes in above] == ["0°", "45°"]
    arrows = [axes.collections[0] for axes in below]
    assert [(arrow.U[0], arrow.V[0]) for arrow in arrows] == [(1, 0), (0, 0.5)]


def test_orientation_field_draws_dashes_at_half_the_angle():
    field = torch.zeros(1, 2, 2, 3)
    field[0, :, 1, 2] = torch.tensor([0.0, 3.0])  # 90°: a dash at 45°
    (axes,) = figures.orientation_field(torch.rand(1, 1, 2, 3), field).axes
    (dashes,) = axes.collections
    across, up = np.reshape(dashes.U, (2, 3)), np.reshape(dashes.V, (2, 3))
    assert across[1, 2] == pytest.approx(0.5**0.5) == up[1, 2]
    assert np.count_nonzero(across) == 1


def test_length_and_direction_draw_medians_for_every_change():
    amounts = [-1, 0, 1]
    lengths, angles = torch.rand(3, 5), 10 * torch.rand(3, 5)
    changes = {"shift, pixels": (amounts, lengths, angles), "turn, °": (amounts, lengths, angles)}
    figure = figures.length_and_direction(changes)
    above, _, below, last = figure.axes
    for axes, values in ((above, lengths), (below, angles)):
        (line,) = axes.lines
        assert list(line.get_xdata()) == amounts
        assert line.get_ydata() == pytest.approx(values.median(dim=1).values.numpy())
    assert above.get_ylabel() == "length ‖v‖"
    assert below.get_ylabel() == "direction turned, °"
    assert [below.get_xlabel(), last.get_xlabel()] == list(changes)
    assert above.get_ylim() == (0, 1)
    assert below.get_ylim()[0] == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda: figures.pooled_features(torch.zeros(2, 1, 4, 4), torch.zeros(1, 3)),
        lambda: figures.pictured_vectors(torch.zeros(2, 1, 4, 4), torch.zeros(2, 3), ["a", "b"]),
        lambda: figures.pictured_vectors(torch.zeros(0, 1, 4, 4), torch.zeros(0, 2), []),
        lambda: figures.orientation_field(torch.zeros(1, 1, 4, 4), torch.zeros(1, 2, 4, 3)),
        lambda: figures.orientation_field(torch.zeros(0, 1, 4, 4), torch.zeros(0, 2, 4, 4)),
        lambda: figures.length_and_direction({}),
        lambda: figures.length_and_direction({"x": ([1, 2], np.ones((3, 1)), np.ones((2, 1)))}),
    ],
)
def test_other_shapes_are_an_error(call):
    with pytest.raises(ValueError, match=r"must (be|hold)"):
        call()
