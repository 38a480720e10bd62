"""Pictures in rows, each with a title."""

from collections.abc import Sequence

import matplotlib as mpl
from numpy.typing import ArrayLike

from capsnet.figures.style import INK, MISTAKE, PER_ROW, STYLE, WIDTH, Figure, array, show


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
        titles: one for each picture; may be empty, or of two lines.
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
    lines = sum(
        max(len(title.splitlines()) for title in titles[start : start + per_row])
        for start in range(0, len(titles), per_row)
    )
    side = (WIDTH - 0.25) / per_row  # inches of a picture
    figure = Figure(bands * side + 0.2 * lines + 0.03 * bands)
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
