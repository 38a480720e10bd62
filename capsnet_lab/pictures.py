"""Anybody's picture file as the uint8 tensor that a network takes."""

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
Box = tuple[slice, slice]  # a place in a picture: rows, columns

PREPARATIONS = ("digit", "figure", "picture")  # how a picture becomes an image
# Pillow reads more, but for EPS and WMF, for instance, it starts other programs.
FORMATS = ["PNG", "JPEG", "MPO", "GIF", "WEBP", "BMP", "DIB", "TIFF", "AVIF", "JPEG2000", "PPM"]
FORMATS += ["TGA", "ICO", "ICNS", "PCX", "QOI", "SGI"]

WORKING_SIZE = 320  # pixels of the longer side at which digits are looked for
FAINT_INK = 10.0  # grey levels: fainter ink does not count in a bounding box
MIN_CONTRAST = 8.0  # grey levels: a drawing of less contrast is blank
MIN_PHOTO_CONTRAST = 32.0  # grey levels: a photograph of less is blank; uneven light makes so much
NOISE_FACTOR = 5.0  # standard deviations of the noise: what stands out by less is noise
DIGIT_BOX = 20 / 28  # MNIST's digits are fitted into 20 × 20 of 28 × 28 pixels
MIN_STROKE = 1.5 / 20  # of the box: a quarter of MNIST's digits have thinner strokes than this
SHARP_RISE = 0.8 * 255  # ink that nowhere rises by more within one pixel of the box has soft edges
SOFT_EDGE = 0.25  # of the strongest ink within a stroke: what is less is a soft edge
PHONE_SUFFIXES = {".heic", ".heif"}  # which Pillow does not read: to be refused, not left out
MAX_COMPONENTS = 40  # of the ink that are looked at, the largest first
LARGE_SIDE = 0.4  # of the picture's side: a frame, a sheet and a line are at least as long
MAX_LINE_WIDTH = 0.15  # of its length: a line is no broader
MIN_LINE_LENGTH = 0.8  # of the picture's side: a thin line of this length is taken out of the ink
MIN_RECTANGLE_FILL = 0.84  # of its bounding box that a sheet or a card fills
MAX_TILT = 0.08  # of a sheet's side: this far inside the corners of its box there must be sheet
SIMILAR_SIZE = 0.55  # of the longest component: a longer one is another figure
MAX_FLOATING_GAP = 0.15  # of a figure's height: the bar of a five may float so far above it
# Of the largest component at the border: if no other has this area, that one is the figure.
MIN_INNER_AREA = 0.3
MAX_SPECK_AREA = 0.1  # of the largest component's: what is smaller belongs to no figure
EIGHT_NEIGHBOURS = np.ones((3, 3), dtype=bool)  # a pixel and its eight neighbours


class RefusedPicture(ValueError):
    """The picture holds no figure, or several; ``ink`` is what was found."""

    def __init__(self, answer: str, message: str, ink: Pixels | None = None) -> None:
        super().__init__(message)
        self.answer, self.ink = answer, ink


class BlankPicture(RefusedPicture):
    """There is nothing but ground in the picture."""

    def __init__(self) -> None:
        super().__init__("blank", "the picture is blank")


def pictures_in(folder: Path) -> list[Path]:
    """The pictures in a folder, at any depth: no hidden files, and only endings that pictures have.

    Raise ValueError if there is none.
    """
    # Of formats that are read, and no others: a .psd is mostly a working file beside its export.
    formats = Image.registered_extensions().items()
    endings = {ending for ending, name in formats if name in FORMATS} | {"", *PHONE_SUFFIXES}
    files = []
    for path in sorted(folder.rglob("*")):
        hidden = any(is_hidden(part) for part in path.relative_to(folder).parts)
        if path.suffix.lower() in endings and not hidden and path.is_file():
            files.append(path)
    if not files:
        raise ValueError(f"no pictures in {folder}")
    return files


def folders_in(folder: Path) -> list[Path]:
    """The folders in a folder, links too, but none that is hidden."""
    return sorted(path for path in folder.iterdir() if path.is_dir() and not is_hidden(path.name))


def is_hidden(name: str) -> bool:
    return name.startswith(".") or name == "__MACOSX"  # a Mac's archives' own


def read_pictures(
    paths: Sequence[Path],
    image_shape: tuple[int, int, int],
    preparation: str = "picture",
    progress: bool = False,
) -> tuple[Tensor, dict[int, ValueError | OSError]]:
    """Read many pictures as :func:`read_picture` does, in parallel, with a bar if asked for.

    Returns:
        uint8 [n, c, h, w], and the errors of those that cannot be read, by index. These are zeros,
        or all that was found where it is not one figure.
    """
    from tqdm import tqdm

    images = torch.zeros(len(paths), *image_shape, dtype=torch.uint8)

    def read(i: int) -> ValueError | OSError | None:
        try:
            images[i] = read_picture(paths[i], image_shape, preparation)
        except (ValueError, OSError) as error:
            if isinstance(error, RefusedPicture) and error.ink is not None:
                pixels = resize(error.ink, *image_shape[1:], Image.Resampling.BOX)
                images[i] = torch.from_numpy(pixels)
            error.__traceback__ = error.__context__ = None  # their frames hold the picture
            return error
        return None

    pool = ThreadPoolExecutor()
    try:
        errors = tqdm(  # which shows nothing of what takes less than a second
            pool.map(read, range(len(paths))), "reading", len(paths), unit=" pictures", delay=1,
            leave=False, disable=not progress or sys.stderr is None, mininterval=bar_interval(),
        )  # fmt: skip
        return images, {i: error for i, error in enumerate(errors) if error}
    finally:
        pool.shutdown(cancel_futures=True)


def describe_unreadable(names: Sequence[str], first: object, total: int) -> str:
    """How many pictures cannot be read, which these are, and why the first cannot."""
    count = f"{len(names):,} of {total:,} pictures cannot be read"
    return f"{count}: {', '.join(names)}; the first: {first}"


def read_picture(
    path: str | Path, image_shape: tuple[int, int, int] = (1, 28, 28), preparation: str = "picture"
) -> Tensor:
    """Read a picture file, of any size, colour mode and orientation, as an image of a given shape.

    There are three preparations:

    "picture", for pictures in general: the largest centred part of the aspect ratio h : w, resized
    with antialiasing, on white. A picture of h × w pixels keeps them as they are.

    "figure", MNIST's recipe, for a figure drawn or photographed, dark on light or light on dark, on
    a transparent, plain or unevenly lit ground that fills the picture: bright ink on zeros, fitted
    into a box of 20/28 of the size, the centre of mass at the centre. Two steps are not MNIST's:
    thin strokes are widened, and soft ones, of a picture enlarged from few pixels, lose the faint
    part of their edges. A digit of MNIST, or its negative, comes through as it is.

    "digit", the same for one digit: several figures are refused.

    Returns:
        uint8 [c, h, w] = image_shape, where c is 1 (grey) or 3 (RGB).

    Raises:
        FileNotFoundError, PermissionError: the file cannot be read.
        RefusedPicture: a ValueError; there is nothing in it, or no single digit.
        ValueError: the file is no picture, is damaged or too large for Pillow; or there is no such
            image_shape or preparation.
    """
    if preparation not in PREPARATIONS:
        names = ", ".join(PREPARATIONS)
        raise ValueError(f"unknown preparation {preparation!r}; expected one of: {names}")
    channels, height, width = image_shape
    if channels not in (1, 3) or height < 1 or width < 1:
        raise ValueError(f"image_shape must be (1 or 3, height, width), got {tuple(image_shape)}")
    picture = open_picture(Path(path))
    if preparation == "picture":
        return crop_and_resize(picture, channels, height, width)
    try:
        ink = centre_digit(to_grey(picture), height, width, single=preparation == "digit")
    except RefusedPicture as refused:
        refused.args = (f"{path}: {refused}",)
        raise
    return torch.from_numpy(ink.round().astype(np.uint8)).repeat(channels, 1, 1)


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
        most = 2 * (Image.MAX_IMAGE_PIXELS or 0) / 1e6  # Pillow warns of half as many
        text = f"is too large, more than {most:.0f} million pixels: export it smaller"
        raise ValueError(f"{path} {text}") from None
    except UnidentifiedImageError:
        if path.suffix.lower() in PHONE_SUFFIXES:
            text = "is a phone's HEIC, which is not read here: export it as JPEG"
        else:
            text = "is not a picture, or not of a known format"
        raise ValueError(f"{path} {text}") from None
    except Exception as error:  # a damaged file makes Pillow's readers raise almost anything
        raise ValueError(f"{path} is damaged or truncated: {reason(error)}") from None


def eight_bits(picture: Picture) -> Picture:
    """Any of Pillow's modes as L, RGB or RGBA."""
    if picture.mode in ("I", "F") or picture.mode.startswith("I;16"):
        levels = np.asarray(picture).astype(np.float64)
        finite = levels[np.isfinite(levels)]
        low, high = min(0.0, finite.min()), finite.max()
        if picture.mode != "F":  # white is the top of the fewest bits that hold all levels
            high = next((top for top in (255, 1023, 4095, 65535) if high <= top), high)
        levels = np.nan_to_num(levels, nan=low, posinf=high, neginf=low)
        scaled = np.interp(levels, (low, high), (0, 255))
        return Image.fromarray(scaled.round().astype(np.uint8))
    if picture.has_transparency_data:
        return picture.convert("RGBA")
    return picture.convert("L" if picture.mode in ("1", "L") else "RGB")


def crop_and_resize(picture: Picture, channels: int, height: int, width: int) -> Tensor:
    """The largest centred part of the picture, on white, uint8 [channels, height, width]."""
    if picture.mode == "RGBA":
        picture = Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture)
    picture = ImageOps.fit(picture.convert("L" if channels == 1 else "RGB"), (width, height))
    pixels = torch.from_numpy(np.array(picture)).view(height, width, channels)
    return pixels.permute(2, 0, 1).contiguous()


def to_grey(picture: Picture) -> Pixels:
    """The picture at the working size, without transparency, as levels in which ink stands out."""
    picture.thumbnail((WORKING_SIZE, WORKING_SIZE), Image.Resampling.BOX)
    opaque = picture.convert("RGB")
    colours = np.array(opaque, dtype=np.float32)
    planes = np.dstack([np.array(opaque.convert("L"), dtype=np.float32), colours])
    if picture.mode == "RGBA":
        alpha = np.array(picture.getchannel("A"), dtype=np.float32)[..., None] / 255
        visible = alpha[..., 0] > 0.9
        if visible.any() and np.ptp(planes[visible, 0]) > MIN_PHOTO_CONTRAST:
            # A card or a window has a ground of its own; what is around it is none.
            box = ndimage.find_objects(visible.astype(int))[0]
            planes, alpha = planes[box], alpha[box]
            ground = np.median(planes[visible[box]], axis=0)
        else:  # black or white, whichever the ink stands out from
            ground = 255.0 if (planes * alpha).sum() < 512 * max(alpha.sum(), 1e-6) else 0.0
        planes = alpha * planes + (1 - alpha) * ground
    grey, *others = np.moveaxis(planes, 2, 0)
    # Yellow ink on white is nearly white in grey, and black in blue.
    strongest = max(others, key=local_contrast)
    return strongest if local_contrast(strongest) > 2 * local_contrast(grey) else grey


def local_contrast(grey: Pixels) -> float:
    """How far the levels are at most from their median over a window wider than a stroke."""
    small = scaled(grey, min(1, 64 / max(grey.shape)))
    median = ndimage.median_filter(small, max(small.shape) // 6 * 2 + 1)
    return float(np.abs(small - median).max())


def centre_digit(grey: Pixels, height: int, width: int, single: bool = True) -> Pixels:
    """MNIST's recipe: the ink of a figure in a box, its centre of mass at the centre.

    Raises RefusedPicture if there is no figure, or, where a single one is asked for, several.
    """
    ink, box = cropped(find_figure(grey, single)), max(1, round(min(height, width) * DIGIT_BOX))
    pixel = max(ink.shape) // box + 1  # spans one of the box
    if max(ink.shape) > box and ndimage.morphological_gradient(ink, pixel).max() < SHARP_RISE:
        # Blurred, or enlarged from few pixels: with all of its soft edge a stroke is too broad.
        strongest = ndimage.maximum_filter(ink, max(ink.shape) // 16 * 2 + 1)
        ink = cropped(at_full_range(np.maximum(ink - SOFT_EDGE * strongest, 0)))
    solid = ink > 128
    edge = int(solid.sum() - ndimage.binary_erosion(solid, EIGHT_NEIGHBOURS).sum())  # of both sides
    thickness = 2 * int(solid.sum()) / max(edge, 1)
    radius = round((MIN_STROKE * max(ink.shape) - thickness) / 2)
    if radius >= 1:  # a pen thinner than MNIST's
        ink = ndimage.maximum_filter(np.pad(ink, radius), 2 * radius + 1)
    ink = at_full_range(fit_into_box(ink, box))
    y, x = ndimage.center_of_mass(ink)
    # A coordinate of MNIST's centres of mass lies in [13.5, 14.5), where 14 is half of 28.
    top, left = int(np.ceil(height / 2 - 0.5 - y)), int(np.ceil(width / 2 - 0.5 - x))
    return paste_inside(ink, top, left, height, width)


def find_figure(grey: Pixels, single: bool = True, inside: bool = False) -> Pixels:
    """The ink of what is drawn, 0..255, without lines, specks, frames, and what is cut off.

    ``inside``: this is a sheet or a card that was found in the picture, and holds no other.

    Raises RefusedPicture if nothing is left, or, where a single figure is asked for, several are.
    """
    if (ink := drawn_ink(grey)) is not None:
        ink = without_lines(ink)
    elif not inside and (sheet := sheet_on_desk(grey)):
        return find_figure(grey[sheet.box], single, inside=True)
    else:
        ink = photographed_ink(grey)
    labels, components = components_in(ink > FAINT_INK)
    for component in components:
        if component.is_card and not inside:
            return find_figure(grey[component.box], single, inside=True)
    drawn = [
        component
        for component in components
        if not component.is_line and not (single and component.is_frame)
    ]
    figures = [component for component in drawn if component.border_share == 0]
    # A digit may reach over the border: then it is far larger than the specks inside.
    if not figures or figures[0].area < MIN_INNER_AREA * drawn[0].area:
        figures = drawn
    figures = [figure for figure in figures if figure.area > MAX_SPECK_AREA * figures[0].area]
    if not figures:
        nothing = "no digit" if single else "no figure"
        message = f"{nothing} found: there are only lines, and what the border cuts off"
        raise RefusedPicture(nothing, message, ink)
    ink = np.where(np.isin(labels, [0, *(figure.label for figure in figures)]), ink, 0)
    if single and (count := side_by_side(figures)) > 1:
        message = f"{count} figures found where one digit was expected"
        raise RefusedPicture("several digits", message, ink)
    return at_full_range(ink)


class Component:
    """A connected component of a mask."""

    def __init__(self, label: int, box: Box, labels: NDArray[np.integer[Any]]):
        self.label, self.box = label, box
        self.mask = labels[box] == label
        self.area = int(self.mask.sum())
        self.whole = labels.shape
        height, width = self.mask.shape
        self.border_share = float((border_levels(labels) == label).mean())
        self.is_line = width > LARGE_SIDE * self.whole[1] and height < MAX_LINE_WIDTH * width
        rim = round(height / 10), round(width / 10)
        inner = self.mask[rim[0] : -rim[0] or None, rim[1] : -rim[1] or None]
        self.is_large = min(height, width) > LARGE_SIDE * min(self.whole)
        self.is_frame = self.is_large and not inner.any()

    @property
    def is_card(self) -> bool:
        """Whether this is nearly its bounding box, though ink is cut from it; it may be tilted."""
        if not self.is_large or self.mask.mean() <= 0.5 or self.mask.shape == self.whole:
            return False
        filled = ndimage.binary_fill_holes(self.mask)
        top, left = (round(MAX_TILT * side) for side in filled.shape)
        corners = [filled[y, x] for y in (top, -1 - top) for x in (left, -1 - left)]
        return float(filled.mean()) > MIN_RECTANGLE_FILL and all(corners)


def components_in(mask: Mask) -> tuple[NDArray[np.integer[Any]], list[Component]]:
    """The labels of a mask's components, and the largest of them, the largest first."""
    labels, _ = ndimage.label(mask, EIGHT_NEIGHBOURS)
    boxes = ndimage.find_objects(labels)
    by_area = np.argsort(-np.bincount(labels.flat)[1:], kind="stable")
    return labels, [Component(int(i) + 1, boxes[i], labels) for i in by_area[:MAX_COMPONENTS]]


def sheet_on_desk(grey: Pixels) -> Component | None:
    """A sheet that is seen whole, lighter or darker than what it lies on."""
    centres, _ = kmeans(grey.ravel(), np.array([grey.min(), grey.max()]))
    if np.ptp(centres) < MIN_PHOTO_CONTRAST:
        return None
    light = grey > centres.mean()
    for mask in (light, ~light):
        _, (largest, *_) = components_in(mask)
        if largest.is_card and largest.border_share < 0.05:
            return largest
    return None


def side_by_side(components: list[Component]) -> int:
    """How many figures there are: components of similar size that are apart, across or down."""
    sizes = [max(component.mask.shape) for component in components]
    largest = max(sizes)
    similar = zip(components, sizes, strict=True)
    boxes = [component.box for component, size in similar if size > SIMILAR_SIZE * largest]
    count = 1
    for axis, gap in ((0, round(MAX_FLOATING_GAP * largest)), (1, 0)):
        occupied = np.zeros(components[0].whole[axis] + gap, dtype=bool)
        for box in boxes:
            occupied[box[axis].start : box[axis].stop + gap] = True
        count = max(count, ndimage.label(occupied)[1])
    return count


def without_lines(ink: Pixels) -> Pixels:
    """The ink without straight thin lines along the picture's sides: of a form, or squared paper.

    Where a figure crosses a line, what joins two of its parts stays.
    """
    mask = ink > FAINT_INK
    for axis in (1, 0):
        along, across = [1, 1], [1, 1]
        along[axis] = max(2, round(MIN_LINE_LENGTH * ink.shape[axis]))
        across[1 - axis] = max(2, ink.shape[1 - axis] // 20)
        lines = ndimage.binary_opening(mask, np.ones(along))
        lines &= ~ndimage.binary_opening(lines, np.ones(across))
        remaining = (ink > FAINT_INK) & ~lines
        lines &= ~ndimage.binary_closing(remaining, np.ones(across))
        ink = np.where(lines, 0, ink)
    return ink


def cropped(ink: Pixels) -> Pixels:
    return ink[ndimage.find_objects((ink > FAINT_INK).astype(int))[0]]


def drawn_ink(grey: Pixels) -> Pixels | None:
    """The ink on a ground of one level, with a peak of 255; None if there is no such ground."""
    border = border_levels(grey)
    ground = float(np.median(border))
    if (border == ground).mean() <= 0.5:  # noise or uneven light is on it
        return None
    difference = grey - ground
    ink = np.maximum(difference * np.sign(difference.sum()), 0)
    if ink.max() < MIN_CONTRAST:
        raise BlankPicture
    # Soft ink fades near to strong ink. The light of a photograph fades along the border, also
    # where none is near, and is the ground only where it is too bright for the camera.
    nearby = ndimage.maximum_filter(np.abs(difference), max(grey.shape) // 8 * 2 + 1)
    fading = (difference != 0) & (nearby < 0.2 * ink.max())
    return at_full_range(ink) if border_levels(fading).mean() < 0.05 else None


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
    if contrast(small, median, dark_ink).max() < MIN_PHOTO_CONTRAST:
        raise BlankPicture
    # A morphological opening (for dark ink: closing) removes the ink, which is narrower than the
    # window, and leaves gradients and the edges of shadows where they are.
    without_ink = ndimage.grey_closing if dark_ink else ndimage.grey_opening
    paper = resize(without_ink(wide, (window, window))[inner], *grey.shape)
    ink = contrast(grey, paper, dark_ink)
    # Paper's level and the standard deviation on it, from the lowest fifth, as for normal noise.
    lowest, base = np.quantile(ink, [0.05, 0.2])
    ink, noise = ink - base, 1.25 * float(base - lowest)
    clear = max(MIN_CONTRAST, NOISE_FACTOR * noise)
    strong = ink[ink > clear]
    if strong.size < 2:
        raise BlankPicture
    centres, _ = kmeans(strong, np.array([strong.min(), strong.max()]))
    full = float(centres.max())  # of strokes, rather than of their edges
    low = max(clear, 0.3 * full)
    ink = np.clip((ink - low) / max(0.9 * full - low, 1), 0, 1) * 255
    return np.where(ndimage.binary_dilation(ink > 128, EIGHT_NEIGHBOURS, 4), ink, 0)


def contrast(grey: Pixels, ground: Pixels, darker: bool) -> Pixels:
    """How much darker, or else lighter, levels are than their ground, up to 255; else negative."""
    if darker:  # it absorbs a part of the light that falls on it, much or little
        return (ground - grey) * (255 / np.maximum(ground, 32))
    return grey - ground


def at_full_range(ink: Pixels) -> Pixels:
    """Scaled to a peak of 255; MNIST's own peaks of 250 and more stay."""
    return ink if ink.max() >= 250 else ink * (255 / ink.max())


def border_levels(pixels: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate([pixels[0], pixels[-1], pixels[1:-1, 0], pixels[1:-1, -1]])


def fit_into_box(pixels: Pixels, side: int) -> Pixels:
    """Resized so that the longer side has `side` pixels, with the aspect ratio kept."""
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


def paste_inside(pixels: Pixels, top: int, left: int, height: int, width: int) -> Pixels:
    """Pixels at (top, left) of height × width zeros, moved as little as puts all of them inside."""
    h, w = pixels.shape
    top, left = min(max(top, 0), height - h), min(max(left, 0), width - w)
    return np.pad(pixels, ((top, height - h - top), (left, width - w - left)))
