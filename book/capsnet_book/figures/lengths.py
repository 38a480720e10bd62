"""How long vectors are: of the classes, before squash, against chance."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from capsnet_book.figures.helpers import (
    U_HAT,
    U,
    V,
    arrow,
    draw_margins,
    histogram,
    legend_above,
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
    draw_margins([axes], margins)
    axes.set_yticks(rows, classes)
    axes.invert_yaxis()
    axes.set(xlim=(0, 1), xlabel="length ‖v‖ of the capsule")
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
    draw_margins(panels, margins)
    panels[-1].set(xlim=(0, 1), xlabel="length ‖v‖ of the capsule")
    return figure


@styled
def before_squash(
    samples: Mapping[str, Mapping[str, ArrayLike]],
    lengths: ArrayLike,
    slopes: Mapping[str, ArrayLike],
) -> Figure:
    """How long vectors are before squash, and under that how steep squash is there.

    `samples` are the vectors' lengths, positive, by the network's name and by what the vectors see
    (two at most): the first are filled, the second an outline. `slopes` of squash (two at most) are
    at `lengths`, which rise, [m] each.
    """
    x = array(lengths)
    ratios = [*[0.95] * len(samples), 1.3]
    figure, (*rows, below) = stacked(2.3 + 0.95 * len(samples), len(ratios), height_ratios=ratios)
    looks: tuple[dict[str, Any], ...] = (
        {"fill": True, "color": U},
        {"color": INK, "linewidth": 1.2},
    )
    for axes, (name, groups) in zip(rows, samples.items(), strict=True):
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
    figure.legend(*rows[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure


@styled
def against_chance(sums: Mapping[str, ArrayLike], true: ArrayLike, most: float) -> Figure:
    """How long sums of votes are over random ones: of the true class and of absent ones.

    `sums` are such ratios by what was added up, [n, classes]; `true` says which class is there,
    bool, [n, classes]; `most` is the ratio if all votes coincide.
    """
    present = array(true)
    edges = np.linspace(0, 1.1 * max(array(values).max() for values in sums.values()), 41)
    groups = (("absent digits", ~present, FAINT), ("true digit", present, V))
    figure, rows = stacked(0.75 + 1.1 * len(sums), len(sums))
    for axes, (name, values) in zip(rows, sums.items(), strict=True):
        for group, which, colour in groups:
            histogram(axes, array(values)[which], edges, fill=True, color=colour, label=group)
        axes.axvline(1, color=INK, linestyle="--", linewidth=1)
        axes.set(title=name, xlim=(0, edges[-1]))
    ticks = [str(tick) for tick in range(int(edges[-1]) + 1)]
    ticks[:2] = "0\nall cancel", "1\nchance"
    rows[-1].set_xticks(range(len(ticks)), ticks)
    rows[-1].set_xlabel(f"length of the sum of the votes ({most:.0f} if all coincide)")
    figure.supylabel("percent of their group", size=10)
    legend_above(figure)
    return figure


@styled
def walks(votes: Mapping[str, ArrayLike]) -> Figure:
    """Vectors laid end to end, and how far their sum is from the start.

    `votes` are the vectors by name, [m, d] each, in the order in which they are laid. The unit of
    a panel is the distance that random directions lead on average, which a circle shows. Seen from
    the side that shows most of the walk; the sum has its full length.
    """
    figure, panels = side_by_side(2.1, len(votes), sharex=True, sharey=True)
    turn = np.linspace(0, 2 * np.pi, 181)
    for axes, (name, vectors) in zip(panels, votes.items(), strict=True):
        steps = array(vectors)
        path = np.cumsum(steps / np.sqrt((steps**2).sum()), axis=0)
        end = path[-1] / np.linalg.norm(path[-1])
        x = path @ end
        aside = path - np.outer(x, end)
        y = aside @ np.linalg.svd(aside, full_matrices=False)[2][0]
        y *= np.sign(y[np.abs(y).argmax()])
        axes.plot([0, *x], [0, *y], color=U_HAT, linewidth=0.7)
        axes.plot(np.cos(turn), np.sin(turn), "--", color=FAINT, linewidth=1)
        arrow(axes, (0, 0), (x[-1], y[-1]), V, linewidth=1.6)
        axes.set(title=name, aspect="equal")
        axes.set_axis_off()
    return figure
