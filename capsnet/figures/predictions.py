"""What a network gets right and wrong, and what its decoder draws."""

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from numpy.typing import ArrayLike

from capsnet.figures.style import (
    FAINT,
    MISTAKE,
    PER_ROW,
    QUANTITIES,
    STYLE,
    WIDTH,
    Figure,
    array,
    show,
)


@mpl.rc_context(STYLE)
def confusion_matrix(confusion: ArrayLike, classes: Sequence[str]) -> Figure:
    """Counts of label against prediction; only mistakes are coloured.

    Args:
        confusion: [classes, classes], a row for each label, a column for each prediction.
        classes: their names.
    """
    counts = array(confusion)
    if counts.shape != (len(classes), len(classes)):
        raise ValueError(
            f"confusion must be [{len(classes)}, {len(classes)}], got {list(counts.shape)}"
        )
    mistakes = np.where(np.eye(len(classes), dtype=bool) | (counts == 0), np.nan, counts)
    most = max(1, counts[~np.isnan(mistakes)].max(initial=0))
    side = max(3.6, 0.9 + 0.44 * len(classes))
    figure, axes = Figure.single(side, max(WIDTH, side))
    axes.imshow(mistakes, cmap="Oranges", vmin=0, vmax=1.6 * most)
    for row, column in np.argwhere(counts > 0):
        text = axes.text(column, row, str(counts[row, column]), ha="center", va="center", size=9)
        if row == column:
            text.set_color(FAINT)
        else:
            text.set_fontweight("bold")
    turn = 0 if max(map(len, classes)) <= 2 else 90
    axes.set_xticks(range(len(classes)), classes, rotation=turn)
    axes.set_yticks(range(len(classes)), classes)
    axes.set_xlabel("predicted class")
    axes.set_ylabel("true class")
    return figure


@mpl.rc_context(STYLE)
def reconstructions(
    images: ArrayLike,
    reconstructed: ArrayLike,
    labels: ArrayLike,
    predictions: ArrayLike,
    classes: Sequence[str],
) -> Figure:
    """Rows of originals over rows of their reconstructions; wrong predictions are marked.

    Args:
        images: [n, channels, height, width], uint8 or floating point in 0 … 1.
        reconstructed: the same shape.
        labels: true class indices, [n].
        predictions: predicted class indices, [n].
        classes: class names.
    """
    originals, drawn = array(images), array(reconstructed)
    if originals.shape != drawn.shape or originals.ndim != 4 or len(originals) == 0:
        raise ValueError(
            "images and reconstructed must both be [n, channels, height, width] with n at least 1, "
            f"got {list(originals.shape)} and {list(drawn.shape)}"
        )
    true, predicted = array(labels), array(predictions)
    count = len(originals)
    if len(true) != count or len(predicted) != count:
        raise ValueError(
            f"labels and predictions must be [{count}], got {list(true.shape)} and "
            f"{list(predicted.shape)}"
        )
    columns = min(count, PER_ROW)
    bands = -(-count // columns)
    side = (WIDTH - 0.25) / max(columns, 4)  # inches of an image
    figure = Figure(bands * (2 * side + 0.3))
    grid = figure.subplots(2 * bands, columns, squeeze=False)
    for axes in grid.flat:
        axes.set_axis_off()
    for i in range(count):
        above, below = grid[2 * (i // columns) : 2 * (i // columns) + 2, i % columns]
        show(above, originals[i])
        show(below, drawn[i])
        label, prediction = classes[true[i]], classes[predicted[i]]
        if label == prediction:
            above.set_title(label)
        else:
            above.set_title(f"{label} → {prediction}", color=MISTAKE)
        if i % columns == 0:
            above.set_ylabel("original")
            below.set_ylabel("decoded")
    return figure


@mpl.rc_context(STYLE)
def prediction(
    image: ArrayLike,
    reconstruction: ArrayLike | None,
    lengths: ArrayLike,
    classes: Sequence[str],
) -> Figure:
    """One image, its reconstruction where there is one, and the length of every class's capsule.

    Args:
        image: [channels, height, width], uint8 or floating point in 0 … 1.
        reconstruction: the same shape, or None.
        lengths: ‖v_k‖, [classes].
        classes: class names.
    """
    values = array(lengths).astype(float)
    if len(values) != len(classes):
        raise ValueError(
            f"expected one length for each of {len(classes)} classes, got {len(values)}"
        )
    pictures = [("input", array(image))]
    if reconstruction is not None:
        pictures.append(("decoded", array(reconstruction)))
    longest = int(np.argmax(values))
    figure = Figure(max(2.2, 0.8 + 0.2 * len(classes)))
    ratios = [1.0] * len(pictures) + [1.7]
    *frames, axes = figure.subplots(1, len(ratios), width_ratios=ratios)
    for frame, (name, picture) in zip(frames, pictures, strict=True):
        show(frame, picture)
        frame.set_title(name)
    rows = np.arange(len(classes))
    colours = [QUANTITIES["v"].colour if row == longest else FAINT for row in rows]
    axes.barh(rows, values, color=colours)
    axes.set_xlim(0, 1)
    axes.set_yticks(rows, classes)
    axes.invert_yaxis()
    axes.set_xlabel("length ‖v‖ of the capsule")
    axes.set_title(f"predicted: {classes[longest]}")
    return figure
