"""What several figures share: panels, named rows of dots, lines with names, histograms, arrows."""

import statistics
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter
from numpy.typing import ArrayLike, NDArray

from capsnet_lab.figures.style import FAINT, INK, PAPER, QUANTITIES, STYLE, Figure, array

# The colour of each quantity.
U, U_HAT, B, C, S, V = (quantity.colour for quantity in QUANTITIES.values())
styled = mpl.rc_context(STYLE)  # decorates every function that draws a figure
# Of up to three curves: the one that matters, and what it is compared with.
LINES = ((V, "o-"), (INK, "s--"), (FAINT, "^:"))


def side_by_side(height: float, count: int, **options: Any) -> tuple[Figure, Sequence[Axes]]:
    """A figure, its height in inches, and its panels from left to right."""
    figure = Figure(height)
    return figure, figure.subplots(1, count, squeeze=False, **options)[0]


def stacked(height: float, count: int, **options: Any) -> tuple[Figure, Sequence[Axes]]:
    """A figure, its height in inches, and its panels from top to bottom over one x axis."""
    figure = Figure(height)
    return figure, figure.subplots(count, 1, squeeze=False, sharex=True, **options)[:, 0]


def legend_above(figure: Figure, columns: int = 2) -> None:
    """The legend of the first panel, above all panels."""
    entries = figure.axes[0].get_legend_handles_labels()
    figure.legend(*entries, loc="outside upper center", ncols=columns)


def name_rows(axes: Axes, names: Sequence[str]) -> None:
    """Names left of the heights 0, 1, 2 and so on, from top to bottom."""
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.spines["left"].set_visible(False)


def dots_with_intervals(
    axes: Axes,
    rows: Mapping[str, tuple[float, float, float]],
    colours: Sequence[str],
    hollow: Collection[str] = (),
) -> None:
    """Named rows, each a dot on a line: value, lower and upper end of the interval."""
    for row, (name, (value, low, high)) in enumerate(rows.items()):
        colour = colours[row]
        inside = PAPER if name in hollow else colour
        axes.hlines(row, low, high, color=colour, linewidth=1.6)
        axes.plot([value], [row], "o", color=colour, mfc=inside, ms=6)
    name_rows(axes, list(rows))


def dots_and_means(axes: Axes, rows: Mapping[str, Sequence[float]]) -> None:
    """Named rows, each with a dot for every value and a stroke for their mean."""
    for row, values in enumerate(rows.values()):
        axes.axhline(row, color=FAINT, linewidth=0.5, zorder=0)
        if values:
            mean = statistics.mean(values)
            axes.plot(values, [row] * len(values), "o", color=V, markersize=5)
            axes.plot([mean], [row], "|", color=V, markersize=16, markeredgewidth=2)
    name_rows(axes, list(rows))


def names_at_ends(axes: Axes, heights: Mapping[str, float], colours: Sequence[str]) -> None:
    """Names right of the axes, at the heights of their lines' ends, moved until they keep apart.

    Whatever else sets the limits of the axes must come before.
    """
    axes.get_ylim()  # brings the limits up to date, which the transformation does not
    to_fraction = axes.transScale + axes.transLimits  # from the data to parts of the axes
    ends = to_fraction.transform([(axes.get_xlim()[0], height) for height in heights.values()])
    inches = axes.figure.bbox.height / axes.figure.dpi - 0.6  # about the axes' height
    for name, height, colour in zip(
        heights, apart(ends[:, 1], 0.16 / inches), colours, strict=True
    ):
        axes.text(
            1.02, height, name, transform=axes.transAxes, va="center", fontsize=9, color=colour
        )


def apart(heights: NDArray[Any], gap: float) -> NDArray[Any]:
    """The heights, moved up and down until each is at least `gap` from the next."""
    order = np.argsort(heights, kind="stable")
    moved = heights[order].astype(float)
    for _ in range(200):
        for i in range(len(moved) - 1):
            lack = gap - (moved[i + 1] - moved[i])
            if lack > 0:
                moved[i] -= lack / 2
                moved[i + 1] += lack / 2
    result = np.empty_like(moved)
    result[order] = moved
    return result


def histogram(axes: Axes, values: ArrayLike, edges: NDArray[Any], **look: Any) -> None:
    """How many percent of the values lie between each edge and the next."""
    numbers = array(values).ravel()
    counts, _ = np.histogram(numbers, edges)
    axes.stairs(100 * counts / len(numbers), edges, **look)


def arrow(axes: Axes, start: ArrayLike, end: ArrayLike, colour: str, **options: float) -> None:
    """An arrow between two points of the data."""
    style = {"arrowstyle": "-|>", "color": colour, "shrinkA": 0, "shrinkB": 0}
    (x0, y0), (x1, y1) = np.asarray(start), np.asarray(end)
    axes.annotate("", (x1, y1), (x0, y0), arrowprops=style | options)


def logarithmic(axes: Axes, letters: str) -> None:
    """Make "x", "y" or both logarithmic, with plain numbers at 1, 2 and 5 times powers of ten."""
    for letter in letters:
        axes.set(**{f"{letter}scale": "log"})
        axis = axes.xaxis if letter == "x" else axes.yaxis
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(NullFormatter())
