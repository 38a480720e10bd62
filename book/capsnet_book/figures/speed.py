"""Pictures of what the arithmetic costs."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.ticker import MaxNLocator

from capsnet_lab.figures.style import FAINT, INK, STYLE, Figure


@mpl.rc_context(STYLE)
def durations(milliseconds: Mapping[str, float]) -> Figure:
    """Durations as bars, each with its number.

    Args:
        milliseconds: by the name of what takes them, from top to bottom.
    """
    figure, axes = Figure.single(0.8 + 0.34 * len(milliseconds))
    bars = axes.barh(list(milliseconds), list(milliseconds.values()), color=INK, height=0.55)
    axes.bar_label(bars, fmt="{:.0f}", padding=4, fontsize=9)
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.set_xlabel("milliseconds")
    return figure


@mpl.rc_context(STYLE)
def two_shares(shares: Mapping[str, tuple[float, float]], of: tuple[str, str]) -> Figure:
    """What part each thing has in two totals, as pairs of bars.

    Args:
        shares: by the thing's name, from top to bottom, its share of each total, in 0 … 1.
        of: the names of the totals; the first is drawn faint.
    """
    figure, axes = Figure.single(0.3 + 0.6 * len(shares))
    rows = np.arange(len(shares))
    for k, (total, colour) in enumerate(zip(of, (FAINT, INK), strict=True)):
        percent = [100 * pair[k] for pair in shares.values()]
        bars = axes.barh(rows + 0.36 * k - 0.18, percent, color=colour, height=0.32, label=total)
        axes.bar_label(bars, fmt="{:.0f} %", padding=4, fontsize=9)
    axes.set_yticks(rows, list(shares))
    axes.invert_yaxis()
    axes.margins(x=0.15)
    axes.xaxis.set_visible(False)
    axes.spines.bottom.set_visible(False)
    axes.legend(loc="lower right")
    return figure


@mpl.rc_context(STYLE)
def growth(
    rows: Sequence[Mapping[str, Any]], names: Mapping[str, str], sizes: Sequence[str]
) -> Figure:
    """The memory that two implementations need as a size grows, a panel for each size.

    Args:
        rows: of the ledger's ``bench/growth``: "name", "axis", "value", "train_bytes".
        names: the label of each implementation by its name; the first is drawn faint.
        sizes: which axes of the rows.
    """
    lines = dict(zip(names, [(FAINT, "--", "s"), (INK, "-", "o")], strict=True))
    figure = Figure(2.5)
    (panels,) = figure.subplots(1, len(sizes), sharey=True, squeeze=False)
    for size, axes in zip(sizes, panels, strict=True):
        for name, (colour, line, marker) in lines.items():
            mine = [row for row in rows if (row["name"], row["axis"]) == (name, size)]
            megabytes = [row["train_bytes"] / 1e6 for row in mine]
            axes.plot(
                [row["value"] for row in mine], megabytes,
                line, color=colour, marker=marker, markersize=4, linewidth=1.3, label=names[name],
            )  # fmt: skip
        axes.set_xlim(left=0)
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True, steps=[1, 2, 5, 10]))
        axes.set_xlabel(size.replace("_", " "))
    panels[0].set_ylim(bottom=0)
    panels[0].set_ylabel("megabytes")
    panels[0].legend()
    return figure
