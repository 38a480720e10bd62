"""Pictures of two digits in one image, and of what the decoder draws of each."""

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.patches import Patch
from numpy.typing import ArrayLike

from capsnet_lab.figures.style import FAINT, INK, MISTAKE, STYLE, WIDTH, Figure, array, show

# The paper's green, and magenta in place of its red: apart from each other, from black and from
# white under protanopia, deuteranopia and tritanopia. They add up to white, where both draw.
FIRST = (0.1, 0.8, 0.1)
SECOND = (0.9, 0.2, 0.9)


@mpl.rc_context(STYLE)
def taken_apart(
    images: ArrayLike,
    drawings: Mapping[str, ArrayLike],
    titles: Sequence[str],
    mistakes: Sequence[int] = (),
    alone: bool = False,
) -> Figure:
    """Columns of an image above drawings of its two digits, which are laid over each other.

    The first digit is green, the second magenta, and where both are drawn it is white.

    Args:
        images: [n, 1, height, width], uint8 or floating point in 0 … 1.
        drawings: the rows below, by name: each [n, 2, 1, height, width], floating point in 0 … 1.
        titles: one for each column; may be of two lines.
        mistakes: columns whose title is set as a mistake's.
        alone: also show the two drawings of the first row by themselves, above it.
    """
    pictures = array(images)
    rows = {name: array(pair)[:, :, 0] for name, pair in drawings.items()}
    if alone:
        one, other = np.array([[1, 0], [0, 1]])[:, None, :, None, None]
        pair = next(iter(rows.values()))
        rows = {"first": pair * one, "second": pair * other} | rows
    columns, lines = len(titles), max(len(title.splitlines()) for title in titles)
    side = (WIDTH - 0.3) / max(columns, 4)  # inches of a picture
    height = (1 + len(rows)) * (side + 0.03) + 0.2 * lines + 0.4
    figure = Figure(height)
    grid = figure.subplots(1 + len(rows), columns, squeeze=False)
    for column, title in enumerate(titles):
        show(grid[0, column], pictures[column])
        colour = MISTAKE if column in mistakes else INK
        grid[0, column].set_title(title, color=colour, size=9, pad=3)
        for axes, pair in zip(grid[1:, column], rows.values(), strict=True):
            # [2 digits, height, width] and [2 digits, 3 colours] → [3, height, width]
            show(axes, np.einsum("dhw,dc->chw", pair[column], [FIRST, SECOND]).clip(0, 1))
    for axes, name in zip(grid[:, 0], ("image", *rows), strict=True):
        axes.set_ylabel(name, size=9)
    meaning = {"first digit": FIRST, "second digit": SECOND, "both": (1, 1, 1)}
    handles = [
        Patch(facecolor=colour, edgecolor=FAINT, label=name) for name, colour in meaning.items()
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return figure
