"""Images in rows, with titles, frames, arrows or dashes."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.patches import Circle, Patch, Rectangle
from numpy.typing import ArrayLike

from capsnet_book.figures.helpers import U, styled
from capsnet_lab.figures.style import (
    FAINT,
    INK,
    MISTAKE,
    PER_ROW,
    QUANTITIES,
    WIDTH,
    Figure,
    array,
    show,
)

MISTAKES_PER_ROW = 6
# The paper's green, and magenta in place of its red: apart from each other, from black and from
# white under protanopia, deuteranopia and tritanopia. They add up to white, where both are.
FIRST = (0.1, 0.8, 0.1)
SECOND = (0.9, 0.2, 0.9)


@styled
def gallery(
    pictures: Iterable[Any],
    titles: Sequence[str],
    per_row: int = PER_ROW,
    rows: Sequence[str] = (),
    mistakes: Sequence[int] = (),
) -> Figure:
    """Pictures in rows of one height, each with a title, which may be empty or of two lines.

    Where a picture is None, nothing is drawn. A column is as wide as its first picture. `rows` are
    names of the rows, if any; `mistakes` are indices of pictures whose title is set as a mistake's.
    """
    arrays = [None if picture is None else array(picture) for picture in pictures]
    widths = [1.0] * per_row
    for column, picture in enumerate(arrays[:per_row]):
        if picture is not None:
            widths[column] = picture.shape[2] / picture.shape[1]
    bands = -(-len(arrays) // per_row)
    lines = sum(
        max(len(title.splitlines()) for title in titles[start : start + per_row])
        for start in range(0, len(titles), per_row)
    )
    height = (WIDTH - 0.25) / max(sum(widths), 2.0)  # inches of a picture
    figure = Figure(bands * height + 0.2 * lines + 0.03 * bands)
    grid = figure.subplots(bands, per_row, squeeze=False, width_ratios=widths)
    for axes in grid.flat:
        axes.set_axis_off()
    for i, (picture, title) in enumerate(zip(arrays, titles, strict=True)):
        axes = grid[i // per_row, i % per_row]
        if picture is not None:
            show(axes, picture)
        axes.set_title(title, color=MISTAKE if i in mistakes else INK, size=9, pad=3)
        if rows and i % per_row == 0:
            axes.set_ylabel(rows[i // per_row])
    return figure


@styled
def reconstructions(
    images: ArrayLike,
    reconstructed: ArrayLike,
    labels: ArrayLike,
    predictions: ArrayLike,
    classes: Sequence[str],
) -> Figure:
    """Rows of images, each image with its label, over rows of their reconstructions.

    Both are [n, channels, height, width], n a multiple of PER_ROW. `labels` and `predictions` are
    class indices [n]; a wrong prediction stands after its label.
    """
    both = np.stack([array(images), array(reconstructed)])  # [2, n, channels, height, width]
    shape = both.shape[2:]
    bands = both.reshape(2, -1, PER_ROW, *shape).swapaxes(0, 1)  # [bands, 2, PER_ROW, …]
    answers = list(zip(array(labels), array(predictions), strict=True))
    names = [classes[t] if t == p else f"{classes[t]} → {classes[p]}" for t, p in answers]
    titles: list[str] = []
    for first in range(0, len(names), PER_ROW):
        titles += names[first : first + PER_ROW] + [""] * PER_ROW
    mistakes = [i + i // PER_ROW * PER_ROW for i, (t, p) in enumerate(answers) if t != p]
    rows = ["original", "decoded"] * len(bands)
    return gallery(bands.reshape(-1, *shape), titles, rows=rows, mistakes=mistakes)


@styled
def misclassified(
    images: ArrayLike, labels: ArrayLike, lengths: ArrayLike, classes: Sequence[str]
) -> Figure:
    """Misclassified images: "true → predicted" above each, and below it both lengths.

    `labels` are the true class indices [n]; of `lengths` ‖v_k‖ [n, classes] the longest is the
    prediction.
    """
    labels_of_images, values = array(labels), array(lengths)
    predicted = values.argmax(axis=1)
    pairs = list(zip(labels_of_images, predicted, strict=True))
    names = [f"{classes[t]} → {classes[p]}" for t, p in pairs]
    figure = gallery(array(images), names, MISTAKES_PER_ROW, mistakes=range(len(names)))
    for axes, of_image, pair in zip(figure.axes, values, pairs, strict=False):
        texts = (f"{of_image[k]:.2f}".lstrip("0") for k in pair)
        axes.set_xlabel(" → ".join(texts), fontsize=9)
    rows = -(-len(names) // MISTAKES_PER_ROW)
    figure.set_figheight(figure.get_figheight() + 0.22 * rows)
    # keeps a row's lengths off the next row's titles
    figure.set_layout_engine("constrained", h_pad=0.07)
    return figure


@styled
def pair_reconstructions(
    images: ArrayLike, reconstructions: Mapping[str, ArrayLike], titles: Sequence[str]
) -> Figure:
    """Columns of an image above its two digits' reconstructions, by themselves and together.

    The first digit is green, the second magenta, and where both are it is white. `reconstructions`
    are the rows below, by name: each [n, 2, 1, height, width]. The two digits of the first of them
    are also shown by themselves, above it.
    """
    pairs = {name: array(pair)[:, :, 0] for name, pair in reconstructions.items()}
    first, second = (np.reshape(only, (2, 1, 1)) for only in ([1, 0], [0, 1]))
    pair = next(iter(pairs.values()))
    pairs = {"first": pair * first, "second": pair * second} | pairs
    pictures = array(images)
    grey = pictures / 255 if pictures.dtype == np.uint8 else pictures
    rows = [grey.repeat(3, axis=1)]
    for pair in pairs.values():
        # [n, 2 digits, height, width] and [2 digits, 3 colours] → [n, 3, height, width]
        rows.append(np.einsum("ndhw,dc->nchw", pair, [FIRST, SECOND]).clip(0, 1))
    columns = len(titles)
    every_title = [*titles, *[""] * (columns * len(pairs))]
    figure = gallery(np.concatenate(rows), every_title, columns, ["image", *pairs])
    figure.set_figheight(figure.get_figheight() + 0.3)
    colours = {"first digit": FIRST, "second digit": SECOND, "both": (1, 1, 1)}
    handles = [Patch(facecolor=c, edgecolor=FAINT, label=name) for name, c in colours.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return figure


@styled
def votes_of_children(
    image: ArrayLike,
    windows: Sequence[tuple[int, int]],
    side: int,
    parts: ArrayLike,
    votes: ArrayLike,
    compared: Sequence[tuple[str, ArrayLike]],
) -> Figure:
    """What single children see of an image, and below it reconstructions of their votes.

    Each of `windows` is the first row and column of the `side` × `side` pixels that a child sees.
    Its frame is as thick as `parts`, what the child contributes as a part of the whole, is large.
    `votes` are reconstructions [children, height, width]; those in `compared` have a name and stand
    at the end of a row of children each.
    """
    picture, shares = array(image), array(parts)
    cells: list[Any] = []
    titles = []
    for first, (name, other) in zip(range(0, len(windows), PER_ROW), compared, strict=True):
        children = range(first, min(first + PER_ROW, len(windows)))
        for row, column in windows[first : children.stop]:
            brightness = np.full_like(picture, 0.35)
            brightness[:, row : row + side, column : column + side] = 1
            cells.append(brightness * picture)
        cells += [None, *array(votes)[children, None], array(other)[None]]
        titles += [f"{100 * shares[child]:.0f} %" for child in children]
        titles += [""] * (1 + len(children)) + [name]
    figure = gallery(cells, titles, PER_ROW + 1)
    for child, (row, column) in enumerate(windows):
        frame = Rectangle((column - 0.5, row - 0.5), side, side, fill=False, clip_on=False)
        frame.set(edgecolor=QUANTITIES["u"].dark, linewidth=0.8 + 4 * shares[child] / shares.max())
        figure.axes[child + (PER_ROW + 2) * (child // PER_ROW)].add_patch(frame)
    return figure


@styled
def pooled_features(images: ArrayLike, pooled: ArrayLike) -> Figure:
    """Each image next to the bars of its pooled features [n, filters], a row for each."""
    pictures, bars = array(images), array(pooled).astype(float)
    figure = Figure(0.35 + 1.25 * len(bars))
    grid = figure.subplots(len(bars), 2, squeeze=False, width_ratios=[1, 1.25])
    filters = np.arange(1, bars.shape[1] + 1)
    low, high = min(0.0, 1.1 * bars.min()), max(0.0, 1.1 * bars.max())
    for (left, right), picture, heights in zip(grid, pictures, bars, strict=True):
        show(left, picture)
        right.bar(filters, heights, color=INK, width=0.6)
        right.set(ylim=(low, high), xticks=filters, ylabel="maximum")
    grid[-1][1].set_xlabel("filter")
    return figure


@styled
def pictured_vectors(images: ArrayLike, vectors: ArrayLike, titles: Sequence[str]) -> Figure:
    """A row of images over a row of their vectors [n, 2], as arrows on one scale.

    The first component of a vector goes to the right, the second down, as rows go.
    """
    arrows = array(vectors).astype(float)
    arrows /= np.linalg.norm(arrows, axis=1).max()
    count = len(arrows)
    figure = gallery([*array(images), *[None] * count], [*titles, *[""] * count], count)
    for axes, arrow in zip(figure.axes[count:], arrows, strict=True):
        axes.add_patch(Circle((0, 0), 1, fill=False, edgecolor=FAINT, linewidth=0.8))
        axes.plot(0, 0, ".", color=FAINT, markersize=4)
        axes.quiver(
            0, 0, *arrow,
            angles="xy", scale_units="xy", scale=1, width=0.035,
            color=U, zorder=3,
        )  # fmt: skip
        axes.set(xlim=(-1.15, 1.15), ylim=(1.15, -1.15), aspect="equal")
        axes.set_axis_off()
    return figure


@styled
def orientation_field(images: ArrayLike, fields: ArrayLike) -> Figure:
    """Images side by side, and over each a dash at every position.

    `fields` [n, 2, height, width] hold a vector at every pixel whose direction is *twice* the angle
    of the dash; the first component goes to the right, the second down, as rows go.
    """
    vectors = array(fields).astype(float)
    lengths = np.linalg.norm(vectors, axis=1)
    lengths /= lengths.max()
    angles = np.arctan2(vectors[:, 1], vectors[:, 0]) / 2
    figure = gallery(array(images), [""] * len(vectors), len(vectors))
    for axes, length, angle in zip(figure.axes, lengths, angles, strict=True):
        rows, columns = np.nonzero(length)  # a dash without length would only make the file larger
        length, angle = length[rows, columns], angle[rows, columns]
        axes.quiver(
            columns, rows, length * np.cos(angle), length * np.sin(angle),
            angles="xy", pivot="mid", scale_units="xy", scale=0.55, width=0.011, minlength=0,
            headwidth=0, headlength=0, headaxislength=0, color=U,
        )  # fmt: skip
    return figure
