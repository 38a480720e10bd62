"""Other people's deviations: what they do, and what they cost."""

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
from numpy.typing import ArrayLike

from capsnet_book.figures.comparison import name_rows
from capsnet_lab.figures.style import FAINT, INK, PAPER, QUANTITIES, STYLE, Figure, array


@mpl.rc_context(STYLE)
def costs(found: Mapping[str, tuple[float, float]]) -> Figure:
    """The error that each deviation adds, from the most to the least.

    The axis is linear, but where some cost more than a point: then within ± 0.1 point.

    Args:
        found: by name, a difference of two errors in percentage points, and the half-width of its
            95 % interval.
    """
    order = sorted(found, key=lambda name: -found[name][0])
    figure, axes = Figure.single(0.9 + 0.26 * len(order))
    axes.axvline(0, color=FAINT, linewidth=0.9)
    for row, name in enumerate(order):
        points, half = found[name]
        colour = INK if name.startswith("all of ") else QUANTITIES["v"].colour
        axes.hlines(row, points - half, points + half, color=colour, linewidth=1.6)
        axes.plot([points], [row], "o", color=colour, ms=5)
    name_rows(axes, order)
    axes.margins(x=0.08)
    left, right = axes.get_xlim()
    axes.set_xlim(min(left, -0.12), max(right, 0.12))
    if max(-left, right) > 1:
        axes.set_xscale("symlog", linthresh=0.1)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("error added, percentage points")
    return figure


@mpl.rc_context(STYLE)
def given(shares: Mapping[str, ArrayLike]) -> Figure:
    """What each child gives to its parents, as stacked bars beside each other.

    Args:
        shares: coupling coefficients c_ij [children, parents], by the title of their panel.
    """
    figure = Figure(2.4)
    (panels,) = figure.subplots(1, len(shares), sharey=True, squeeze=False)
    for axes, (title, values) in zip(panels, shares.items(), strict=True):
        by_parent = array(values).T  # [parents, children]
        children = np.arange(1, by_parent.shape[1] + 1)
        for below, height in zip(by_parent.cumsum(0) - by_parent, by_parent, strict=True):
            axes.bar(children, height, 0.8, below, color=QUANTITIES["c"].colour, edgecolor=PAPER)
        axes.axhline(1, color=FAINT, linestyle=":", linewidth=1)
        axes.set_title(title)
        axes.set_xlabel("child")
    panels[0].set_ylabel("gives away")
    return figure


@mpl.rc_context(STYLE)
def who_has(rows: Mapping[str, Sequence[str]], columns: Sequence[str]) -> Figure:
    """A dot for whatever somebody has: rows of things, columns of owners.

    Args:
        rows: by the name of a thing, those that have it.
        columns: all who have something.
    """
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
