"""What single figures promise beside their numbers."""

import matplotlib as mpl
import numpy as np
import pytest
import torch
from matplotlib.patches import FancyBboxPatch

from capsnet_book import figures
from capsnet_lab.figures import style
from capsnet_lab.figures.style import QUANTITIES


def hexadecimal(colour):
    return mpl.colors.to_hex(colour).upper()


def test_nothing_of_the_network_is_cut_off_or_overlaps() -> None:
    random, v = np.random.default_rng(0), np.eye(10, 16) / 2
    v[9] *= 1.9
    image, maps = random.random((1, 28, 28)), random.random((256, 20, 20))
    u, votes = random.random((1152, 8)) / 3, random.random((1152, 10, 16))
    figure = figures.network(image, maps, u, votes, v, image, (6, 6))
    figure.draw_without_rendering()
    page, *boxes = figure.axes
    texts = [text.get_window_extent() for text in page.texts if text.get_text()]
    for i, text in enumerate(texts):
        assert text.x0 >= 0 and text.x1 <= figure.bbox.x1
        assert text.y0 >= 0 and text.y1 <= figure.bbox.y1
        assert not any(text.overlaps(other) for other in texts[:i])
        assert not any(text.overlaps(box.get_window_extent()) for box in boxes)


def test_a_vote_is_as_thick_as_its_share() -> None:
    votes, outputs = np.ones((3, 1, 2)), np.ones((1, 1, 2)) / 2
    (axes,) = figures.routing_votes(votes, np.array([[[0.1], [0.7], [0.2]]]), outputs, ["A"]).axes
    widths = [text.arrow_patch.get_linewidth() for text in axes.texts[:3]]
    assert list(np.argsort(widths)) == [0, 2, 1]
    assert "‖v‖ = 0.71" in [text.get_text() for text in axes.texts]


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


def test_what_the_paper_reports_is_hollow_and_a_networks_trainings_look_alike() -> None:
    courses = {"capsules": [[(3.0, 9.0), (2.0, 6.0)]] * 2, "CNN": [[(3.0, 8.0), (2.0, 7.0)]]}
    (axes,) = figures.bent_against_plain(courses, 2.0, {"the paper": (0.8, 20.0)}).axes
    _, *lines, paper = axes.lines
    looks = [(line.get_color(), line.get_linestyle(), line.get_marker()) for line in lines]
    assert looks[0] == looks[1] and all(a != b for a, b in zip(looks[1], looks[2], strict=True))
    assert paper.get_markerfacecolor() == style.PAPER != style.INK == paper.get_color()


def test_mistakes_are_marked_in_a_gallery() -> None:
    figure = figures.gallery(torch.rand(3, 1, 4, 4), ["a", "b", "c"], per_row=2, mistakes=[1])
    shown = [axes for axes in figure.axes if axes.images]
    colours = [axes.title.get_color() for axes in shown]
    assert colours == [style.INK, style.MISTAKE, style.INK]
    places = [axes.get_subplotspec() for axes in shown]
    assert [(p.rowspan.start, p.colspan.start) for p in places] == [(0, 0), (0, 1), (1, 0)]


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
    records = [{"epoch": k, "loss": 1 / k, "learning_rate": 0.001} for k in (1, 2)]
    records[0] |= {"validation_loss": 2.0, "validation_accuracy": 0.5}
    assert [len(axes.lines) for axes in figures.course(records).axes] == [1, 1]


def test_relative_errors_may_be_zero() -> None:
    (axes,) = figures.relative_errors([1.0, 2.0], {"exact": [0.0, 0.0]}).axes
    assert axes.get_ylim()[0] > 0


@pytest.mark.parametrize(
    ("draw", "args"),
    [
        (figures.rejection, ([0.5, 1.0], {name: [1.0, 0.5] for name in "abc"})),
        (figures.relative_errors, ([1.0], {name: [0.5] for name in "abcde"})),
        (figures.receptive_fields, (np.zeros((1, 9, 9)), dict.fromkeys("abcd", (0, 1, 0, 1)))),
    ],
)
def test_no_line_is_left_out_for_want_of_a_style(draw, args) -> None:
    with pytest.raises(ValueError, match="zip"):
        draw(*args)
