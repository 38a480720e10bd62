"""How long vectors are: in the margin loss, before squash, against chance, as an image changes."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from capsnet_book.figures.helpers import (
    U,
    V,
    histogram,
    legend_above,
    names_at_ends,
    side_by_side,
    stacked,
    styled,
)
from capsnet_lab.figures.style import FAINT, INK, Figure, array, show

ROUND = (0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999)  # lengths after squash


@styled
def lengths_and_margins(
    image: ArrayLike,
    lengths: ArrayLike,
    present: ArrayLike,
    margins: tuple[float, float],
    classes: Sequence[str],
) -> Figure:
    """An image, its capsules' lengths ‖v‖ [k], and the margins (m⁺, m⁻) of the loss.

    `present` [k] says which classes are in the image.
    """
    figure, (frame, axes) = side_by_side(2.7, 2, width_ratios=[1, 1.5])
    show(frame, array(image))
    rows = np.arange(len(classes))
    axes.barh(rows, array(lengths), color=np.where(array(present), V, FAINT))
    _draw_margins([axes], margins)
    axes.set_yticks(rows, classes)
    axes.invert_yaxis()
    axes.set(xlim=(0, 1), xlabel="length ‖v‖ of the capsule")
    return figure


@styled
def margin_curves(
    lengths: ArrayLike,
    panels: Mapping[str, tuple[ArrayLike, ArrayLike]],
    margins: tuple[float, float],
) -> Figure:
    """A present and an absent class as the capsule's length ‖v‖ [n] grows, side by side.

    Each panel, by what is drawn: its values where T = 1 and where T = 0, both [n].
    """
    x = array(lengths)
    figure, row = side_by_side(2.9, len(panels))
    for axes, (name, (present, absent)) in zip(row, panels.items(), strict=True):
        axes.plot(x, array(present), color=V, linewidth=2, label="digit present, T = 1")
        axes.plot(x, array(absent), "--", color=INK, linewidth=2, label="absent, T = 0")
        axes.set(xlim=(0, 1), xlabel="length ‖v‖ of the capsule", ylabel=name)
    _draw_margins(row, margins)
    legend_above(figure)
    return figure


@styled
def length_histogram(true: ArrayLike, others: ArrayLike, margins: tuple[float, float]) -> Figure:
    """Histograms in percent of the true class's lengths (above) and of all others' (below)."""
    groups = (("true class", true, V), ("other classes", others, FAINT))
    figure, panels = stacked(3.4, 2)
    for axes, (name, lengths, colour) in zip(panels, groups, strict=True):
        histogram(axes, lengths, np.linspace(0, 1, 41), fill=True, color=colour)
        axes.set(ylabel="capsules, %", ylim=(0, None))
        axes.annotate(name, (0.5, 0.97), xycoords="axes fraction", ha="center", va="top")
    _draw_margins(panels, margins)
    panels[-1].set(xlim=(0, 1), xlabel="length ‖v‖ of the capsule")
    return figure


def _draw_margins(panels: Sequence[Axes], margins: tuple[float, float]) -> None:
    """Both margins in all panels, named above each of the first row."""
    for axes in panels:
        place = axes.get_subplotspec()
        for margin, name in zip(margins, ("m⁺", "m⁻"), strict=True):
            axes.axvline(margin, color=INK, linewidth=0.8, linestyle=":")
            if place and place.is_first_row():
                axes.text(
                    margin, 1.01, f"{name} = {margin:g}", transform=axes.get_xaxis_transform(),
                    ha="center", va="bottom", fontsize=9,
                )  # fmt: skip


@styled
def mean_lengths(
    curves: Mapping[float, Sequence[float]], balances: Mapping[float, float]
) -> Figure:
    """Mean length of all capsules against the training step, for two down-weights λ.

    The first is in colour. `balances` are the lengths at which equal capsules neither grow nor
    shrink, drawn as thin lines.
    """
    figure, axes = Figure.single(2.9)
    colours, names = (V, INK), {}
    for (weight, curve), colour, line in zip(curves.items(), colours, ("-", "--"), strict=True):
        steps = np.arange(1, len(curve) + 1)
        axes.plot(steps, curve, line, color=colour, linewidth=1.6, label=f"λ = {weight:g}")
        axes.axhline(balances[weight], color=colour, linewidth=0.8, linestyle=":")
        names[f"balance {balances[weight]:.2f}"] = balances[weight]
    axes.set_ylim(bottom=0)
    names_at_ends(axes, names, colours)
    axes.set(xlabel="training step (batches seen)", ylabel="mean length of all capsules")
    axes.legend()
    return figure


@styled
def before_squash(
    found: Mapping[str, Mapping[str, ArrayLike]],
    lengths: ArrayLike,
    slopes: Mapping[str, ArrayLike],
) -> Figure:
    """How long vectors are before squash, and under that how steep squash is there.

    `found` has the vectors' lengths, positive, by the network's name and by what the vectors see
    (two at most): the first are filled, the second an outline. `slopes` of squash (two at most) are
    at `lengths`, which rise, [m] each.
    """
    x = array(lengths)
    ratios = [*[0.95] * len(found), 1.3]
    figure, (*rows, below) = stacked(2.3 + 0.95 * len(found), len(ratios), height_ratios=ratios)
    looks: tuple[dict[str, Any], ...] = (
        {"fill": True, "color": U},
        {"color": INK, "linewidth": 1.2},
    )
    for axes, (name, groups) in zip(rows, found.items(), strict=True):
        for (group, values), look in zip(groups.items(), looks[: len(groups)], strict=True):
            histogram(axes, values, np.geomspace(x[0], x[-1], 51), label=group, **look)
        axes.text(0.5, 0.5, name, ha="center", va="center", transform=axes.transAxes)
        axes.set(ylim=(0, None), ylabel="percent")
    for (name, slope), line in zip(slopes.items(), ("-", "--")[: len(slopes)], strict=True):
        below.plot(x, array(slope), line, color=INK, linewidth=1.6, label=name)
    below.set(xscale="log", yscale="log", xlim=(x[0], x[-1]))
    below.set(xlabel="length before squash", ylabel="slope of squash")
    below.xaxis.set_major_formatter("{x:g}")
    below.legend(loc="lower left")
    # The inverse of squash tells where the round lengths after it are.
    before = {after: (after / (1 - after)) ** 0.5 for after in ROUND}
    inside = [after for after in ROUND if x[0] <= before[after] <= x[-1]]
    top = rows[0].secondary_xaxis("top")
    top.set_xticks([before[after] for after in inside], map(str, inside))
    top.set_xlabel("length after squash")
    for scale in (*rows, below, top):
        scale.minorticks_off()
    legend_above(figure)
    return figure


@styled
def against_chance(sums: Mapping[str, ArrayLike], true: ArrayLike) -> Figure:
    """How long sums of votes are over random ones: of the true class and of absent ones.

    `sums` are such ratios by what was added up, [n, classes]; `true` says which class is there,
    bool, [n, classes].
    """
    there = array(true)
    edges = np.linspace(0, 1.1 * max(array(values).max() for values in sums.values()), 41)
    groups = (("absent digits", ~there, FAINT), ("true digit", there, V))
    figure, rows = stacked(0.75 + 1.1 * len(sums), len(sums))
    for axes, (name, values) in zip(rows, sums.items(), strict=True):
        for group, which, colour in groups:
            histogram(axes, array(values)[which], edges, fill=True, color=colour, label=group)
        axes.axvline(1, color=INK, linestyle="--", linewidth=1)
        axes.set(title=name, xlim=(0, edges[-1]))
    rows[-1].set_xlabel("length of the sum of the votes; 1 is chance")
    figure.supylabel("percent of their group", size=10)
    legend_above(figure)
    return figure


@styled
def length_and_direction(
    changes: Mapping[str, tuple[ArrayLike, ArrayLike, ArrayLike]],
) -> Figure:
    """Lengths and directions of capsules against changes of the image, in columns.

    A line is the median, a band the middle half of the capsules. By the name of the change, with
    its unit: amounts [k], lengths [k, n], and the angles in degrees between a capsule and itself
    before the change [k, n].
    """
    figure = Figure(3.9)
    grid = figure.subplots(2, len(changes), squeeze=False, sharey="row", sharex="col")
    for column, (name, (amounts, *kinds)) in zip(grid.T, changes.items(), strict=True):
        x = array(amounts).astype(float)
        for axes, values in zip(column, kinds, strict=True):
            low, middle, high = np.quantile(array(values), (0.25, 0.5, 0.75), axis=1)
            axes.fill_between(x, low, high, color=V, alpha=0.25, linewidth=0)
            axes.plot(x, middle, "o-", color=V, markersize=3.5, linewidth=1.3)
        column[1].set_xlabel(name)
        column[1].xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    grid[0, 0].set(ylim=(0, 1), ylabel="length ‖v‖")  # of the whole row
    grid[1, 0].set(ylim=(0, None), ylabel="direction turned, °")
    return figure
