"""What every figure shares: each quantity's colour, type, sizes, and how an image is shown."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import matplotlib.figure
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Quantity:
    """A quantity of the paper: how an equation writes it, and its one colour."""

    latex: str
    colour: str


# The colours keep apart under protanopia, deuteranopia and tritanopia, and stand out (3 : 1) from
# a white and from a dark page; tests/test_figures.py measures both.
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
    """A matplotlib figure that a notebook shows without pyplot."""

    def __init__(self, height: float, width: float = WIDTH) -> None:
        super().__init__(figsize=(width, height))
        FigureCanvasAgg(self)

    def _repr_png_(self) -> bytes:
        from PIL import Image

        drawn, buffer = io.BytesIO(), io.BytesIO()
        self.savefig(drawn, format="png")
        # 256 colours are plenty for a plot and for grey images, and make a page much lighter. What
        # the file says of the software is lost: the picture depends on what is drawn alone.
        few = Image.open(drawn).convert("RGB").quantize(256, dither=Image.Dither.NONE)
        few.save(buffer, "PNG", optimize=True)
        return buffer.getvalue()


def array(values: ArrayLike) -> NDArray[Any]:
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu()
        if values.dtype in (torch.bfloat16, torch.float16):
            values = values.float()
        return values.numpy()
    return np.asarray(values)


def beside(axes: Axes, text: str, height: float, colour: str = INK) -> None:
    """Words right of the axes, at a height of its data."""
    axes.annotate(
        text,
        (1.02, height),
        xycoords=("axes fraction", "data"),
        va="center",
        fontsize=9,
        color=colour,
    )


def name_rows(axes: Axes, names: Sequence[str]) -> None:
    """Names left of rows, from the top: at the heights 0, 1, 2 and so on."""
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.spines["left"].set_visible(False)


def apart(heights: NDArray[Any], gap: float) -> NDArray[Any]:
    """Heights for labels: the given ones, moved up and down until they do not overlap."""
    order = np.argsort(heights, kind="stable")
    moved = heights[order].astype(float)
    for _ in range(200):
        for i in range(len(moved) - 1):
            lack = gap - (moved[i + 1] - moved[i])
            if lack > 0:
                moved[i] -= lack / 2
                moved[i + 1] += lack / 2
    result = np.empty_like(moved)
    result[order] = moved
    return result


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
