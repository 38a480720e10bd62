"""Pictures of how far an answer can be trusted: intervals, lengths, and answers withheld."""

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.ticker import MaxNLocator, MultipleLocator
from numpy.typing import ArrayLike

from capsnet.figures.style import FAINT, INK, MISTAKE, QUANTITIES, STYLE, Figure, array, beside


@mpl.rc_context(STYLE)
def intervals(shares: Mapping[str, tuple[float, float, float]]) -> Figure:
    """Accuracies as dots, each on a line from its interval's lower to its upper end.

    Args:
        shares: by name, from top to bottom: share, lower end, upper end; all 0 … 1.
    """
    figure, axes = Figure.single(0.75 + 0.34 * len(shares))
    percent = 100 * np.array(list(shares.values()))
    rows = np.arange(len(shares))
    axes.hlines(rows, percent[:, 1], percent[:, 2], color=INK, linewidth=1.6)
    axes.plot(percent[:, 0], rows, "o", color=INK, markersize=6)
    axes.set_ylim(len(shares) - 0.4, -0.6)
    axes.set_yticks(rows, list(shares))
    axes.set_xlabel("images read correctly, %")
    axes.xaxis.set_major_locator(MaxNLocator(6))
    return figure


@mpl.rc_context(STYLE)
def reliability(said: ArrayLike, right: ArrayLike, bounds: ArrayLike) -> Figure:
    """How often answers are right, against the length that they have: a dot for each group.

    Args:
        said: mean length ‖v‖ of the answers in each group, [groups].
        right: share of them that are right, 0 … 1, [groups].
        bounds: lower and upper end of each share's interval, [groups, 2].
    """
    x, y, limits = array(said), array(right), array(bounds)
    figure, axes = Figure.single(3.6)
    axes.plot([0, 1], [0, 1], "--", color=FAINT, linewidth=1.3)
    axes.text(0.68, 0.6, "if lengths were\nprobabilities", va="top", fontsize=9)
    axes.vlines(x, limits[:, 0], limits[:, 1], color=QUANTITIES["v"].colour, linewidth=1.6)
    axes.plot(x, y, "o", color=QUANTITIES["v"].colour, markersize=6)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1.03)
    axes.xaxis.set_major_locator(MultipleLocator(0.2))
    axes.set_xlabel("length ‖v‖ of the longest capsule")
    axes.set_ylabel("share of answers that are right")
    return figure


@mpl.rc_context(STYLE)
def right_and_wrong(right: ArrayLike, wrong: ArrayLike, quantity: str) -> Figure:
    """Histograms of a quantity for right and for wrong answers, in percent of each group.

    Args:
        right: its values for the right answers, [n].
        wrong: its values for the wrong answers, [m].
        quantity: its name and unit, for the axis.
    """
    values = {"right answers": array(right), "wrong answers": array(wrong)}
    ends = np.concatenate(list(values.values()))
    edges = np.linspace(ends.min(), ends.max(), 25)
    figure, axes = Figure.single(2.9)
    styles = ((INK, "-"), (MISTAKE, "--"))
    for (name, numbers), (colour, line) in zip(values.items(), styles, strict=True):
        shares = 100 * np.histogram(numbers, edges)[0] / len(numbers)
        axes.stairs(shares, edges, color=colour, linestyle=line, linewidth=1.5, label=name)
    axes.set_ylim(bottom=0)
    axes.set_xlabel(quantity)
    axes.set_ylabel("share of each group, %")
    axes.legend()
    return figure


@mpl.rc_context(STYLE)
def rejection(answered: ArrayLike, accuracy: Mapping[str, ArrayLike]) -> Figure:
    """Accuracy of the answers that are given, against the share of images that get one.

    Args:
        answered: share of the images that are answered, rising, 0 … 1, [n].
        accuracy: by the way to choose them (two at most), the share that is right, [n].
    """
    x = array(answered)
    figure, axes = Figure.single(3.0)
    styles = ((QUANTITIES["v"].colour, "-"), (INK, "--"))[: len(accuracy)]
    for (name, values), (colour, line) in zip(accuracy.items(), styles, strict=True):
        axes.plot(100 * x, 100 * array(values), line, color=colour, linewidth=1.5, label=name)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.set_xlabel("images answered, %")
    axes.set_ylabel("answers that are right, %")
    axes.legend(title="the first to go unanswered:", loc="lower left")
    return figure


@mpl.rc_context(STYLE)
def per_class_accuracy(per_class: Sequence[tuple[int, int]], classes: Sequence[str]) -> Figure:
    """Accuracy of each class as a dot on a zoomed axis, its count beside it.

    Args:
        per_class: (correct, total) of each class.
        classes: their names.
    """
    percent = [100 * correct / total if total else float("nan") for correct, total in per_class]
    figure, axes = Figure.single(0.9 + 0.27 * len(classes))
    rows = np.arange(len(classes))
    axes.plot(percent, rows, "o", color=QUANTITIES["v"].colour, markersize=7, clip_on=False)
    lowest = min((value for value in percent if not np.isnan(value)), default=0.0)
    left = max(0.0, lowest - max(0.15 * (100 - lowest), 0.2))
    axes.hlines(rows, left, percent, color=FAINT, linewidth=0.8, zorder=0)
    for row, (correct, total) in enumerate(per_class):
        beside(axes, f"{correct}/{total}", row)
    axes.set_xlim(left, 100)
    axes.set_ylim(len(classes) - 0.4, -0.6)
    axes.set_yticks(rows, classes)
    axes.set_xlabel("images read correctly, %")
    axes.set_ylabel("class")
    return figure
