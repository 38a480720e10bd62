"""What several figures of the book draw alike: words and arrows, a logarithmic axis, curves."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter
from numpy.typing import ArrayLike

from capsnet_lab.figures.style import FAINT, INK, QUANTITIES

# Of up to three curves: the one that matters, and what it is compared with.
LINES = ((QUANTITIES["v"].colour, "o-"), (INK, "s--"), (FAINT, "^:"))


def beside(axes: Axes, text: str, height: float, colour: str = INK) -> None:
    """Words right of the axes, at a height of its data."""
    right = axes.get_yaxis_transform()
    axes.text(1.02, height, text, transform=right, va="center", fontsize=9, color=colour)


def arrow(axes: Axes, start: ArrayLike, end: ArrayLike, colour: str, **options: float) -> None:
    """An arrow between two points of the data."""
    style = {"arrowstyle": "-|>", "color": colour, "shrinkA": 0, "shrinkB": 0}
    (x0, y0), (x1, y1) = np.asarray(start), np.asarray(end)
    axes.annotate("", (x1, y1), (x0, y0), arrowprops=style | options)


def logarithmic(axes: Axes) -> None:
    """A logarithmic y axis, with plain numbers at 1, 2 and 5 times the powers of ten."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
