"""Pictures of routing, checked by what they draw."""

import matplotlib as mpl
import numpy as np
import pytest
import torch

from capsnet.functional import dynamic_routing
from capsnet_book import figures

COLOUR = {name: quantity.colour for name, quantity in figures.QUANTITIES.items()}


def toy(parents=2, iterations=3):
    generator = torch.Generator().manual_seed(0)
    u_hat = torch.randn(1, 5, parents, 2, generator=generator)
    trace = []
    dynamic_routing(u_hat, iterations, trace=trace)
    _, c, s, v = (torch.stack(part)[:, 0].numpy() for part in zip(*trace, strict=True))
    return u_hat[0].numpy(), c, s, v


def arrows(axes, quantity):
    return [
        text
        for text in axes.texts
        if text.arrow_patch is not None
        and mpl.colors.to_hex(text.arrow_patch.get_edgecolor()).upper() == COLOUR[quantity]
    ]


@pytest.mark.parametrize("parents", [1, 2])
def test_votes_are_arrows_as_thick_as_their_share(parents):
    u_hat, c, s, v = toy(parents)
    figure = figures.routing_votes(u_hat, c, s, v, ["A", "B"][:parents])
    assert len(figure.axes) == 3 * parents
    for place, axes in enumerate(figure.axes):
        row, j = divmod(place, parents)
        votes = arrows(axes, "u_hat")
        assert np.allclose([vote.xy for vote in votes], u_hat[:, j])
        widths = [vote.arrow_patch.get_linewidth() for vote in votes]
        assert np.array_equal(np.argsort(widths), np.argsort(c[row, :, j]))
        for name, values in (("s", s), ("v", v)):
            (arrow,) = arrows(axes, name)
            assert np.allclose(arrow.xy, values[row, j])
        assert f"iteration {row + 1}: ‖v‖ = {np.linalg.norm(v[row, j]):.2f}" in axes.get_title()
        for limits, part in ((axes.get_xlim(), 0), (axes.get_ylim(), 1)):
            assert limits[0] < min(-1, u_hat[:, j, part].min(), s[row, j, part])
            assert limits[1] > max(1, u_hat[:, j, part].max(), s[row, j, part])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "û, as thick as c", "s", "v",
    ]  # fmt: skip


def test_votes_of_other_shapes_are_an_error():
    u_hat, c, s, v = toy()
    with pytest.raises(ValueError, match=r"u_hat must be \[5, 3, 2\], got \[5, 2, 2\]"):
        figures.routing_votes(u_hat, c, s, v, ["A", "B", "C"])
    with pytest.raises(ValueError, match=r"s must be \[3, 2, 2\], got \[2, 2, 2\]"):
        figures.routing_votes(u_hat, c, s[:2], v, ["A", "B"])


def test_shares_are_a_line_a_child():
    _, c, _, _ = toy()
    (axes,) = figures.routing_shares(c[:, :, 0], "A").axes
    assert np.allclose([line.get_ydata() for line in axes.lines], c[:, :, 0].T)
    assert list(axes.lines[0].get_xdata()) == [1, 2, 3]
    assert axes.get_ylabel() == "share c that goes to A"
    heights = sorted(text.xy[1] for text in axes.texts)
    assert len(heights) == 5 and np.diff(heights).min() > 0.05
    with pytest.raises(ValueError, match=r"must be \[iterations, children\], got \[3\]"):
        figures.routing_shares(c[:, 0, 0], "A")


def test_the_true_class_is_in_colour():
    lengths = torch.tensor([[0.1, 0.5, 0.2], [0.1, 0.9, 0.2]])
    (axes,) = figures.routing_lengths(lengths, 1, ["a", "b", "c"]).axes
    coloured = [line for line in axes.lines if line.get_color() == COLOUR["v"]]
    assert len(axes.lines) == 3 and len(coloured) == 1
    assert np.allclose(coloured[0].get_ydata(), [0.5, 0.9])
    assert [text.get_text() for text in axes.texts] == ["b, the true class", "the other classes"]
    assert axes.get_ylabel() == "length ‖v‖"


def test_a_class_without_others_has_no_others():
    (axes,) = figures.routing_lengths([[0.5]], 0, ["a"]).axes
    assert len(axes.texts) == 1


@pytest.mark.parametrize(
    ("lengths", "label", "message"),
    [
        ([[0.1, 0.2]], 0, r"must be \[iterations, 3\], got \[1, 2\]"),
        ([[0.1, 0.2, 0.3]], 3, "must lie in 0 … 2, got 3"),
    ],
)
def test_lengths_of_other_classes_are_an_error(lengths, label, message):
    with pytest.raises(ValueError, match=message):
        figures.routing_lengths(lengths, label, ["a", "b", "c"])


def test_a_histogram_an_iteration_counts_every_child():
    shares = torch.cat([torch.full((1, 50), 0.1), torch.linspace(0.02, 0.3, 50)[None]])
    figure = figures.share_histograms(shares, 0.1, "the seven")
    first, second = figure.axes
    counts = [[bar.get_height() for bar in axes.patches] for axes in (first, second)]
    assert [sum(row) for row in counts] == [50, 50]
    assert sorted(counts[0])[-2:] == [0, 50]  # equal shares are one bar
    assert list(first.lines[0].get_xdata()) == [0.1, 0.1]
    assert second.get_xlabel() == "share c of the child that goes to the seven"
    with pytest.raises(ValueError, match=r"got \[0, 4\]"):
        figures.share_histograms(np.zeros((0, 4)), 0.1, "A")
