"""Pictures of routing by agreement, iteration by iteration: votes, shares, lengths, changes."""

import statistics
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Circle, Rectangle
from matplotlib.ticker import LogLocator, MaxNLocator
from numpy.typing import ArrayLike, NDArray

from capsnet_book.figures.axes import arrow, beside
from capsnet_lab.figures.style import FAINT, INK, PER_ROW, QUANTITIES, STYLE, WIDTH, Figure, array

MARKERS = "osD^vPX*"


@mpl.rc_context(STYLE)
def routing_votes(
    u_hat: ArrayLike, coupling: ArrayLike, v: ArrayLike, parents: Sequence[str]
) -> Figure:
    """Two-dimensional votes as arrows, and what each parent makes of them, for each iteration.

    A row is a parent, a column an iteration. A vote is as thick as its coupling coefficient is
    large.

    Args:
        u_hat: predictions û, [children, parents, 2].
        coupling: c, [iterations, children, parents].
        v: the parents' outputs, [iterations, parents, 2].
        parents: their names.
    """
    votes, shares, outputs = (array(values) for values in (u_hat, coupling, v))
    side = (WIDTH - 0.3) / max(3, len(shares))
    figure = Figure(0.25 + 1.12 * side * len(parents))
    grid = figure.subplots(len(parents), len(shares), squeeze=False)
    for j, parent in enumerate(parents):
        for iteration, axes in enumerate(grid[j]):
            output = outputs[iteration, j]
            disc(axes, votes[:, j], shares[iteration, :, j], numbers=iteration == 0)
            _from_origin(axes, output, "v", 2.4)
            said = f"‖v‖ = {np.linalg.norm(output):.2f}"
            axes.text(0, -1.5, said, ha="center", va="center", color=QUANTITIES["v"].colour)
            axes.set_ylim(-1.6, 1.3)
            if j == 0:
                axes.set_title(f"iteration {iteration + 1}")
        grid[j, 0].text(-1.4, 0, parent, ha="right", va="center", rotation=90)
    return figure


def disc(axes: Axes, votes: NDArray[Any], shares: NDArray[Any], numbers: bool = False) -> None:
    """Votes [children, 2] from the middle of a circle of radius 1, as thick as their shares."""
    axes.add_patch(Circle((0, 0), 1, fill=False, color=FAINT, linewidth=0.8))
    for vote, share in zip(votes, shares, strict=True):
        _from_origin(axes, vote, "u_hat", 0.4 + 3.6 * share)
    if numbers:
        angles = np.arctan2(votes[:, 1], votes[:, 0])
        for number, angle in enumerate(apart(angles, 0.15), start=1):
            x, y = 1.16 * np.cos(angle), 1.16 * np.sin(angle)
            axes.text(x, y, str(number), ha="center", va="center", fontsize=9)
    axes.set_xlim(-1.3, 1.3)
    axes.set_ylim(-1.3, 1.3)
    axes.set_aspect("equal")
    axes.set_axis_off()


def _from_origin(axes: Axes, tip: NDArray[Any], quantity: str, width: float) -> None:
    colour = QUANTITIES[quantity].colour
    arrow(axes, (0, 0), tip, colour, linewidth=width, mutation_scale=6 + width)


@mpl.rc_context(STYLE)
def routing_shares(shares: ArrayLike, lengths: ArrayLike, parents: Sequence[str]) -> Figure:
    """The share of each child that goes to the first parent, and the parents' lengths.

    Args:
        shares: coupling coefficients to the first parent, [iterations, children].
        lengths: ‖v‖, [iterations, parents].
        parents: their names.
    """
    given, long = array(shares), array(lengths)
    iterations = np.arange(1, len(given) + 1)
    figure = Figure(2.5)
    left, right = figure.subplots(1, 2)
    left.plot(iterations, given, "o-", color=QUANTITIES["c"].colour, linewidth=1.3, markersize=3)
    ends = given[-1]
    groups: list[list[int]] = []  # children whose lines end at one place have one label
    for child in np.argsort(ends, kind="stable"):
        if groups and ends[child] - ends[groups[-1][0]] < 0.04:
            groups[-1].append(int(child))
        else:
            groups.append([int(child)])
    heights = apart(np.array([ends[group].mean() for group in groups]), 0.08)
    for group, height in zip(groups, heights, strict=True):
        beside(left, " ".join(str(child + 1) for child in sorted(group)), height)
    left.set_ylabel(f"share c that goes to {parents[0]}")
    for name, line in zip(parents, long.T, strict=True):
        right.plot(
            iterations, line, "o-", color=QUANTITIES["v"].colour, linewidth=1.3, markersize=3
        )
        beside(right, name, line[-1])
    right.set_ylabel("length ‖v‖")
    for axes in (left, right):
        axes.set_ylim(-0.04, 1.04)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("iteration")
    return figure


@mpl.rc_context(STYLE)
def witnesses(
    image: ArrayLike,
    windows: Sequence[tuple[int, int]],
    side: int,
    brought: ArrayLike,
    votes: ArrayLike,
    beside_them: Sequence[tuple[str, ArrayLike]] = (),
) -> Figure:
    """What single children see of an image, and below it their votes as the decoder draws them.

    The frame of a window is as thick as what the child brings is large.

    Args:
        image: [1, height, width], in 0 … 1.
        windows: the first row and the first column that each child sees.
        side: of a window, in pixels.
        brought: what each brings, as a part of the whole, [children].
        votes: the drawings, [children, height, width].
        beside_them: other drawings with their names, one at the end of each row of children.
    """
    picture, parts, drawings = array(image)[0], array(brought), array(votes)
    height, width = picture.shape
    across = PER_ROW + bool(beside_them)
    bands = -(-len(windows) // PER_ROW)
    gap, head = 2, 8  # pixels between pictures, and above them for their names
    pixel = WIDTH / (across * (width + gap))
    high = head + 2 * (height + gap)  # of a band
    figure = Figure(pixel * bands * high)
    figure.set_layout_engine("none")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()

    def put(drawn: NDArray[Any], place: int, below: int, name: str = "") -> tuple[int, int]:
        left = place % across * (width + gap) + gap // 2
        top = place // across * high + head + below * (height + gap)
        extent = (left, left + width, top + height, top)
        axes.imshow(drawn, cmap="gray", vmin=0, vmax=1, interpolation="nearest", extent=extent)
        axes.text(left + width / 2, top - 1, name, ha="center", va="bottom", fontsize=9)
        return left, top

    for child, (row, column) in enumerate(windows):
        place = child // PER_ROW * across + child % PER_ROW
        seen = np.zeros_like(picture, dtype=bool)
        seen[row : row + side, column : column + side] = True
        left, top = put(
            np.where(seen, picture, 0.35 * picture), place, 0, f"{100 * parts[child]:.0f} %"
        )
        frame = Rectangle((left + column, top + row), side, side, fill=False)
        frame.set(edgecolor=QUANTITIES["u"].dark, linewidth=0.8 + 4 * parts[child] / parts.max())
        axes.add_patch(frame)
        put(drawings[child], place, 1)
    for band, (name, drawn) in enumerate(beside_them):
        put(array(drawn), band * across + PER_ROW, 1, name)
    axes.set_xlim(0, across * (width + gap))
    axes.set_ylim(bands * high, 0)
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
def runaway(lengths: ArrayLike, true: int, stop: int, name: str) -> Figure:
    """The lengths of all parents, as far as the routing goes on, on a logarithmic axis.

    Args:
        lengths: ‖v‖, [iterations, parents].
        true: the parent that is there; the others are faint.
        stop: the iteration at which the network stops.
        name: what the true parent is called.
    """
    values = array(lengths)
    iterations = np.arange(1, len(values) + 1)
    colour = QUANTITIES["v"].colour
    figure, axes = Figure.single(2.9)
    axes.plot(iterations, np.delete(values, true, axis=1), color=FAINT, linewidth=1.2)
    axes.plot(iterations, values[:, true], color=colour, linewidth=2.2)
    axes.axvline(stop, color=INK, linewidth=0.9, linestyle=":")
    axes.text(1.08 * stop, 0.5, "the network\nstops here", va="center", fontsize=9)
    axes.text(1.08 * stop, 0.88, name, color=colour, va="center")
    axes.text(1.08, 0.08, "the others", va="center")
    beside(axes, "all ten", 1.0)
    axes.set_xscale("log")
    axes.set_xlim(1, len(values))
    axes.set_ylim(0, 1.04)
    axes.set_xticks([tick for tick in (1, 3, 10, 30, 100, 300) if tick <= len(values)])
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("iteration")
    axes.set_ylabel("length ‖v‖")
    return figure


@mpl.rc_context(STYLE)
def in_training(
    errors: Mapping[int, Sequence[float]], changes: Mapping[int, Sequence[float]]
) -> Figure:
    """Networks by the number of iterations that they were trained with, several of each.

    Args:
        errors: of each training, in percent, by that number.
        changes: of a logit in an iteration, likewise.
    """
    figure = Figure(2.6)
    panels = (
        (errors, INK, "error, percent"),
        (changes, QUANTITIES["b"].colour, "mean change of b"),
    )
    for axes, (by_count, colour, label) in zip(figure.subplots(1, 2), panels, strict=True):
        counts = list(by_count)
        for seed in zip(*by_count.values(), strict=True):
            axes.plot(counts, seed, "o", color=colour, ms=3, alpha=0.6)
        axes.plot(counts, [statistics.mean(each) for each in by_count.values()], color=colour)
        axes.set_ylim(0, 1.1 * max(map(max, by_count.values())))
        axes.set_xticks(counts)
        axes.set_xlabel("iterations in training")
        axes.set_ylabel(label)
    return figure


@mpl.rc_context(STYLE)
def by_iteration(
    iterations: ArrayLike,
    lines: Mapping[str, ArrayLike],
    quantities: Sequence[str],
    label: str,
    *,
    logarithmic: str = "",
    of: str = "iteration",
) -> Figure:
    """Lines against the routing iteration, each with its name at its right end.

    Args:
        iterations: the iterations, or steps of another kind, rising, [n].
        lines: the values of each line by its name, [n].
        quantities: for each line, the key of the quantity whose colour it has; "" for ink, "faint"
            for what it is compared with.
        label: what the values are, for the axis.
        logarithmic: which axes are logarithmic: "", "x", "y" or "xy".
        of: what is counted along the axis.
    """
    x = array(iterations)
    values = {name: array(numbers) for name, numbers in lines.items()}
    figure, axes = Figure.single(max(2.9, 1.0 + 0.3 * len(values)))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    for letter, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
        if letter in logarithmic:
            axes.set(**{f"{letter}scale": "log"})
            axis.set_major_formatter("{x:g}")
            axis.set_minor_locator(LogLocator(subs=(2, 5)))
            axis.set_minor_formatter("{x:g}")
            axis.set_tick_params(which="both", length=3.5, pad=3.5)
    named = {"": INK, "faint": FAINT, **{key: q.colour for key, q in QUANTITIES.items()}}
    colours = [named[key] for key in quantities]
    ends = np.array([numbers[-1] for numbers in values.values()], dtype=float)
    for numbers, colour, marker in zip(values.values(), colours, cycle(MARKERS), strict=False):
        axes.plot(x, numbers, color=colour, marker=marker, ms=4, linewidth=1.3)
    # In the axis' own scale, so that the names keep apart on the page.
    height = np.log10 if "y" in logarithmic else np.asarray
    low, high = height(np.array(axes.get_ylim()))
    inches = figure.get_figheight() - 0.6
    placed = apart(height(ends), 0.16 * (high - low) / inches)
    for name, colour, place in zip(values, colours, placed, strict=True):
        beside(axes, name, 10**place if "y" in logarithmic else place, colour)
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
