"""What the arithmetic costs, in time and in memory."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.ticker import MaxNLocator

from capsnet_book.figures.helpers import side_by_side, styled
from capsnet_lab.figures.style import FAINT, INK, Figure


@styled
def durations(milliseconds: Mapping[str, float]) -> Figure:
    """Durations in milliseconds as bars, each with its number, from top to bottom."""
    figure, axes = Figure.single(0.8 + 0.34 * len(milliseconds))
    bars = axes.barh(list(milliseconds), list(milliseconds.values()), color=INK, height=0.55)
    axes.bar_label(bars, fmt="{:.0f}", padding=4, fontsize=9)
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.set_xlabel("milliseconds")
    return figure


@styled
def two_shares(shares: Mapping[str, tuple[float, float]], of: tuple[str, str]) -> Figure:
    """Each thing's share (0 … 1) of two totals, as pairs of bars.

    `of` are the names of the totals; the first is drawn faint.
    """
    figure, axes = Figure.single(0.3 + 0.6 * len(shares))
    rows = np.arange(len(shares))
    percent = 100 * np.array(list(shares.values()))
    for total, values, colour, shift in zip(
        of, percent.T, (FAINT, INK), (-0.18, 0.18), strict=True
    ):
        bars = axes.barh(rows + shift, values, color=colour, height=0.32, label=total)
        axes.bar_label(bars, fmt="{:.0f} %", padding=4, fontsize=9)
    axes.set_yticks(rows, list(shares))
    axes.invert_yaxis()
    axes.margins(x=0.15)
    axes.xaxis.set_visible(False)
    axes.spines.bottom.set_visible(False)
    axes.legend(loc="lower right")
    return figure


@styled
def growth(
    rows: Sequence[Mapping[str, Any]], names: Mapping[str, str], sizes: Sequence[str]
) -> Figure:
    """The memory that two implementations need as a size grows, a panel for each size.

    `rows` are the ledger's ``bench/growth``: "name", "axis", "value", "train_bytes"; `names` are
    labels by name, of which the first is drawn faint; `sizes` are axes of the rows.
    """
    figure, panels = side_by_side(2.5, len(sizes), sharey=True)
    looks = ((FAINT, "s--"), (INK, "o-"))
    for size, axes in zip(sizes, panels, strict=True):
        for (name, label), (colour, line) in zip(names.items(), looks, strict=True):
            mine = [row for row in rows if row["name"] == name and row["axis"] == size]
            x = [row["value"] for row in mine]
            megabytes = [row["train_bytes"] / 1e6 for row in mine]
            axes.plot(x, megabytes, line, color=colour, markersize=4, linewidth=1.3, label=label)
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True, steps=[1, 2, 5, 10]))
        axes.set(xlim=(0, None), xlabel=size.replace("_", " "))
    panels[0].set(ylim=(0, None), ylabel="megabytes")
    panels[0].legend()
    return figure
