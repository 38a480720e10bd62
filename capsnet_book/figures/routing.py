"""Pictures of routing by agreement, iteration by iteration: votes, shares, lengths, changes."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, MaxNLocator, MultipleLocator
from numpy.typing import ArrayLike, NDArray

from capsnet.figures.style import FAINT, INK, QUANTITIES, STYLE, WIDTH, Figure, array, arrow, beside

MARKERS = "osD^vPX*"


@mpl.rc_context(STYLE)
def routing_votes(
    u_hat: ArrayLike,
    coupling: ArrayLike,
    s: ArrayLike,
    v: ArrayLike,
    parents: Sequence[str],
) -> Figure:
    """Two-dimensional votes as arrows, with what each parent makes of them, for each iteration.

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
    rows = len(shares)
    drawn = np.concatenate([votes, inputs, outputs])  # [children + 2 iterations, parents, 2]
    # The circle is always in view.
    lowest = np.minimum(drawn.min(axis=0), -1) - 0.12  # [parents, 2]
    highest = np.maximum(drawn.max(axis=0), 1) + 0.12
    spans = np.stack([lowest[:, 0], highest[:, 0]], axis=1)
    low, high = lowest[:, 1].min(), highest[:, 1].max()
    widths = spans[:, 1] - spans[:, 0]
    unit = (WIDTH - 0.35 - 0.25 * len(parents)) / widths.sum()  # inches
    figure = Figure(0.75 + rows * (unit * (high - low) + 0.36))
    grid = figure.subplots(
        rows, len(parents), squeeze=False, sharex="col", sharey=True, width_ratios=widths
    )
    for row in range(rows):
        for j, parent in enumerate(parents):
            axes = grid[row, j]
            axes.add_patch(mpl.patches.Circle((0, 0), 1, fill=False, color=FAINT, linewidth=0.8))
            for vote, share in zip(votes[:, j], shares[row, :, j], strict=True):
                _vector(axes, vote, "u_hat", 0.4 + 3.6 * share)
            _vector(axes, inputs[row, j], "s", 1.6)
            _vector(axes, outputs[row, j], "v", 3)
            length = np.linalg.norm(outputs[row, j])
            axes.set_title(f"{parent}, iteration {row + 1}: ‖v‖ = {length:.2f}")
            axes.set_xlim(*spans[j])
            axes.set_ylim(low, high)
            axes.set_aspect("equal")
            axes.xaxis.set_major_locator(MultipleLocator(1))
            axes.yaxis.set_major_locator(MultipleLocator(1))
    for axes in grid[-1]:
        axes.set_xlabel("first component")
    for axes in grid[:, 0]:
        axes.set_ylabel("second component")
    for key, name in {"u_hat": "û, as thick as c", "s": "s", "v": "v"}.items():
        grid[0, 0].plot([], [], color=QUANTITIES[key].colour, linewidth=2.2, label=name)
    figure.legend(loc="outside upper center", ncols=3)
    return figure


def _vector(axes: Axes, tip: NDArray[Any], quantity: str, width: float) -> None:
    colour = QUANTITIES[quantity].colour
    arrow(axes, (0, 0), tip, colour, linewidth=width, mutation_scale=6 + width)


@mpl.rc_context(STYLE)
def routing_shares(shares: ArrayLike, parent: str) -> Figure:
    """The share of each child that goes to one parent, against the iteration.

    Args:
        shares: coupling coefficients to that parent, [iterations, children].
        parent: its name.
    """
    values = array(shares)
    iterations = np.arange(1, len(values) + 1)
    figure, axes = Figure.single(2.9)
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
    iterations = np.arange(1, len(values) + 1)
    figure, axes = Figure.single(2.7)
    for j in sorted(range(len(classes)), key=lambda j: j == label):
        colour, width, size = (QUANTITIES["v"].colour, 2, 5) if j == label else (FAINT, 1, 3)
        axes.plot(iterations, values[:, j], "o-", color=colour, linewidth=width, markersize=size)
    beside(axes, f"{classes[label]}, the true class", values[-1, label], QUANTITIES["v"].colour)
    beside(axes, "the other classes", np.delete(values[-1], label).mean())
    axes.set_ylim(0, 1.02)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("iteration")
    axes.set_ylabel("length ‖v‖")
    return figure


@mpl.rc_context(STYLE)
def share_histograms(shares: ArrayLike, uniform: float, parent: str) -> Figure:
    """Histograms of the shares that children give to one parent, for each iteration.

    Args:
        shares: coupling coefficients to that parent, [iterations, children].
        uniform: the share when all parents get the same, drawn as a line.
        parent: its name.
    """
    values = array(shares)
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
        axes.text(1, 0.97, f"iteration {iteration}", transform=axes.transAxes, ha="right", va="top")
        axes.set_ylabel("children")
    grid[-1].set_xlabel(f"share c of the child that goes to {parent}")
    return figure


@mpl.rc_context(STYLE)
def by_iteration(
    iterations: ArrayLike,
    lines: Mapping[str, ArrayLike],
    quantities: Sequence[str],
    label: str,
    *,
    logarithmic: str = "",
    trained: Sequence[int] | None = None,
    of: str = "iteration",
) -> Figure:
    """Lines against the routing iteration, each with its name at its right end.

    Args:
        iterations: the iterations, or steps of another kind, rising, [n].
        lines: the values of each line by its name, [n].
        quantities: for each line, the key of the quantity whose colour it has; "" for ink.
        label: what the values are, for the axis.
        logarithmic: which axes are logarithmic: "", "x", "y" or "xy".
        trained: for each line, the last iteration of the network's training: the line is dotted
            beyond it. If None, all are solid.
        of: what is counted along the axis.
    """
    x = array(iterations)
    values = {name: array(numbers) for name, numbers in lines.items()}
    until = [int(x[-1])] * len(values) if trained is None else list(trained)
    figure, axes = Figure.single(max(2.9, 1.0 + 0.3 * len(values)))
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
        style: dict[str, Any] = {"color": colour, "marker": marker, "ms": 4, "linewidth": 1.3}
        if inside < len(x):  # drawn first, so that the last solid point covers its first
            beyond = max(0, inside - 1)
            axes.plot(x[beyond:], numbers[beyond:], ":", mfc="w", **style)
        if inside:
            axes.plot(x[:inside], numbers[:inside], "-", **style)
    # In the axis' own scale, so that the names keep apart on the page.
    height = np.log10 if "y" in logarithmic else np.asarray
    low, high = height(np.array(axes.get_ylim()))
    inches = figure.get_figheight() - 0.6
    placed = apart(height(ends), 0.16 * (high - low) / inches)
    for name, colour, place in zip(values, colours, placed, strict=True):
        beside(axes, name, 10**place if "y" in logarithmic else place, colour)
    if trained is not None:
        for line, name in (("-", "as in training"), (":", "beyond")):
            axes.plot([], [], line, color=INK, label=name)
        figure.legend(loc="outside upper center", ncols=2)
    axes.set_xlabel(of)
    axes.set_ylabel(label)
    return figure


def apart(heights: NDArray[Any], gap: float) -> NDArray[Any]:
    """Heights for labels: the given ones, moved up and down until they do not overlap."""
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
