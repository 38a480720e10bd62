"""What several figures share: panels, named rows of dots, lines with names, histograms, arrows."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter
from numpy.typing import ArrayLike, NDArray

from capsnet_lab.figures.style import FAINT, INK, MISTAKE, QUANTITIES, STYLE, Figure, array

# The colour of each quantity.
U, U_HAT, B, C, S, V = (quantity.colour for quantity in QUANTITIES.values())
styled = mpl.rc_context(STYLE)  # decorates every function that draws a figure
# Of up to four curves: the one that matters, and what it is compared with.
LINES = ((V, "o-"), (INK, "s--"), (FAINT, "^:"), (MISTAKE, "D-."))


def side_by_side(height: float, count: int, **options: Any) -> tuple[Figure, Sequence[Axes]]:
    """A figure, its height in inches, and its panels from left to right."""
    figure = Figure(height)
    return figure, figure.subplots(1, count, squeeze=False, **options)[0]


def stacked(height: float, count: int, **options: Any) -> tuple[Figure, Sequence[Axes]]:
    """A figure, its height in inches, and its panels from top to bottom over one x axis."""
    figure = Figure(height)
    return figure, figure.subplots(count, 1, squeeze=False, sharex=True, **options)[:, 0]


def legend_above(figure: Figure, columns: int = 2) -> None:
    """The names of what is in the panels, once each, above them."""
    named: dict[str, Any] = {}
    for axes in figure.axes:
        for drawn, name in zip(*axes.get_legend_handles_labels(), strict=True):
            named.setdefault(name, drawn)
    if named:
        figure.legend(list(named.values()), list(named), loc="outside upper center", ncols=columns)


def name_rows(axes: Axes, names: Sequence[str]) -> None:
    """Names left of the heights 0, 1, 2 and so on, from top to bottom."""
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.spines["left"].set_visible(False)


def names_at_ends(axes: Axes, heights: Mapping[str, float], colours: Sequence[str]) -> None:
    """Names right of the axes, at the heights of their lines' ends, moved until they keep apart.

    Lines of one colour that end at one place have their names side by side. Whatever else sets the
    limits of the axes must come before.
    """
    axes.get_ylim()  # brings the limits up to date, which the transformation does not
    to_fraction = axes.transScale + axes.transLimits  # from the data to parts of the axes
    x = axes.get_xlim()[0]
    ends = np.array([to_fraction.transform((x, height))[1] for height in heights.values()])
    groups: list[list[int]] = []
    for line in np.argsort(ends, kind="stable"):
        first = groups[-1][0] if groups else line
        if groups and colours[first] == colours[line] and ends[line] - ends[first] < 0.04:
            groups[-1].append(line)
        else:
            groups.append([line])
    inches = axes.figure.bbox.height / axes.figure.dpi - 0.6  # about the axes' height
    middles = np.array([ends[group].mean() for group in groups])
    look: dict[str, Any] = {"transform": axes.transAxes, "va": "center", "fontsize": 9}
    for group, height in zip(groups, apart(middles, 0.16 / inches), strict=True):
        names = " ".join(list(heights)[line] for line in sorted(group))
        axes.text(1.02, height, names, color=colours[group[0]], **look)


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


def draw_margins(panels: Sequence[Axes], margins: tuple[float, float]) -> None:
    """Both margins (m⁺, m⁻) in all panels, named above each of the first row."""
    for axes in panels:
        place = axes.get_subplotspec()
        for margin, name in zip(margins, ("m⁺", "m⁻"), strict=True):
            axes.axvline(margin, color=INK, linewidth=0.8, linestyle=":")
            if place and place.is_first_row():
                above = axes.get_xaxis_transform()
                text = axes.text(margin, 1.01, f"{name} = {margin:g}", transform=above, ha="center")
                text.set_fontsize(9)


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
