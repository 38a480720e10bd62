"""Pictures of how routing goes on, iteration by iteration."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, MaxNLocator
from numpy.typing import ArrayLike

from capsnet.figures.style import INK, QUANTITIES, STYLE, Figure, apart, array, beside

MARKERS = "osD^vPX*"


@mpl.rc_context(STYLE)
def by_iteration(
    iterations: ArrayLike,
    lines: Mapping[str, ArrayLike],
    quantities: Sequence[str],
    label: str,
    *,
    logarithmic: str = "",
    trained: Sequence[int] | None = None,
) -> Figure:
    """Lines against the routing iteration, each with its name at its right end.

    Args:
        iterations: the iterations, rising, [n].
        lines: of each name, the values, [n].
        quantities: of each line, the key of the quantity whose colour it has; ink for "".
        label: what the values are: the name of the axis.
        logarithmic: which axes are: "", "x", "y" or "xy".
        trained: of each line, the last iteration that took part in training: the line is dotted
            beyond it. All are solid if None.
    """
    x = array(iterations)
    values = {name: array(numbers) for name, numbers in lines.items()}
    if x.ndim != 1 or len(x) == 0 or not values:
        raise ValueError(
            f"expected a row of iterations and a line or more, got {list(x.shape)} and "
            f"{len(values)} lines"
        )
    for name, numbers in values.items():
        if numbers.shape != x.shape:
            raise ValueError(f"{name} must be [{len(x)}], got {list(numbers.shape)}")
    if len(quantities) != len(values):
        raise ValueError(f"quantities must be {len(values)}, one a line, got {len(quantities)}")
    until = [int(x[-1])] * len(values) if trained is None else list(trained)
    figure = Figure(max(2.9, 1.0 + 0.3 * len(values)))
    axes = figure.subplots()
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    for letter, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
        if letter in logarithmic:
            axes.set(**{f"{letter}scale": "log"})
            axis.set_major_formatter("{x:g}")
            axis.set_minor_locator(LogLocator(subs=(2, 5)))
            axis.set_minor_formatter("{x:g}")
            axis.set_tick_params(which="both", length=3.5, pad=3.5)
    colours = [QUANTITIES[key].colour if key else INK for key in quantities]
    ends = np.array([numbers[-1] for numbers in values.values()], dtype=float)
    rows = zip(values.values(), colours, until, strict=True)
    for (numbers, colour, end), marker in zip(rows, cycle(MARKERS), strict=False):
        inside = int((x <= end).sum())
        common: dict[str, Any] = {
            "color": colour,
            "marker": marker,
            "markersize": 4,
            "linewidth": 1.3,
        }
        if inside < len(x):  # drawn first, so that the last solid point covers its first
            beyond = max(0, inside - 1)
            axes.plot(x[beyond:], numbers[beyond:], ":", markerfacecolor="w", **common)
        if inside:
            axes.plot(x[:inside], numbers[:inside], "-", **common)
    # In the axis' own scale, so that the names keep apart on the page.
    height = np.log10 if "y" in logarithmic else np.asarray
    low, high = height(np.array(axes.get_ylim()))
    inches = figure.get_figheight() - 0.6
    placed = apart(height(ends), 0.16 * (high - low) / inches)
    for name, colour, place in zip(values, colours, placed, strict=True):
        beside(axes, name, 10**place if "y" in logarithmic else place, colour)
    if trained is not None:
        handles = [
            Line2D([], [], color=INK, linestyle="-", label="as in training"),
            Line2D([], [], color=INK, linestyle=":", label="beyond"),
        ]
        figure.legend(handles=handles, loc="outside upper center", ncols=2)
    axes.set_xlabel("iteration")
    axes.set_ylabel(label)
    return figure
