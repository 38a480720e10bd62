"""Pictures of the squashing function, of its gradient, and of how exactly it is computed."""

from collections.abc import Mapping

import matplotlib as mpl
import numpy as np
from matplotlib.patches import Circle
from matplotlib.ticker import LogLocator, NullFormatter
from numpy.typing import ArrayLike

from capsnet_book.figures.axes import arrow
from capsnet_lab.figures.style import FAINT, INK, MISTAKE, QUANTITIES, STYLE, Figure, array

ROOM = 0.9, 0.2  # beside and above the arrows, for their lengths


@mpl.rc_context(STYLE)
def squash_arrows(vectors: ArrayLike, squashed: ArrayLike) -> Figure:
    """Vectors of the plane before and after, from one point, and the circle that holds the latter.

    Args:
        vectors: s, [n, 2].
        squashed: v, [n, 2].
    """
    before, after = array(vectors), array(squashed)
    figure, axes = Figure.single(2.2)
    axes.set_axis_off()
    axes.set_aspect("equal")
    axes.add_patch(Circle((0, 0), 1, fill=False, edgecolor=FAINT, linestyle="--"))
    for s, v in zip(before, after, strict=True):
        arrow(axes, (0, 0), s, QUANTITIES["s"].colour, linewidth=1.3)
        arrow(axes, (0, 0), v, QUANTITIES["v"].colour, linewidth=2.6)
        long, short = np.hypot(*s), np.hypot(*v)
        x, y = s / long
        axes.annotate(
            f"{long:g} → {short:.2f}", s, xytext=(6 * x, 6 * y), textcoords="offset points",
            ha="left" if x > 0 else "right", va="center", fontsize=9,
        )  # fmt: skip
    corners = np.vstack([before, [[-1, -1], [1, 1]]])
    low, high = corners.min(axis=0) - ROOM, corners.max(axis=0) + ROOM
    axes.set_xlim(low[0], high[0])
    axes.set_ylim(low[1], high[1])
    return figure


@mpl.rc_context(STYLE)
def squash_curves(
    lengths: ArrayLike, squashed: ArrayLike, along: ArrayLike, across: ArrayLike
) -> Figure:
    """The length that squash makes of a length, and beside it the squash's derivatives.

    Args:
        lengths: ‖s‖, [n].
        squashed: ‖v‖, [n].
        along: change of v per small change of s along s, [n].
        across: the same at right angles to s, [n].
    """
    x = array(lengths)
    figure = Figure(2.9)
    left, right = figure.subplots(1, 2)
    left.axhline(1, color=FAINT, linewidth=0.8, linestyle=":")
    left.plot(x, array(squashed), color=QUANTITIES["v"].colour, linewidth=1.6)
    left.set_ylim(0, 1.05)
    left.set_ylabel("output length ‖v‖")
    right.plot(x, array(along), color=INK, linewidth=1.6, label="along s")
    right.plot(x, array(across), "--", color=INK, linewidth=1.6, label="across s")
    right.set_ylim(bottom=0)
    right.set_ylabel("change of v per change of s")
    right.legend()
    for axes in (left, right):
        axes.set_xlim(x.min(), x.max())
        axes.set_xlabel("input length ‖s‖")
    return figure


# Of each way to compute; the first, in ink, is the one to compare with.
WAYS = ((INK, "-"), (MISTAKE, "--"), (MISTAKE, "-."), (MISTAKE, ":"))


@mpl.rc_context(STYLE)
def relative_errors(lengths: ArrayLike, errors: Mapping[str, ArrayLike]) -> Figure:
    """Relative error against the length of the vector, both axes logarithmic.

    Args:
        lengths: ‖s‖, [n].
        errors: by the way to compute (four at most), its relative error, [n].
    """
    x = array(lengths)
    figure, axes = Figure.single(3.6)
    axes.axhline(1, color=FAINT, linewidth=0.8)
    axes.annotate(
        "off by its own length", (0.995, 1), xycoords=("axes fraction", "data"),
        xytext=(0, 3), textcoords="offset points", ha="right", fontsize=9,
    )  # fmt: skip
    values = {name: array(error) for name, error in errors.items()}
    for (name, error), (colour, line) in zip(values.items(), WAYS[: len(values)], strict=True):
        axes.plot(x, error, line, color=colour, linewidth=1.6, label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(numticks=8))
        axis.set_minor_formatter(NullFormatter())
    axes.minorticks_off()
    axes.set_xlim(x.min(), x.max())
    drawn = np.concatenate(list(values.values()))
    positive = np.append(drawn[drawn > 0], 1)
    axes.set_ylim(positive.min() / 4, 10 * positive.max())
    axes.set_xlabel("input length ‖s‖")
    axes.set_ylabel("relative error of v")
    axes.legend(loc="upper right")
    return figure
