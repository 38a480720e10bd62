"""What single figures promise beside their numbers."""

import io

import matplotlib as mpl
import numpy as np
import pytest
import torch
from matplotlib.patches import FancyBboxPatch
from PIL import Image

from capsnet.figures import style
from capsnet_book import figures
from capsnet_book.figures import QUANTITIES, Stage
from capsnet_book.figures.pairs import FIRST, SECOND


def hexadecimal(colour):
    return mpl.colors.to_hex(colour).upper()


def test_nothing_of_the_architecture_is_cut_off() -> None:
    stages = [Stage("a" * 12, (256, 28, 28), "b" * 20, "u_hat", "c" * 22)] * 3
    figure = figures.architecture(stages)
    figure.draw_without_rendering()
    (axes,) = figure.axes
    for text in axes.texts:
        box = text.get_window_extent()
        assert box.x0 >= 0 and box.x1 <= figure.bbox.x1 and box.y0 >= 0


def test_a_vote_is_as_thick_as_its_share() -> None:
    votes, outputs = np.ones((3, 1, 2)), np.ones((1, 1, 2)) / 2
    (axes,) = figures.routing_votes(
        votes, np.array([[[0.1], [0.7], [0.2]]]), outputs, outputs, ["A"]
    ).axes
    widths = [text.arrow_patch.get_linewidth() for text in axes.texts[:3]]
    assert list(np.argsort(widths)) == [0, 2, 1]
    assert "‖v‖ = 0.71" in axes.get_title()


def test_the_true_class_is_in_colour() -> None:
    (axes,) = figures.routing_lengths([[0.1, 0.5, 0.2]], 1, ["a", "b", "c"]).axes
    (coloured,) = (line for line in axes.lines if line.get_color() == QUANTITIES["v"].colour)
    assert list(coloured.get_ydata()) == [0.5]


def test_names_of_lines_that_end_together_keep_apart() -> None:
    same = {name: [1.0, 1.0] for name in "abcdefghi"}
    figure = figures.by_iteration([1, 2], same, ["c"] * 9, "share", logarithmic="y")
    (axes,) = figure.axes
    figure.draw_without_rendering()
    heights = sorted(
        axes.transData.transform((1, text.get_position()[1]))[1] for text in axes.texts
    )
    points = np.diff(heights) * 72 / figure.dpi
    assert len(heights) == 9 and points.min() > 9  # the size of the type


def test_a_line_is_dotted_beyond_what_its_network_was_trained_with() -> None:
    lines = {"a": [1.0, 2, 3], "b": [1.0, 2, 3], "c": [1.0, 2, 3]}
    figure = figures.by_iteration([2, 3, 4], lines, ["b"] * 3, "change", trained=[3, 1, 9])
    drawn = [
        (line.get_linestyle(), list(line.get_xdata()))
        for line in figure.axes[0].lines
        if len(line.get_xdata())
    ]
    assert drawn == [(":", [3, 4]), ("-", [2, 3]), (":", [2, 3, 4]), ("-", [2, 3, 4])]


def test_what_the_paper_reports_is_hollow() -> None:
    networks = {"here": (99.0, 91.0, 85.0), "paper": (99.0, 91.0, 62.5)}
    (axes,) = figures.moved_and_bent(networks, reported=["paper"]).axes
    inside = {
        float(line.get_ydata()[0]): line.get_markerfacecolor()
        for line in axes.lines
        if len(line.get_xdata()) == 1
    }
    assert inside == {0: style.INK, 1: "white"}


def test_mistakes_are_marked_in_a_gallery() -> None:
    figure = figures.gallery(torch.rand(3, 1, 4, 4), ["a", "b", "c"], per_row=2, mistakes=[1])
    shown = [axes for axes in figure.axes if axes.images]
    colours = [axes.title.get_color() for axes in shown]
    assert colours == [style.INK, style.MISTAKE, style.INK]
    places = [axes.get_subplotspec() for axes in shown]
    assert [(p.rowspan.start, p.colspan.start) for p in places] == [(0, 0), (0, 1), (1, 0)]


def test_the_file_keeps_the_colours_of_the_legend() -> None:
    faint = torch.rand(5, 2, 1, 36, 36) / 2  # of so many shades that 256 colours would not do
    figure = figures.taken_apart(torch.rand(5, 1, 36, 36), {"a": faint}, ["a"] * 5, [0, 1])
    (legend,) = figure.legends
    named = [patch.get_facecolor()[:3] for patch in legend.get_patches()]
    assert named == [FIRST, SECOND, (1, 1, 1)]
    colours = np.asarray(Image.open(io.BytesIO(figure._repr_png_())).convert("RGB")) / 255
    for wanted in (FIRST, SECOND):
        assert np.abs(colours - wanted).max(axis=2).min() < 0.01


def test_boxes_differ_not_by_colour_alone() -> None:
    boxes = [[[1, 2, 4, 7], [0, 0, 8, 8]]]
    (axes,) = figures.bounding_boxes(torch.rand(1, 1, 8, 8), boxes, ["a"]).axes
    assert [patch.get_linestyle() for patch in axes.patches] == ["-", "--"]


def test_every_quantity_has_a_box_of_its_colour() -> None:
    (axes,) = figures.palette().axes
    boxes = [patch for patch in axes.patches if isinstance(patch, FancyBboxPatch)]
    colours = {box.get_gid(): hexadecimal(box.get_facecolor()) for box in boxes}
    assert colours == {name: quantity.colour for name, quantity in QUANTITIES.items()}


def test_pooled_features_may_all_be_zero_or_negative() -> None:
    images = torch.zeros(1, 1, 2, 2)
    assert figures.pooled_features(images, torch.zeros(1, 2)).axes[1].get_ylim() == (0, 1)
    low, _ = figures.pooled_features(images, -torch.ones(1, 2)).axes[1].get_ylim()
    assert low < -1


def test_curves_of_a_training_draw_only_what_every_record_has() -> None:
    records = [{"epoch": k, "step": k, "loss": 1 / k, "learning_rate": 0.001} for k in (1, 2)]
    records[0] |= {"margin": 0.5, "validation_loss": 2.0, "validation_accuracy": 0.5}
    assert [len(axes.lines) for axes in figures.course(records).axes] == [1, 1]
    (axes,) = figures.loss_curves(records).axes
    assert len(axes.lines) == 1


def test_relative_errors_may_be_zero() -> None:
    (axes,) = figures.relative_errors([1.0, 2.0], {"exact": [0.0, 0.0]}).axes
    assert axes.get_ylim()[0] > 0


@pytest.mark.parametrize(
    ("draw", "args"),
    [
        (figures.rejection, ([0.5, 1.0], {name: [1.0, 0.5] for name in "abc"})),
        (figures.walk_lengths, ([0, 1], {name: [1, 0.5] for name in "abcd"})),
        (figures.relative_errors, ([1.0], {name: [0.5] for name in "abcde"})),
        (figures.receptive_fields, (np.zeros((1, 9, 9)), dict.fromkeys("abcd", (0, 1, 0, 1)))),
    ],
)
def test_no_line_is_left_out_for_want_of_a_style(draw, args) -> None:
    with pytest.raises(ValueError, match="zip"):
        draw(*args)
