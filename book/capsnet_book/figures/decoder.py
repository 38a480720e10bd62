"""What the decoder reconstructs, and what the numbers of a capsule mean to it."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from numpy.typing import ArrayLike

from capsnet_book.figures.helpers import legend_above, styled
from capsnet_book.figures.tensors import sheet
from capsnet_lab.figures.style import FAINT, INK, WIDTH, Figure, array

GAP = 2  # pixels between pictures


@styled
def sweeps(
    pictures: ArrayLike,
    rows: Sequence[str],
    columns: Sequence[str],
    xlabel: str,
    ylabel: str = "",
) -> Figure:
    """A table of small grey pictures [rows, columns, height, width], of reconstructions, say.

    `xlabel` says what changes from column to column, with its unit; `ylabel` what the rows are. A
    column whose name is empty stays bare.
    """
    images = array(pictures)
    height, width = images.shape[2:]
    table = sheet(images.reshape(-1, height, width), len(columns), GAP)
    inch = (WIDTH - 0.9) / table.shape[1]  # of a pixel
    figure, axes = Figure.single(inch * table.shape[0] + 0.65)
    axes.imshow(table, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    axes.set_yticks([(i + 0.5) * (height + GAP) - GAP for i in range(len(rows))], rows)
    axes.set_xticks([(i + 0.5) * (width + GAP) - GAP for i in range(len(columns))], columns)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set(xlabel=xlabel, ylabel=ylabel)
    return figure


@styled
def property_map(
    changes: ArrayLike,
    rows: Sequence[str],
    properties: Sequence[str],
    ylabel: str,
    unit: str,
    most: float | None = None,
) -> Figure:
    """How much each row changes each property: [rows, properties] numbers on colours.

    The page's own ground is no change; `ylabel` says what the rows are, `unit` that of the changes.
    The colours are strongest at `most`, or at the largest change.
    """
    values = array(changes).astype(float)
    most = most or max(float(np.abs(values).max(initial=0)), 1e-9)
    figure, axes = Figure.single(1.0 + 0.29 * len(rows))
    stops = [(0, "#F1A340"), (0.5, "#F1A34000"), (0.5, "#998EC300"), (1, "#998EC3")]
    colours = LinearSegmentedColormap.from_list("changes", stops)
    axes.imshow(values, cmap=colours, vmin=-most, vmax=most, aspect="auto")
    for (row, column), value in np.ndenumerate(values):
        text = f"{value:.1f}".replace("-", "−") if abs(value) >= 0.05 else "0"
        # On a dark page INK turns light, as the ground turns dark; the strong colours stay.
        colour = "black" if abs(value) > 0.55 * most else INK
        axes.text(column, row, text, ha="center", va="center", fontsize=9, color=colour)
    axes.set_yticks(range(len(rows)), rows)
    axes.set_xticks(range(len(properties)), properties)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_ylabel(ylabel)
    axes.set_xlabel(unit)
    axes.xaxis.set_label_position("bottom")
    return figure


@styled
def squared_errors(errors: Mapping[str, ArrayLike], classes: Sequence[str]) -> Figure:
    """The squared error of each class, a mark for each kind of reconstruction.

    `errors` are [classes] by the name of the kind; the last one stands out.
    """
    figure, axes = Figure.single(1.1 + 0.24 * len(classes))
    *others, last = errors
    for name, marker in zip(others, "sD^v"[: len(others)], strict=True):
        axes.plot(array(errors[name]), classes, marker, color=FAINT, markersize=5, label=name)
    axes.plot(array(errors[last]), classes, "o", color=INK, markersize=7, label=last)
    axes.invert_yaxis()
    axes.set(xlim=(0, None), ylabel="class")
    axes.set_xlabel("sum of squared differences of an image (pixels from 0 to 1)")
    legend_above(figure, len(errors))
    return figure
