"""Anybody's picture file as the uint8 tensor that a network takes.

Any size, colour mode and orientation of the usual formats; a picture of more pixels than Pillow's
limit is refused before a pixel is decoded.
"""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

Pixels = NDArray[np.floating[Any]]  # [height, width], grey levels 0..255 unless said otherwise
Mask = NDArray[np.bool_]  # [height, width]

STYLES = ("plain", "digit", "garment")
# Pillow reads more, but for EPS and WMF, for instance, it starts other programs.
FORMATS = ["PNG", "JPEG", "MPO", "GIF", "WEBP", "BMP", "DIB", "TIFF", "AVIF", "JPEG2000", "PPM"]
FORMATS += ["TGA", "ICO", "ICNS", "PCX", "QOI", "SGI"]

WORKING_SIZE = 320  # pixels of the longer side at which digits and garments are looked for
FAINT = 10.0  # grey levels: fainter ink does not count in a bounding box
BLANK = 8.0  # grey levels: a drawing of less contrast is blank
BLANK_PHOTO = 32.0  # grey levels: a photograph of less contrast is; uneven light makes up to that
CLEAR = 5.0  # standard deviations of the noise: what stands out by less is noise
DIGIT_BOX = 20 / 28  # MNIST's digits are fitted into 20 × 20 of 28 × 28 pixels
THINNEST = 1.5 / 20  # of the box: a quarter of MNIST's digits have thinner strokes than this


class _Blank(Exception):
    """There is nothing but ground in the picture."""


def read_picture(
    path: str | Path, image_shape: tuple[int, int, int] = (1, 28, 28), style: str = "plain"
) -> Tensor:
    """Reads a picture file as uint8 [c, h, w] = image_shape, where c is 1 (grey) or 3 (RGB).

    An animation gives its first frame; the EXIF orientation is applied.

    style "plain", for pictures in general: what is transparent becomes white; the largest centred
    part of the aspect ratio h : w is kept, and resized with antialiasing. A picture of h × w pixels
    keeps them as they are.

    style "digit", MNIST's recipe, for a figure drawn or photographed, dark on light or light on
    dark, on a transparent, plain or unevenly lit ground that fills the picture: bright ink on
    zeros, cropped, fitted with its aspect ratio into a box of 20/28 of the size, the centre of mass
    at the centre. One step is not MNIST's: thin strokes, of a ball pen for instance, are widened. A
    digit of MNIST, or its negative, comes through as it is. Colours are seen as grey.

    style "garment", Fashion-MNIST's recipe, for one thing on a plain ground, darker or lighter than
    the ground: bright on zeros, cropped, fitted with its aspect ratio into h × w, and centred.

    Raises FileNotFoundError, IsADirectoryError or PermissionError; ValueError for a file that is no
    picture, is damaged, is too large, or (digit, garment) is blank, and for an image_shape or a
    style that does not exist.
    """
    channels, height, width = image_shape
    if channels not in (1, 3) or height < 1 or width < 1:
        raise ValueError(f"image_shape must be (1 or 3, height, width), not {tuple(image_shape)}")
    if style not in STYLES:
        raise ValueError(f"unknown style {style!r}; expected one of: {', '.join(STYLES)}")
    picture = _open(Path(path))
    if style == "plain":
        return _plain(picture, channels, height, width)
    try:
        make = _digit if style == "digit" else _garment
        figure = make(_grey(picture), height, width)
    except _Blank:
        raise ValueError(f"{path}: no {style} found, the picture is blank") from None
    return torch.from_numpy(figure.round().astype(np.uint8)).repeat(channels, 1, 1)


# ------------------------------------------------------------------------ from file to pixels


def _open(path: Path) -> "Picture":
    """The picture upright, in mode L, RGB or RGBA. Raises as read_picture does."""
    from PIL import Image, ImageOps, UnidentifiedImageError

    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not a picture")
    if not path.exists():
        raise FileNotFoundError(f"no such file: {path}")
    if not path.is_file() or path.stat().st_size == 0:
        raise ValueError(f"{path} is not a picture: it is empty or no ordinary file")
    Image.init()
    formats = [name for name in FORMATS if name in Image.OPEN]  # Pillow may be built without some
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path, formats=formats) as picture:  # reads the header only
                if 0 in picture.size:
                    raise ValueError(f"it has {picture.width} × {picture.height} pixels")
                return _eight_bits(ImageOps.exif_transpose(picture))
    except PermissionError:
        raise
    except (Image.DecompressionBombWarning, Image.DecompressionBombError):
        limit = f"{Image.MAX_IMAGE_PIXELS:,}"
        raise ValueError(f"{path} is too large: it has more than {limit} pixels") from None
    except UnidentifiedImageError:
        raise ValueError(f"{path} is not a picture, or not of a known format") from None
    except Exception as error:  # a damaged file makes Pillow's readers raise almost anything
        reason = " ".join(str(error).split())
        raise ValueError(f"{path} is damaged or truncated: {reason}") from None


def _eight_bits(picture: "Picture") -> "Picture":
    """Any of Pillow's modes as L, RGB or RGBA."""
    from PIL import Image

    if picture.mode in ("I", "F") or picture.mode.startswith("I;16"):
        levels = np.nan_to_num(np.asarray(picture).astype(np.float32))
        low, high = float(levels.min()), float(levels.max())
        if picture.mode == "F" and low >= 0 and high <= 1:
            levels *= 255
        elif low >= 0 and high <= 65535:
            levels /= 257
        else:
            levels = (levels - low) * (255 / max(high - low, 1e-6))
        return Image.fromarray(levels.round().astype(np.uint8))
    if picture.mode == "La":
        picture = picture.convert("LA")
    if picture.has_transparency_data:
        return picture.convert("RGBA")
    return picture.convert("L" if picture.mode in ("1", "L") else "RGB")


def _plain(picture: "Picture", channels: int, height: int, width: int) -> Tensor:
    from PIL import Image, ImageOps

    if picture.mode == "RGBA":
        picture = Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture)
    picture = ImageOps.fit(picture.convert("L" if channels == 1 else "RGB"), (width, height))
    pixels = torch.from_numpy(np.array(picture)).view(height, width, channels)
    return pixels.permute(2, 0, 1).contiguous()


def _grey(picture: "Picture") -> Pixels:
    """The picture in grey, reduced to the working size, without transparency.

    What is transparent takes the level of the ground: that of an opaque border, or else the one of
    black and white in front of which the visible part stands out.
    """
    from PIL import Image

    if max(picture.size) > WORKING_SIZE:
        picture = picture.copy()
        picture.thumbnail((WORKING_SIZE, WORKING_SIZE), Image.Resampling.BOX)
    grey = np.array(picture.convert("RGB").convert("L"), dtype=np.float32)
    if picture.mode != "RGBA":
        return grey
    alpha = np.array(picture.getchannel("A"), dtype=np.float32) / 255
    opaque = _border(alpha) > 0.5
    if opaque.mean() > 0.5:
        ground = float(np.median(_border(grey)[opaque]))
    else:
        visible = float((grey * alpha).sum() / max(alpha.sum(), 1e-6))
        ground = 255.0 if visible < 128 else 0.0
    return alpha * grey + (1 - alpha) * ground


# ------------------------------------------------------------------------------------ digits


def _digit(grey: Pixels, height: int, width: int) -> Pixels:
    ink = _drawn_ink(grey)
    if ink is None:
        ink = _photographed_ink(grey)
    ink = _crop(ink, ink > FAINT)
    box = max(1, round(min(height, width) * DIGIT_BOX))
    ink = _fit(_thicken(ink, THINNEST * max(ink.shape)), box, box)
    ink = _at_full_range(ink)
    y, x = np.indices(ink.shape)
    # A coordinate of MNIST's centres of mass lies in [13.5, 14.5), where 14 is half of 28.
    top = int(np.ceil(height / 2 - 0.5 - float((ink * y).sum() / ink.sum())))
    left = int(np.ceil(width / 2 - 0.5 - float((ink * x).sum() / ink.sum())))
    return _place(ink, top, left, height, width)


def _drawn_ink(grey: Pixels) -> Pixels | None:
    """The ink on a ground of one level, with a peak of 255; None if there is no such ground."""
    ground = _drawn_ground(grey)
    if ground is None:
        return None
    difference = grey - ground
    ink = np.maximum(difference * np.sign(difference.sum()), 0)
    if ink.max() < BLANK:
        raise _Blank
    # In a drawing few pixels are nearly ground; around ink that was compressed as JPEG many are.
    faint = (difference != 0) & (np.abs(difference) < FAINT)
    return _at_full_range(ink) if faint.mean() < 0.05 else None


def _photographed_ink(grey: Pixels) -> Pixels:
    """The ink on paper with uneven light, shadows and noise: 0 on paper, 255 on full strokes."""
    small = _reduce(grey, 64)
    window = max(small.shape) // 3 | 1  # wider than a stroke
    # Beyond the border a gradient goes on as it arrives there.
    wide = np.pad(small, window, mode="reflect", reflect_type="odd")
    wide = wide.clip(small.min(), small.max())
    inner = (slice(window, -window),) * 2
    # A median over the window is paper, also in a shadow; the ink is on one side of it.
    median = _sliding(np.median, wide, window, window)[inner]
    dark_ink = float(((small - median) ** 3).sum()) < 0
    if _contrast(small, median, dark_ink).max() < BLANK_PHOTO:
        raise _Blank
    # A morphological opening (for dark ink: closing) removes the ink, which is narrower than the
    # window, and leaves gradients and the edges of shadows where they are.
    first, second = (np.max, np.min) if dark_ink else (np.min, np.max)
    for reduce in (first, second):
        wide = _sliding(reduce, _sliding(reduce, wide, window, 1), 1, window)
    paper = _resize(wide[inner], *grey.shape)
    ink = _contrast(grey, paper, dark_ink)
    # Paper's level and the standard deviation on it, as normal noise would have it; from the lowest
    # fifth, for paper may be as little as that.
    lowest, base = np.quantile(ink, [0.05, 0.2])
    ink, noise = ink - base, 1.25 * float(base - lowest)
    clear = max(BLANK, CLEAR * noise)
    strong = ink[ink > clear]
    if strong.size < 2:
        raise _Blank
    full = float(strong[strong >= _otsu(strong)].mean())  # of strokes, rather than of their edges
    low = max(clear, 0.3 * full)
    ink = np.clip((ink - low) / max(0.9 * full - low, 1), 0, 1) * 255
    return np.where(_figure(ink > 128), ink, 0)


def _contrast(grey: Pixels, ground: Pixels, darker: bool) -> Pixels:
    """How far the figure stands out of its ground on the one side, 0..255, or less than 0."""
    if darker:  # it absorbs a part of the light that falls on it, much or little
        return (ground - grey) * (255 / np.maximum(ground, 32))
    return grey - ground


def _thicken(ink: Pixels, width: float) -> Pixels:
    """Widens strokes that are thinner than width pixels on average to about that."""
    solid = np.pad(ink > 128, 1)
    inner = _sliding(np.min, _sliding(np.min, solid, 3, 1), 1, 3)
    edge = int(solid.sum() - inner.sum())  # both sides of each stroke
    radius = round((width - 2 * int(solid.sum()) / max(edge, 1)) / 2)
    if radius < 1:
        return ink
    size = 2 * radius + 1
    return _sliding(np.max, _sliding(np.max, np.pad(ink, radius), size, 1), 1, size)


def _at_full_range(ink: Pixels) -> Pixels:
    """Scaled to a peak of 255; MNIST's own peaks of 250 and more stay."""
    return ink if ink.max() >= 250 else ink * (255 / ink.max())


def _otsu(values: Pixels) -> float:
    """The value from which on the upper of two groups begins (Otsu's method)."""
    ordered = np.sort(values.astype(np.float64))
    lower = np.arange(1, ordered.size)  # possible sizes of the lower group
    sums = ordered.cumsum()
    gap = (sums[-1] - sums[:-1]) / (ordered.size - lower) - sums[:-1] / lower
    return float(ordered[1 + np.argmax(lower * (ordered.size - lower) * gap**2)])


# ---------------------------------------------------------------------------------- garments


def _garment(grey: Pixels, height: int, width: int) -> Pixels:
    level = _drawn_ground(grey)
    if level is None:
        ground, noise = _photographed_ground(grey)
    else:
        ground, noise = np.full_like(grey, level), 0.0
    figure = np.abs(grey - ground) > max(FAINT, CLEAR * noise)
    around = _figure(figure) if level is None else np.ones_like(figure)
    figure &= around
    if figure.mean() < 0.002:
        raise _Blank
    darker = float((grey - ground)[figure].sum()) < 0
    bright = np.clip(_contrast(grey, ground, darker), 0, 255)
    if bright[figure].max() < (BLANK if level is not None else BLANK_PHOTO):
        raise _Blank
    bright = np.where(around, bright, 0)
    cropped = _crop(bright, figure)
    fitted = _fit(cropped, height, width)
    if fitted is cropped and bright.shape == (height, width):
        return bright  # it was fitted before
    h, w = fitted.shape
    return _place(fitted, (height - h + 1) // 2, (width - w + 1) // 2, height, width)


def _photographed_ground(grey: Pixels) -> tuple[Pixels, float]:
    """A smooth ground that fits the picture's border but for what stands out there; the noise."""
    y, x = np.indices(grey.shape) / max(grey.shape)
    terms = np.stack([np.ones_like(x), x, y, x * x, x * y, y * y], axis=-1)  # [height, width, 6]
    levels = _border(grey)
    points = np.stack([_border(terms[..., i]) for i in range(6)], axis=-1)  # [border, 6]
    off = np.abs(levels - np.median(levels))
    for _ in range(5):
        noise = 1.4826 * float(np.median(off))
        kept = off <= 3 * noise + 1
        weights = np.linalg.lstsq(points[kept], levels[kept], rcond=None)[0]
        off = np.abs(levels - points @ weights)
    return terms @ weights, 1.4826 * float(np.median(off))


# ---------------------------------------------------------------------------- on arrays of pixels


def _border(pixels: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate([pixels[0], pixels[-1], pixels[1:-1, 0], pixels[1:-1, -1]])


def _drawn_ground(grey: Pixels) -> float | None:
    """The one level that most of the border has exactly; None if noise or uneven light is on it."""
    border = _border(grey)
    level = float(np.median(border))
    return level if (border == level).mean() > 0.5 else None


def _crop(pixels: Pixels, figure: Mask) -> Pixels:
    """The bounding box of the figure."""
    rows, columns = np.flatnonzero(figure.any(axis=1)), np.flatnonzero(figure.any(axis=0))
    return pixels[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


def _fit(pixels: Pixels, height: int, width: int) -> Pixels:
    """Resized to be as large as height × width allows, with its aspect ratio kept."""
    from PIL import Image

    h, w = pixels.shape
    ratio = min(height / h, width / w)
    if 1 <= ratio < 1.08:  # a pixel of 20, or two of 28, are not worth the blur
        return pixels
    new_h, new_w = max(1, round(h * ratio)), max(1, round(w * ratio))
    method = Image.Resampling.BOX if ratio < 1 else Image.Resampling.BICUBIC
    return np.clip(_resize(pixels, new_h, new_w, method), 0, 255)


def _place(pixels: Pixels, top: int, left: int, height: int, width: int) -> Pixels:
    """Pixels at (top, left) of height × width zeros, or as near to it as they are all inside."""
    h, w = pixels.shape
    top, left = min(max(top, 0), height - h), min(max(left, 0), width - w)
    return np.pad(pixels, ((top, height - h - top), (left, width - w - left)))


def _resize(pixels: Pixels, height: int, width: int, method: int | None = None) -> Pixels:
    from PIL import Image

    method = Image.Resampling.BILINEAR if method is None else method
    return np.array(
        Image.fromarray(pixels.astype(np.float32)).resize((width, height), Image.Resampling(method))
    )


def _reduce(pixels: Pixels, size: int) -> Pixels:
    """Averaged down to at most size × size."""
    from PIL import Image

    ratio = min(1.0, size / max(pixels.shape))
    height, width = (max(1, round(side * ratio)) for side in pixels.shape)
    return _resize(pixels, height, width, Image.Resampling.BOX)


def _sliding(
    reduce: Callable[..., NDArray[Any]], pixels: NDArray[Any], height: int, width: int
) -> NDArray[Any]:
    """min, max or median of the height × width pixels (odd numbers) around each pixel."""
    padded = np.pad(pixels, ((height // 2, height // 2), (width // 2, width // 2)), mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, (height, width))
    return reduce(windows, axis=(2, 3))


def _figure(mask: Mask) -> Mask:
    """The connected parts that belong to the figure, with a margin.

    Specks go, and so does what reaches the border (the edge of the paper, a finger), unless there
    is nothing else of some size.
    """
    small = _reduce(mask.astype(float), 96) > 0.2
    if not small.any():
        raise _Blank
    numbers = np.where(small, np.arange(1, small.size + 1).reshape(small.shape), 0)
    while True:  # the largest number in a part spreads over all of it
        spread = np.where(small, _sliding(np.max, numbers, 3, 3), 0)
        if np.array_equal(spread, numbers):
            break
        numbers = spread
    parts, sizes = np.unique(numbers[small], return_counts=True)
    inside = np.where(np.isin(parts, _border(numbers)), 0, sizes)
    if inside.max() >= 0.3 * sizes.max():
        sizes = inside
    kept = np.isin(numbers, parts[sizes >= 0.05 * sizes.max()]).astype(float)
    return _resize(_sliding(np.max, kept, 3, 3), *mask.shape) > 0
