"""Pictures of how far an answer can be trusted: intervals, lengths, and answers withheld."""

from collections.abc import Mapping

import matplotlib as mpl
import numpy as np
from matplotlib.ticker import MaxNLocator, MultipleLocator
from numpy.typing import ArrayLike

from capsnet_lab.figures.style import FAINT, INK, QUANTITIES, STYLE, Figure, array


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
