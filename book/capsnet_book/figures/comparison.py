"""Networks and answers compared: with each other, with the paper, by what they have and cost."""

import statistics
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.ticker import MaxNLocator

from capsnet.text import columns
from capsnet_book.figures.helpers import V, legend_above, name_rows, side_by_side, styled
from capsnet_book.ledger import missed
from capsnet_lab.figures.style import FAINT, INK, PAPER, Figure


@styled
def runs(
    panels: Mapping[str, Mapping[str, Sequence[float]]], paper: Mapping[str, float] | None = None
) -> Figure:
    """Training runs as dots in rows, a row's mean as a stroke, the paper's as a diamond.

    A panel, by the name of what it shows, has a scale of its own; all have the same rows, networks
    from top to bottom. `paper` has those that the paper reports.
    """
    rows = list(next(iter(panels.values())))
    figure, row_of_axes = side_by_side(1.0 + 0.34 * len(rows), len(panels), sharey=True)
    for axes, (label, by_row) in zip(row_of_axes, panels.items(), strict=True):
        for row, values in enumerate(by_row.values()):
            axes.axhline(row, color=FAINT, linewidth=0.5, zorder=0)
            if values:
                mean = statistics.mean(values)
                axes.plot(values, [row] * len(values), "o", color=V, markersize=5)
                axes.plot([mean], [row], "|", color=V, markersize=16, markeredgewidth=2)
        name_rows(axes, rows)
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.set_xlabel(label)
        if paper:
            axes.plot([], [], "o", color=V, markersize=5, label="a training run here")
            heights = [rows.index(name) for name in paper]
            (diamonds,) = axes.plot(list(paper.values()), heights, "D", color=INK, markersize=5)
            diamonds.set(fillstyle="none", label="the paper")
            axes.set_xlim(0, 1.04 * axes.get_xlim()[1])  # room for the last dot
    legend_above(figure)
    return figure


@styled
def intervals(
    values: Mapping[str, tuple[float, float, float]],
    label: str,
    hollow: Collection[str] = (),
    marks: Mapping[str, float] | None = None,
) -> Figure:
    """Named rows, each a dot on its interval: value, lower and upper end. Some are hollow, in ink.

    Where a value or an end is below zero, a line is at zero. `label` names the values. `marks` are
    values with a dotted line, named above it.
    """
    figure, axes = Figure.single(0.8 + 0.28 * len(values) + (0.2 if marks else 0))
    if min(low for _, low, _ in values.values()) < 0:
        axes.axvline(0, color=FAINT, linewidth=0.9)
    for name, place in (marks or {}).items():
        axes.axvline(place, color=INK, linewidth=0.9, linestyle=":")
        above = axes.get_xaxis_transform()
        axes.text(place, 1.01, name, transform=above, ha="center", va="bottom", fontsize=9)
    for row, (name, (value, low, high)) in enumerate(values.items()):
        colour, inside = (INK, PAPER) if name in hollow else (V, V)
        axes.hlines(row, low, high, color=colour, linewidth=1.6)
        axes.plot([value], [row], "o", color=colour, mfc=inside, ms=6)
    name_rows(axes, list(values))
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.set_xlabel(label)
    return figure


@styled
def errors_added(costs: Mapping[str, tuple[float, float]]) -> Figure:
    """The error in percentage points that each deviation adds, from the most to the least.

    `costs` has each with the half-width of its interval. The axis is linear or, if a deviation adds
    more than a point, linear within ± 0.1 points only. The rows "all of …" are hollow.
    """
    order = sorted(costs, key=lambda name: -costs[name][0])
    ends = {}
    for name in order:
        points, half = costs[name]
        ends[name] = points, points - half, points + half
    whole_networks = [name for name in order if name.startswith("all of ")]
    figure = intervals(ends, "added to the error rate, percentage points", whole_networks)
    (axes,) = figure.axes
    axes.margins(x=0.08)
    left, right = axes.get_xlim()
    axes.set_xlim(min(left, -0.12), max(right, 0.12))
    if max(-left, right) > 1:
        axes.set_xscale("symlog", linthresh=0.1)
    axes.xaxis.set_major_formatter("{x:g}")
    return figure


@styled
def bars(rows: Mapping[str, Sequence[float]], names: Sequence[str], unit: str) -> Figure:
    """Each row's numbers as bars, from top to bottom, every bar with its number and the `unit`.

    `names` are those of the numbers of a row, two at most; the last is drawn in ink.
    """
    figure, axes = Figure.single(0.4 + (0.1 + 0.25 * len(names)) * len(rows))
    places = np.arange(len(rows))
    looks = ((FAINT, -0.18), (INK, 0.18)) if len(names) == 2 else ((INK, 0),)
    numbers = np.array(list(rows.values())).T
    height = 0.64 / len(names)
    for name, values, (colour, shift) in zip(names, numbers, looks, strict=True):
        container = axes.barh(places + shift, values, height, color=colour, label=name)
        axes.bar_label(container, fmt=f"{{:.0f}} {unit}", padding=4, fontsize=9)
    axes.margins(x=0.15)
    axes.xaxis.set_visible(False)
    axes.spines["bottom"].set_visible(False)
    name_rows(axes, list(rows))
    legend_above(figure)
    return figure


@styled
def membership(rows: Mapping[str, Sequence[str]], columns: Sequence[str]) -> Figure:
    """A row for each thing, a column for each owner, and a dot where the owner has the thing."""
    figure, axes = Figure.single(1.2 + 0.14 * len(rows), width=4.2)  # narrow: legible on a phone
    for row, owners in enumerate(rows.values()):
        axes.axhline(row, color=FAINT, linewidth=0.3)
        places = [columns.index(owner) for owner in owners]
        axes.plot(places, [row] * len(places), "o", color=INK, ms=4)
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
    table = [("", "error rate, %", "parameters", "ms a step", "MiB")]
    for name, records in trainings.items():
        wrong = ", ".join(f"{missed(record):.2f}" for record in records.values())
        milliseconds, memory = (f"{costs[name][key]:.0f}" for key in ("step_ms", "tensors_mib"))
        table.append((name, wrong, f"{records[0]['parameters']:,}", milliseconds, memory))
    return columns(table)
