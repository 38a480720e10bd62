"""What every figure shares: each quantity's colour, type, sizes, and how an image is shown."""

import io
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import matplotlib.figure
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.ticker import LogLocator, NullFormatter
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Quantity:
    """A quantity of the paper: how an equation writes it, and its one colour."""

    latex: str
    colour: str


# The colours keep apart under protanopia, deuteranopia and tritanopia, and stand out (3 : 1) from
# a white and from a dark page; tests/figures/test_colours.py measures both.
QUANTITIES = {
    "u": Quantity(r"\mathbf{u}", "#0E50FC"),  # a child's output
    "u_hat": Quantity(r"\hat{\mathbf{u}}", "#27A2BA"),  # its prediction of a parent
    "b": Quantity("b", "#5F6C66"),  # routing logit
    "c": Quantity("c", "#96552F"),  # coupling coefficient
    "s": Quantity(r"\mathbf{s}", "#A465E0"),  # a parent's total input
    "v": Quantity(r"\mathbf{v}", "#E77303"),  # a parent's output
}
# The macros of the book's equations, coloured: \qu, \quhat, \qb, \qc, \qs, \qv.
MACROS = {
    "q" + name.replace("_", ""): f"{{\\color{{{quantity.colour}}}{{{quantity.latex}}}}}"
    for name, quantity in QUANTITIES.items()
}
INK = "#1F2328"
FAINT = "#8C959F"
MISTAKE = "#B3261E"
PAPER = "#FFFFFF"

# Of up to three curves: the one that matters, and what it is compared with.
LINES = ((QUANTITIES["v"].colour, "o-"), (INK, "s--"), (FAINT, "^:"))
PER_ROW = 5  # images side by side
WIDTH = 5.6  # inches; the text of a figure stays legible when a phone shrinks it
STYLE: dict[Any, Any] = {
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.labelsize": 10,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.fontsize": 9,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": FAINT,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.facecolor": PAPER,
    "figure.facecolor": PAPER,  # opaque: the same on a light and on a dark page
    "savefig.facecolor": PAPER,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "legend.frameon": False,
    "figure.dpi": 160,
    "savefig.dpi": 160,
    "figure.constrained_layout.use": True,
}


class Figure(mpl.figure.Figure):
    """A matplotlib figure that a notebook shows without pyplot.

    Args:
        height: in inches.
        width: in inches.
        true_colour: keep all colours. Otherwise the picture has 256, which are plenty for a plot
            and for grey images, and make a page much lighter.
    """

    def __init__(self, height: float, width: float = WIDTH, true_colour: bool = False) -> None:
        super().__init__(figsize=(width, height))
        self.true_colour = true_colour
        FigureCanvasAgg(self)

    @classmethod
    def single(cls, height: float, width: float = WIDTH) -> tuple["Figure", Axes]:
        """A figure and its one pair of axes."""
        figure = cls(height, width)
        return figure, figure.subplots()

    def _repr_png_(self) -> bytes:
        from PIL import Image

        drawn, buffer = io.BytesIO(), io.BytesIO()
        self.savefig(drawn, format="png")
        # What the file says of the software is lost: it depends on what is drawn alone.
        image = Image.open(drawn).convert("RGB")
        if not self.true_colour:
            image = image.quantize(256, dither=Image.Dither.NONE)
        image.save(buffer, "PNG", optimize=True)
        return buffer.getvalue()


def array(values: ArrayLike) -> NDArray[Any]:
    """The values as a NumPy array; a tensor may be on any device and part of a graph."""
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu()
        if values.dtype in (torch.bfloat16, torch.float16):
            values = values.float()
        return values.numpy()
    return np.asarray(values)


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


def show(axes: Axes, image: NDArray[Any]) -> None:
    """Draw [channels, height, width]: one channel as grey, three as red, green and blue."""
    if image.ndim != 3 or image.shape[0] not in (1, 3):
        raise ValueError(f"an image must be [1 or 3, height, width], got {list(image.shape)}")
    if image.dtype == np.uint8:
        image = image / 255
    picture = image[0] if image.shape[0] == 1 else image.transpose(1, 2, 0)
    axes.set_axis_on()
    axes.imshow(picture, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    axes.set_xticks([])
    axes.set_yticks([])
