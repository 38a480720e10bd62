"""Pictures of what the decoder draws, and how far that is from the image."""

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
from numpy.typing import ArrayLike

from capsnet.figures.style import FAINT, INK, STYLE, Figure, array


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
