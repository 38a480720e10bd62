"""Pictures of what the arithmetic costs."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.ticker import NullFormatter

from capsnet.figures.style import FAINT, INK, STYLE, Figure


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
def growth(rows: Sequence[Mapping[str, Any]], names: Mapping[str, str]) -> Figure:
    """Time and memory of two implementations against sizes, a row of panels for each size.

    Args:
        rows: of the ledger's ``bench/growth``: "name", "axis", "value", "train_ms", "train_bytes".
        names: the label of each implementation by its name; the first is drawn faint.
    """
    axis_names = list(dict.fromkeys(row["axis"] for row in rows))
    lines = dict(zip(names, [(FAINT, "--", "s"), (INK, "-", "o")], strict=True))
    figure = Figure(1.75 * len(axis_names))
    panels = figure.subplots(len(axis_names), 2, squeeze=False)
    for axis, pair in zip(axis_names, panels, strict=True):
        kinds = (("train_ms", 1.0, "milliseconds"), ("train_bytes", 1e-6, "megabytes"))
        for axes, (key, scale, unit) in zip(pair, kinds, strict=True):
            for name, (colour, line, marker) in lines.items():
                mine = [row for row in rows if (row["name"], row["axis"]) == (name, axis)]
                axes.plot(
                    [row["value"] for row in mine],
                    [scale * row[key] for row in mine],
                    line, color=colour, marker=marker, markersize=4, linewidth=1.3,
                    label=names[name],
                )  # fmt: skip
            values = sorted({row["value"] for row in rows if row["axis"] == axis})
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_xticks(values, [f"{value}" for value in values])
            axes.xaxis.set_minor_formatter(NullFormatter())
            axes.yaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_minor_formatter(NullFormatter())
            axes.set_xlabel(axis.replace("_", " "))
            axes.set_ylabel(unit)
    panels[0][0].legend()
    return figure
