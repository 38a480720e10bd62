"""The squashing function, and how exactly it is computed."""

from collections.abc import Mapping

import numpy as np
from matplotlib.patches import Circle
from matplotlib.ticker import LogLocator
from numpy.typing import ArrayLike

from capsnet_book.figures.helpers import S, V, arrow, styled
from capsnet_lab.figures.style import FAINT, INK, MISTAKE, Figure, array

ROOM = 0.9, 0.2  # beside and above the arrows, for their lengths
# Of each implementation; the first, in ink, is the one to compare with.
LOOKS = ((INK, "-"), (MISTAKE, "--"), (MISTAKE, "-."), (MISTAKE, ":"))


@styled
def squash_arrows(vectors: ArrayLike, squashed: ArrayLike) -> Figure:
    """Vectors s [n, 2] of the plane and v [n, 2] from one point, and the circle that holds v."""
    before, after = array(vectors), array(squashed)
    figure, axes = Figure.single(2.2)
    axes.set_axis_off()
    axes.set_aspect("equal")
    axes.add_patch(Circle((0, 0), 1, fill=False, edgecolor=FAINT, linestyle="--"))
    for s, v in zip(before, after, strict=True):
        arrow(axes, (0, 0), s, S, linewidth=1.3)
        arrow(axes, (0, 0), v, V, linewidth=2.6)
        length = np.hypot(*s)
        x, y = s / length
        axes.annotate(
            f"{length:g} → {np.hypot(*v):.2f}", s, xytext=(6 * x, 6 * y),
            textcoords="offset points", ha="left" if x > 0 else "right", va="center", fontsize=9,
        )  # fmt: skip
    corners = np.vstack([before, [[-1, -1], [1, 1]]])
    low, high = corners.min(axis=0) - ROOM, corners.max(axis=0) + ROOM
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    return figure


@styled
def relative_errors(lengths: ArrayLike, errors: Mapping[str, ArrayLike]) -> Figure:
    """Relative error [n] of implementations (four at most) against ‖s‖ [n]; logarithmic."""
    x, values = array(lengths), [array(error) for error in errors.values()]
    figure, axes = Figure.single(3.6)
    axes.axhline(1, color=FAINT, linewidth=0.8)
    axes.annotate(
        "error = result", (0.995, 1), xycoords=("axes fraction", "data"),
        xytext=(0, 3), textcoords="offset points", ha="right", fontsize=9,
    )  # fmt: skip
    styles = LOOKS[: len(errors)]
    for name, error, (colour, line) in zip(errors, values, styles, strict=True):
        axes.plot(x, error, line, color=colour, linewidth=1.6, label=name)
    axes.set(xscale="log", yscale="log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(numticks=8))
    axes.minorticks_off()
    positive = [1, *(value for error in values for value in error if value > 0)]
    axes.set(xlim=(x.min(), x.max()), ylim=(min(positive) / 4, 10 * max(positive)))
    axes.set(xlabel="input length ‖s‖", ylabel="relative error of v")
    axes.legend(loc="upper right")
    return figure
