"""Pictures of the margin loss: its curves, what it pulls at, and where lengths end up."""

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
from numpy.typing import ArrayLike

from capsnet.figures.style import FAINT, INK, QUANTITIES, STYLE, Figure, array

# The two kinds of class that eq. 4 tells apart, the same in every figure here.
PRESENT = QUANTITIES["v"].colour
ABSENT = INK


@mpl.rc_context(STYLE)
def margin_curves(
    lengths: ArrayLike,
    present: ArrayLike,
    absent: ArrayLike,
    margins: tuple[float, float],
    name: str,
) -> Figure:
    """The loss, or its gradient, of a present and of an absent class against the capsule's length.

    Args:
        lengths: ‖v‖, [n].
        present: the values where T = 1, [n].
        absent: the values where T = 0, [n].
        margins: m⁺ and m⁻, drawn as lines.
        name: what the values are, for the axis.
    """
    at = array(lengths)
    figure, axes = Figure.single(2.8)
    axes.plot(at, array(present), color=PRESENT, linewidth=2, label="digit present, T = 1")
    axes.plot(at, array(absent), "--", color=ABSENT, linewidth=2, label="absent, T = 0")
    _draw_margins(figure, margins)
    axes.set_xlim(0, 1)
    axes.set_xlabel("length ‖v‖ of the capsule")
    axes.set_ylabel(name)
    figure.legend(loc="outside upper center", ncols=2)
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
    _draw_margins(figure, margins)
    grid[-1].set_xlim(0, 1)
    grid[-1].set_xlabel("length ‖v‖ of the capsule")
    return figure


def _draw_margins(figure: Figure, margins: tuple[float, float]) -> None:
    """Both margins in all panels, named in the first."""
    for axes in figure.axes:
        for margin in margins:
            axes.axvline(margin, color=INK, linewidth=0.8, linestyle=":")
    top = figure.axes[0]
    above = top.get_xaxis_transform()
    for margin, name in zip(margins, ("m⁺", "m⁻"), strict=True):
        said = f"{name} = {margin:g}"
        top.text(margin, 1.01, said, transform=above, ha="center", va="bottom", fontsize=9)


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
        right = axes.get_yaxis_transform()
        said = f"balance {balance:.2f}"
        axes.text(1.01, balance, said, transform=right, va="center", fontsize=9, color=colour)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("training step (batches seen)")
    axes.set_ylabel("mean length of all capsules")
    axes.legend()
    return figure
