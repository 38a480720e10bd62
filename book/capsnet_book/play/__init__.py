"""Widgets of the pages: the Python side. Their ES modules are in the same folder.

A widget stands where a picture does: in a cell with the tag ``play-NAME`` or a figure of class
``play-NAME``. ``play.js`` puts ``NAME.js`` into the picture's box once it is in sight; without
scripts, and in print, the picture stays. ``capsules.js`` is the arithmetic, tested against
``capsnet``; ``kit.js`` is what all widgets are made of. A widget has a style of its own,
``NAME.css``; a script without one is a part of several.
"""

import base64
import inspect
import json
import os
import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from capsnet_lab.figures.style import Figure

if TYPE_CHECKING:
    from capsnet_book.play.widget import Widget

FOLDER = Path(__file__).parent
MARK = '<metadata class="play">', "</metadata>"


def pack(data: Mapping[str, Any]) -> str:
    """Numbers and tensors as JSON that may stand in XML, which ``unpack`` of ``kit.js`` reads."""

    def packed(value: Tensor) -> dict[str, Any]:
        text = base64.b64encode(value.detach().cpu().numpy().tobytes()).decode("ascii")
        kind = str(value.dtype).removeprefix("torch.")
        return {"dtype": kind, "shape": list(value.shape), "base64": text}

    text = json.dumps(data, default=packed, separators=(",", ":"))
    return text.replace("<", r"\u003c").replace("&", r"\u0026")


class Playable:
    """A figure that carries what its widget needs; where nothing runs, it is the figure.

    Args:
        figure: the picture.
        widget: its name, if it also runs in a notebook; there it needs ``anywidget``.
        **data: numbers, text, lists of them, or tensors; the widget's ``mount`` gets them.
    """

    def __init__(self, figure: Figure, widget: str = "", **data: Any) -> None:
        self.figure = figure
        self.name = widget
        self.data = data

    def _repr_svg_(self) -> str:
        svg = self.figure._repr_svg_()
        return svg.replace("</svg>", pack(self.data).join(MARK) + "</svg>")

    def _ipython_display_(self) -> None:
        from IPython.display import display

        shown: dict[str, Any] = {"image/svg+xml": self._repr_svg_()}
        about: dict[str, Any] = {}
        # A notebook is open in Colab, or in a Jupyter server, which names its session.
        somebody_looks = "google.colab" in sys.modules or "JPY_SESSION_NAME" in os.environ
        if self.name and somebody_looks and find_spec("anywidget"):
            shown, about = self.widget()._repr_mimebundle_() or (shown, about)
        display(shown | {"text/plain": repr(self)}, metadata=about, raw=True)

    def __repr__(self) -> str:
        return "<a figure to play with>"  # the same wherever it stands in memory

    def widget(self) -> "Widget":
        """The widget itself; its trait ``told`` holds what its reader did."""
        from capsnet_book.play.widget import widget

        return widget(self.name, pack(self.data))


def lines(function: Callable[..., Any], *starts: str) -> list[str]:
    """The lines of a function's source that begin so, without their comments."""
    source = [line.split("  #")[0].strip() for line in inspect.getsource(function).splitlines()]
    return [next(line for line in source if line.startswith(start)) for start in starts]
