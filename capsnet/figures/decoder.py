"""Pictures of what the decoder draws, and how far that is from the image."""

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
from numpy.typing import ArrayLike

from capsnet.figures.style import (
    FAINT,
    INK,
    MISTAKE,
    PER_ROW,
    STYLE,
    WIDTH,
    Figure,
    array,
    show,
)  # fmt: skip


@mpl.rc_context(STYLE)
def gallery(
    pictures: ArrayLike,
    titles: Sequence[str],
    per_row: int = PER_ROW,
    rows: Sequence[str] = (),
    mistakes: Sequence[int] = (),
) -> Figure:
    """Pictures in rows, each with a title.

    Args:
        pictures: [n, channels, height, width], uint8 or floating point in 0 … 1.
        titles: one for each picture; may be empty.
        per_row: pictures side by side.
        rows: names of the rows, if any.
        mistakes: indices of pictures whose title is set as a mistake's.
    """
    drawn = array(pictures)
    if drawn.ndim != 4 or len(drawn) == 0 or len(titles) != len(drawn):
        raise ValueError(
            "pictures must be [n, channels, height, width] with n titles, n at least 1, got "
            f"{list(drawn.shape)} and {len(titles)} titles"
        )
    bands = -(-len(drawn) // per_row)
    if rows and len(rows) != bands:
        raise ValueError(f"rows must be {bands} names, got {len(rows)}")
    titled = sum(any(titles[band * per_row : (band + 1) * per_row]) for band in range(bands))
    side = (WIDTH - 0.25) / per_row  # inches of a picture
    figure = Figure(bands * side + 0.22 * titled)
    grid = figure.subplots(bands, per_row, squeeze=False)
    for axes in grid.flat:
        axes.set_axis_off()
    for i, (picture, title) in enumerate(zip(drawn, titles, strict=True)):
        axes = grid[i // per_row, i % per_row]
        show(axes, picture)
        axes.set_title(title, color=MISTAKE if i in mistakes else INK, size=9, pad=3)
        if rows and i % per_row == 0:
            axes.set_ylabel(rows[i // per_row])
    return figure


@mpl.rc_context(STYLE)
def squared_errors(errors: Mapping[str, ArrayLike], classes: Sequence[str]) -> Figure:
    """The squared error of each class, under several ways to draw: a mark for each.

    Args:
        errors: by name, one number for each class; the last is the one to look at.
        classes: their names.
    """
    values = {name: array(numbers) for name, numbers in errors.items()}
    if not values or any(numbers.shape != (len(classes),) for numbers in values.values()):
        raise ValueError(
            f"errors must be [{len(classes)}] each, of at least one way to draw, got "
            f"{[list(numbers.shape) for numbers in values.values()]}"
        )
    figure = Figure(1.1 + 0.24 * len(classes))
    axes = figure.subplots()
    ordinates = np.arange(len(classes))
    markers = ["s", "D", "^", "v"]
    for i, (name, numbers) in enumerate(values.items()):
        last = i == len(values) - 1
        axes.plot(
            numbers, ordinates, "o" if last else markers[i % len(markers)],
            color=INK if last else FAINT,
            markersize=7 if last else 5, label=name,
        )  # fmt: skip
    axes.set_xlim(left=0)
    axes.set_ylim(len(classes) - 0.4, -0.6)
    axes.set_yticks(ordinates, classes)
    axes.set_xlabel("sum of squared differences of an image (pixels from 0 to 1)")
    axes.set_ylabel("class")
    figure.legend(loc="outside upper center", ncols=len(values))
    return figure
