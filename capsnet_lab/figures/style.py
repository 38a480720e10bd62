"""What every figure shares: each quantity's colour, type, sizes, and how an image is shown."""

import io
import re
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import matplotlib.figure
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.image import AxesImage
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Quantity:
    """A quantity of the paper: how an equation writes it, and its colour."""

    latex: str
    colour: str  # on a light page
    dark: str  # on a dark one


# The colours keep apart under protanopia, deuteranopia and tritanopia, and are legible as text
# (4.5 : 1, which a test checks), the first on a light page, the second on a dark one.
QUANTITIES = {
    "u": Quantity(r"\mathbf{u}", "#0013E3", "#7782FA"),  # a child's output
    "u_hat": Quantity(r"\hat{\mathbf{u}}", "#0A769A", "#58DFC4"),  # its prediction of a parent
    "b": Quantity("b", "#1C4518", "#98DE0B"),  # routing logit
    "c": Quantity("c", "#D71553", "#FF7D96"),  # coupling coefficient
    "s": Quantity(r"\mathbf{s}", "#862DBE", "#D8B3FE"),  # a parent's total input
    "v": Quantity(r"\mathbf{v}", "#A55D02", "#FDB877"),  # a parent's output
}
INK, PAPER = "#1F2328", "#FFFFFF"
FAINT, MISTAKE = "#6B7480", "#B3261E"

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
    """A matplotlib figure that a notebook shows without pyplot, as SVG.

    Args:
        height: in inches.
        width: in inches.
    """

    def __init__(self, height: float, width: float = WIDTH) -> None:
        super().__init__(figsize=(width, height))
        FigureCanvasAgg(self)

    @classmethod
    def single(cls, height: float, width: float = WIDTH) -> tuple["Figure", Axes]:
        """A figure and its one pair of axes."""
        figure = cls(height, width)
        return figure, figure.subplots()

    def _repr_svg_(self) -> str:
        """The drawing, the same for the same numbers; text is text, images keep their pixels."""
        buffer = io.StringIO()
        for image in self.findobj(AxesImage):
            image.set_interpolation("none")
        with mpl.rc_context({"svg.hashsalt": "capsnet", "svg.fonttype": "none"}):
            self.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
        svg = re.sub(r"<metadata>.*?</metadata>\s*", "", buffer.getvalue(), flags=re.DOTALL)
        svg = re.sub(r"'DejaVu Sans'[^;\"]*", "sans-serif", svg)
        svg = re.sub(r"(?<![\w.])([1-9]\d*\.\d\d)\d+", r"\1", svg)  # hundredths of a point
        return svg[svg.index("<svg") :]

    def png(self) -> bytes:
        """The drawing as pixels of 256 colours."""
        from PIL import Image

        raw, buffer = io.BytesIO(), io.BytesIO()
        self.savefig(raw, format="png")
        # The name of the software is lost: the file depends on the drawing alone.
        image = Image.open(raw).convert("RGB").quantize(256, dither=Image.Dither.NONE)
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
