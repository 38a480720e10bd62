"""Photographs of handwriting in uneven light, made from a picture of its ink."""

import numpy as np
from PIL import Image, ImageFilter

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


def photograph(ink: Image.Image, light: str) -> Image.Image:
    """Bright ink on black as a pen draws it, large, with hard edges, on a sheet in uneven light."""
    paper, level, fall, shadow, noise = LIGHTS[light]
    large = ink.resize((196, 196), Image.Resampling.BICUBIC)
    y, x = np.mgrid[0:300, 0:400] / 400
    strokes = np.zeros((300, 400))
    strokes[52:248, 68:264] = ((np.asarray(large) / 255 - 0.35) / 0.3).clip(0, 1)
    bright = 1 + fall / paper * (0.4 - 0.6 * x - 0.5 * y)
    bright *= 1 - shadow / (1 + np.exp(-(x + y - 0.6) * 60))
    levels = (paper + (level - paper) * strokes) * bright
    levels += np.random.default_rng(0).normal(0, noise, (300, 400))
    picture = Image.fromarray(levels.clip(0, 255).astype(np.uint8))
    return picture.convert("RGB").filter(ImageFilter.GaussianBlur(1))
