"""Pictures of what the decoder draws, and of what the numbers of a capsule mean to it."""

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
from numpy.typing import ArrayLike

from capsnet_lab.figures.style import FAINT, INK, QUANTITIES, STYLE, WIDTH, Figure, array

GAP = 2  # pixels between pictures


@mpl.rc_context(STYLE)
def sweeps(
    pictures: ArrayLike,
    rows: Sequence[str],
    columns: Sequence[str],
    xlabel: str = "",
    ylabel: str = "",
) -> Figure:
    """A table of small grey pictures: what is drawn as one thing changes from column to column.

    Args:
        pictures: [rows, columns, height, width], floating point in 0 … 1.
        rows: the name of each row.
        columns: the label of each column; an empty one leaves it bare.
        xlabel: what changes from column to column, with its unit.
        ylabel: what the rows are.
    """
    drawn = array(pictures)
    height, width = drawn.shape[2] + GAP, drawn.shape[3] + GAP
    sheet = np.ones((len(rows) * height - GAP, len(columns) * width - GAP))
    for row, column in np.ndindex(*drawn.shape[:2]):
        top, left = row * height, column * width
        sheet[top : top + height - GAP, left : left + width - GAP] = drawn[row, column]
    side = (WIDTH - 0.9) / sheet.shape[1]  # inches a pixel
    figure, axes = Figure.single(side * sheet.shape[0] + (0.65 if xlabel else 0.35))
    axes.imshow(sheet, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    axes.set_yticks([(i + 0.5) * height - GAP for i in range(len(rows))], rows)
    axes.set_xticks([(i + 0.5) * width - GAP for i in range(len(columns))], columns)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    return figure


@mpl.rc_context(STYLE)
def property_map(
    changes: ArrayLike, rows: Sequence[str], properties: Sequence[str], ylabel: str, unit: str
) -> Figure:
    """How much each row changes each property: a number on a colour, white where nothing changes.

    Args:
        changes: [rows, properties].
        rows: the name of each row.
        properties: the name of each column.
        ylabel: what the rows are.
        unit: of the changes.
    """
    values = array(changes).astype(float)
    most = max(float(np.abs(values).max(initial=0)), 1e-9)
    figure, axes = Figure.single(1.0 + 0.29 * len(rows))
    picture = axes.imshow(values, cmap="PuOr_r", vmin=-most, vmax=most, aspect="auto")
    for row, column in np.ndindex(*values.shape):
        value = values[row, column]
        text = f"{value:+.1f}".replace("-", "−") if abs(value) >= 0.05 else "0"
        colour = "white" if abs(value) > 0.7 * most else "black"  # a dark page keeps the colours
        axes.text(column, row, text, ha="center", va="center", fontsize=9, color=colour)
    axes.set_yticks(range(len(rows)), rows)
    axes.set_xticks(range(len(properties)), properties)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_ylabel(ylabel)
    figure.colorbar(picture, ax=axes, label=unit, fraction=0.05, pad=0.03)
    return figure


@mpl.rc_context(STYLE)
def following(panels: Mapping[str, tuple[ArrayLike, ArrayLike]]) -> Figure:
    """A property of the decoder's drawings against the same of the images; the diagonal is equal.

    Args:
        panels: by the property's name, with its unit: its values in the images and in the
            drawings of them, both [n].
    """
    figure = Figure(2.5)
    row = figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, (name, pair) in zip(row, panels.items(), strict=True):
        shown, drawn = map(array, pair)
        ends = [min(shown.min(), drawn.min()), max(shown.max(), drawn.max())]
        axes.plot(ends, ends, "--", color=FAINT, linewidth=1)
        axes.plot(shown, drawn, "o-", color=QUANTITIES["v"].colour, markersize=4, linewidth=1.3)
        axes.set_aspect("equal", adjustable="datalim")
        axes.set_title(name)
        axes.set_xlabel("in the image")
    row[0].set_ylabel("in the drawing")
    return figure


@mpl.rc_context(STYLE)
def squared_errors(errors: Mapping[str, ArrayLike], classes: Sequence[str]) -> Figure:
    """The squared error of each class, a mark for each of several ways to draw.

    Args:
        errors: by the name of the way, one number for each class; the last stands out.
        classes: their names.
    """
    figure, axes = Figure.single(1.1 + 0.24 * len(classes))
    rows = range(len(classes))
    *others, last = errors
    for name, marker in zip(others, "sD^v"[: len(others)], strict=True):
        axes.plot(array(errors[name]), rows, marker, color=FAINT, markersize=5, label=name)
    axes.plot(array(errors[last]), rows, "o", color=INK, markersize=7, label=last)
    axes.set_xlim(left=0)
    axes.set_ylim(len(classes) - 0.4, -0.6)
    axes.set_yticks(rows, classes)
    axes.set_xlabel("sum of squared differences of an image (pixels from 0 to 1)")
    axes.set_ylabel("class")
    figure.legend(loc="outside upper center", ncols=len(errors))
    return figure
