"""Pictures of the network's layers: its shapes, which channels make a capsule, what it sees."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike

from capsnet.figures.style import (
    FAINT,
    INK,
    PAPER,
    QUANTITIES,
    STYLE,
    WIDTH,
    Figure,
    array,
    arrow,
    show,
)

PLANES = 7  # of a stack, however many there are
ROWS = 10  # of a list of vectors that are drawn; more are dots


class Stage(NamedTuple):
    """What a network holds between two of its layers."""

    name: str
    shape: Sequence[int]  # of one image, without the batch
    then: str = ""  # what makes the next stage of it
    quantity: str | None = None  # of QUANTITIES: vectors in its colour; None: maps of pixels
    note: str = ""


@mpl.rc_context(STYLE)
def architecture(stages: Sequence[Stage]) -> Figure:
    """A network from top to bottom: each stage a drawing, its name and its shape.

    Args:
        stages: from the top; each with a shape of one to three numbers.
    """
    pitch, centre, text = 1.14, 0.85, 1.85  # inches
    height = pitch * len(stages) - 0.22
    figure = Figure(height)
    figure.set_layout_engine("none")  # one pair of axes, placed by hand
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, WIDTH), ylim=(height, 0), aspect="equal")
    axes.set_axis_off()
    for i, stage in enumerate(stages):
        y = 0.46 + pitch * i
        colour = INK if stage.quantity is None else QUANTITIES[stage.quantity].colour
        half = _stage(axes, centre, y, stage, colour)
        axes.text(text, y - 0.13, stage.name, color=colour, va="center", weight="bold", size=11)
        sizes = " × ".join(map(str, stage.shape))
        axes.text(text, y + 0.09, sizes, va="center", size=11)
        if stage.note:
            axes.text(WIDTH - 0.05, y + 0.09, stage.note, va="center", ha="right", size=10)
        if i + 1 < len(stages):
            arrow(axes, (centre, y + half + 0.03), (centre, y + pitch - 0.43), FAINT)
            axes.text(text, y + 0.57 * pitch, f"↓ {stage.then}", va="center", size=10)
    return figure


def _stage(axes: Axes, x: float, y: float, stage: Stage, colour: str) -> float:
    """Draw a stage around a point; returns half its height."""
    *outer, last = stage.shape
    if stage.quantity is None and len(stage.shape) == 3:  # maps, squares to scale
        side, count = 0.019 * max(stage.shape[1:]), stage.shape[0]
        _planes(axes, x, y, side, side, count, colour)
        return side / 2 + 0.018 * (min(count, PLANES) - 1)
    cell = 0.05
    rows, many = (outer[-1] if outer else 1), (outer[0] if len(outer) == 2 else 1)
    shown, across = min(rows, ROWS), min(last, 16)
    width, height = across * cell, shown * cell
    _planes(axes, x, y, width, height, many, colour)
    left, top = x - width / 2, y - height / 2
    front = 0.018 * (min(many, PLANES) - 1)
    for row in range(1, shown):
        ends = [left - front, left - front + width]
        axes.plot(ends, [top + front + row * cell] * 2, color=colour, linewidth=0.7)
    if not outer:
        for column in range(1, across):
            axes.plot([left + column * cell] * 2, [top, top + height], color=colour, linewidth=0.7)
    if rows > shown:
        dots = y + height / 2 + cell * np.array([0.7, 1.5, 2.3])
        axes.plot([x] * 3, dots, ".", color=colour, markersize=2)
        return float(dots[-1]) - y + 0.02
    return height / 2 + front


def _planes(
    axes: Axes, x: float, y: float, width: float, height: float, count: int, colour: str
) -> None:
    """A stack of rectangles around a point, the first in front, below and to the left."""
    drawn = min(count, PLANES)
    for plane in reversed(range(drawn)):
        offset = 0.018 * (2 * plane - drawn + 1)
        box = Rectangle((x - width / 2 + offset, y - height / 2 - offset), width, height)
        box.set(facecolor=PAPER, edgecolor=colour, linewidth=0.8)
        axes.add_patch(box)


@mpl.rc_context(STYLE)
def channel_grouping(child: int, types: int, dim: int, grid: tuple[int, int]) -> Figure:
    """Which channels and which position a primary capsule is read from, and its place in the list.

    Args:
        child: index of the capsule, ordered by type, then row, then column.
        types: kinds of capsule at each position.
        dim: channels that make one capsule.
        grid: rows and columns of the feature map.
    """
    rows, columns = grid
    places = rows * columns
    kind, place = divmod(child, places)
    row, column = divmod(place, columns)
    colour, first = QUANTITIES["u"].colour, kind * dim
    figure = Figure(4.1)
    parts: Any = figure.subfigures(3, 1, height_ratios=[1, 1.15, 1.25])
    top, middle, bottom = parts

    channels = top.subplots()
    _strip(channels, types, dim, types * dim)
    channels.add_patch(Rectangle((first, 0), dim, 1, color=colour))
    channels.set_title(f"channels {first} … {first + dim - 1} are type {kind}", color=colour)
    channels.set_xlabel("channel")

    maps = np.atleast_1d(middle.subplots(1, dim))
    for component, axes in enumerate(maps):
        _cells(axes, grid, str(first + component))
        axes.add_patch(Rectangle((column, row), 1, 1, color=colour))
    said = f"the numbers at row {row}, column {column} of each are the vector"
    middle.suptitle(said, color=colour, size=10)

    listed = bottom.subplots()
    _strip(listed, types, places, types * places)
    others = [other * places + place for other in range(types) if other != kind]
    listed.vlines(np.array(others) + 0.5, 0, 1, color=FAINT, linewidth=1.2)
    listed.vlines([child + 0.5], 0, 1.0, color=colour, linewidth=3)
    listed.set_title(f"child {child}; in grey, the other types there", color=colour)
    listed.set_xlabel("place in the list of children")
    return figure


def _strip(axes: Axes, groups: int, size: int, end: int) -> None:
    """A horizontal strip in groups of equal size, every other one shaded."""
    for group in range(0, groups, 2):
        axes.add_patch(Rectangle((group * size, 0), size, 1, color="#E8EBEE"))
    axes.set_xlim(0, end)
    axes.set_ylim(0, 1)
    axes.set_yticks([])
    axes.spines[["top", "right"]].set_visible(True)
    axes.set_xticks([*range(0, end, end // 4), end])


def _cells(axes: Axes, grid: tuple[int, int], title: str) -> None:
    """An empty feature map."""
    rows, columns = grid
    axes.set_xlim(0, columns)
    axes.set_ylim(rows, 0)
    axes.set_aspect("equal")
    axes.hlines(range(rows + 1), 0, columns, color=FAINT, linewidth=0.5, clip_on=False)
    axes.vlines(range(columns + 1), 0, rows, color=FAINT, linewidth=0.5, clip_on=False)
    axes.set_axis_off()
    axes.set_title(title, size=9, pad=3)


@mpl.rc_context(STYLE)
def capsule_members(members: Mapping[str, ArrayLike], grid: tuple[int, int]) -> Figure:
    """Where the numbers of one vector come from, under several ways to read it.

    Args:
        members: by name, the [channel, row, column] of each component, [dim, 3].
        grid: rows and columns of the feature map.
    """
    read = {name: array(where) for name, where in members.items()}
    channels = sorted({int(channel) for where in read.values() for channel in where[:, 0]})
    figure = Figure(1.25 * len(read))
    bands = np.atleast_1d(np.array(figure.subfigures(len(read), 1), dtype=object))
    for (name, where), band in zip(read.items(), bands, strict=True):
        band.suptitle(name, size=10)
        panels = np.atleast_1d(band.subplots(1, len(channels)))
        for channel, axes in zip(channels, panels, strict=True):
            _cells(axes, grid, str(channel))
            for _, row, column in where[where[:, 0] == channel]:
                axes.add_patch(Rectangle((column, row), 1, 1, color=QUANTITIES["u"].colour))
    return figure


@mpl.rc_context(STYLE)
def receptive_fields(image: ArrayLike, fields: Mapping[str, tuple[int, int, int, int]]) -> Figure:
    """An image, and in frames the pixels that some units see.

    Args:
        image: [channels, height, width], uint8 or floating point in 0 … 1.
        fields: by the unit's name (three at most), its first and last row, first and last column.
    """
    picture = array(image)
    lines = ("-", "--", ":")[: len(fields)]
    figure, axes = Figure.single(3.7)
    show(axes, picture)
    height, width = picture.shape[1:]
    for (name, (top, bottom, left, right)), line in zip(fields.items(), lines, strict=True):
        frame = Rectangle((left - 0.5, top - 0.5), right - left + 1, bottom - top + 1, fill=False)
        frame.set(edgecolor=QUANTITIES["u"].colour, linestyle=line, linewidth=2.5, clip_on=False)
        frame.set_label(name)
        axes.add_patch(frame)
    axes.set_xticks([0, *range(4, width - 3, 4), width - 1])
    axes.set_yticks([0, *range(4, height - 3, 4), height - 1])
    axes.set_xlabel("column, pixels")
    axes.set_ylabel("row, pixels")
    figure.legend(loc="outside right center")
    return figure
