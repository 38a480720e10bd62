"""Networks and answers compared: with each other, with the paper, under changes."""

import statistics
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.ticker import FixedLocator, MaxNLocator, MultipleLocator, NullLocator
from numpy.typing import ArrayLike

from capsnet.text import columns
from capsnet_book.figures.helpers import (
    LINES,
    B,
    V,
    dots_and_means,
    dots_with_intervals,
    legend_above,
    name_rows,
    side_by_side,
    styled,
)
from capsnet_book.ledger import missed
from capsnet_lab.figures.style import FAINT, INK, PAPER, Figure, array

Difference = tuple[float, float]  # of two error rates, and the half-width of its 95 % interval


class Arm(NamedTuple):
    """Training runs of one network: mean error, its standard deviation, and each, if known."""

    mean: float
    deviation: float
    errors: Sequence[float] = ()


class Sweep(NamedTuple):
    """How a network classifies digits that are changed in one way, more and more."""

    amounts: Sequence[float]
    accuracy: Sequence[float]  # at each amount, 0 … 1
    length: Sequence[float]  # mean ‖v‖ of the true digit's capsule at each amount
    usual: tuple[float, float]  # a range of amounts to be shaded


@styled
def errors_beside_paper(
    errors: Mapping[str, Sequence[float]], paper: Mapping[str, float]
) -> Figure:
    """Each run's error in percent as a dot, the mean as a stroke, the paper's as a diamond.

    Rows are networks, from top to bottom; `paper` has those that the paper reports.
    """
    figure, axes = Figure.single(0.9 + 0.34 * len(errors))
    dots_and_means(axes, errors)
    axes.plot([], [], "o", color=V, markersize=5, label="a training here")
    heights = [list(errors).index(name) for name in paper]
    (diamonds,) = axes.plot(list(paper.values()), heights, "D", color=INK, markersize=5)
    diamonds.set(fillstyle="none", label="the paper")
    legend_above(figure)
    axes.set_xlim(0, 1.04 * axes.get_xlim()[1])  # room for the last dot
    axes.set_xlabel("error on the test set, %")
    return figure


@styled
def errors_by_seed(panels: Mapping[str, Mapping[str, Sequence[float]]]) -> Figure:
    """Each training run's error in percent as a dot, a row's mean as a stroke.

    All panels have the same rows, and each its own scale.
    """
    rows = len(next(iter(panels.values())))
    figure, row_of_axes = side_by_side(1.2 + 0.34 * rows, len(panels), sharey=True)
    for axes, (title, errors) in zip(row_of_axes, panels.items(), strict=True):
        dots_and_means(axes, errors)
        axes.set(title=title, xlabel="mistakes, %")
        axes.xaxis.set_major_locator(MaxNLocator(5))
    return figure


@styled
def in_training(
    errors: Mapping[int, Sequence[float]], changes: Mapping[int, Sequence[float]]
) -> Figure:
    """Errors in percent and mean changes of a logit in an iteration, of several runs.

    Both are by the number of iterations that the network was trained with.
    """
    kinds = (
        (errors, INK, "error, percent"),
        (changes, B, "mean change of b"),
    )
    figure, panels = side_by_side(2.6, 2)
    for axes, (by_count, colour, label) in zip(panels, kinds, strict=True):
        counts = list(by_count)
        for seed in zip(*by_count.values(), strict=True):
            axes.plot(counts, seed, "o", color=colour, ms=3, alpha=0.6)
        axes.plot(counts, [statistics.mean(each) for each in by_count.values()], color=colour)
        highest = max(max(each) for each in by_count.values())
        axes.set(ylim=(0, 1.1 * highest), xticks=counts, ylabel=label)
        axes.set_xlabel("iterations in training")
    return figure


def _with_ends(found: Mapping[str, Difference]) -> dict[str, tuple[float, float, float]]:
    """Each difference with the lower and the upper end of its interval."""
    return {name: (points, points - half, points + half) for name, (points, half) in found.items()}


@styled
def errors_saved(found: Mapping[str, Difference], reported: Collection[str]) -> Figure:
    """The error that a change saves, with its interval, by whoever measured it.

    Rows from top to bottom, in percentage points; those whose names are `reported` are hollow.
    """
    figure, axes = Figure.single(0.9 + 0.34 * len(found))
    axes.axvline(0, color=FAINT, linewidth=0.9)
    colours = [INK if name in reported else V for name in found]
    dots_with_intervals(axes, _with_ends(found), colours, reported)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.set_xlabel("error saved, percentage points")
    return figure


@styled
def errors_added(found: Mapping[str, Difference]) -> Figure:
    """The error in percentage points that each deviation adds, from the most to the least.

    The axis is linear, but where some cost more than a point: then within ± 0.1 point. The rows
    "all of …" are in ink.
    """
    order = sorted(found, key=lambda name: -found[name][0])
    colours = [INK if name.startswith("all of ") else V for name in order]
    figure, axes = Figure.single(0.9 + 0.26 * len(order))
    axes.axvline(0, color=FAINT, linewidth=0.9)
    dots_with_intervals(axes, _with_ends({name: found[name] for name in order}), colours)
    axes.margins(x=0.08)
    left, right = axes.get_xlim()
    axes.set_xlim(min(left, -0.12), max(right, 0.12))
    if max(-left, right) > 1:
        axes.set_xscale("symlog", linthresh=0.1)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("error added, percentage points")
    return figure


@styled
def intervals(shares: Mapping[str, tuple[float, float, float]]) -> Figure:
    """Accuracies 0 … 1 as dots on their intervals: share, lower end, upper end."""
    figure, axes = Figure.single(0.75 + 0.34 * len(shares))
    percent = {name: (100 * p, 100 * low, 100 * high) for name, (p, low, high) in shares.items()}
    dots_with_intervals(axes, percent, [INK] * len(shares))
    axes.set_xlabel("images read correctly, %")
    axes.xaxis.set_major_locator(MaxNLocator(6))
    return figure


@styled
def reliability(lengths: ArrayLike, right: ArrayLike, bounds: ArrayLike) -> Figure:
    """How often answers are right, against their length: a dot and interval for each group.

    `lengths` are mean ‖v‖ [groups], `right` the shares that are right [groups], `bounds` the ends
    of their intervals [groups, 2].
    """
    x, limits = array(lengths), array(bounds)
    figure, axes = Figure.single(3.6)
    axes.plot([0, 1], [0, 1], "--", color=FAINT, linewidth=1.3)
    axes.text(0.68, 0.6, "if lengths were\nprobabilities", va="top", fontsize=9)
    axes.vlines(x, limits[:, 0], limits[:, 1], color=V, linewidth=1.6)
    axes.plot(x, array(right), "o", color=V, markersize=6)
    axes.set(xlim=(0, 1), ylim=(0, 1.03))
    axes.xaxis.set_major_locator(MultipleLocator(0.2))
    axes.set_xlabel("length ‖v‖ of the longest capsule")
    axes.set_ylabel("share of answers that are right")
    return figure


@styled
def accuracy_by_coverage(answered: ArrayLike, accuracy: Mapping[str, ArrayLike]) -> Figure:
    """Accuracy of the answers that are given, against the share of images that get one.

    `accuracy` is by the way to choose them (two at most), both it and `answered` 0 … 1, [n].
    """
    figure, axes = Figure.single(3.0)
    styles = ((V, "-"), (INK, "--"))[: len(accuracy)]
    for (name, values), (colour, line) in zip(accuracy.items(), styles, strict=True):
        percent = 100 * array(answered), 100 * array(values)
        axes.plot(*percent, line, color=colour, linewidth=1.5, label=name)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.set(xlabel="images answered, %", ylabel="answers that are right, %")
    axes.legend(title="the first to go unanswered:", loc="lower left")
    return figure


@styled
def interactions(panels: Mapping[str, Mapping[str, Sequence[Arm]]], ends: Sequence[str]) -> Figure:
    """Errors of networks with two switches: left or right, and one line or the other.

    All panels have one scale, so that a slope means the same in each. `ends` name the places from
    left to right.
    """
    middles, half = {}, 0.0
    for title, lines in panels.items():
        every = [arm for arms in lines.values() for arm in arms]
        means = [arm.mean for arm in every]
        middles[title] = (min(means) + max(means)) / 2
        for mean, deviation, errors in every:
            shown = errors or (mean - deviation, mean + deviation)
            half = max(half, *(0.01 + abs(error - middles[title]) for error in shown))
    places = np.arange(len(ends))
    figure, row = side_by_side(3.0, len(panels))
    for axes, (title, lines) in zip(row, panels.items(), strict=True):
        for (name, arms), (colour, line), side in zip(lines.items(), LINES, (-1, 1), strict=False):
            here = places + 0.03 * side  # of the two lines, left or right of the place
            axes.plot(here, [arm.mean for arm in arms], line, color=colour, ms=6, label=name)
            for x, arm in zip(here, arms, strict=True):
                if arm.errors:
                    next_to_mean = [x + 0.09 * side] * len(arm.errors)
                    axes.plot(next_to_mean, arm.errors, ".", color=colour, ms=6)
                else:
                    low, high = arm.mean - arm.deviation, arm.mean + arm.deviation
                    axes.vlines(x, low, high, color=colour, linewidth=1.2)
        axes.set_xticks(places, ends)
        axes.set(title=title, xlim=(-0.3, len(ends) - 0.7))
        axes.set_ylim(middles[title] - half, middles[title] + half)
        axes.yaxis.set_major_locator(MultipleLocator(0.05))
    row[0].set_ylabel("mistakes, %")
    legend_above(figure)
    return figure


@styled
def against_amount(sweeps: Mapping[str, Sweep]) -> Figure:
    """Accuracy above, length of the true digit's capsule below, a column for each change.

    `sweeps` are by the name of the change, with its unit.
    """
    figure = Figure(4.1)
    grid = figure.subplots(2, len(sweeps), sharex="col", sharey="row", squeeze=False)
    for column, (name, sweep) in zip(grid.T, sweeps.items(), strict=True):
        kinds = ((100 * np.array(sweep.accuracy), INK), (sweep.length, V))
        for axes, (values, colour) in zip(column, kinds, strict=True):
            axes.axvspan(*sweep.usual, color=FAINT, alpha=0.25, linewidth=0)
            (line,) = axes.plot(sweep.amounts, values, "-o", color=colour, markersize=4)
            line.set(linewidth=1.5, clip_on=False)
        column[1].set_xlabel(name)
        column[1].xaxis.set_major_locator(MaxNLocator(4))
    above, below = grid[:, 0]
    above.set(ylabel="read correctly, %", ylim=(0, 100))
    below.set(ylabel="mean length ‖v‖ of\nthe true digit's capsule", ylim=(0, 1))
    below.yaxis.set_major_locator(MultipleLocator(0.2))
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
    styles = *LINES, (V, "D:")
    for (name, trainings), (colour, line) in zip(courses.items(), styles, strict=False):
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
    axes.set(xlabel="mistakes on plain digits, %", ylabel="mistakes on bent digits, %")
    return figure


@styled
def membership(rows: Mapping[str, Sequence[str]], columns: Sequence[str]) -> Figure:
    """A dot for whatever somebody has: rows of things with their owners, columns of owners."""
    figure, axes = Figure.single(1.2 + 0.14 * len(rows), width=4.2)  # narrow: legible on a phone
    for row, who in enumerate(rows.values()):
        axes.axhline(row, color=FAINT, linewidth=0.3)
        axes.plot([columns.index(each) for each in who], [row] * len(who), "o", color=INK, ms=4)
    name_rows(axes, list(rows))
    axes.tick_params(left=False, bottom=False, labeltop=True, labelbottom=False)
    axes.set_xticks(range(len(columns)), columns, rotation=90)
    axes.set_xlim(-0.7, len(columns) - 0.3)
    axes.spines[:].set_visible(False)
    return figure


def budget_table(
    trainings: Mapping[str, Mapping[int, Mapping[str, Any]]],
    costs: Mapping[str, Mapping[str, float]],
) -> str:
    """Networks that were trained on one budget, and what each costs, as text.

    `trainings` are the ledger's records by the network's name and by seed; `costs` have "step_ms"
    and "tensors_mib" of each network.
    """
    table = [("", "wrong, %", "parameters", "ms a step", "MiB")]
    for name, records in trainings.items():
        wrong = ", ".join(f"{missed(record):.2f}" for record in records.values())
        milliseconds, memory = (f"{costs[name][key]:.0f}" for key in ("step_ms", "tensors_mib"))
        table.append((name, wrong, f"{records[0]['parameters']:,}", milliseconds, memory))
    return columns(table)
