"""Pictures of digits, made from their bright ink on black: enlarged, coarse, uneven."""

from collections.abc import Callable

import numpy as np
from PIL import Image, ImageOps

Picture = Image.Image
Maker = Callable[[Picture], Picture]


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
