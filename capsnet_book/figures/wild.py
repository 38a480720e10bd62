"""What other people's deviations cost."""

from collections.abc import Mapping

import matplotlib as mpl

from capsnet.figures.style import FAINT, INK, QUANTITIES, STYLE, Figure
from capsnet_book.figures.comparison import name_rows


@mpl.rc_context(STYLE)
def costs(found: Mapping[str, tuple[float, float | None]]) -> Figure:
    """The error that each deviation adds, from the most to the least; linear within ± 0.1 point.

    Args:
        found: by name, a difference of two errors in percentage points, and the half-width of its
            95 % interval; None for a single training, which is drawn hollow.
    """
    order = sorted(found, key=lambda name: -found[name][0])
    figure, axes = Figure.single(0.9 + 0.26 * len(order))
    axes.axvline(0, color=FAINT, linewidth=0.9)
    for row, name in enumerate(order):
        points, half = found[name]
        colour = INK if name.startswith("all of ") else QUANTITIES["v"].colour
        if half is not None:
            axes.hlines(row, points - half, points + half, color=colour, linewidth=1.6)
        axes.plot(
            [points], [row], "o", color=colour, fillstyle="none" if half is None else "full", ms=5
        )
    name_rows(axes, order)
    axes.set_xscale("symlog", linthresh=0.1)
    left, right = axes.get_xlim()
    axes.set_xlim(min(left, -0.12), max(right, 0.12))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("error added, percentage points")
    return figure
