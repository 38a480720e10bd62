"""Pictures of routing by agreement: votes, shares and lengths, iteration by iteration."""

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, MultipleLocator
from numpy.typing import ArrayLike, NDArray

from capsnet.figures.style import FAINT, INK, QUANTITIES, STYLE, WIDTH, Figure, apart, array, beside


@mpl.rc_context(STYLE)
def routing_votes(
    u_hat: ArrayLike,
    coupling: ArrayLike,
    s: ArrayLike,
    v: ArrayLike,
    parents: Sequence[str],
) -> Figure:
    """Two-dimensional votes as arrows, with what each parent makes of them: a row an iteration.

    A vote is as thick as its coupling coefficient is large. The grey circle has radius 1, which no
    output reaches.

    Args:
        u_hat: predictions û, [children, parents, 2].
        coupling: c, [iterations, children, parents].
        s: the parents' inputs, [iterations, parents, 2].
        v: the parents' outputs, the same shape.
        parents: their names.
    """
    votes, shares, inputs, outputs = (array(values) for values in (u_hat, coupling, s, v))
    children, rows = len(votes), len(shares)
    expected = {
        "u_hat": (votes, (children, len(parents), 2)),
        "coupling": (shares, (rows, children, len(parents))),
        "s": (inputs, (rows, len(parents), 2)),
        "v": (outputs, (rows, len(parents), 2)),
    }
    for name, (values, shape) in expected.items():
        if values.shape != shape or 0 in shape:
            raise ValueError(f"{name} must be {list(shape)}, got {list(values.shape)}")
    square = np.array([-1.0, 1.0])  # the circle is always in view
    spans = [
        _span(votes[:, j, 0], inputs[:, j, 0], outputs[:, j, 0], square)
        for j in range(len(parents))
    ]
    low, high = _span(votes[..., 1], inputs[..., 1], outputs[..., 1], square)
    widths = [right - left for left, right in spans]
    unit = (WIDTH - 0.35 - 0.25 * len(parents)) / sum(widths)  # inches
    figure = Figure(0.75 + rows * (unit * (high - low) + 0.36))
    grid = figure.subplots(
        rows, len(parents), squeeze=False, sharex="col", sharey=True, width_ratios=widths
    )
    for row in range(rows):
        for j, parent in enumerate(parents):
            axes = grid[row, j]
            axes.add_patch(mpl.patches.Circle((0, 0), 1, fill=False, color=FAINT, linewidth=0.8))
            for i in range(children):
                _arrow(axes, votes[i, j], "u_hat", 0.4 + 3.6 * shares[row, i, j])
            _arrow(axes, inputs[row, j], "s", 1.6)
            _arrow(axes, outputs[row, j], "v", 3)
            axes.set_title(
                f"{parent}, iteration {row + 1}: ‖v‖ = {np.linalg.norm(outputs[row, j]):.2f}"
            )
            axes.set_xlim(*spans[j])
            axes.set_ylim(low, high)
            axes.set_aspect("equal")
            axes.xaxis.set_major_locator(MultipleLocator(1))
            axes.yaxis.set_major_locator(MultipleLocator(1))
    for axes in grid[-1]:
        axes.set_xlabel("first component")
    for axes in grid[:, 0]:
        axes.set_ylabel("second component")
    names = {"u_hat": "û, as thick as c", "s": "s", "v": "v"}
    handles = [
        Line2D([], [], color=QUANTITIES[key].colour, linewidth=2.2, label=name)
        for key, name in names.items()
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=3)
    return figure


def _span(*values: NDArray[Any]) -> tuple[float, float]:
    low, high = min(v.min() for v in values), max(v.max() for v in values)
    return low - 0.12, high + 0.12


def _arrow(axes: Axes, tip: NDArray[Any], quantity: str, width: float) -> None:
    axes.annotate(
        "",
        xy=(float(tip[0]), float(tip[1])),
        xytext=(0, 0),
        arrowprops={
            "arrowstyle": "-|>",
            "mutation_scale": 6 + width,
            "linewidth": width,
            "color": QUANTITIES[quantity].colour,
            "shrinkA": 0,
            "shrinkB": 0,
        },
    )


@mpl.rc_context(STYLE)
def routing_shares(shares: ArrayLike, parent: str) -> Figure:
    """The share of each child that goes to one parent, against the iteration.

    Args:
        shares: coupling coefficients to that parent, [iterations, children].
        parent: its name.
    """
    values = array(shares)
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(f"shares must be [iterations, children], got {list(values.shape)}")
    iterations = np.arange(1, len(values) + 1)
    figure = Figure(2.9)
    axes = figure.subplots()
    heights = apart(values[-1], 0.07)
    for child, (line, height) in enumerate(zip(values.T, heights, strict=True), start=1):
        axes.plot(iterations, line, "o-", color=QUANTITIES["c"].colour, linewidth=1.3, markersize=4)
        beside(axes, f"child {child}", height)
    axes.set_ylim(-0.04, 1.04)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("iteration")
    axes.set_ylabel(f"share c that goes to {parent}")
    return figure


@mpl.rc_context(STYLE)
def routing_lengths(lengths: ArrayLike, label: int, classes: Sequence[str]) -> Figure:
    """Lengths of all parents against the iteration; that of the true class in colour.

    Args:
        lengths: ‖v_j‖, [iterations, classes].
        label: the true class.
        classes: their names.
    """
    values = array(lengths)
    if values.ndim != 2 or values.shape[1] != len(classes) or len(values) == 0:
        raise ValueError(f"lengths must be [iterations, {len(classes)}], got {list(values.shape)}")
    if not 0 <= label < len(classes):
        raise ValueError(f"label must lie in 0 … {len(classes) - 1}, got {label}")
    iterations = np.arange(1, len(values) + 1)
    figure = Figure(2.7)
    axes = figure.subplots()
    for j in sorted(range(len(classes)), key=lambda j: j == label):
        axes.plot(
            iterations,
            values[:, j],
            "o-",
            color=QUANTITIES["v"].colour if j == label else FAINT,
            linewidth=2 if j == label else 1,
            markersize=5 if j == label else 3,
        )
    others = np.delete(values[-1], label)
    places = [(f"{classes[label]}, the true class", values[-1, label], QUANTITIES["v"].colour)]
    if len(others):
        places.append(("the other classes", others.mean(), INK))
    for text, height, colour in places:
        beside(axes, text, height, colour)
    axes.set_ylim(0, 1.02)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("iteration")
    axes.set_ylabel("length ‖v‖")
    return figure


@mpl.rc_context(STYLE)
def share_histograms(shares: ArrayLike, uniform: float, parent: str) -> Figure:
    """How many children (logarithmic) give which share to one parent: a histogram an iteration.

    Args:
        shares: coupling coefficients to that parent, [iterations, children].
        uniform: the share when all parents get the same, drawn as a line.
        parent: its name.
    """
    values = array(shares)
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(f"shares must be [iterations, children], got {list(values.shape)}")
    # A bin has `uniform` in its middle: what is uniform up to rounding is one bar.
    width = uniform / 5
    below = int(np.ceil((uniform - values.min()) / width)) + 1
    above = int(np.ceil((values.max() - uniform) / width)) + 1
    edges = uniform + width * (np.arange(-below, above + 1) + 0.5)
    figure = Figure(0.6 + 1.15 * len(values))
    grid = figure.subplots(len(values), 1, squeeze=False, sharex=True)[:, 0]
    for iteration, (axes, row) in enumerate(zip(grid, values, strict=True), start=1):
        axes.hist(row, edges, color=QUANTITIES["c"].colour, log=True)
        axes.set_ylim(0.7, 3 * values.shape[1])
        axes.axvline(uniform, color=INK, linewidth=0.8, linestyle=":")
        axes.annotate(
            f"iteration {iteration}", (1, 0.97), xycoords="axes fraction", ha="right", va="top"
        )
        axes.set_ylabel("children")
    grid[-1].set_xlabel(f"share c of the child that goes to {parent}")
    return figure
