"""Anybody's picture file as the uint8 tensor that a network takes."""

import contextlib
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError
from scipy import ndimage
from scipy.cluster.vq import kmeans
from torch import Tensor

from capsnet.text import bar_interval, reason

Picture = Image.Image
Pixels = NDArray[np.floating[Any]]  # [height, width], grey levels 0..255 unless said otherwise
Mask = NDArray[np.bool_]  # [height, width]

PREPARATIONS = ("digit", "figure", "picture")  # how a picture becomes an image
# Pillow reads more, but for EPS and WMF, for instance, it starts other programs.
FORMATS = ["PNG", "JPEG", "MPO", "GIF", "WEBP", "BMP", "DIB", "TIFF", "AVIF", "JPEG2000", "PPM"]
FORMATS += ["TGA", "ICO", "ICNS", "PCX", "QOI", "SGI"]
NAMED = 10  # unreadable pictures

WORKING_SIZE = 320  # pixels of the longer side at which digits are looked for
FAINT = 10.0  # grey levels: fainter ink does not count in a bounding box
BLANK = 8.0  # grey levels: a drawing of less contrast is blank
BLANK_PHOTO = 32.0  # grey levels: a photograph of less contrast is; uneven light makes up to that
CLEAR = 5.0  # standard deviations of the noise: what stands out by less is noise
DIGIT_BOX = 20 / 28  # MNIST's digits are fitted into 20 × 20 of 28 × 28 pixels
THINNEST = 1.5 / 20  # of the box: a quarter of MNIST's digits have thinner strokes than this
SOFT = 0.8 * 255  # ink that nowhere rises by more within one pixel of the box has soft edges
SKIRT = 0.25  # of the strongest ink within a stroke: what is less is a soft edge
PHONES = {".heic", ".heif"}  # a phone's, which Pillow does not read: to be refused, not left out
TOUCHING = np.ones((3, 3), dtype=bool)  # a pixel and its eight neighbours


class Blank(ValueError):
    """There is nothing but ground in the picture."""


def pictures_in(folder: Path) -> list[Path]:
    """The files at any depth that are not hidden, nor named like what is never read as a picture.

    Raises:
        ValueError: there is none.
    """
    # Of formats that are read, and no others: a .psd is mostly a working file beside its export.
    known = Image.registered_extensions().items()
    endings = {ending for ending, of in known if of in FORMATS} | {"", *PHONES}
    found = []
    for path in folder.iterdir():
        if path.suffix.lower() in endings and not path.name.startswith(".") and path.is_file():
            found.append(path)
    for inner in folders_in(folder):
        with contextlib.suppress(ValueError):
            found += pictures_in(inner)
    if not found:
        raise ValueError(f"no pictures in {folder}")
    return sorted(found)


def folders_in(folder: Path) -> list[Path]:
    """The folders in a folder, also by links, but no hidden one and none that holds the folder."""
    whole, found = folder.resolve(), []
    for path in folder.iterdir():
        named = not path.name.startswith(".") and path.name != "__MACOSX"  # a Mac's archives' own
        if named and path.is_dir() and not whole.is_relative_to(path.resolve()):
            found.append(path)
    return sorted(found)


def read_pictures(
    paths: Sequence[Path],
    image_shape: tuple[int, int, int],
    preparation: str = "picture",
    progress: bool = False,
) -> tuple[Tensor, dict[int, ValueError | OSError]]:
    """Read many pictures as :func:`read_picture` does, in parallel, with a bar if asked for.

    Returns:
        uint8 [n, c, h, w], and the errors of those that cannot be read, by index; they are zeros.
    """
    from tqdm import tqdm

    images = torch.zeros(len(paths), *image_shape, dtype=torch.uint8)

    def read(i: int) -> ValueError | OSError | None:
        try:
            images[i] = read_picture(paths[i], image_shape, preparation)
        except (ValueError, OSError) as error:
            error.__traceback__ = error.__context__ = None  # their frames hold the picture
            return error
        return None

    pool = ThreadPoolExecutor()
    try:
        found = tqdm(  # which shows nothing of what takes less than a second
            pool.map(read, range(len(paths))), "reading", len(paths), unit=" pictures", delay=1,
            leave=False, disable=not progress or sys.stderr is None, mininterval=bar_interval(),
        )  # fmt: skip
        return images, {i: error for i, error in enumerate(found) if error}
    finally:
        pool.shutdown(cancel_futures=True)


def describe_unreadable(names: Sequence[str], first: object, total: int) -> str:
    """How many pictures cannot be read, ten of their names, and why the first cannot."""
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    count = f"{len(names):,} of {total:,} pictures cannot be read"
    return f"{count}: {', '.join(names[:NAMED])}{more}; the first: {first}"


def read_picture(
    path: str | Path, image_shape: tuple[int, int, int] = (1, 28, 28), preparation: str = "picture"
) -> Tensor:
    """Read a picture file, of any size, colour mode and orientation, as an image of a given shape.

    An animation gives its first frame. There are three preparations:

    "picture", for pictures in general: the largest centred part of the aspect ratio h : w, resized
    with antialiasing, on white. A picture of h × w pixels keeps them as they are.

    "figure", MNIST's recipe, for a figure drawn or photographed, dark on light or light on dark, on
    a transparent, plain or unevenly lit ground that fills the picture: bright ink on zeros, fitted
    into a box of 20/28 of the size, the centre of mass at the centre. Two steps are not MNIST's:
    thin strokes are widened, and soft ones, of a picture enlarged from few pixels, lose the faint
    part of their edges. A digit of MNIST, or its negative, comes through as it is.

    Returns:
        uint8 [c, h, w] = image_shape, where c is 1 (grey) or 3 (RGB).

    Raises:
        FileNotFoundError, PermissionError: the file cannot be read.
        Blank: a ValueError; there is no digit.
        ValueError: the file is no picture, is damaged or too large for Pillow; or there is no such
            image_shape or preparation.
    """
    check_shape(image_shape)
    check_preparation(preparation)
    channels, height, width = image_shape
    picture = open_picture(Path(path))
    if preparation == "picture":
        return plain(picture, channels, height, width)
    try:
        ink = digit(to_grey(picture), height, width)
    except Blank:
        raise Blank(f"{path}: no digit found, the picture is blank") from None
    return torch.from_numpy(ink.round().astype(np.uint8)).repeat(channels, 1, 1)


def check_shape(image_shape: tuple[int, int, int]) -> None:
    """Refuse a shape that no picture is read in."""
    channels, height, width = image_shape
    if channels not in (1, 3) or height < 1 or width < 1:
        raise ValueError(f"image_shape must be (1 or 3, height, width), got {tuple(image_shape)}")


def check_preparation(preparation: str) -> None:
    """Refuse what is no preparation."""
    if preparation not in PREPARATIONS:
        known = ", ".join(PREPARATIONS)
        raise ValueError(f"unknown preparation {preparation!r}; expected one of: {known}")


def open_picture(path: Path) -> Picture:
    """The picture upright, in mode L, RGB or RGBA. Raises as :func:`read_picture` does."""
    if not path.exists():
        raise FileNotFoundError(f"no such file: {path}")
    if not path.is_file() or path.stat().st_size == 0:
        raise ValueError(f"{path} is not a picture: it is empty or no ordinary file")
    Image.init()
    formats = [name for name in FORMATS if name in Image.OPEN]  # Pillow may be built without some
    try:
        with Image.open(path, formats=formats) as picture:  # reads the header only
            if 0 in picture.size:
                raise ValueError("it has no pixels")
            return eight_bits(ImageOps.exif_transpose(picture))
    except PermissionError:
        raise
    except Image.DecompressionBombError:
        raise ValueError(f"{path} is too large for Pillow") from None
    except UnidentifiedImageError:
        export = ", which a phone exports as JPEG" if path.suffix.lower() in PHONES else ""
        raise ValueError(f"{path} is not a picture, or not of a known format{export}") from None
    except Exception as error:  # a damaged file makes Pillow's readers raise almost anything
        raise ValueError(f"{path} is damaged or truncated: {reason(error)}") from None


def eight_bits(picture: Picture) -> Picture:
    """Any of Pillow's modes as L, RGB or RGBA."""
    if picture.mode in ("I", "F") or picture.mode.startswith("I;16"):
        levels = np.nan_to_num(np.asarray(picture).astype(np.float32))
        low, high = float(levels.min()), float(levels.max())
        if low >= 0 and high <= 65535:
            # A file of 16 bits may come in mode I too, and a dark one stays dark.
            tops = (1, 255, 65535) if picture.mode == "F" else (65535,)
            low, high = 0, next(top for top in tops if high <= top)
        scaled = np.interp(levels, (low, high), (0, 255))
        return Image.fromarray(scaled.round().astype(np.uint8))
    if picture.mode == "La":
        picture = picture.convert("LA")
    if picture.has_transparency_data:
        return picture.convert("RGBA")
    return picture.convert("L" if picture.mode in ("1", "L") else "RGB")


def plain(picture: Picture, channels: int, height: int, width: int) -> Tensor:
    """The largest centred part of the picture, on white, uint8 [channels, height, width]."""
    if picture.mode == "RGBA":
        picture = Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture)
    picture = ImageOps.fit(picture.convert("L" if channels == 1 else "RGB"), (width, height))
    pixels = torch.from_numpy(np.array(picture)).view(height, width, channels)
    return pixels.permute(2, 0, 1).contiguous()


def to_grey(picture: Picture) -> Pixels:
    """The picture in grey, reduced to the working size, without transparency."""
    picture.thumbnail((WORKING_SIZE, WORKING_SIZE), Image.Resampling.BOX)
    grey = np.array(picture.convert("RGB").convert("L"), dtype=np.float32)
    if picture.mode != "RGBA":
        return grey
    alpha = np.array(picture.getchannel("A"), dtype=np.float32) / 255
    opaque = border(alpha) > 0.5
    if opaque.mean() > 0.5:
        ground = float(np.median(border(grey)[opaque]))
    else:  # black or white, whichever the visible part stands out from
        ground = 255.0 if (grey * alpha).sum() < 128 * max(alpha.sum(), 1e-6) else 0.0
    return alpha * grey + (1 - alpha) * ground


def digit(grey: Pixels, height: int, width: int) -> Pixels:
    """MNIST's recipe: the ink in a box, its centre of mass at the centre."""
    if (ink := drawn_ink(grey)) is None:
        ink = photographed_ink(grey)
    ink, box = cropped(ink), max(1, round(min(height, width) * DIGIT_BOX))
    pixel = max(ink.shape) // box + 1  # spans one of the box
    if max(ink.shape) > box and ndimage.morphological_gradient(ink, pixel).max() < SOFT:
        # Blurred, or enlarged from few pixels: with all of its soft edge a stroke is too broad.
        strongest = ndimage.maximum_filter(ink, max(ink.shape) // 16 * 2 + 1)
        ink = cropped(at_full_range(np.maximum(ink - SKIRT * strongest, 0)))
    solid = ink > 128
    edge = int(solid.sum() - ndimage.binary_erosion(solid, TOUCHING).sum())  # of both sides
    thickness = 2 * int(solid.sum()) / max(edge, 1)
    radius = round((THINNEST * max(ink.shape) - thickness) / 2)
    if radius >= 1:  # a pen thinner than MNIST's
        ink = ndimage.maximum_filter(np.pad(ink, radius), 2 * radius + 1)
    ink = at_full_range(fit_into_box(ink, box))
    y, x = ndimage.center_of_mass(ink)
    # A coordinate of MNIST's centres of mass lies in [13.5, 14.5), where 14 is half of 28.
    top, left = int(np.ceil(height / 2 - 0.5 - y)), int(np.ceil(width / 2 - 0.5 - x))
    return place(ink, top, left, height, width)


def cropped(ink: Pixels) -> Pixels:
    return ink[ndimage.find_objects((ink > FAINT).astype(int))[0]]


def drawn_ink(grey: Pixels) -> Pixels | None:
    """The ink on a ground of one level, with a peak of 255; None if there is no such ground."""
    around = border(grey)
    ground = float(np.median(around))
    if (around == ground).mean() <= 0.5:  # noise or uneven light is on it
        return None
    difference = grey - ground
    ink = np.maximum(difference * np.sign(difference.sum()), 0)
    if ink.max() < BLANK:
        raise Blank
    # Soft ink fades near to strong ink. The light of a photograph fades along the border, also
    # where none is near, and is the ground only where it is too bright for the camera.
    nearby = ndimage.maximum_filter(np.abs(difference), max(grey.shape) // 8 * 2 + 1)
    fading = (difference != 0) & (nearby < 0.2 * ink.max())
    return at_full_range(ink) if border(fading).mean() < 0.05 else None


def photographed_ink(grey: Pixels) -> Pixels:
    """The ink on paper with uneven light, shadows and noise: 0 on paper, 255 on full strokes."""
    small = scaled(grey, min(1, 64 / max(grey.shape)))
    half = max(1, max(small.shape) // 6)
    window = 2 * half + 1  # wider than a stroke
    # Beyond the border a gradient goes on as it arrives there.
    wide = np.pad(small, 2 * half, mode="reflect", reflect_type="odd")
    wide = wide.clip(small.min(), small.max())
    inner = (slice(2 * half, -2 * half),) * 2
    # A median over the window is paper, also in a shadow; the ink is on one side of it.
    median = ndimage.median_filter(wide, window)[inner]
    dark_ink = float(((small - median) ** 3).sum()) < 0
    if contrast(small, median, dark_ink).max() < BLANK_PHOTO:
        raise Blank
    # A morphological opening (for dark ink: closing) removes the ink, which is narrower than the
    # window, and leaves gradients and the edges of shadows where they are.
    without_ink = ndimage.grey_closing if dark_ink else ndimage.grey_opening
    paper = resize(without_ink(wide, (window, window))[inner], *grey.shape)
    ink = contrast(grey, paper, dark_ink)
    # Paper's level and the standard deviation on it, from the lowest fifth, as for normal noise.
    lowest, base = np.quantile(ink, [0.05, 0.2])
    ink, noise = ink - base, 1.25 * float(base - lowest)
    clear = max(BLANK, CLEAR * noise)
    strong = ink[ink > clear]
    if strong.size < 2:
        raise Blank
    centres, _ = kmeans(strong, np.array([strong.min(), strong.max()]))
    full = float(centres.max())  # of strokes, rather than of their edges
    low = max(clear, 0.3 * full)
    ink = np.clip((ink - low) / max(0.9 * full - low, 1), 0, 1) * 255
    return np.where(figure_of(ink > 128), ink, 0)


def contrast(grey: Pixels, ground: Pixels, darker: bool) -> Pixels:
    """How far the figure stands out of its ground on the one side, 0..255, or less than 0."""
    if darker:  # it absorbs a part of the light that falls on it, much or little
        return (ground - grey) * (255 / np.maximum(ground, 32))
    return grey - ground


def at_full_range(ink: Pixels) -> Pixels:
    """Scaled to a peak of 255; MNIST's own peaks of 250 and more stay."""
    return ink if ink.max() >= 250 else ink * (255 / ink.max())


def figure_of(mask: Mask) -> Mask:
    """The connected parts that belong to the figure, with a margin."""
    small = scaled(mask.astype(float), min(1, 96 / max(mask.shape)))
    parts, _ = ndimage.label(small > 0.2, TOUCHING)
    sizes = np.bincount(parts.flat)  # part 0 is what is no part
    sizes[0] = 0
    if not sizes.any():
        raise Blank
    inside = sizes.copy()  # without what reaches the border: the edge of the paper, a finger
    inside[border(parts)] = 0
    if inside.max() >= 0.3 * sizes.max():
        sizes = inside
    kept = ndimage.binary_dilation((sizes >= 0.05 * sizes.max())[parts], TOUCHING)
    return resize(kept.astype(float), *mask.shape) > 0


def border(pixels: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate([pixels[0], pixels[-1], pixels[1:-1, 0], pixels[1:-1, -1]])


def fit_into_box(pixels: Pixels, side: int) -> Pixels:
    """Resized so that the longer side has so many pixels, with the aspect ratio kept."""
    ratio = side / max(pixels.shape)
    return pixels if 1 <= ratio < 1.08 else scaled(pixels, ratio)  # 1 of 20 is not worth the blur


def scaled(pixels: Pixels, ratio: float) -> Pixels:
    """Averaged down, or interpolated up."""
    method = Image.Resampling.BOX if ratio < 1 else Image.Resampling.BICUBIC
    height, width = (max(1, round(side * ratio)) for side in pixels.shape)
    return np.clip(resize(pixels, height, width, method), 0, 255)


def resize(
    pixels: Pixels, height: int, width: int, method: Image.Resampling = Image.Resampling.BILINEAR
) -> Pixels:
    return np.array(Image.fromarray(pixels.astype(np.float32)).resize((width, height), method))


def place(pixels: Pixels, top: int, left: int, height: int, width: int) -> Pixels:
    """Pixels at (top, left) of height × width zeros, or as near to it as they are all inside."""
    h, w = pixels.shape
    top, left = min(max(top, 0), height - h), min(max(left, 0), width - w)
    return np.pad(pixels, ((top, height - h - top), (left, width - w - left)))
