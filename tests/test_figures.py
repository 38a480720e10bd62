"""Figures are checked by what they draw, not by their pixels."""

import itertools

import matplotlib as mpl
import numpy as np
import pytest
import torch

from capsnet.figures import style
from capsnet_book import figures

DIGITS = [str(digit) for digit in range(10)]


def pictures(axes_list):
    """The arrays drawn as images, in order."""
    return [np.asarray(axes.images[0].get_array()) for axes in axes_list if axes.images]


def test_loss_curves_draw_the_records():
    records = [
        {"step": step, "loss": 1 / step, "margin": 0.5 / step, "validation_loss": 2 / step}
        for step in (1, 2, 3)
    ]
    (axes,) = figures.loss_curves(records).axes
    total, margin, validation = axes.lines
    assert list(total.get_xdata()) == [1, 2, 3]
    assert list(total.get_ydata()) == [1, 1 / 2, 1 / 3]
    assert list(margin.get_ydata()) == [0.5, 0.25, 0.5 / 3]
    assert list(validation.get_ydata()) == [2, 1, 2 / 3]
    assert axes.get_xlabel() == "training step (batches seen)"
    assert axes.get_ylabel() == "loss per image"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "total",
        "margin loss alone",
        "total, validation images",
    ]


def test_loss_curves_draw_only_what_every_record_has():
    (axes,) = figures.loss_curves(
        [{"step": 1, "loss": 1.0, "margin": 0.5}, {"step": 2, "loss": 1.0}]
    ).axes
    assert len(axes.lines) == 1


def test_loss_curves_of_nothing_are_an_error():
    with pytest.raises(ValueError, match="at least one point"):
        figures.loss_curves([])


def test_per_class_accuracy_draws_percentages_and_counts():
    (axes,) = figures.per_class_accuracy([(977, 980), (1, 2)], ["zero", "one"]).axes
    (dots,) = axes.lines
    assert list(dots.get_xdata()) == [100 * 977 / 980, 50]
    assert [text.get_text() for text in axes.texts] == ["977/980", "1/2"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["zero", "one"]
    left, right = axes.get_xlim()
    assert left < 50
    assert right == 100
    assert "%" in axes.get_xlabel()


def test_per_class_accuracy_of_a_class_without_images_has_no_dot():
    (axes,) = figures.per_class_accuracy([(3, 4), (0, 0)], ["a", "b"]).axes
    assert np.isnan(axes.lines[0].get_xdata()[1])


def test_confusion_matrix_writes_every_count_and_colours_mistakes_alone():
    confusion = torch.tensor([[5, 2, 0], [0, 7, 1], [0, 0, 9]])
    (axes,) = figures.confusion_matrix(confusion, ["a", "b", "c"]).axes
    written = {text.get_position(): int(text.get_text()) for text in axes.texts}
    assert written == {(0, 0): 5, (1, 0): 2, (1, 1): 7, (2, 1): 1, (2, 2): 9}
    coloured = axes.images[0].get_array()
    assert coloured.filled(0).tolist() == [[0, 2, 0], [0, 0, 1], [0, 0, 0]]
    assert axes.get_xlabel() == "predicted class"
    assert axes.get_ylabel() == "true class"


def test_a_confusion_matrix_without_mistakes_can_be_drawn():
    figure = figures.confusion_matrix(np.eye(3, dtype=int), ["a", "b", "c"])
    assert figure._repr_png_().startswith(b"\x89PNG")


@pytest.mark.parametrize("count", [1, 5, 7, 10])
@pytest.mark.parametrize("channels", [1, 3])
def test_reconstructions_stand_under_their_originals(count, channels):
    generator = torch.Generator().manual_seed(count)
    images = torch.rand(count, channels, 6, 4, generator=generator)
    decoded = images.flip(0)
    labels = torch.arange(count) % 3
    predictions = labels.clone()
    predictions[0] = 2
    figure = figures.reconstructions(images, decoded, labels, predictions, ["a", "b", "c"])
    drawn = {
        (round(axes.get_subplotspec().rowspan.start), axes.get_subplotspec().colspan.start): axes
        for axes in figure.axes
        if axes.images
    }
    assert len(drawn) == 2 * count
    for i in range(count):
        row, column = 2 * (i // style.PER_ROW), i % style.PER_ROW
        for axes, expected in (
            (drawn[row, column], images[i]),
            (drawn[row + 1, column], decoded[i]),
        ):
            (shown,) = pictures([axes])
            wanted = expected[0] if channels == 1 else expected.permute(1, 2, 0)
            assert np.array_equal(shown, wanted.numpy())
            assert axes.images[0].get_clim() == (0, 1)
    assert drawn[0, 0].get_title() == "a → c"
    if count > 1:
        assert drawn[0, 1].get_title() == "b"
    assert drawn[0, 0].get_ylabel() == "original"
    assert drawn[1, 0].get_ylabel() == "decoded"


def test_images_may_be_uint8():
    images = torch.tensor([[[[0, 51], [102, 255]]]], dtype=torch.uint8)
    figure = figures.reconstructions(images, images, [0], [0], ["a"])
    assert pictures(figure.axes)[0].tolist() == [[0, 0.2], [0.4, 1]]


def test_reconstructions_of_other_shapes_are_an_error():
    images = torch.zeros(2, 1, 4, 4)
    with pytest.raises(ValueError, match=r"got \[2, 1, 4, 4\] and \[1, 1, 4, 4\]"):
        figures.reconstructions(images, images[:1], [0, 0], [0, 0], ["a"])
    with pytest.raises(ValueError, match=r"must be \[2\], got \[1\] and \[2\]"):
        figures.reconstructions(images, images, [0], [0, 0], ["a"])
    with pytest.raises(ValueError, match=r"\[1 or 3, height, width\], got \[2, 4, 4\]"):
        figures.reconstructions(torch.zeros(1, 2, 4, 4), torch.zeros(1, 2, 4, 4), [0], [0], ["a"])


@pytest.mark.parametrize("decoded", [True, False])
def test_a_prediction_shows_the_image_and_every_length(decoded):
    image = torch.rand(1, 5, 5)
    reconstruction = image / 2 if decoded else None
    lengths = torch.tensor([0.1, 0.95, 0.3], requires_grad=True)
    figure = figures.prediction(image, reconstruction, lengths, ["a", "b", "c"])
    shown = pictures(figure.axes)
    assert len(shown) == 1 + decoded
    assert np.array_equal(shown[0], image[0].numpy())
    if decoded:
        assert np.array_equal(shown[1], image[0].numpy() / 2)
    bars = figure.axes[-1].patches
    assert [bar.get_width() for bar in bars] == pytest.approx([0.1, 0.95, 0.3])
    colours = [mpl.colors.to_hex(bar.get_facecolor()).upper() for bar in bars]
    assert colours[1] == figures.QUANTITIES["v"].colour
    assert colours[0] == colours[2] == style.FAINT
    assert figure.axes[-1].get_title() == "predicted: b"


def test_half_precision_lengths_can_be_drawn():
    lengths = torch.tensor([0.5, 0.25], dtype=torch.bfloat16)
    figure = figures.prediction(torch.zeros(3, 4, 4), None, lengths, ["a", "b"])
    assert [bar.get_width() for bar in figure.axes[-1].patches] == [0.5, 0.25]


def test_per_class_table():
    assert figures.per_class_table([(977, 980), (0, 0), (1, 3)], ["0", "1", "two"]) == (
        "class  correct  accuracy\n"
        "0      977/980   99.69 %\n"
        "1          0/0         –\n"
        "two        1/3   33.33 %\n"
        "all    978/983   99.49 %"
    )


def test_confusion_text():
    assert figures.confusion_text([[5, 2], [0, 17]], ["a", "b"]) == (
        "true \\ predicted  a   b\n"
        "a                 5   2\n"
        "b                 ·  17"
    )  # fmt: skip


@pytest.mark.parametrize(
    "call",
    [
        lambda: figures.per_class_accuracy([(1, 2)], ["a", "b"]),
        lambda: figures.per_class_table([(1, 2)], ["a", "b"]),
        lambda: figures.prediction(torch.zeros(1, 4, 4), None, [0.5], ["a", "b"]),
    ],
)
def test_one_entry_a_class(call):
    with pytest.raises(ValueError, match="expected one entry for each of 2 classes, got 1"):
        call()


@pytest.mark.parametrize("draw", [figures.confusion_matrix, figures.confusion_text])
def test_a_confusion_matrix_is_square(draw):
    with pytest.raises(ValueError, match=r"must be \[2, 2\], got \[2, 3\]"):
        draw(np.zeros((2, 3), dtype=int), ["a", "b"])


def test_figures_are_opaque_show_themselves_and_leave_no_trace():
    before = dict(mpl.rcParams)
    figure = figures.per_class_accuracy([(1, 2)], ["a"])
    assert mpl.colors.to_hex(figure.get_facecolor()).upper() == style.PAPER
    png = figure._repr_png_()
    assert png.startswith(b"\x89PNG")
    assert png == figures.per_class_accuracy([(1, 2)], ["a"])._repr_png_()
    assert dict(mpl.rcParams) == before
    import sys

    assert (
        "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()
    )


# --- The palette -----------------------------------------------------------------------------

# Linear sRGB as seen with full protanopia, deuteranopia and tritanopia (Machado, Oliveira and
# Fernandes 2009, severity 1).
VISION = {
    "typical": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)


def linear(colour):
    value = np.array(mpl.colors.to_rgb(colour))
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    xyz = XYZ @ np.clip(rgb, 0, 1) / XYZ.sum(axis=1)
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def contrast(one, other):
    bright, dark = sorted(((XYZ @ linear(colour))[1] for colour in (one, other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("pair", list(itertools.combinations(figures.QUANTITIES, 2)), ids="-".join)
def test_any_two_quantities_keep_apart(vision, pair):
    one, other = (
        lab(np.array(VISION[vision]) @ linear(figures.QUANTITIES[name].colour)) for name in pair
    )
    assert np.linalg.norm(one - other) > 25  # CIE 1976 ΔE; 2.3 is just noticeable


@pytest.mark.parametrize("name", figures.QUANTITIES)
@pytest.mark.parametrize("page", ["#FFFFFF", "#14181E", "#121212"])
def test_a_quantity_stands_out_from_the_page(name, page):
    assert contrast(figures.QUANTITIES[name].colour, page) >= 3


@pytest.mark.parametrize("colour", [style.INK, style.MISTAKE])
def test_text_is_legible_on_a_figure(colour):
    assert contrast(colour, style.PAPER) >= 4.5


def test_macros_wear_their_quantity_s_colour():
    assert figures.MACROS["quhat"] == r"{\color{#27A2BA}{\hat{\mathbf{u}}}}"
    assert list(figures.MACROS) == ["qu", "quhat", "qb", "qc", "qs", "qv"]


# --- For notebooks ---------------------------------------------------------------------------


def sample(x):
    """Twice x.

    Two lines.
    """
    # A comment
    y = 2 * x
    return y


def test_source_is_the_live_source_without_its_docstring():
    shown = figures.source(sample).data
    assert shown == ("```python\ndef sample(x):\n    # A comment\n    y = 2 * x\n    return y\n```")


def test_source_from_a_line_on_is_dedented():
    assert figures.source(sample, start="y = 2").data == "```python\ny = 2 * x\nreturn y\n```"


def test_source_of_a_line_that_is_gone_is_an_error():
    with pytest.raises(ValueError, match="no line of sample holds 'z = '"):
        figures.source(sample, start="z = ")


def test_durations_are_bars_in_the_order_given():
    figure = figures.durations({"slow": 390.4, "fast": 42.6})
    (axes,) = figure.axes
    assert [bar.get_width() for bar in axes.patches] == [390.4, 42.6]
    assert [text.get_text() for text in axes.texts] == ["390", "43"]
    assert axes.yaxis_inverted()
    with pytest.raises(ValueError, match="at least one"):
        figures.durations({})


def test_growth_draws_time_and_memory_of_both_for_each_axis():
    rows = [
        {"name": name, "axis": axis, "value": value, "train_ms": ms * value, "train_bytes": 1e6}
        for name, ms in (("theirs", 2), ("ours", 1))
        for axis in ("batch_size", "parents")
        for value in (10, 20)
    ]
    figure = figures.growth(rows, {"theirs": "published", "ours": "here"})
    assert len(figure.axes) == 4
    time, memory = figure.axes[:2]
    assert [list(line.get_ydata()) for line in time.lines] == [[20, 40], [10, 20]]
    assert [list(line.get_ydata()) for line in memory.lines] == [[1, 1], [1, 1]]
    assert [text.get_text() for text in time.get_legend().get_texts()] == ["published", "here"]
    assert time.get_xlabel() == "batch size" and figure.axes[3].get_ylabel() == "megabytes"


def test_columns_line_up() -> None:
    assert figures.columns([["a", "1"], ["bcd", "23"]]) == "a     1\nbcd  23"
