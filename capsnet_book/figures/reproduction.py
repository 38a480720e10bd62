"""What several trainings of several networks came to, beside what the paper reports."""

from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
import numpy as np

from capsnet.figures.style import FAINT, INK, QUANTITIES, STYLE, Figure, name_rows
from capsnet.text import columns


def summary_table(summary: Mapping[str, Any]) -> str:
    """A summary of the ledger (``experiments/NAME/BUDGET/summary.json``) as text.

    Error in percent: mean ± standard deviation over n trainings; half-width of the 95 % interval of
    the mean; the paper's. Columns without an entry are left out.
    """
    table = [("", "error, %", "95 %", "n", "minutes", "paper, %")]
    for row in summary["rows"]:
        n, unfinished = row["n"], row["unfinished"]
        label = f"{row['row']} ({unfinished})" if n and unfinished else row["row"]
        paper = "" if row["paper"] is None else f"{row['paper']:.2f}"
        count = f"{n} of {row['declared']}" if n < row["declared"] else f"{n}"
        error = interval = minutes = ""
        if n:
            error, minutes = f"{row['mean']:.2f}", f"{row['minutes']:.1f}"
        if n > 1:
            error, interval = f"{error} ± {row['deviation']:.2f}", f"± {row['interval']:.2f}"
        table.append((label, error, interval, count, minutes, paper))
    said = [column for column in zip(*table, strict=True) if any(column[1:])]
    return columns(list(zip(*said, strict=True)))


@mpl.rc_context(STYLE)
def errors_beside_paper(summary: Mapping[str, Any]) -> Figure:
    """Each training's error as a dot, the mean as a stroke, and the paper's as a diamond.

    Args:
        summary: as :func:`summary_table`.
    """
    rows = summary["rows"]
    figure = Figure(0.9 + 0.34 * len(rows))
    axes = figure.subplots()
    colour = QUANTITIES["v"].colour
    for height, row in enumerate(rows):
        axes.axhline(height, color=FAINT, linewidth=0.5, zorder=0)
        if row["n"]:
            errors = np.array(row["errors"])
            axes.plot(errors, np.full(len(errors), height), "o", color=colour, markersize=5)
            axes.plot([row["mean"]], [height], "|", color=colour, markersize=16, markeredgewidth=2)
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
