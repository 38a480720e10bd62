"""Pictures and a table that compare networks: with each other, with the paper, under changes."""

import statistics
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, MaxNLocator, MultipleLocator, NullLocator

from capsnet_book.figures.axes import LINES
from capsnet_lab.figures.style import FAINT, INK, PAPER, QUANTITIES, STYLE, Figure

Difference = tuple[float, float]  # of two errors, and the half-width of its 95 % interval


class Arm(NamedTuple):
    """Trainings of one network: their mean error, its standard deviation, and each, if known."""

    mean: float
    deviation: float
    errors: Sequence[float] = ()


class Sweep(NamedTuple):
    """What a network makes of digits that are changed in one way, more and more."""

    amounts: Sequence[float]
    accuracy: Sequence[float]  # share read rightly at each amount, 0 … 1
    length: Sequence[float]  # mean ‖v‖ of the true digit's capsule at each amount
    usual: tuple[float, float]  # a range of amounts to be shaded


@mpl.rc_context(STYLE)
def errors_beside_paper(summary: Mapping[str, Any]) -> Figure:
    """Each training's error as a dot, the mean as a stroke, and the paper's as a diamond.

    Args:
        summary: of the ledger, ``experiments/NAME/BUDGET/summary.json``.
    """
    rows = summary["rows"]
    figure, axes = Figure.single(0.9 + 0.34 * len(rows))
    colour = QUANTITIES["v"].colour
    for height, row in enumerate(rows):
        axes.axhline(height, color=FAINT, linewidth=0.5, zorder=0)
        if row["n"]:
            dots_and_mean(axes, height, row["errors"])
        if row["paper"] is not None:
            axes.plot([row["paper"]], [height], "D", color=INK, markersize=5, fillstyle="none")
    axes.plot([], [], "o", color=colour, markersize=5, label="a training here")
    if any(row["paper"] is not None for row in rows):
        axes.plot([], [], "D", color=INK, markersize=5, fillstyle="none", label="the paper")
    figure.legend(loc="outside upper center", ncols=2)
    name_rows(axes, [row["row"] for row in rows])
    axes.set_xlim(0, 1.04 * axes.get_xlim()[1])  # room for the last dot
    axes.set_xlabel("error on the test set, %")
    return figure


def dots_and_mean(axes: Axes, height: int, errors: Sequence[float]) -> None:
    """One row: a dot for each error, a stroke for their mean."""
    colour, mean = QUANTITIES["v"].colour, statistics.mean(errors)
    axes.plot(errors, [height] * len(errors), "o", color=colour, markersize=5)
    axes.plot([mean], [height], "|", color=colour, markersize=16, markeredgewidth=2)


def name_rows(axes: Axes, names: Sequence[str]) -> None:
    """Names left of rows, from the top: at the heights 0, 1, 2 and so on."""
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.spines["left"].set_visible(False)


@mpl.rc_context(STYLE)
def effects(found: Mapping[str, Difference], reported: Collection[str] = ()) -> Figure:
    """The error that a change saves, by whoever measured it, with its interval.

    Args:
        found: by a name for each measurement, from top to bottom: percentage points.
        reported: names of those that are other people's; they are drawn hollow.
    """
    figure, axes = Figure.single(0.9 + 0.34 * len(found))
    axes.axvline(0, color=FAINT, linewidth=0.9)
    for row, (name, (difference, half)) in enumerate(found.items()):
        colour, inside = (INK, PAPER) if name in reported else (QUANTITIES["v"].colour,) * 2
        axes.hlines(row, difference - half, difference + half, color=colour, linewidth=1.6)
        axes.plot([difference], [row], "o", color=colour, mfc=inside, ms=6)
    name_rows(axes, list(found))
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.set_xlabel("error saved, percentage points")
    return figure


@mpl.rc_context(STYLE)
def switched(panels: Mapping[str, Mapping[str, Sequence[Arm]]], ends: Sequence[str]) -> Figure:
    """Errors of networks with two switches: one is the way from left to right, one the two lines.

    All panels have one scale, so that a slope means the same in each.

    Args:
        panels: by title, two lines, by name: their networks from left to right.
        ends: what these are called.
    """
    figure = Figure(3.0)
    places = np.arange(len(ends))
    middles, half = {}, 0.0
    for title, lines in panels.items():
        every = [arm for arms in lines.values() for arm in arms]
        middles[title] = statistics.mean(f(arm.mean for arm in every) for f in (min, max))
        for mean, deviation, errors in every:
            shown = errors or (mean - deviation, mean + deviation)
            half = max(half, *(0.01 + abs(error - middles[title]) for error in shown))
    for axes, (title, lines) in zip(
        figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True
    ):
        for k, (name, arms) in enumerate(lines.items()):
            colour, line = LINES[k]
            side = 2 * k - 1  # of the two lines: left or right of the place
            here = places + 0.03 * side
            axes.plot(here, [arm.mean for arm in arms], line, color=colour, ms=6, label=name)
            for place, arm in zip(here, arms, strict=True):
                if arm.errors:
                    beside_mean = [place + 0.09 * side] * len(arm.errors)
                    axes.plot(beside_mean, arm.errors, ".", color=colour, ms=6)
                else:
                    ends_of_bar = arm.mean - arm.deviation, arm.mean + arm.deviation
                    axes.vlines(place, *ends_of_bar, color=colour, linewidth=1.2)
        axes.set_ylim(*(middles[title] + side * half for side in (-1, 1)))
        axes.set_xlim(-0.3, len(ends) - 0.7)
        axes.set_xticks(places, ends)
        axes.set_title(title)
        axes.yaxis.set_major_locator(MultipleLocator(0.05))
    figure.axes[0].set_ylabel("mistakes, %")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure


@mpl.rc_context(STYLE)
def errors_by_draw(panels: Mapping[str, Mapping[str, Sequence[float]]]) -> Figure:
    """Each training's error as a dot, the mean of a row as a stroke; each panel has its own scale.

    Args:
        panels: by title, the errors in percent of each network, all of the same networks.
    """
    rows = list(next(iter(panels.values())))
    figure = Figure(1.2 + 0.34 * len(rows))
    columns_of = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, (title, errors) in zip(columns_of, panels.items(), strict=True):
        for height, row in enumerate(rows):
            axes.axhline(height, color=FAINT, linewidth=0.5, zorder=0)
            dots_and_mean(axes, height, errors[row])
        name_rows(axes, rows)
        axes.set_title(title)
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.set_xlabel("mistakes, %")
    return figure


@mpl.rc_context(STYLE)
def against_amount(sweeps: Mapping[str, Sweep]) -> Figure:
    """Accuracy above, length of the true digit's capsule below, a column for each change.

    Args:
        sweeps: by the name of the change, with its unit.
    """
    figure = Figure(4.1)
    grid = figure.subplots(2, len(sweeps), sharex="col", sharey="row", squeeze=False)
    for column, (name, sweep) in zip(grid.T, sweeps.items(), strict=True):
        kinds = ((100 * np.array(sweep.accuracy), INK), (sweep.length, QUANTITIES["v"].colour))
        for axes, (values, colour) in zip(column, kinds, strict=True):
            axes.axvspan(*sweep.usual, color=FAINT, alpha=0.25, linewidth=0)
            (line,) = axes.plot(sweep.amounts, values, "-o", color=colour, markersize=4)
            line.set(linewidth=1.5, clip_on=False)
        column[1].set_xlabel(name)
        column[1].xaxis.set_major_locator(MaxNLocator(4))
    above, below = grid[:, 0]
    above.set_ylabel("read correctly, %")
    above.set_ylim(0, 100)
    below.set_ylabel("mean length ‖v‖ of\nthe true digit's capsule")
    below.set_ylim(0, 1)
    below.yaxis.set_major_locator(MultipleLocator(0.2))
    figure.align_ylabels(grid[:, 0])
    return figure


@mpl.rc_context(STYLE)
def bent_against_plain(
    courses: Mapping[str, Sequence[Sequence[tuple[float, float]]]],
    level: float,
    reported: Mapping[str, tuple[float, float]],
) -> Figure:
    """Mistakes on bent digits over those on plain ones, as trainings go on; both logarithmic.

    Args:
        courses: by the name of a network, up to four, each training: percent of mistakes on plain
            digits and on bent ones, one pair an epoch.
        level: of mistakes on plain digits, at which networks are compared; a vertical line.
        reported: by name, a pair that the paper reports; it is drawn hollow.
    """
    figure, axes = Figure.single(3.6)
    axes.set(xscale="log", yscale="log")
    axes.axvline(level, color=FAINT, linewidth=0.9, zorder=0)
    styles = *LINES, (QUANTITIES["v"].colour, "D:")
    for (name, trainings), (colour, line) in zip(courses.items(), styles, strict=False):
        for number, training in enumerate(trainings):
            (drawn,) = axes.plot(*zip(*training, strict=True), line, color=colour, linewidth=1)
            drawn.set(markersize=4.5, markevery=[-1], label="" if number else name)
    for name, pair in reported.items():
        axes.plot(*pair, "o", color=INK, mfc=PAPER, ms=6)
        label = axes.annotate(name, pair, (8, 0), textcoords="offset points", va="center")
        label.set(fontsize=9, bbox={"fc": PAPER, "ec": "none", "pad": 1})  # before the line
    figure.legend(loc="outside upper center", ncols=len(courses))
    for axis, ticks in ((axes.xaxis, (1, 2, 3, 5, 10)), (axes.yaxis, (5, 10, 20, 30))):
        axis.set_major_locator(FixedLocator(ticks))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_locator(NullLocator())
    axes.set_xlabel("mistakes on plain digits, %")
    axes.set_ylabel("mistakes on bent digits, %")
    return figure
