"""Colours keep apart for every eye, and stand out from every page."""

import itertools

import matplotlib as mpl
import numpy as np
import pytest

from capsnet_book.figures.macros import MACROS
from capsnet_book.figures.pairs import FIRST, SECOND
from capsnet_lab.figures import style

# Linear sRGB as seen with full protanopia, deuteranopia and tritanopia (Machado, Oliveira and
# Fernandes 2009, severity 1).
VISION = {
    "typical": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)


def linear(colour):
    value = np.array(mpl.colors.to_rgb(colour))
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    xyz = XYZ @ np.clip(rgb, 0, 1) / XYZ.sum(axis=1)
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def nearest(colours, vision):
    """The smallest CIE 1976 ΔE of any two colours; 2.3 is just noticeable."""
    seen = [lab(np.array(VISION[vision]) @ linear(colour)) for colour in colours]
    return min(np.linalg.norm(one - other) for one, other in itertools.combinations(seen, 2))


def contrast(one, other):
    bright, dark = sorted(((XYZ @ linear(colour))[1] for colour in (one, other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


LIGHT = {name: quantity.colour for name, quantity in style.QUANTITIES.items()}
DARK = {name: quantity.dark for name, quantity in style.QUANTITIES.items()}
OF_TEXT = [style.FAINT, style.MISTAKE], [style.FAINT_DARK, style.MISTAKE_DARK]


@pytest.mark.parametrize("vision", VISION)
def test_colours_keep_apart(vision) -> None:
    assert nearest(LIGHT.values(), vision) > 25
    assert nearest(DARK.values(), vision) > 25
    # Two digits in one image, against none and both: large areas that mix.
    assert np.allclose(np.add(FIRST, SECOND), 1)
    assert nearest([FIRST, SECOND, (0, 0, 0), (1, 1, 1)], vision) > 50


# Page and code, light and dark: what the theme has, and book.css.
@pytest.mark.parametrize(
    ("colours", "ground"),
    [(LIGHT, "#FFFFFF"), (LIGHT, "#F3F4F5"), (DARK, "#121212"), (DARK, "#1C2128")],
)
def test_a_quantity_is_legible_as_text(colours, ground) -> None:
    for name, colour in colours.items():
        assert contrast(colour, ground) >= 4.5, name


def test_text_is_legible_on_a_figure_and_on_a_page() -> None:
    for colours, ground in zip(OF_TEXT, (style.PAPER, "#121212"), strict=True):
        assert all(contrast(colour, ground) >= 4.5 for colour in colours)
    assert contrast(style.INK, style.PAPER) >= 4.5


def test_macros_wear_their_quantity_s_colour() -> None:
    for name, quantity in style.QUANTITIES.items():
        macro = MACROS["q" + name.replace("_", "")]
        assert macro == f"{{\\color{{{quantity.colour}}}{{{quantity.latex}}}}}"
    assert list(MACROS) == ["qu", "quhat", "qb", "qc", "qs", "qv"]
