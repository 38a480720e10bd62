"""Pictures in rows, each with a title, and the mistakes among them."""

from collections.abc import Sequence

import matplotlib as mpl
from numpy.typing import ArrayLike

from capsnet_lab.figures.style import INK, MISTAKE, PER_ROW, STYLE, WIDTH, Figure, array, show

MISTAKES_PER_ROW = 6


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
    bands = -(-len(drawn) // per_row)
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
    predicted = values.argmax(axis=1)
    names = [f"{classes[t]} → {classes[p]}" for t, p in zip(true, predicted, strict=True)]
    figure = gallery(images, names, MISTAKES_PER_ROW, mistakes=range(len(names)))
    drawn = [axes for axes in figure.axes if axes.images]
    for i, axes in enumerate(drawn):
        ends = (f"{values[i, k]:.2f}".lstrip("0") for k in (true[i], predicted[i]))
        axes.set_xlabel(" → ".join(ends), fontsize=9)
    rows = -(-len(drawn) // MISTAKES_PER_ROW)
    figure.set_figheight(figure.get_figheight() + 0.22 * rows)
    # keeps a row's lengths off the next row's titles
    figure.set_layout_engine("constrained", h_pad=0.07)
    return figure
