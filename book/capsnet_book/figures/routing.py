"""Routing by agreement: its quantities; votes, coupling coefficients and lengths by iteration."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Circle, FancyBboxPatch
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from capsnet_book.figures.helpers import (
    U_HAT,
    C,
    V,
    apart,
    arrow,
    names_at_ends,
    side_by_side,
    stacked,
    styled,
)
from capsnet_lab.figures.style import FAINT, INK, PAPER, QUANTITIES, WIDTH, Figure, array

WIDE, HIGH = 0.2, 0.17  # half of a box of the palette
# Where each box stands, what it is called, and at which height.
TOP, BOTTOM = 1 + HIGH + 0.05, -HIGH - 0.06
PLACES = {
    "u": (0, 1, "child’s output", TOP),
    "u_hat": (1, 1, "prediction", TOP),
    "s": (2, 1, "total input", TOP),
    "v": (3, 1, "parent’s output", TOP),
    "b": (1, 0, "routing logit", BOTTOM),
    "c": (2, 0, "coupling", BOTTOM),
}
# Arrows from edge to edge, each with the operation: (x, y), how the words stand about that point.
ARROWS = (
    ((0 + WIDE, 1), (1 - WIDE, 1), r"$W_{ij}$", (0.5, 0.95), "center", "top"),
    ((1 + WIDE, 1), (2 - WIDE, 1), "sum over\nchildren", (1.5, 0.95), "center", "top"),
    ((2 + WIDE, 1), (3 - WIDE, 1), "squash", (2.5, 0.95), "center", "top"),
    ((1 + WIDE, 0), (2 - WIDE, 0), "softmax over\nparents", (1.5, 0.05), "center", "bottom"),
    ((2, HIGH), (2, 1 - HIGH), "weights", (2.06, 0.5), "left", "center"),
    ((1, 1 - HIGH), (1, HIGH), "agreement", (0.94, 0.5), "right", "center"),
    # What v does to b goes round below: the next iteration.
    ((1, -0.5), (1, -HIGH - 0.21), "next iteration", (2, -0.54), "center", "top"),
)


@styled
def palette() -> Figure:
    """The six quantities of the routing as boxes of their colours, arrows for what makes which."""
    figure, axes = Figure.single(3.1)
    axes.set_axis_off()
    for key, (x, y, name, height) in PLACES.items():
        quantity = QUANTITIES[key]
        box = FancyBboxPatch(
            (x - WIDE, y - HIGH), 2 * WIDE, 2 * HIGH,
            boxstyle="round,pad=0,rounding_size=0.06",
            facecolor=quantity.colour, edgecolor="none", gid=key,
        )  # fmt: skip
        axes.add_patch(box)
        axes.text(x, y, f"${quantity.latex}$", color=PAPER, fontsize=15, ha="center", va="center")
        axes.text(x, height, name, ha="center", va="bottom" if y else "top")
    for start, end, operation, (left, low), ha, va in ARROWS:
        arrow(axes, start, end, FAINT, linewidth=1.2, shrinkA=1, shrinkB=1)
        axes.text(left, low, operation, ha=ha, va=va, fontsize=9)
    axes.plot([3, 3, 1], [1 - HIGH, -0.5, -0.5], color=FAINT, linewidth=1.2)
    axes.set(xlim=(-0.42, 3.42), ylim=(-0.7, 1.42))
    return figure


@styled
def routing_votes(
    u_hat: ArrayLike, coupling: ArrayLike, v: ArrayLike, parents: Sequence[str]
) -> Figure:
    """Two-dimensional votes as arrows, and each parent's output, for each iteration.

    A row is a parent, a column an iteration. A vote û [children, parents, 2] is as thick as its
    coupling coefficient c [iterations, children, parents]; the outputs v are [iterations, parents,
    2].
    """
    votes, shares, outputs = (array(values) for values in (u_hat, coupling, v))
    side = (WIDTH - 0.3) / max(3, len(shares))
    figure = Figure(0.25 + 1.12 * side * len(parents))
    grid = figure.subplots(len(parents), len(shares), squeeze=False)
    for (j, iteration), axes in np.ndenumerate(grid):
        output = outputs[iteration, j]
        disc(axes, votes[:, j], shares[iteration, :, j], numbers=iteration == 0)
        arrow(axes, (0, 0), output, V, linewidth=2.4, mutation_scale=8.4)
        length = f"‖v‖ = {np.linalg.norm(output):.2f}"
        axes.text(0, -1.5, length, ha="center", va="center", color=V)
        axes.set_ylim(-1.6, 1.3)
        if j == 0:
            axes.set_title(f"iteration {iteration + 1}")
    for axes, parent in zip(grid[:, 0], parents, strict=True):
        axes.text(-1.4, 0, parent, ha="right", va="center", rotation=90)
    return figure


def disc(axes: Axes, votes: NDArray[Any], shares: NDArray[Any], numbers: bool) -> None:
    """Votes [children, 2] from the middle of a circle of radius 1, as thick as their shares."""
    axes.add_patch(Circle((0, 0), 1, fill=False, color=FAINT, linewidth=0.8))
    for vote, share in zip(votes, shares, strict=True):
        width = 0.4 + 3.6 * share
        arrow(
            axes, (0, 0), vote, U_HAT,
            linewidth=width, mutation_scale=6 + width,
        )  # fmt: skip
    if numbers:
        angles = np.arctan2(votes[:, 1], votes[:, 0])
        for number, angle in enumerate(apart(angles, 0.15), start=1):
            x, y = 1.16 * np.cos(angle), 1.16 * np.sin(angle)
            axes.text(x, y, str(number), ha="center", va="center", fontsize=9)
    axes.set(xlim=(-1.3, 1.3), ylim=(-1.3, 1.3), aspect="equal")
    axes.set_axis_off()


@styled
def coupling_histograms(shares: ArrayLike, uniform: float, parent: str) -> Figure:
    """Histograms of coupling coefficients to one parent [iterations, children].

    `uniform` is the share when all parents get the same, drawn as a line.
    """
    values = array(shares)
    # A bin has `uniform` in its middle: what is uniform up to rounding is one bar.
    width = uniform / 5
    below = int(np.ceil((uniform - values.min()) / width)) + 1
    above = int(np.ceil((values.max() - uniform) / width)) + 1
    edges = uniform + width * (np.arange(-below, above + 1) + 0.5)
    figure, panels = stacked(0.6 + 1.15 * len(values), len(values))
    for iteration, (axes, row) in enumerate(zip(panels, values, strict=True), start=1):
        axes.hist(row, list(edges), color=C, log=True)
        axes.axvline(uniform, color=INK, linewidth=0.8, linestyle=":")
        axes.text(1, 0.97, f"iteration {iteration}", transform=axes.transAxes, ha="right", va="top")
        axes.set(ylim=(0.7, 3 * values.shape[1]), ylabel="children")
    panels[-1].set_xlabel(f"share c of the child that goes to {parent}")
    return figure


@styled
def lengths_by_iteration(lengths: ArrayLike, true: int, stop: int, name: str) -> Figure:
    """The parents' lengths ‖v‖ [iterations, parents], as far as the routing goes on.

    The parent `true` is there and has a `name`; the others are faint. The network would `stop` at
    that iteration.
    """
    values = array(lengths)
    iterations = np.arange(1, len(values) + 1)
    figure, axes = Figure.single(2.9)
    axes.plot(iterations, np.delete(values, true, axis=1), color=FAINT, linewidth=1.2)
    axes.plot(iterations, values[:, true], color=V, linewidth=2.2)
    axes.axvline(stop, color=INK, linewidth=0.9, linestyle=":")
    axes.text(1.08 * stop, 0.5, "the network\nstops here", va="center", fontsize=9)
    axes.text(1.08 * stop, 0.88, name, color=V, va="center")
    axes.text(1.08, 0.08, "the others", va="center")
    axes.set(xscale="log", xlim=(1, len(values)), ylim=(0, 1.04))
    names_at_ends(axes, {"all ten": 1.0}, [INK])
    axes.set_xticks([tick for tick in (1, 3, 10, 30, 100, 300) if tick <= len(values)])
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set(xlabel="iteration", ylabel="length ‖v‖")
    return figure


@styled
def coupling_bars(shares: Mapping[str, ArrayLike], label: str) -> Figure:
    """Coupling coefficients c_ij [children, parents] as stacked bars, a panel for each routing.

    Of all parents, or of one; `label` says what of a child a bar is.
    """
    figure, panels = side_by_side(2.4, len(shares), sharey=True)
    for axes, (title, values) in zip(panels, shares.items(), strict=True):
        by_parent = array(values).T  # [parents, children]
        children = np.arange(1, by_parent.shape[1] + 1)
        for below, height in zip(by_parent.cumsum(0) - by_parent, by_parent, strict=True):
            axes.bar(children, height, 0.8, below, color=C, edgecolor=PAPER)
        axes.axhline(1, color=FAINT, linestyle=":", linewidth=1)
        axes.set(title=title, xlabel="child")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    panels[0].set_ylabel(label)
    return figure
