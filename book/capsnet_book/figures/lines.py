"""Lines: against lengths, training steps, iterations, and changes of the image."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import NamedTuple

import numpy as np
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator
from numpy.typing import ArrayLike

from capsnet_book.figures.helpers import (
    LINES,
    V,
    draw_margins,
    legend_above,
    logarithmic,
    names_at_ends,
    side_by_side,
    styled,
)
from capsnet_lab.figures.style import FAINT, INK, PAPER, QUANTITIES, Figure, array

COLOURS = {"": INK, "faint": FAINT} | {key: q.colour for key, q in QUANTITIES.items()}
MARKERS = [f"{marker}-" for marker in "osD^vPX*"]
FEW = 30  # points of a line, which are marked


class Panel(NamedTuple):
    """Lines, each by its name: x [n], and y [n] or, of several runs, [n, runs].

    Up to four have names above the panel. Where `quantities` are given, for each line the key of
    the quantity whose colour it has, "" for ink or "faint" for what it is compared with, the names
    are at the lines' right ends.
    """

    xlabel: str
    ylabel: str
    lines: Mapping[str, tuple[ArrayLike, ArrayLike]]
    quantities: Sequence[str] = ()
    logarithmic: str = ""  # "x", "y" or "xy"
    bottom: float | None = None  # of the y axis
    levels: Mapping[str, float] = {}  # heights, by their name, of dotted lines


@styled
def curves(panels: Sequence[Panel], margins: tuple[float, float] | None = None) -> Figure:
    """Panels side by side; a line of several runs is their mean, with a dot for each.

    Where all have the same label of the y axis, they have one scale.
    `margins` are (m⁺, m⁻) of the loss, where x is a capsule's length.
    """
    ticks = 6 if len(panels) < 3 else 3
    one_scale = len({panel.ylabel for panel in panels}) == 1
    figure, row = side_by_side(2.9, len(panels), sharey=one_scale)
    for axes, panel in zip(row, panels, strict=True):
        axes.xaxis.set_major_locator(MaxNLocator(ticks, steps=[1, 2, 5, 10]))
        logarithmic(axes, panel.logarithmic)
        colours = [COLOURS[key] for key in panel.quantities]
        styles = list(zip(colours, cycle(MARKERS), strict=False)) or LINES
        for (name, (x, y)), (colour, line) in zip(panel.lines.items(), styles, strict=False):
            counts, values = array(x), array(y)
            if values.ndim == 2:
                axes.plot(counts, values, "o", color=colour, markersize=3, alpha=0.6)
                values = values.mean(axis=1)
            style = line if len(counts) <= FEW else line[1:]
            (curve,) = axes.plot(counts, values, style, color=colour, markersize=4, linewidth=1.5)
            curve.set_label("" if colours else name)
        for level in panel.levels.values():
            axes.axhline(level, color=FAINT, linewidth=0.8, linestyle=":")
        axes.set(xlabel=panel.xlabel, ylabel=panel.ylabel)
        axes.set_ylim(bottom=panel.bottom)
        ends = {name: array(y)[-1] for name, (_, y) in panel.lines.items()} if colours else {}
        names_at_ends(axes, {**ends, **panel.levels}, colours + [INK] * len(panel.levels))
    for axes in row[1:]:
        if one_scale:
            axes.set_ylabel("")
    if margins:
        draw_margins(row, margins)
    legend_above(figure)
    return figure


@styled
def by_change(
    changes: Mapping[str, tuple[ArrayLike, ArrayLike, ArrayLike]],
    labels: tuple[str, str],
    usual: Mapping[str, tuple[float, float]] | None = None,
) -> Figure:
    """Two measures against changes of the image, a column for each change.

    `changes` has, by the name of each change with its unit, the amounts [k] and both measures, [k]
    or [k, n] for n capsules. A line is the median over the capsules, a band their middle half.
    `labels` name the measures. The range of `usual` amounts of a change is shaded.
    """
    figure = Figure(4.1)
    grid = figure.subplots(2, len(changes), squeeze=False, sharey="row", sharex="col")
    for column, (name, (amounts, *measures)) in zip(grid.T, changes.items(), strict=True):
        x = array(amounts).astype(float)
        for axes, measure in zip(column, measures, strict=True):
            of_all = array(measure).reshape(len(x), -1)
            low, middle, high = np.quantile(of_all, (0.25, 0.5, 0.75), axis=1)
            axes.fill_between(x, low, high, color=V, alpha=0.25, linewidth=0)
            (line,) = axes.plot(x, middle, "o-", color=V, markersize=4, linewidth=1.5)
            line.set_clip_on(False)
            if usual:
                axes.axvspan(*usual[name], color=FAINT, alpha=0.25, linewidth=0)
        column[1].set_xlabel(name)
        column[1].xaxis.set_major_locator(MaxNLocator(4))
    for axes, label in zip(grid[:, 0], labels, strict=True):
        axes.set(ylim=(0, None), ylabel=label)
    figure.align_ylabels(grid[:, 0])
    return figure


@styled
def bent_against_plain(
    courses: Mapping[str, Sequence[Sequence[tuple[float, float]]]],
    level: float,
    reported: Mapping[str, tuple[float, float]],
) -> Figure:
    """Mistakes on bent digits over those on plain ones, in percent, as training goes on.

    `courses` are by the name of a network (up to four), each training run a pair (plain, bent) an
    epoch. The vertical line is the `level` at which networks are compared. What the paper has
    `reported` is hollow.
    """
    figure, axes = Figure.single(3.6)
    axes.set(xscale="log", yscale="log")
    axes.axvline(level, color=FAINT, linewidth=0.9, zorder=0)
    for (name, trainings), (colour, line) in zip(courses.items(), LINES, strict=False):
        for number, training in enumerate(trainings):
            (drawn,) = axes.plot(*zip(*training, strict=True), line, color=colour, linewidth=1)
            drawn.set(markersize=4.5, markevery=[-1], label="" if number else name)
    for name, pair in reported.items():
        axes.plot(*pair, "o", color=INK, mfc=PAPER, ms=6)
        label = axes.annotate(name, pair, (8, 0), textcoords="offset points", va="center")
        label.set(fontsize=9, bbox={"fc": PAPER, "ec": "none", "pad": 1})  # before the line
    legend_above(figure, len(courses))
    for axis, ticks in ((axes.xaxis, (1, 2, 3, 5, 10)), (axes.yaxis, (5, 10, 20, 30))):
        axis.set_major_locator(FixedLocator(ticks))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_locator(NullLocator())
    axes.set(xlabel="error rate on plain digits, %", ylabel="error rate on affine digits, %")
    return figure


@styled
def reliability(lengths: ArrayLike, right: ArrayLike, bounds: ArrayLike) -> Figure:
    """How often answers are right, against their length: a dot and interval for each group.

    `lengths` are mean ‖v‖ [groups], `right` the shares that are right [groups], `bounds` the ends
    of their intervals [groups, 2].
    """
    figure, axes = Figure.single(3.6)
    axes.plot([0, 1], [0, 1], "--", color=FAINT, linewidth=1.3)
    axes.text(0.68, 0.6, "if lengths were\nprobabilities", va="top", fontsize=9)
    axes.vlines(array(lengths), *array(bounds).T, color=V, linewidth=1.6)
    axes.plot(array(lengths), array(right), "o", color=V, markersize=6)
    axes.set(xlim=(0, 1), ylim=(0, 1.03))
    axes.set_xlabel("length ‖v‖ of the longest capsule")
    axes.set_ylabel("share of answers that are right")
    return figure
