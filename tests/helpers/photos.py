"""Pictures of digits, made from their bright ink on black: enlarged, blurred, photographed."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter, ImageOps

Picture = Image.Image
Maker = Callable[[Picture], Picture]

# (paper, ink, fall of light, shadow, noise): levels of 255, but for the shadow, a part of the light
LIGHTS = {
    "even light": (200, 50, 0, 0.0, 2),
    "strong fall of light": (200, 50, 120, 0.0, 4),
    "the edge of a shadow": (200, 50, 40, 0.4, 4),
    "pencil": (200, 120, 40, 0.0, 4),
    "noise": (200, 50, 60, 0.0, 15),
    "white board with glare": (245, 60, 150, 0.0, 3),
    "overexposed": (300, 60, 150, 0.0, 3),
    "chalk on a board": (60, 200, 25, 0.0, 4),
}


def photographed(ink: NDArray[Any], light: str) -> Picture:
    """Ink (0..1, smaller than 300 × 400) near the middle of a sheet, in light that is uneven."""
    paper, level, fall, shadow, noise = LIGHTS[light]
    size = height, width = 300, 400
    y, x = np.mgrid[0:height, 0:width] / width
    strokes = np.zeros(size)
    top, left = (height - ink.shape[0]) // 2, (width - ink.shape[1]) // 3
    strokes[top : top + ink.shape[0], left : left + ink.shape[1]] = ink
    bright = 1 + fall / paper * (0.4 - 0.6 * x - 0.5 * y)
    bright *= 1 - shadow / (1 + np.exp(-(x + y - 0.6) * 60))
    levels = (paper + (level - paper) * strokes) * bright
    levels += np.random.default_rng(0).normal(0, noise, size)
    picture = Image.fromarray(levels.clip(0, 255).astype(np.uint8))
    return picture.convert("RGB").filter(ImageFilter.GaussianBlur(1))


def in_light(light: str) -> Maker:
    """The digit as a pen draws it, large and with hard edges, photographed."""

    def make(ink: Picture) -> Picture:
        large = np.asarray(enlarged(196)(ink)) / 255
        return photographed(((large - 0.35) / 0.3).clip(0, 1), light)

    return make


def enlarged(side: int) -> Maker:
    return lambda ink: ink.resize((side, side), Image.Resampling.BICUBIC)


def on_nothing(ink: Picture, colour: tuple[int, int, int] = (0, 0, 0)) -> Picture:
    picture = Image.new("RGBA", ink.size, (*colour, 0))
    picture.putalpha(ink)
    return picture


def coarse(ink: Picture) -> Picture:
    """By way of 8 × 8 pixels, cropped to MNIST's box, where ink touches the border."""
    small = ink.crop((4, 4, 24, 24)).resize((8, 8), Image.Resampling.BOX)
    return enlarged(112)(small)


def uneven(ink: Picture) -> Picture:
    """The right half has a third of the strength, as of a pen that runs dry."""
    strength = np.interp(np.arange(140), (56, 84), (1, 0.33))
    return Image.fromarray((np.asarray(enlarged(140)(ink)) * strength).astype("u1"))


def inverted(make: Maker) -> Maker:
    return lambda ink: ImageOps.invert(make(ink))
