"""What a network gets right and wrong, and what its decoder draws."""

import textwrap
from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from numpy.typing import ArrayLike

from capsnet_lab.figures.style import (
    INK,
    MISTAKE,
    QUANTITIES,
    STYLE,
    WIDTH,
    Figure,
    array,
    show,
)

# Of figures with the names of files and classes: a $ in one is a $, and begins no mathematics.
NAMING = STYLE | {"text.parse_math": False}
# Thin paint, so that few mistakes are nearly the page's own ground, a dark one, too.
PAINT = [(QUANTITIES["v"].colour, opacity) for opacity in (0.06, 0.9)]


@mpl.rc_context(NAMING)
def confusion_matrix(confusion: ArrayLike, classes: Sequence[str]) -> Figure:
    """Counts [classes, classes], a row for each label; only mistakes are coloured."""
    counts = array(confusion)
    mistakes = np.where(np.eye(len(classes), dtype=bool) | (counts == 0), np.nan, counts)
    most = max(1, counts[~np.isnan(mistakes)].max(initial=0))
    side = max(3.6, 0.9 + 0.44 * len(classes))
    figure, axes = Figure.single(side, max(WIDTH, side))
    colours = LinearSegmentedColormap.from_list("mistakes", PAINT)
    axes.imshow(mistakes, cmap=colours, vmin=0, vmax=1.6 * most)
    for row, column in np.argwhere(counts > 0):
        text = axes.text(column, row, str(counts[row, column]), ha="center", va="center", size=9)
        if row != column:
            text.set(fontweight="bold")
    turn = 0 if max(map(len, classes)) <= 2 else 90
    axes.set_xticks(range(len(classes)), classes, rotation=turn)
    axes.set_yticks(range(len(classes)), classes)
    axes.set_xlabel("predicted class")
    axes.set_ylabel("true class")
    return figure


# An image as the network saw it, its reconstruction if there is a decoder, the name of its file,
# what was answered, and whether that is a class.
Cell = tuple[ArrayLike, ArrayLike | None, str, str, bool]


@mpl.rc_context(NAMING)
def contact_sheet(cells: Sequence[Cell]) -> Figure:
    """Inputs over their reconstructions, ten side by side, with the answer under each.

    Images are [channels, height, width], uint8 or floating point in 0 … 1. Of a long name the end
    is shown; an answer that is no class is marked.
    """
    if not cells:
        raise ValueError("there is no picture to draw")
    letters = 16  # as many of this size fit into a cell, which is an inch wide
    words = [textwrap.wrap(cell[3], letters, max_lines=4, placeholder=" …") for cell in cells]
    columns = min(len(cells), 10)
    bands = -(-len(cells) // columns)
    _, height, width = array(cells[0][0]).shape
    tall = 0.92 * height / width
    band = 0.3 + tall * (1 if cells[0][1] is None else 2) + 0.14 * max(map(len, words))
    figure, axes = Figure.single(bands * band, columns)
    for i, (image, decoded, name, _, is_class) in enumerate(cells):
        x, y = i % columns + 0.04, i // columns * band + 0.2
        short = name if len(name) <= letters else "…" + name[1 - letters :]
        axes.text(x, y - 0.04, short, size=6.5, color=INK)
        for picture in (image, decoded):
            if picture is not None:
                show(axes, array(picture))
                axes.images[-1].set_extent((x, x + 0.92, y + tall, y))
                y += tall + 0.02
        colour = INK if is_class else MISTAKE
        axes.text(x, y + 0.02, "\n".join(words[i]), size=7.5, color=colour, va="top")
    axes.set_xlim(0, columns)
    axes.set_ylim(bands * band, 0)
    axes.set_axis_off()
    return figure
