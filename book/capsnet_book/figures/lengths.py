"""How long vectors are: before squash, and beside sums of random votes."""

from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
import numpy as np
from numpy.typing import ArrayLike

from capsnet_lab.figures.style import FAINT, INK, QUANTITIES, STYLE, Figure, array

ROUND = (0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999)  # lengths after squash


@mpl.rc_context(STYLE)
def before_squash(
    found: Mapping[str, Mapping[str, ArrayLike]],
    lengths: ArrayLike,
    slopes: Mapping[str, ArrayLike],
) -> Figure:
    """How long vectors are before squash, and under that how steep squash is there.

    Args:
        found: by the network's name, then by what it sees (two at most), the lengths of its
            vectors, positive, [n] each; the first is filled, the second an outline.
        lengths: before squash, ascending, [m].
        slopes: of squash at these lengths, by their names (two at most), [m] each.
    """
    x = array(lengths)
    figure = Figure(1.2 + 0.95 * len(found) + 1.1)
    *rows, below = figure.subplots(
        len(found) + 1, 1, sharex=True, height_ratios=[*[0.95] * len(found), 1.3]
    )
    bins = np.geomspace(x[0], x[-1], 51)
    looks: tuple[dict[str, Any], ...] = (
        {"fill": True, "color": QUANTITIES["u"].colour},
        {"color": INK, "linewidth": 1.2},
    )
    for axes, (name, groups) in zip(rows, found.items(), strict=True):
        for (group, values), look in zip(groups.items(), looks[: len(groups)], strict=True):
            counts, _ = np.histogram(array(values).ravel(), bins)
            axes.stairs(100 * counts / array(values).size, bins, label=group, **look)
        axes.text(0.5, 0.5, name, ha="center", va="center", transform=axes.transAxes)
        axes.set_ylim(bottom=0)
        axes.set_ylabel("percent")
    for (name, values), line in zip(slopes.items(), ("-", "--")[: len(slopes)], strict=True):
        below.plot(x, array(values), line, color=INK, linewidth=1.6, label=name)
    below.set(xscale="log", yscale="log", xlim=(x[0], x[-1]))
    below.xaxis.set_major_formatter("{x:g}")
    below.set_xlabel("length before squash")
    below.set_ylabel("slope of squash")
    below.legend(loc="lower left")
    for axes in (*rows, below):
        axes.minorticks_off()
    after = rows[0].secondary_xaxis("top")
    inside = [length for length in ROUND if x[0] ** 2 <= length / (1 - length) <= x[-1] ** 2]
    after.set_xticks([(length / (1 - length)) ** 0.5 for length in inside], map(str, inside))
    after.minorticks_off()
    after.set_xlabel("length after squash")
    figure.legend(*rows[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure


@mpl.rc_context(STYLE)
def against_chance(sums: Mapping[str, ArrayLike], true: ArrayLike) -> Figure:
    """How long sums of votes are, beside sums of random ones: of the true class and of absent ones.

    Args:
        sums: by what was added up, the length of each sum over that of random votes, [n, classes].
        true: which class is there, bool, [n, classes].
    """
    there = array(true)
    figure = Figure(0.75 + 1.1 * len(sums))
    rows = np.atleast_1d(figure.subplots(len(sums), 1, sharex=True))
    bins = np.linspace(0, 1.1 * max(array(values).max() for values in sums.values()), 41)
    groups = (("absent digits", ~there, FAINT), ("true digit", there, QUANTITIES["v"].colour))
    for axes, (name, values) in zip(rows, sums.items(), strict=True):
        for group, which, colour in groups:
            found = array(values)[which]
            counts, _ = np.histogram(found, bins)
            axes.stairs(100 * counts / found.size, bins, fill=True, color=colour, label=group)
        axes.axvline(1, color=INK, linestyle="--", linewidth=1)
        axes.set_title(name)
        axes.set_xlim(0, bins[-1])
    rows[-1].set_xlabel("length of the sum of the votes; 1 is chance")
    figure.supylabel("percent of their group", size=10)
    figure.legend(*rows[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure
