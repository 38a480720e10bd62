"""A picture on its way from a camera to the network."""

from collections.abc import Mapping

import matplotlib as mpl
from numpy.typing import ArrayLike

from capsnet_lab.figures.style import STYLE, WIDTH, Figure, array, show


@mpl.rc_context(STYLE)
def stages(pictures: Mapping[str, ArrayLike]) -> Figure:
    """Pictures side by side, of one height, whatever their sizes.

    Args:
        pictures: by name, each [1 or 3, height, width], uint8 or floating point in 0 … 1.
    """
    drawn = {name: array(picture) for name, picture in pictures.items()}
    widths = [picture.shape[2] / picture.shape[1] for picture in drawn.values()]
    height = (WIDTH - 0.1 * len(drawn)) / max(sum(widths), 2.5)  # of a picture, in inches
    figure = Figure(height + 0.3)
    row = figure.subplots(1, len(drawn), width_ratios=widths, squeeze=False)[0]
    for axes, (name, picture) in zip(row, drawn.items(), strict=True):
        show(axes, picture)
        axes.set_title(name, size=9, pad=3)
    return figure
