"""Pictures of the squashing function, of its gradient, and of how exactly it is computed."""

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.ticker import LogLocator, NullFormatter
from numpy.typing import ArrayLike

from capsnet.figures.style import FAINT, INK, MISTAKE, QUANTITIES, STYLE, Figure, array


@mpl.rc_context(STYLE)
def squash_curves(
    lengths: ArrayLike, squashed: ArrayLike, along: ArrayLike, across: ArrayLike
) -> Figure:
    """The length that squash makes of a length, and beside it how a small change is passed on.

    Args:
        lengths: ‖s‖, [n].
        squashed: ‖v‖, [n].
        along: the derivative of ‖v‖ with respect to ‖s‖, [n].
        across: by what a small step at right angles to s is multiplied, [n].
    """
    x = array(lengths)
    curves = [array(values) for values in (squashed, along, across)]
    if x.ndim != 1 or any(values.shape != x.shape for values in curves):
        raise ValueError(
            f"lengths, squashed, along and across must all be [n], got {list(x.shape)} and "
            + ", ".join(str(list(values.shape)) for values in curves)
        )
    figure = Figure(2.9)
    left, right = figure.subplots(1, 2)
    left.axhline(1, color=FAINT, linewidth=0.8, linestyle=":")
    left.plot(x, curves[0], color=QUANTITIES["v"].colour, linewidth=1.6)
    left.set_ylim(0, 1.05)
    left.set_ylabel("output length ‖v‖")
    right.plot(x, curves[1], color=INK, linewidth=1.6, label="along s")
    right.plot(x, curves[2], "--", color=INK, linewidth=1.6, label="across s")
    right.set_ylim(bottom=0)
    right.set_ylabel("change of v per change of s")
    right.legend()
    for axes in (left, right):
        axes.set_xlim(x.min(), x.max())
        axes.set_xlabel("input length ‖s‖")
    return figure


# The first way to compute is the one to compare with: it is drawn in ink.
LINES: Sequence[tuple[str, str]] = ((INK, "-"), (MISTAKE, "--"), (MISTAKE, "-."), (MISTAKE, ":"))


@mpl.rc_context(STYLE)
def relative_errors(lengths: ArrayLike, errors: Mapping[str, ArrayLike]) -> Figure:
    """Relative error against the length of the vector, both axes logarithmic.

    Args:
        lengths: ‖s‖, [n].
        errors: name of a way to compute → its relative error, [n]; four ways at most.
    """
    x = array(lengths)
    if not 1 <= len(errors) <= len(LINES):
        raise ValueError(f"errors must hold 1 to {len(LINES)} ways to compute, got {len(errors)}")
    figure = Figure(3.6)
    axes = figure.subplots()
    axes.axhline(1, color=FAINT, linewidth=0.8)
    axes.annotate(
        "nothing right", (0.995, 1), xycoords=("axes fraction", "data"),
        xytext=(0, 3), textcoords="offset points", ha="right", fontsize=9,
    )  # fmt: skip
    for (colour, line), (name, error) in zip(LINES, errors.items(), strict=False):
        values = array(error)
        if values.shape != x.shape or x.ndim != 1:
            raise ValueError(f"every error must be {list(x.shape)}, got {list(values.shape)}")
        axes.plot(x, values, line, color=colour, linewidth=1.6, label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(numticks=8))
        axis.set_minor_formatter(NullFormatter())
    axes.minorticks_off()
    axes.set_xlim(x.min(), x.max())
    values = np.concatenate([array(error) for error in errors.values()])
    positive = np.append(values[values > 0], 1)
    axes.set_ylim(positive.min() / 4, 10 * positive.max())
    axes.set_xlabel("input length ‖s‖")
    axes.set_ylabel("relative error of v")
    axes.legend(loc="upper right")
    return figure
