"""Every plot that the book and the command line draw, and the tables that say the same in text.

A function takes numbers and returns a :class:`Figure`; it neither computes results nor touches
matplotlib's global state. Arrays may be NumPy's or torch's, on any device.
"""

import ast
import inspect
import io
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import matplotlib.figure
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Quantity:
    """A quantity of the paper: how an equation writes it, and its one colour."""

    latex: str
    colour: str


# The colours keep apart under protanopia, deuteranopia and tritanopia, and stand out (3 : 1) from
# a white and from a dark page; tests/test_figures.py measures both.
QUANTITIES = {
    "u": Quantity(r"\mathbf{u}", "#0E50FC"),  # a child's output
    "u_hat": Quantity(r"\hat{\mathbf{u}}", "#27A2BA"),  # its prediction of a parent
    "b": Quantity("b", "#5F6C66"),  # routing logit
    "c": Quantity("c", "#96552F"),  # coupling coefficient
    "s": Quantity(r"\mathbf{s}", "#A465E0"),  # a parent's total input
    "v": Quantity(r"\mathbf{v}", "#E77303"),  # a parent's output
}
# The macros of the book's equations, coloured: \qu, \quhat, \qb, \qc, \qs, \qv.
MACROS = {
    "q" + name.replace("_", ""): f"{{\\color{{{quantity.colour}}}{{{quantity.latex}}}}}"
    for name, quantity in QUANTITIES.items()
}
INK = "#1F2328"
FAINT = "#8C959F"
MISTAKE = "#B3261E"
PAPER = "#FFFFFF"

PER_ROW = 5  # images side by side
WIDTH = 5.6  # inches; the text of a figure stays legible when a phone shrinks it
_STYLE: dict[Any, Any] = {
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.labelsize": 10,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.fontsize": 9,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": FAINT,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.facecolor": PAPER,
    "figure.facecolor": PAPER,  # opaque: the same on a light and on a dark page
    "savefig.facecolor": PAPER,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "legend.frameon": False,
    "figure.dpi": 160,
    "savefig.dpi": 160,
    "figure.constrained_layout.use": True,
}


class Figure(mpl.figure.Figure):
    """A matplotlib figure that a notebook shows without pyplot."""

    def __init__(self, height: float, width: float = WIDTH) -> None:
        super().__init__(figsize=(width, height))
        FigureCanvasAgg(self)

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        # No software version in the file: the picture depends on what is drawn alone.
        self.savefig(buffer, format="png", metadata={"Software": None})
        return buffer.getvalue()


@mpl.rc_context(_STYLE)
def loss_curves(records: Sequence[Mapping[str, Any]]) -> Figure:
    """Loss against training step, on a logarithmic axis.

    Args:
        records: one mapping a point with "step" and "loss"; "margin" and "validation_loss" are
            drawn too where every record has them, what lies between margin and total being the
            weighted reconstruction loss.
    """
    if not records:
        raise ValueError("records must hold at least one point, got none")
    curves = {
        "loss": ("total", INK, "-"),
        "margin": ("margin loss alone", QUANTITIES["v"].colour, "-"),
        "validation_loss": ("total, validation images", QUANTITIES["u"].colour, "--"),
    }
    steps = [record["step"] for record in records]
    marker = "o" if len(records) < 30 else None
    figure = Figure(3.2)
    axes = figure.subplots()
    for key, (name, colour, line) in curves.items():
        if all(record.get(key) is not None for record in records):
            values = [record[key] for record in records]
            axes.plot(
                steps, values, line, color=colour, label=name, linewidth=1.3,
                marker=marker, markersize=4,
            )  # fmt: skip
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("training step (batches seen)")
    axes.set_ylabel("loss per image")
    axes.legend()
    return figure


@mpl.rc_context(_STYLE)
def per_class_accuracy(per_class: Sequence[tuple[int, int]], classes: Sequence[str]) -> Figure:
    """Accuracy of each class as a dot on a zoomed axis, its count beside it.

    Args:
        per_class: (correct, total) of each class.
        classes: their names.
    """
    _same_length(per_class, classes)
    percent = [_percent(correct, total) for correct, total in per_class]
    figure = Figure(0.9 + 0.27 * len(classes))
    axes = figure.subplots()
    rows = np.arange(len(classes))
    axes.plot(percent, rows, "o", color=QUANTITIES["v"].colour, markersize=7)
    lowest = min((value for value in percent if not np.isnan(value)), default=0.0)
    left = max(0.0, lowest - max(0.15 * (100 - lowest), 0.2))
    axes.hlines(rows, left, percent, color=FAINT, linewidth=0.8, zorder=0)
    for row, (correct, total) in enumerate(per_class):
        axes.annotate(
            f"{correct}/{total}",
            (1.02, row),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize=9,
        )
    axes.set_xlim(left, 100)
    axes.set_ylim(len(classes) - 0.4, -0.6)
    axes.set_yticks(rows, classes)
    axes.set_xlabel("images read correctly, %")
    axes.set_ylabel("class")
    return figure


@mpl.rc_context(_STYLE)
def confusion_matrix(confusion: ArrayLike, classes: Sequence[str]) -> Figure:
    """Counts of label against prediction; only mistakes are coloured.

    Args:
        confusion: [classes, classes], a row for each label, a column for each prediction.
        classes: their names.
    """
    counts = _square(confusion, classes)
    mistakes = np.where(np.eye(len(classes), dtype=bool) | (counts == 0), np.nan, counts)
    most = max(1, counts[~np.isnan(mistakes)].max(initial=0))
    side = max(3.6, 0.9 + 0.44 * len(classes))
    figure = Figure(side, max(WIDTH, side))
    axes = figure.subplots()
    axes.imshow(mistakes, cmap="Oranges", vmin=0, vmax=1.6 * most)
    for row, column in np.argwhere(counts > 0):
        right = row == column
        axes.text(
            column,
            row,
            str(counts[row, column]),
            ha="center",
            va="center",
            fontsize=9,
            color=FAINT if right else INK,
            fontweight="normal" if right else "bold",
        )
    turn = 0 if max(map(len, classes)) <= 2 else 90
    axes.set_xticks(range(len(classes)), classes, rotation=turn)
    axes.set_yticks(range(len(classes)), classes)
    axes.set_xlabel("predicted class")
    axes.set_ylabel("true class")
    return figure


@mpl.rc_context(_STYLE)
def reconstructions(
    images: ArrayLike,
    reconstructed: ArrayLike,
    labels: ArrayLike,
    predictions: ArrayLike,
    classes: Sequence[str],
) -> Figure:
    """Rows of originals over rows of their reconstructions; wrong predictions are marked.

    Args:
        images: [n, channels, height, width], uint8 or floating point in 0 … 1.
        reconstructed: the same shape.
        labels: true class indices, [n].
        predictions: predicted class indices, [n].
        classes: class names.
    """
    originals, drawn = _array(images), _array(reconstructed)
    if originals.shape != drawn.shape or originals.ndim != 4 or len(originals) == 0:
        raise ValueError(
            "images and reconstructed must both be [n, channels, height, width] with n at least 1, "
            f"got {list(originals.shape)} and {list(drawn.shape)}"
        )
    true, predicted = _array(labels), _array(predictions)
    count = len(originals)
    if len(true) != count or len(predicted) != count:
        raise ValueError(
            f"labels and predictions must be [{count}], got {list(true.shape)} and "
            f"{list(predicted.shape)}"
        )
    columns = min(count, PER_ROW)
    bands = -(-count // columns)
    side = (WIDTH - 0.25) / max(columns, 4)  # inches of an image
    figure = Figure(bands * (2 * side + 0.3))
    grid = figure.subplots(2 * bands, columns, squeeze=False)
    for axes in grid.flat:
        axes.set_axis_off()
    for i in range(count):
        above, below = grid[2 * (i // columns) : 2 * (i // columns) + 2, i % columns]
        _show(above, originals[i])
        _show(below, drawn[i])
        label, prediction = classes[true[i]], classes[predicted[i]]
        right = label == prediction
        above.set_title(
            label if right else f"{label} → {prediction}", color=INK if right else MISTAKE
        )
        if i % columns == 0:
            above.set_ylabel("original")
            below.set_ylabel("decoded")
    return figure


@mpl.rc_context(_STYLE)
def prediction(
    image: ArrayLike,
    reconstruction: ArrayLike | None,
    lengths: ArrayLike,
    classes: Sequence[str],
) -> Figure:
    """One image, its reconstruction where there is one, and the length of every class's capsule.

    Args:
        image: [channels, height, width], uint8 or floating point in 0 … 1.
        reconstruction: the same shape, or None.
        lengths: ‖v_k‖, [classes].
        classes: class names.
    """
    values = _array(lengths).astype(float)
    _same_length(values, classes)
    pictures = [("input", _array(image))]
    if reconstruction is not None:
        pictures.append(("decoded", _array(reconstruction)))
    longest = int(np.argmax(values))
    figure = Figure(max(2.2, 0.8 + 0.2 * len(classes)))
    ratios = [1.0] * len(pictures) + [1.7]
    *frames, axes = figure.subplots(1, len(ratios), width_ratios=ratios)
    for frame, (name, picture) in zip(frames, pictures, strict=True):
        _show(frame, picture)
        frame.set_title(name)
    rows = np.arange(len(classes))
    colours = [QUANTITIES["v"].colour if row == longest else FAINT for row in rows]
    axes.barh(rows, values, color=colours)
    axes.set_xlim(0, 1)
    axes.set_yticks(rows, classes)
    axes.invert_yaxis()
    axes.set_xlabel("length ‖v‖ of the capsule")
    axes.set_title(f"predicted: {classes[longest]}")
    return figure


@mpl.rc_context(_STYLE)
def durations(milliseconds: Mapping[str, float]) -> Figure:
    """One bar a way of doing the same thing, its milliseconds beside it.

    Args:
        milliseconds: of each, from top to bottom.
    """
    if not milliseconds:
        raise ValueError("milliseconds must hold at least one duration, got none")
    figure = Figure(0.8 + 0.34 * len(milliseconds))
    axes = figure.subplots()
    bars = axes.barh(list(milliseconds), list(milliseconds.values()), color=INK, height=0.55)
    axes.bar_label(bars, fmt="{:.0f}", padding=4, fontsize=9)
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.set_xlabel("milliseconds")
    return figure


@mpl.rc_context(_STYLE)
def growth(rows: Sequence[Mapping[str, Any]], names: Mapping[str, str]) -> Figure:
    """Time and memory against size, both axes logarithmic: a row of panels for each size.

    Args:
        rows: of the ledger's ``bench/growth``: "name", "axis", "value", "train_ms", "train_bytes".
        names: what to call whose lines: the first is drawn faint, the last in ink.
    """
    axis_names = list(dict.fromkeys(row["axis"] for row in rows))
    lines = dict(zip(names, [(FAINT, "--", "s"), (INK, "-", "o")], strict=True))
    figure = Figure(1.75 * len(axis_names))
    panels = figure.subplots(len(axis_names), 2, squeeze=False)
    for axis, pair in zip(axis_names, panels, strict=True):
        kinds = (("train_ms", 1.0, "milliseconds"), ("train_bytes", 1e-6, "megabytes"))
        for axes, (key, scale, unit) in zip(pair, kinds, strict=True):
            for name, (colour, line, marker) in lines.items():
                mine = [row for row in rows if (row["name"], row["axis"]) == (name, axis)]
                axes.plot(
                    [row["value"] for row in mine],
                    [scale * row[key] for row in mine],
                    line, color=colour, marker=marker, markersize=4, linewidth=1.3,
                    label=names[name],
                )  # fmt: skip
            values = sorted({row["value"] for row in rows if row["axis"] == axis})
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_xticks(values, [f"{value}" for value in values])
            axes.xaxis.set_minor_formatter(NullFormatter())
            axes.yaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_minor_formatter(NullFormatter())
            axes.set_xlabel(axis.replace("_", " "))
            axes.set_ylabel(unit)
    panels[0][0].legend()
    return figure


def per_class_table(per_class: Sequence[tuple[int, int]], classes: Sequence[str]) -> str:
    """Counts as ``977/980`` and percentages of each class, and of all together, as text."""
    _same_length(per_class, classes)
    correct = sum(right for right, _ in per_class)
    total = sum(count for _, count in per_class)
    rows = [("class", "correct", "accuracy")]
    for name, (right, count) in zip([*classes, "all"], [*per_class, (correct, total)], strict=True):
        share = f"{_percent(right, count):.2f} %" if count else "–"
        rows.append((name, f"{right}/{count}", share))
    return _columns(rows)


def confusion_text(confusion: ArrayLike, classes: Sequence[str]) -> str:
    """The confusion matrix as text: a row for each true class, a column for each predicted one."""
    counts = _square(confusion, classes)
    rows = [("true \\ predicted", *classes)]
    rows += [
        (name, *(str(count) if count else "·" for count in row))
        for name, row in zip(classes, counts, strict=True)
    ]
    return _columns(rows)


def source(thing: Any, start: str = "") -> Any:
    """The live source of a function, method or class, without its docstring, for a notebook.

    A page that shows code this way cannot differ from what runs: a changed line is a changed
    output, and the check of the notebooks fails until the page is made again.

    Args:
        thing: what to show.
        start: show only what follows from the first line that holds this text.

    Raises:
        ValueError: no line holds ``start``.
    """
    from IPython.display import Markdown

    text = textwrap.dedent(inspect.getsource(thing))
    definition = ast.parse(text).body[0]
    lines = text.splitlines()
    if (
        isinstance(definition, ast.FunctionDef | ast.ClassDef)
        and ast.get_docstring(definition) is not None
    ):
        docstring = definition.body[0]
        del lines[docstring.lineno - 1 : docstring.end_lineno]
    while not any(start in line for line in lines[:1]):
        if not lines:
            raise ValueError(f"no line of {thing.__qualname__} holds {start!r}")
        del lines[0]
    shown = textwrap.dedent("\n".join(lines)).strip()
    return Markdown(f"```python\n{shown}\n```")


def glue(name: str, value: str) -> None:
    """Name a computed value, so that the book's prose can say it: {glue:text}`name`.

    It is stored in the notebook as ``myst_nb.glue`` would, which Colab does not have.
    """
    from IPython.display import display

    display(
        {"application/papermill.record/text/plain": repr(value)},
        metadata={"scrapbook": {"name": name, "mime_prefix": "application/papermill.record/"}},
        raw=True,
    )


def _percent(correct: int, total: int) -> float:
    return 100 * correct / total if total else float("nan")


def _columns(rows: Sequence[Sequence[str]]) -> str:
    """Align: first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for name, *cells in rows:
        aligned = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
        lines.append("  ".join([name.ljust(widths[0]), *aligned]).rstrip())
    return "\n".join(lines)


def _array(values: ArrayLike) -> NDArray[Any]:
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu()
        if values.dtype in (torch.bfloat16, torch.float16):
            values = values.float()
        return values.numpy()
    return np.asarray(values)


def _show(axes: Axes, image: NDArray[Any]) -> None:
    """Draw [channels, height, width]: one channel as grey, three as red, green and blue."""
    if image.ndim != 3 or image.shape[0] not in (1, 3):
        raise ValueError(f"an image must be [1 or 3, height, width], got {list(image.shape)}")
    if image.dtype == np.uint8:
        image = image / 255
    picture = image[0] if image.shape[0] == 1 else image.transpose(1, 2, 0)
    axes.set_axis_on()
    axes.imshow(picture, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    axes.set_xticks([])
    axes.set_yticks([])


def _square(confusion: ArrayLike, classes: Sequence[str]) -> NDArray[Any]:
    counts = _array(confusion)
    if counts.shape != (len(classes), len(classes)):
        raise ValueError(
            f"confusion must be [{len(classes)}, {len(classes)}], got {list(counts.shape)}"
        )
    return counts


def _same_length(values: Any, classes: Sequence[str]) -> None:
    if len(values) != len(classes):
        raise ValueError(
            f"expected one entry for each of {len(classes)} classes, got {len(values)}"
        )
