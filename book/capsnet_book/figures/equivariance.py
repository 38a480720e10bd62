"""Pictures of what changes with an image and what stays: pooled features, vectors, capsules."""

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from capsnet_lab.figures.style import FAINT, INK, QUANTITIES, STYLE, WIDTH, Figure, array, show


@mpl.rc_context(STYLE)
def pooled_features(images: ArrayLike, pooled: ArrayLike) -> Figure:
    """Each image beside the bars of its pooled features, a row for each image.

    Args:
        images: [n, channels, height, width], uint8 or floating point in 0 … 1.
        pooled: one number for each filter, [n, filters].
    """
    pictures, bars = array(images), array(pooled).astype(float)
    figure = Figure(0.35 + 1.25 * len(bars))
    grid = figure.subplots(len(bars), 2, squeeze=False, width_ratios=[1, 1.25])
    filters = np.arange(1, bars.shape[1] + 1)
    low, high = min(0.0, 1.1 * bars.min()), max(0.0, 1.1 * bars.max()) or 1.0
    for (left, right), picture, heights in zip(grid, pictures, bars, strict=True):
        show(left, picture)
        right.bar(filters, heights, color=INK, width=0.6)
        right.set_ylim(low, high)
        right.set_xticks(filters)
        right.set_ylabel("maximum")
    grid[-1][1].set_xlabel("filter")
    return figure


@mpl.rc_context(STYLE)
def pictured_vectors(images: ArrayLike, vectors: ArrayLike, titles: Sequence[str]) -> Figure:
    """A row of images over a row of their 2-D vectors, drawn as arrows on one scale.

    Args:
        images: [n, channels, height, width], uint8 or floating point in 0 … 1.
        vectors: [n, 2], the first component to the right, the second down, as rows go.
        titles: one for each image.
    """
    pictures, arrows = array(images), array(vectors).astype(float)
    figure = Figure(0.35 + 2 * WIDTH / max(len(arrows), 4), WIDTH)
    grid = figure.subplots(2, len(arrows), squeeze=False)
    longest = np.linalg.norm(arrows, axis=1).max() or 1.0
    for above, below, picture, arrow, title in zip(
        *grid, pictures, arrows / longest, titles, strict=True
    ):
        show(above, picture)
        above.set_title(title)
        below.add_patch(mpl.patches.Circle((0, 0), 1, fill=False, edgecolor=FAINT, linewidth=0.8))
        below.plot(0, 0, ".", color=FAINT, markersize=4)
        below.quiver(
            0, 0, *arrow,
            angles="xy", scale_units="xy", scale=1, width=0.035,
            color=QUANTITIES["u"].colour, zorder=3,
        )  # fmt: skip
        below.set_xlim(-1.15, 1.15)
        below.set_ylim(1.15, -1.15)
        below.set_aspect("equal")
        below.set_axis_off()
    return figure


@mpl.rc_context(STYLE)
def orientation_field(images: ArrayLike, fields: ArrayLike) -> Figure:
    """Images side by side, and over each a dash at every position: how long, and which way.

    Args:
        images: [n, channels, height, width], uint8 or floating point in 0 … 1.
        fields: [n, 2, height, width], a vector at every pixel whose direction is *twice* the
            angle of the dash; the first component to the right, the second down, as rows go.
    """
    pictures, vectors = array(images), array(fields).astype(float)
    figure = Figure(WIDTH / max(len(vectors), 2))
    length = np.linalg.norm(vectors, axis=1)
    length = length / (length.max() or 1.0)
    angle = np.arctan2(vectors[:, 1], vectors[:, 0]) / 2
    panels = figure.subplots(1, len(vectors), squeeze=False)[0]
    for axes, picture, long, turned in zip(panels, pictures, length, angle, strict=True):
        show(axes, picture)
        rows, columns = np.nonzero(long)  # what has no length would only weigh
        long, turned = long[rows, columns], turned[rows, columns]
        axes.quiver(
            columns, rows, long * np.cos(turned), long * np.sin(turned),
            angles="xy", pivot="mid", scale_units="xy", scale=0.55, width=0.011, minlength=0,
            headwidth=0, headlength=0, headaxislength=0, color=QUANTITIES["u"].colour,
        )  # fmt: skip
    return figure


@mpl.rc_context(STYLE)
def length_and_direction(
    changes: Mapping[str, tuple[ArrayLike, ArrayLike, ArrayLike]],
) -> Figure:
    """Lengths and directions of capsules against changes of the image, a column for each change.

    A line is the median, a band the middle half of the capsules.

    Args:
        changes: by the name of the change, with its unit: amounts, [k]; lengths, [k, n]; and the
            angles in degrees between a capsule and itself before the change, [k, n].
    """
    figure = Figure(3.9)
    grid = figure.subplots(2, len(changes), squeeze=False, sharey="row", sharex="col")
    colour = QUANTITIES["v"].colour
    for column, (name, (amounts, lengths, angles)) in enumerate(changes.items()):
        x = array(amounts).astype(float)
        above, below = grid[:, column]
        for axes, values in ((above, lengths), (below, angles)):
            low, middle, high = np.quantile(array(values), (0.25, 0.5, 0.75), axis=1)
            axes.fill_between(x, low, high, color=colour, alpha=0.25, linewidth=0)
            axes.plot(x, middle, "o-", color=colour, markersize=3.5, linewidth=1.3)
        below.set_xlabel(name)
        below.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    grid[0, 0].set_ylim(0, 1)  # of the whole row
    grid[1, 0].set_ylim(bottom=0)
    grid[0, 0].set_ylabel("length ‖v‖")
    grid[1, 0].set_ylabel("direction turned, °")
    return figure
