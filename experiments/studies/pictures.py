"""``python -m experiments.studies.pictures``: how many digits are classified correctly in pictures.

The committed network reads each picture three times: as style "digit" gives it now, as it gave it
before it was made for soft pictures, and cropped, scaled and centred by mass, nothing else. It
takes scikit-learn, for its digits, and a clone with its history.
"""

import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageFilter, ImageOps
from scipy import ndimage
from torch import Tensor

from capsnet.checkpoint import load_weights
from capsnet.data import load, to_float
from capsnet.files import write_json
from capsnet_book import ledger
from capsnet_lab import pictures
from experiments.running import LEDGER

Picture = Image.Image
Maker = Callable[[Picture], Picture]  # from a digit's bright ink on black
Kinds = dict[str, tuple[Maker, int | None]]  # and the quality of a JPEG; a PNG if None
Digits = tuple[str, Sequence[Picture], Sequence[int]]  # whose, and their ink and labels

BEFORE = "5781580"  # the last commit that has the reader as it was
TUNED = range(200, 300)  # of scikit-learn's digits; it was tuned on these and on some up to 897

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


def enlarged(side: int, method: str = "bicubic") -> Maker:
    return lambda ink: ink.resize((side, side), Image.Resampling[method.upper()])


def strokes(ink: Picture, least: float = 0.35) -> NDArray[Any]:
    """The digit as a pen draws it: large, with hard edges; 0..1."""
    return ((np.asarray(enlarged(196)(ink)) / 255 - least) / 0.3).clip(0, 1)


def drawn(ink: Picture, least: float = 0.35) -> Picture:
    return Image.fromarray((255 * strokes(ink, least)).astype(np.uint8))


def on_nothing(ink: Picture, colour: tuple[int, int, int] = (0, 0, 0)) -> Picture:
    picture = Image.new("RGBA", ink.size, (*colour, 0))
    picture.putalpha(ink)
    return picture


def in_light(light: str) -> Maker:
    return lambda ink: photographed(strokes(ink), light)


def coarse(side: int, boxed: bool = False) -> Maker:
    """By way of few pixels; if boxed, cropped to MNIST's box, where ink touches the border."""

    def make(ink: Picture) -> Picture:
        small = ink.crop((4, 4, 24, 24)) if boxed else ink
        return enlarged(112)(small.resize((side, side), Image.Resampling.BOX))

    return make


def blurred(ink: Picture) -> Picture:
    return enlarged(140)(ink).filter(ImageFilter.GaussianBlur(5))


def uneven(side: int) -> Maker:
    """The right half has a third of the strength, as of a pen that runs dry."""
    strength = np.interp(np.arange(side), (0.4 * side, 0.6 * side), (1, 0.33))
    return lambda ink: Image.fromarray((np.asarray(enlarged(side)(ink)) * strength).astype("u1"))


def inverted(make: Maker) -> Maker:
    return lambda ink: ImageOps.invert(make(ink))


STYLES: Kinds = {
    "white on black": (drawn, None),
    "black on nothing": (lambda ink: on_nothing(drawn(ink)), None),
    "thin pen": (inverted(lambda ink: ImageOps.expand(drawn(ink, 0.7), 40)), None),
    "black on white, JPEG 75": (inverted(drawn), 75),
    **{name: (in_light(name), 75) for name in list(LIGHTS)[2:]},
}
SOFT: Kinds = {
    **{f"to {side}, bicubic": (enlarged(side), None) for side in (28, 56, 224, 400)},
    **{f"to 112, {method}": (enlarged(112, method), None) for method in ("bilinear", "nearest")},
    "to 112, bicubic, dark on light": (inverted(enlarged(112)), None),
    "to 112, nearest, dark on light": (inverted(enlarged(112, "nearest")), None),
    "to 400, bicubic, dark on light": (inverted(enlarged(400)), None),
    "to 112, bicubic, JPEG 30": (enlarged(112), 30),
    "to 400, bicubic, dark on light, JPEG 30": (inverted(enlarged(400)), 30),
    "to 112, bicubic, uneven ink": (uneven(112), None),
}
MNIST: Kinds = {
    "by way of 10 × 10 to 112": (coarse(10), None),
    "by way of 10 × 10 to 112, dark on light": (inverted(coarse(10)), None),
    "of the box, by way of 8 × 8 to 112": (coarse(8, boxed=True), None),
    "blurred by a twentieth of the picture": (blurred, None),
    "blurred by a twentieth of the picture, dark on light, JPEG 30": (inverted(blurred), 30),
    "uneven ink": (uneven(140), None),
    "uneven ink, dark on light, JPEG 75": (inverted(uneven(140)), 75),
}


def as_before() -> ModuleType:
    """The reader's module as the commit BEFORE has it."""
    command = ["git", "show", f"{BEFORE}:capsnet/data/pictures.py"]
    found = subprocess.run(command, cwd=LEDGER.parent, capture_output=True, text=True, check=True)
    module = ModuleType("before")
    exec(found.stdout, module.__dict__)
    return module


def naive(path: Path) -> Tensor:
    """Cropped to the ink, scaled to 20 pixels, centred by mass, and nothing else."""
    picture: Picture = Image.open(path)
    if picture.mode == "RGBA":
        picture = picture.getchannel("A")
    grey = np.asarray(picture.convert("L")).astype(float)
    ink = np.abs(grey - np.median(pictures.border(grey)))
    box = Image.fromarray(ink > 0.1 * ink.max()).getbbox()
    cropped = Image.fromarray(ink.astype(np.uint8)).crop(box)
    method = Image.Resampling.BICUBIC if max(cropped.size) < 20 else Image.Resampling.BOX
    width, height = (max(1, round(20 * side / max(cropped.size))) for side in cropped.size)
    small = np.asarray(cropped.resize((width, height), method))
    top, left = (round(13.5 - middle) for middle in ndimage.center_of_mass(small))
    return torch.from_numpy(pictures.place(small, top, left, 28, 28)).unsqueeze(0)


def read_by(module: ModuleType, path: Path) -> Tensor:
    try:
        return module.read_picture(path, (1, 28, 28), "digit")
    except ValueError:  # blank, it says
        return torch.zeros(1, 28, 28, dtype=torch.uint8)


@torch.no_grad()
def measure(digits: Digits, chosen: range, name: str, make: Maker, quality: int | None) -> dict:
    """How many of the chosen digits are read right in each way; which are won and lost by now."""
    model, _ = load_weights(ledger.path("mnist/weights.safetensors"))
    before, (whose, inks, known) = as_before(), digits
    ways: dict[str, Callable[[Path], Tensor]] = {
        "before": lambda path: read_by(before, path),
        "naive": naive,
        "now": lambda path: read_by(pictures, path),
    }
    read: dict[str, list[Tensor]] = {way: [] for way in ways}
    with tempfile.TemporaryDirectory() as folder:
        for i in chosen:
            path = Path(folder) / ("digit.jpg" if quality else "digit.png")
            make(inks[i]).save(path, quality=quality)  # which a PNG has not
            for way, read_one in ways.items():
                read[way].append(read_one(path))
    labels, right = torch.tensor([known[i] for i in chosen]), {}
    for way, images in read.items():
        parts = to_float(torch.stack(images)).split(250)
        right[way] = torch.cat([model(part).lengths for part in parts]).argmax(1) == labels
    won, lost = right["now"] & ~right["before"], right["before"] & ~right["now"]
    return {
        "digits": whose,
        "pictures": name,
        "first": chosen[0],
        "total": len(chosen),
        **{way: int(found.sum()) for way, found in right.items()},
        "won": [chosen[i] for i in won.nonzero().flatten().tolist()],
        "lost": [chosen[i] for i in lost.nonzero().flatten().tolist()],
    }


def mnists() -> Digits:
    test = load("mnist", train=False)
    return "MNIST's test", [*map(Image.fromarray, test.images[:, 0].numpy())], test.labels.tolist()


def main() -> None:
    """Measure every set of pictures, and write the record."""
    from sklearn import datasets  # type: ignore[import-not-found]

    found = datasets.load_digits()
    levels = (found.images * (255 / 16)).round().astype(np.uint8)  # [1797, 8, 8], of 0..16
    soft: Digits = "scikit-learn", [*map(Image.fromarray, levels)], [*found.target]
    usual, rest, mnist = ("to 112, bicubic", enlarged(112), None), range(TUNED.stop, 1797), mnists()
    sets: list[tuple] = [(soft, chosen, *usual) for chosen in (range(200), TUNED, rest)]
    sets += [(soft, rest[:200], name, *saved) for name, saved in SOFT.items()]
    sets += [(mnist, range(200), name, *saved) for name, saved in MNIST.items()]
    sets += [(mnist, range(20), name, *saved) for name, saved in STYLES.items()]
    records = []
    for one in sets:
        records.append(measure(*one))
        print(*list(records[-1].values())[:-2], sep=", ", flush=True)
    document = {"before": BEFORE, "sets": records}
    write_json(LEDGER / "pictures" / "readings.json", document, indent=None)


if __name__ == "__main__":
    main()
