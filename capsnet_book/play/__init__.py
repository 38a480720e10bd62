"""What a reader can touch: widgets in the page, ES modules beside this file, and their data.

A widget stands where a picture does: in a cell with the tag ``play-NAME`` or a figure of class
``play-NAME``. ``play.js`` puts ``NAME.js`` into the picture's box once it is in sight; without
scripts, and in print, the picture stays. ``capsules.js`` is the arithmetic, tested against
``capsnet``; ``kit.js`` is what all widgets are made of.
"""

import base64
import inspect
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from capsnet.figures.style import Figure

FOLDER = Path(__file__).parent
MARK = '<metadata class="play">', "</metadata>"


def pack(data: Mapping[str, Any]) -> str:
    """Numbers and tensors as JSON, which ``unpack`` of ``kit.js`` reads."""

    def packed(value: Any) -> Any:
        if not isinstance(value, Tensor):
            raise TypeError(f"expected numbers, text, lists or tensors, got {type(value).__name__}")
        value = value.detach().cpu().contiguous()
        kind = str(value.dtype).removeprefix("torch.")
        if kind not in ("uint8", "int8", "float16", "float32"):
            raise TypeError(f"expected uint8, int8, float16 or float32, got {kind}")
        raw = value.reshape(-1).view(torch.uint8).numpy().tobytes()
        text = base64.b64encode(raw).decode("ascii")
        return {"dtype": kind, "shape": list(value.shape), "base64": text}

    return json.dumps(data, default=packed, separators=(",", ":"))


class Playable:
    """A figure that carries what its widget needs; where nothing runs, it is the figure.

    Args:
        figure: the picture.
        **data: numbers, text, lists of them, or tensors; the widget's ``mount`` gets them.
    """

    def __init__(self, figure: Figure, **data: Any) -> None:
        self.figure = figure
        self.data = data

    def _repr_svg_(self) -> str:
        svg = self.figure._repr_svg_()
        return svg.replace("</svg>", pack(self.data).join(MARK) + "</svg>")


def lines(function: Callable[..., Any], *starts: str) -> list[str]:
    """The lines of a function's source that begin so, without their comments."""
    source = [line.split("  #")[0].strip() for line in inspect.getsource(function).splitlines()]
    return [next(line for line in source if line.startswith(start)) for start in starts]
