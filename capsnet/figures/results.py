"""Pictures of a training and of what a network gets right, and the tables that say the same."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter
from numpy.typing import ArrayLike, NDArray

from capsnet.figures.style import (
    FAINT,
    INK,
    MISTAKE,
    PER_ROW,
    QUANTITIES,
    STYLE,
    WIDTH,
    Figure,
    array,
    beside,
    show,
)


@mpl.rc_context(STYLE)
def loss_curves(records: Sequence[Mapping[str, Any]]) -> Figure:
    """Loss against training step, on a logarithmic axis.

    Args:
        records: one mapping a point with "step" and "loss"; its parts "margin" and
            "reconstruction" (weighted) and "validation_loss" are drawn too where every record
            has them.
    """
    if not records:
        raise ValueError("records must hold at least one point, got none")
    curves = {
        "loss": ("total", INK, "-"),
        "margin": ("margin loss alone", QUANTITIES["v"].colour, "-"),
        "reconstruction": ("0.0005 × reconstruction loss", INK, ":"),
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


@mpl.rc_context(STYLE)
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
    axes.plot(percent, rows, "o", color=QUANTITIES["v"].colour, markersize=7, clip_on=False)
    lowest = min((value for value in percent if not np.isnan(value)), default=0.0)
    left = max(0.0, lowest - max(0.15 * (100 - lowest), 0.2))
    axes.hlines(rows, left, percent, color=FAINT, linewidth=0.8, zorder=0)
    for row, (correct, total) in enumerate(per_class):
        beside(axes, f"{correct}/{total}", row)
    axes.set_xlim(left, 100)
    axes.set_ylim(len(classes) - 0.4, -0.6)
    axes.set_yticks(rows, classes)
    axes.set_xlabel("images read correctly, %")
    axes.set_ylabel("class")
    return figure


@mpl.rc_context(STYLE)
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


@mpl.rc_context(STYLE)
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
    originals, drawn = array(images), array(reconstructed)
    if originals.shape != drawn.shape or originals.ndim != 4 or len(originals) == 0:
        raise ValueError(
            "images and reconstructed must both be [n, channels, height, width] with n at least 1, "
            f"got {list(originals.shape)} and {list(drawn.shape)}"
        )
    true, predicted = array(labels), array(predictions)
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
        show(above, originals[i])
        show(below, drawn[i])
        label, prediction = classes[true[i]], classes[predicted[i]]
        right = label == prediction
        above.set_title(
            label if right else f"{label} → {prediction}", color=INK if right else MISTAKE
        )
        if i % columns == 0:
            above.set_ylabel("original")
            below.set_ylabel("decoded")
    return figure


@mpl.rc_context(STYLE)
def gallery(
    pictures: ArrayLike,
    titles: Sequence[str],
    per_row: int = PER_ROW,
    rows: Sequence[str] = (),
    mistakes: Sequence[int] = (),
) -> Figure:
    """Pictures in rows, each with a title.

    Args:
        pictures: [n, channels, height, width], uint8 or floating point in 0 … 1.
        titles: one for each picture; may be empty, or of two lines.
        per_row: pictures side by side.
        rows: names of the rows, if any.
        mistakes: indices of pictures whose title is set as a mistake's.
    """
    drawn = array(pictures)
    if drawn.ndim != 4 or len(drawn) == 0 or len(titles) != len(drawn):
        raise ValueError(
            "pictures must be [n, channels, height, width] with n titles, n at least 1, got "
            f"{list(drawn.shape)} and {len(titles)} titles"
        )
    bands = -(-len(drawn) // per_row)
    if rows and len(rows) != bands:
        raise ValueError(f"rows must be {bands} names, got {len(rows)}")
    lines = sum(
        max(len(title.splitlines()) for title in titles[start : start + per_row])
        for start in range(0, len(titles), per_row)
    )
    side = (WIDTH - 0.25) / per_row  # inches of a picture
    figure = Figure(bands * side + 0.2 * lines + 0.03 * bands)
    grid = figure.subplots(bands, per_row, squeeze=False)
    for axes in grid.flat:
        axes.set_axis_off()
    for i, (picture, title) in enumerate(zip(drawn, titles, strict=True)):
        axes = grid[i // per_row, i % per_row]
        show(axes, picture)
        axes.set_title(title, color=MISTAKE if i in mistakes else INK, size=9, pad=3)
        if rows and i % per_row == 0:
            axes.set_ylabel(rows[i // per_row])
    return figure


@mpl.rc_context(STYLE)
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
    values = array(lengths).astype(float)
    _same_length(values, classes)
    pictures = [("input", array(image))]
    if reconstruction is not None:
        pictures.append(("decoded", array(reconstruction)))
    longest = int(np.argmax(values))
    figure = Figure(max(2.2, 0.8 + 0.2 * len(classes)))
    ratios = [1.0] * len(pictures) + [1.7]
    *frames, axes = figure.subplots(1, len(ratios), width_ratios=ratios)
    for frame, (name, picture) in zip(frames, pictures, strict=True):
        show(frame, picture)
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


def per_class_table(per_class: Sequence[tuple[int, int]], classes: Sequence[str]) -> str:
    """Counts as ``977/980`` and percentages of each class, and of all together, as text."""
    _same_length(per_class, classes)
    correct = sum(right for right, _ in per_class)
    total = sum(count for _, count in per_class)
    rows = [("class", "correct", "accuracy")]
    for name, (right, count) in zip([*classes, "all"], [*per_class, (correct, total)], strict=True):
        share = f"{_percent(right, count):.2f} %" if count else "–"
        rows.append((name, f"{right}/{count}", share))
    return columns(rows)


def confusion_text(confusion: ArrayLike, classes: Sequence[str]) -> str:
    """The confusion matrix as text: a row for each true class, a column for each predicted one."""
    counts = _square(confusion, classes)
    rows = [("true \\ predicted", *classes)]
    rows += [
        (name, *(str(count) if count else "·" for count in row))
        for name, row in zip(classes, counts, strict=True)
    ]
    return columns(rows)


def _percent(correct: int, total: int) -> float:
    return 100 * correct / total if total else float("nan")


def columns(rows: Sequence[Sequence[str]]) -> str:
    """Align: first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for name, *cells in rows:
        aligned = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
        lines.append("  ".join([name.ljust(widths[0]), *aligned]).rstrip())
    return "\n".join(lines)


def _square(confusion: ArrayLike, classes: Sequence[str]) -> NDArray[Any]:
    counts = array(confusion)
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
