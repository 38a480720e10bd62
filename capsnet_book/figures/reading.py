"""Pictures for reading results: how sure a number is, every mistake, and what a length is worth."""

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.ticker import MaxNLocator, MultipleLocator
from numpy.typing import ArrayLike

from capsnet.figures.style import FAINT, INK, MISTAKE, QUANTITIES, STYLE, Figure, array, beside
from capsnet_book.figures.gallery import gallery

MISTAKES_PER_ROW = 7


@mpl.rc_context(STYLE)
def mistakes(
    images: ArrayLike, labels: ArrayLike, lengths: ArrayLike, classes: Sequence[str]
) -> Figure:
    """Images that are read wrongly, in the order given: "true → predicted", and both lengths.

    Args:
        images: [n, channels, height, width], uint8 or floating point in 0 … 1.
        labels: true class indices, [n].
        lengths: ‖v_k‖, [n, classes]; the longest is the prediction.
        classes: class names.
    """
    true, values = array(labels), array(lengths)
    if values.ndim != 2 or values.shape != (len(true), len(classes)):
        raise ValueError(f"lengths must be [{len(true)}, {len(classes)}], got {list(values.shape)}")
    predicted = values.argmax(axis=1)
    if (predicted == true).any():
        raise ValueError(f"image {int((predicted == true).argmax())} is read rightly")
    names = [f"{classes[t]} → {classes[p]}" for t, p in zip(true, predicted, strict=True)]
    figure = gallery(images, names, MISTAKES_PER_ROW)
    drawn = [axes for axes in figure.axes if axes.images]
    for i, axes in enumerate(drawn):
        axes.title.set_color(MISTAKE)
        ends = (f"{values[i, k]:.2f}".lstrip("0") for k in (true[i], predicted[i]))
        axes.set_xlabel(" → ".join(ends), fontsize=9)
    rows = -(-len(drawn) // MISTAKES_PER_ROW)
    figure.set_figheight(figure.get_figheight() + 0.22 * rows)
    # keeps a row's lengths off the next row's titles
    figure.set_layout_engine("constrained", h_pad=0.07)
    return figure


@mpl.rc_context(STYLE)
def intervals(shares: Mapping[str, tuple[float, float, float]]) -> Figure:
    """Accuracies as dots on lines from the lowest to the highest that the counts allow.

    Args:
        shares: of each name: (share, lowest, highest), 0 … 1, from top to bottom.
    """
    if not shares:
        raise ValueError("shares must hold at least one interval, got none")
    for name, (share, low, high) in shares.items():
        if not low <= share <= high:
            raise ValueError(f"{name}: {share} does not lie in its interval, {low} … {high}")
    figure = Figure(0.75 + 0.34 * len(shares))
    axes = figure.subplots()
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
        bounds: the lowest and the highest share that the counts allow, [groups, 2].
    """
    x, y, limits = array(said), array(right), array(bounds)
    if x.ndim != 1 or len(x) == 0 or y.shape != x.shape or limits.shape != (len(x), 2):
        raise ValueError(
            "said and right must be [groups] and bounds [groups, 2], got "
            f"{list(x.shape)}, {list(y.shape)} and {list(limits.shape)}"
        )
    figure = Figure(3.6)
    axes = figure.subplots()
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
    """How a number is distributed over right and over wrong answers, each as a share of its own.

    Args:
        right: of the right answers, [n].
        wrong: of the wrong ones, [m].
        quantity: what it is, with its unit: the name of the axis.
    """
    values = {"right answers": array(right), "wrong answers": array(wrong)}
    for name, numbers in values.items():
        if numbers.ndim != 1 or len(numbers) == 0:
            raise ValueError(f"{name} must be a row of at least one, got {list(numbers.shape)}")
    ends = np.concatenate(list(values.values()))
    edges = np.linspace(ends.min(), ends.max(), 25)
    figure = Figure(2.9)
    axes = figure.subplots()
    for (name, numbers), colour, line in zip(
        values.items(), (INK, MISTAKE), ("-", "--"), strict=True
    ):
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
        accuracy: of each way to choose them, the share of those that are right, [n].
    """
    x = array(answered)
    figure = Figure(3.0)
    axes = figure.subplots()
    if not 0 < len(accuracy) <= 2:
        raise ValueError(f"accuracy must name one way or two, got {len(accuracy)}")
    styles = ((QUANTITIES["v"].colour, "-"), (INK, "--"))
    for (name, values), (colour, line) in zip(accuracy.items(), styles, strict=False):
        y = array(values)
        if y.shape != x.shape:
            raise ValueError(
                f"answered and accuracy must have one shape, got {list(x.shape)} and "
                f"{list(y.shape)}"
            )
        axes.plot(100 * x, 100 * y, line, color=colour, linewidth=1.5, label=name)
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
    figure = Figure(0.9 + 0.27 * len(classes))
    axes = figure.subplots()
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
