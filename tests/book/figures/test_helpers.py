"""What several figures share: rows of images and of dots, names of lines, histograms, colours."""

import matplotlib as mpl
import numpy as np
import pytest
import torch
from matplotlib.collections import LineCollection
from matplotlib.patches import FancyBboxPatch, StepPatch

from capsnet_book import figures
from capsnet_book.figures import Panel
from capsnet_book.figures.macros import MACROS
from capsnet_book.figures.pictures import FIRST, SECOND
from capsnet_lab.figures import style
from capsnet_lab.figures.style import QUANTITIES

IMAGES = np.random.default_rng(0).random((3, 1, 4, 5))


def test_a_gallery_has_pictures_in_rows_and_marks_mistakes() -> None:
    figure = figures.gallery(torch.from_numpy(IMAGES), ["a", "b", "c"], per_row=2, mistakes=[1])
    shown = [axes for axes in figure.axes if axes.images]
    for axes, image in zip(shown, IMAGES[:, 0], strict=True):
        assert np.allclose(axes.images[0].get_array(), image)
    colours = [axes.title.get_color() for axes in shown]
    assert colours == [style.INK, style.MISTAKE, style.INK]
    places = [axes.get_subplotspec() for axes in shown]
    assert [(p.rowspan.start, p.colspan.start) for p in places] == [(0, 0), (0, 1), (1, 0)]


def test_reconstructions_stand_under_their_images() -> None:
    images = np.random.default_rng(0).random((10, 1, 4, 5))
    predictions = [0] * 9 + [1]
    axes = figures.reconstructions(images, images / 2, [0] * 10, predictions, ["a", "b"]).axes
    expected = [*images[:5], *images[:5] / 2, *images[5:], *images[5:] / 2]
    assert all(
        np.allclose(a.images[0].get_array(), e[0]) for a, e in zip(axes, expected, strict=True)
    )
    assert [a.get_title() for a in axes] == ["a"] * 5 + [""] * 5 + ["a"] * 4 + ["a → b"] + [""] * 5
    assert axes[14].title.get_color() == style.MISTAKE != axes[13].title.get_color()


def test_two_digits_are_added_up_in_two_colours() -> None:
    pair = IMAGES[:2].reshape(1, 2, 1, 4, 5) / 2
    figure = figures.pair_reconstructions(IMAGES[:1], {"a": pair}, ["x"])
    image, *drawn = (axes.images[0].get_array() for axes in figure.axes)
    first, second = (pair[0, k, 0, :, :, None] * (FIRST, SECOND)[k] for k in (0, 1))
    assert np.allclose(image, IMAGES[0, 0, :, :, None])
    assert np.allclose(drawn, [first, second, first + second])


def test_dots_have_their_intervals_and_reported_ones_are_hollow() -> None:
    ends = {"one": (0.25, 0.125, 0.375), "two": (0.5, 0.25, 0.75)}
    (axes,) = figures.intervals(ends, "saved", ["two"]).axes
    one, two = axes.lines
    segments = [c.get_segments()[0] for c in axes.collections if isinstance(c, LineCollection)]
    assert np.allclose(segments, [[[0.125, 0], [0.375, 0]], [[0.25, 1], [0.75, 1]]])
    assert one.get_xydata().tolist() == [[0.25, 0]] and two.get_xydata().tolist() == [[0.5, 1]]
    assert one.get_markerfacecolor() == QUANTITIES["v"].colour
    assert two.get_markerfacecolor() == style.PAPER != two.get_color()
    (axes,) = figures.errors_added({"one": (-0.25, 0.1), "all of two": (0.5, 0.25)}).axes
    assert [text.get_text() for text in axes.get_yticklabels()] == ["all of two", "one"]


def test_rows_have_their_dots_their_mean_and_the_paper() -> None:
    errors = {"three": [0.5, 0.4, 0.6], "none": []}
    (axes,) = figures.runs({"error": errors}, {"none": 0.25}).axes
    drawn = [line.get_xydata().tolist() for line in axes.lines if line.get_marker() in "o|D"]
    assert drawn[:2] == [[[0.5, 0], [0.4, 0], [0.6, 0]], [[pytest.approx(0.5), 0]]]
    assert drawn[-1] == [[0.25, 1]]


@pytest.mark.parametrize("logarithmic", ["", "y"])
def test_names_are_at_the_ends_of_their_lines_and_keep_apart(logarithmic: str) -> None:
    lines = {name: ([1, 2], [1.0, 2.0]) for name in "abcdefg"} | {"far": ([1, 2], [1.0, 100.0])}
    panel = Panel("", "", lines, [*QUANTITIES, "", "faint"], logarithmic)
    (axes,) = figures.curves([panel]).axes
    axes.figure.draw_without_rendering()
    names = {text.get_text(): text for text in axes.texts}
    boxes = [text.get_window_extent() for text in names.values()]
    assert not any(box.overlaps(other) for i, box in enumerate(boxes) for other in boxes[:i])
    far = names["far"].get_transform().transform(names["far"].get_position())[1]
    assert far == pytest.approx(axes.transData.transform((2, 100.0))[1], abs=1)
    colours = [line.get_color() for line in axes.lines]
    assert colours == [*(q.colour for q in QUANTITIES.values()), style.INK, style.FAINT]
    assert [names[name].get_color() for name in lines] == colours


def test_lines_of_a_colour_that_end_together_have_their_names_side_by_side() -> None:
    lines = {"1": ([1, 2], [0.5, 0.91]), "2": ([1, 2], [0.5, 0.1]), "3": ([1, 2], [0.5, 0.9])}
    (axes,) = figures.curves([Panel("", "", lines, ["c"] * 3)]).axes
    assert sorted(text.get_text() for text in axes.texts) == ["1 3", "2"]


def test_a_line_of_several_runs_is_their_mean() -> None:
    panels = [Panel("", "y", {"one": ([1, 2], np.array([[1.0, 3], [5, 7]]))}, bottom=0)] * 2
    left, right = figures.curves(panels).axes
    *dots, line = left.lines
    assert [list(each.get_ydata()) for each in (*dots, line)] == [[1, 5], [3, 7], [2, 6]]
    assert left.get_ylim() == right.get_ylim() and left.get_ylim()[0] == 0


def test_histograms_are_in_percent_of_their_group() -> None:
    true, others = np.array([0.76, 0.81, 0.91, 0.21]), np.full(36, 0.11)
    above, below = figures.length_histogram(true, others, (0.9, 0.1)).axes
    for axes, filled in ((above, {8: 25, 30: 25, 32: 25, 36: 25}), (below, {4: 100})):
        (steps,) = (patch for patch in axes.patches if isinstance(patch, StepPatch))
        values = steps.get_data().values
        assert {i: values[i] for i in np.flatnonzero(values)} == filled


def test_equal_shares_are_one_bar() -> None:
    panels = figures.coupling_histograms(np.array([[0.1] * 3, [0.1, 0.12, 0.1]]), 0.1, "a").axes
    heights = [[bar.get_height() for bar in axes.patches] for axes in panels]
    assert heights == [[3, 0, 0], [2, 1, 0]]


def test_a_vote_is_as_thick_as_its_share() -> None:
    votes, outputs = np.ones((3, 1, 2)), np.ones((1, 1, 2)) / 2
    (axes,) = figures.routing_votes(votes, np.array([[[0.1], [0.7], [0.2]]]), outputs, ["A"]).axes
    widths = [text.arrow_patch.get_linewidth() for text in axes.texts[:3]]
    assert list(np.argsort(widths)) == [0, 2, 1]


def test_dashes_have_half_the_angle_of_their_vectors() -> None:
    fields = np.array([[[[0.0, 3]], [[3, 0]]]])  # one points up, one to the right
    (axes,) = figures.orientation_field(IMAGES[:1, :, :1, :2], fields).axes
    (dashes,) = axes.collections
    assert np.allclose([dashes.U, dashes.V], [[0.5**0.5, 1], [0.5**0.5, 0]])


def test_a_bold_line_is_the_mean_over_steps_about_its_place() -> None:
    records = [{"step": n, "margin": n, "reconstruction": 1} for n in range(1, 31)]
    raw, bold, *_ = figures.loss_curves(records, 0.5).axes[0].lines
    assert list(raw.get_ydata()) == list(range(1, 31))
    assert np.allclose(bold.get_xdata(), np.arange(10, 21))
    assert np.allclose(bold.get_ydata(), np.arange(10, 21) + 0.5)


def test_zeros_are_drawn_on_a_logarithmic_axis() -> None:
    (axes,) = figures.relative_errors([1.0, 2.0], {"exact": [0.0, 0.0]}).axes
    assert axes.get_ylim()[0] > 0


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


def test_a_quantity_has_one_colour_in_boxes_and_equations() -> None:
    (axes,) = figures.palette().axes
    boxes = [patch for patch in axes.patches if isinstance(patch, FancyBboxPatch)]
    colours = {b.get_gid(): mpl.colors.to_hex(b.get_facecolor()).upper() for b in boxes}
    assert colours == {name: quantity.colour for name, quantity in QUANTITIES.items()}
    assert all(
        q.colour in macro for q, macro in zip(QUANTITIES.values(), MACROS.values(), strict=True)
    )


def luminance(colour: str) -> float:
    """Relative, of WCAG 2."""
    rgb = np.array(mpl.colors.to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize(
    ("ground", "shade"),  # page and code, light and dark: what the theme has, and book.css
    [("#FFFFFF", "colour"), ("#F3F4F5", "colour"), ("#121212", "dark"), ("#1C2128", "dark")],
)
def test_a_quantity_is_legible_as_text(ground: str, shade: str) -> None:
    for quantity in QUANTITIES.values():
        bright, dark = sorted(map(luminance, (getattr(quantity, shade), ground)), reverse=True)
        assert (bright + 0.05) / (dark + 0.05) >= 4.5
