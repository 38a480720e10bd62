"""Pictures of the margin loss: its curves, what it pulls at, and where lengths end up."""

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from capsnet_book.figures.axes import beside
from capsnet_lab.figures.style import FAINT, INK, QUANTITIES, STYLE, Figure, array, show

# The two kinds of class that eq. 4 tells apart, the same in every figure here.
PRESENT = QUANTITIES["v"].colour
ABSENT = INK


@mpl.rc_context(STYLE)
def wanted_lengths(
    image: ArrayLike,
    lengths: ArrayLike,
    present: ArrayLike,
    margins: tuple[float, float],
    classes: Sequence[str],
) -> Figure:
    """An image, the lengths of its capsules, and the margins that the loss holds them to.

    Args:
        image: [channels, height, width], uint8 or floating point in 0 … 1.
        lengths: ‖v‖ of each class's capsule, [k].
        present: is the class in the image? [k].
        margins: m⁺ and m⁻, drawn as lines.
        classes: their names.
    """
    figure = Figure(2.7)
    frame, axes = figure.subplots(1, 2, width_ratios=[1, 1.5])
    show(frame, array(image))
    rows = np.arange(len(classes))
    axes.barh(rows, array(lengths), color=np.where(array(present), PRESENT, FAINT))
    _draw_margins([axes], margins)
    axes.set_xlim(0, 1)
    axes.set_yticks(rows, classes)
    axes.invert_yaxis()
    axes.set_xlabel("length ‖v‖ of the capsule")
    return figure


@mpl.rc_context(STYLE)
def margin_curves(
    lengths: ArrayLike,
    panels: Mapping[str, tuple[ArrayLike, ArrayLike]],
    margins: tuple[float, float],
) -> Figure:
    """What becomes of a present and of an absent class as its capsule gets longer, side by side.

    Args:
        lengths: ‖v‖, [n].
        panels: by what is drawn: its values where T = 1 and where T = 0, both [n].
        margins: m⁺ and m⁻, drawn as lines.
    """
    at = array(lengths)
    figure = Figure(2.9)
    row = figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, (name, (present, absent)) in zip(row, panels.items(), strict=True):
        axes.plot(at, array(present), color=PRESENT, linewidth=2, label="digit present, T = 1")
        axes.plot(at, array(absent), "--", color=ABSENT, linewidth=2, label="absent, T = 0")
        axes.set_xlim(0, 1)
        axes.set_xlabel("length ‖v‖ of the capsule")
        axes.set_ylabel(name)
    _draw_margins(row, margins)
    lines, names = row[0].get_legend_handles_labels()
    figure.legend(lines, names, loc="outside upper center", ncols=2)
    return figure


@mpl.rc_context(STYLE)
def length_histogram(
    true: ArrayLike, others: ArrayLike, margins: tuple[float, float], bins: int = 40
) -> Figure:
    """Histograms of the true class's lengths (above) and of all others' (below), in percent.

    Args:
        true: lengths of the capsules of the true class, [n].
        others: lengths of the capsules of all other classes, [m].
        margins: m⁺ and m⁻, drawn as lines.
        bins: bars from 0 to 1.
    """
    values = {"true class": array(true), "other classes": array(others)}
    figure = Figure(3.4)
    grid = figure.subplots(2, 1, sharex=True)
    edges = np.linspace(0, 1, bins + 1)
    for axes, (name, lengths), colour in zip(grid, values.items(), (PRESENT, FAINT), strict=True):
        axes.hist(lengths, edges, color=colour, weights=np.full(len(lengths), 100 / len(lengths)))
        axes.set_ylabel("capsules, %")
        axes.annotate(name, (0.5, 0.97), xycoords="axes fraction", ha="center", va="top")
    _draw_margins(grid, margins)
    grid[-1].set_xlim(0, 1)
    grid[-1].set_xlabel("length ‖v‖ of the capsule")
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


@mpl.rc_context(STYLE)
def mean_lengths(
    curves: Mapping[float, Sequence[float]], balances: Mapping[float, float]
) -> Figure:
    """Mean length of all capsules against the training step, a curve for each down-weight.

    Args:
        curves: the mean lengths, one a step, by down-weight λ; the first one in colour.
        balances: the length at which equal capsules neither grow nor shrink, by λ, drawn as a
            thin line.
    """
    figure, axes = Figure.single(2.9)
    for number, (weight, curve) in enumerate(curves.items()):
        colour, line = (QUANTITIES["v"].colour, "-") if number == 0 else (INK, "--")
        steps = np.arange(1, len(curve) + 1)
        axes.plot(steps, curve, line, color=colour, linewidth=1.6, label=f"λ = {weight:g}")
        balance = balances[weight]
        axes.axhline(balance, color=colour, linewidth=0.8, linestyle=":")
        beside(axes, f"balance {balance:.2f}", balance, colour)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("training step (batches seen)")
    axes.set_ylabel("mean length of all capsules")
    axes.legend()
    return figure
