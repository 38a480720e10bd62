"""Pictures of what the numbers of a capsule mean: sweeps, walks, and what follows what."""

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
from numpy.typing import ArrayLike

from capsnet.figures.style import FAINT, INK, QUANTITIES, STYLE, WIDTH, Figure, array

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
    if drawn.ndim != 4 or drawn.shape[:2] != (len(rows), len(columns)) or 0 in drawn.shape:
        raise ValueError(
            f"pictures must be [{len(rows)} rows, {len(columns)} columns, height, width], got "
            f"{list(drawn.shape)}"
        )
    height, width = drawn.shape[2] + GAP, drawn.shape[3] + GAP
    sheet = np.ones((len(rows) * height - GAP, len(columns) * width - GAP))
    for row, column in np.ndindex(*drawn.shape[:2]):
        top, left = row * height, column * width
        sheet[top : top + height - GAP, left : left + width - GAP] = drawn[row, column]
    side = (WIDTH - 0.9) / sheet.shape[1]  # inches a pixel
    figure = Figure(side * sheet.shape[0] + (0.65 if xlabel else 0.35))
    axes = figure.subplots()
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
    if values.shape != (len(rows), len(properties)):
        raise ValueError(
            f"changes must be [{len(rows)} rows, {len(properties)} properties], got "
            f"{list(values.shape)}"
        )
    most = max(float(np.abs(values).max(initial=0)), 1e-9)
    figure = Figure(1.0 + 0.29 * len(rows))
    axes = figure.subplots()
    picture = axes.imshow(values, cmap="PuOr_r", vmin=-most, vmax=most, aspect="auto")
    for row, column in np.ndindex(*values.shape):
        value = values[row, column]
        text = f"{value:+.1f}".replace("-", "−") if abs(value) >= 0.05 else "0"
        colour = "white" if abs(value) > 0.7 * most else INK
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
def walk_lengths(way: ArrayLike, lengths: Mapping[str, ArrayLike]) -> Figure:
    """The length of a capsule along walks from one capsule (0) to another (1).

    Args:
        way: how far along, 0 … 1, [n].
        lengths: of each walk, its lengths, [n].
    """
    positions = array(way)
    lines = {name: array(values) for name, values in lengths.items()}
    for name, values in lines.items():
        if values.shape != positions.shape or positions.ndim != 1:
            raise ValueError(
                f"the lengths of {name} must be [{positions.size}], got {list(values.shape)}"
            )
    figure = Figure(2.5)
    axes = figure.subplots()
    styles = ((QUANTITIES["v"].colour, "-", "o"), (INK, "--", "s"), (FAINT, ":", "^"))
    for (name, values), (colour, line, marker) in zip(lines.items(), styles, strict=False):
        axes.plot(positions, values, line, color=colour, marker=marker, markersize=4, label=name)
    axes.set_xlabel("part of the way")
    axes.set_ylabel("length ‖v‖ of the capsule")
    axes.legend()
    return figure


@mpl.rc_context(STYLE)
def plane(points: ArrayLike, values: ArrayLike, name: str, axis_names: Sequence[str]) -> Figure:
    """Points of a plane, each coloured by a value.

    Args:
        points: [n, 2].
        values: [n].
        name: of the value, with its unit.
        axis_names: of the two axes, with their units.
    """
    places, shades = array(points), array(values)
    if places.ndim != 2 or places.shape[1] != 2 or shades.shape != places.shape[:1]:
        raise ValueError(
            f"points must be [n, 2] and values [n], got {list(places.shape)} and "
            f"{list(shades.shape)}"
        )
    figure = Figure(3.8)
    axes = figure.subplots()
    low, high = np.quantile(shades, [0.02, 0.98])  # one odd point shall not take all the colours
    across, up = places.T
    dots = axes.scatter(across, up, s=12, c=shades, cmap="viridis", vmin=low, vmax=high)
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_xlabel(axis_names[0])
    axes.set_ylabel(axis_names[1])
    figure.colorbar(dots, ax=axes, label=name)
    return figure


@mpl.rc_context(STYLE)
def following(panels: Mapping[str, tuple[ArrayLike, ArrayLike]]) -> Figure:
    """What the decoder draws against what the image shows: on the diagonal it follows fully.

    Args:
        panels: of each property (its name, with its unit), its values in the images and in the
            drawings of them, both [n].
    """
    if not panels:
        raise ValueError("panels must hold at least one property, got none")
    figure = Figure(2.5)
    row = figure.subplots(1, len(panels), squeeze=False)[0]
    for i, (axes, (name, pair)) in enumerate(zip(row, panels.items(), strict=True)):
        shown, drawn = map(array, pair)
        if shown.shape != drawn.shape or shown.ndim != 1:
            raise ValueError(
                f"{name}: images and drawings must both be [n], got {list(shown.shape)} and "
                f"{list(drawn.shape)}"
            )
        ends = [min(shown.min(), drawn.min()), max(shown.max(), drawn.max())]
        axes.plot(ends, ends, "--", color=FAINT, linewidth=1)
        axes.plot(shown, drawn, "o-", color=QUANTITIES["v"].colour, markersize=4, linewidth=1.3)
        axes.set_aspect("equal", adjustable="datalim")
        axes.set_title(name)
        axes.set_xlabel("in the image")
        if i == 0:
            axes.set_ylabel("in the drawing")
    return figure
