"""Any picture file as a network's input: real digits, drawn and photographed in many ways."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image, ImageFilter, ImageOps
from torch import Tensor

from capsnet.data import load
from capsnet_book import ledger
from capsnet_lab.pictures import read_picture
from helpers.drawn import DIGITS_PER_LIGHT, count_hard_light, count_kinds
from helpers.photographs import LIGHTS, photograph

SHAPE = (1, 28, 28)
Maker = Callable[[Image.Image], Image.Image]  # of a digit, bright on black


@pytest.fixture(scope="module")
def digits() -> Tensor:
    return load("mnist", train=False, download=False).images[:200]


def saved(path: Path, picture: Image.Image, **options: object) -> Path:
    picture.save(path, **options)
    return path


def grey(image: Tensor) -> Image.Image:
    return Image.fromarray(image[0].numpy())


def difference(left: Tensor, right: Tensor) -> float:
    """Mean absolute difference in grey levels where either has ink."""
    inked = (left > 0) | (right > 0)
    return (left.float() - right.float()).abs()[inked].mean().item()


def likeness(left: Tensor, right: Tensor) -> float:
    """Correlation of the grey levels: 1 for the same picture up to brightness and contrast."""
    return torch.corrcoef(torch.stack([left.flatten(), right.flatten()]).float())[0, 1].item()


def enlarged(ink: Image.Image, side: int = 280) -> Image.Image:
    return ink.resize((side, side), Image.Resampling.BICUBIC)


def coarse(ink: Image.Image) -> Image.Image:
    """By way of 8 × 8 pixels, cropped to MNIST's box, where ink touches the border; inverted."""
    small = ink.crop((4, 4, 24, 24)).resize((8, 8), Image.Resampling.BOX)
    return ImageOps.invert(enlarged(small, 112))


def uneven(ink: Image.Image) -> Image.Image:
    """The right half has a third of the strength, as of a pen that runs dry; inverted."""
    strength = np.interp(np.arange(140), (56, 84), (1, 0.33))
    return Image.fromarray((255 - np.asarray(enlarged(ink, 140)) * strength).astype("u1"))


def on_nothing(ink: Image.Image) -> Image.Image:
    picture = Image.new("RGBA", ink.size, (0, 0, 0, 0))
    picture.putalpha(ink)
    return picture


def mode(name: str) -> Maker:
    return lambda ink: ink.convert(name)


# How it is drawn, and how like MNIST's digit it is then; of what loses nothing, 1.
KINDS: dict[str, tuple[Maker, str, float]] = {
    "ten times larger": (enlarged, "png", 0.8),
    "few pixels, dark on light": (coarse, "jpg", 0.75),  # no photograph, though little is ground
    "uneven, dark on light": (uneven, "jpg", 0.5),
    "colour": (lambda ink: ImageOps.colorize(ink, "white", (20, 40, 140)), "png", 0.95),
    "yellow": (lambda ink: ImageOps.colorize(ink, "white", (250, 220, 0)), "png", 0.9),
    "on nothing": (on_nothing, "png", 0.99),
    "palette": (mode("P"), "gif", 0.95),
    "LA": (mode("LA"), "png", 1),
    "PA, as RGBA": (mode("RGBA"), "webp", 1),
    "F": (mode("F"), "tiff", 1),
}


@pytest.mark.parametrize("kind", KINDS)
def test_digits_of_every_kind(digits: Tensor, tmp_path: Path, kind: str) -> None:
    make, ending, least = KINDS[kind]
    options = {"lossless": True} if ending == "webp" else {}
    for digit in digits[:3]:
        path = saved(tmp_path / f"digit.{ending}", make(grey(digit)), **options)
        found = read_picture(path, SHAPE, "digit")
        if least < 1:
            assert likeness(found, digit) > least
            continue
        assert difference(found, digit) <= 1
        assert difference(read_picture(path, SHAPE, "picture"), digit) <= 1


@pytest.mark.parametrize("most", [255, 1023, 4095, 65535])
@pytest.mark.parametrize("dtype", [">u2", "u2", "i4", "f4"])
def test_levels_of_few_bits_in_many(tmp_path: Path, dtype: str, most: int) -> None:
    """8, 10 and 12 bits in more, as cameras write them, have white at their top; NaN is black."""
    levels = np.array([[0, most // 2, most]], dtype)
    path = saved(tmp_path / "half.tiff", Image.fromarray(levels))
    assert read_picture(path, (1, 1, 3)).flatten().tolist() == [0, 127, 255]
    levels = np.array([[-most, 0, most, np.inf, np.nan]], np.float32)
    path = saved(tmp_path / "float.tiff", Image.fromarray(levels))
    assert read_picture(path, (1, 1, 5)).flatten().tolist() == [0, 128, 255, 255, 0]


@pytest.mark.parametrize("negative", [False, True])
def test_digits_of_mnist_come_through_as_they_are(tmp_path: Path, negative: bool) -> None:
    digits = load("mnist", train=False, download=False).images[:300]
    found = []
    for digit in digits:
        path = saved(tmp_path / "digit.png", grey(255 - digit if negative else digit))
        found.append(read_picture(path, SHAPE, "digit"))
    read = torch.stack(found)
    assert read.shape == digits.shape and read.dtype == torch.uint8
    off = (read.int() - digits.int()).abs().flatten(1).amax(1)
    assert off.max() <= 10  # of 255: only ink too faint for the bounding box is lost
    assert (off == 0).float().mean() > 0.9
    assert max(map(difference, read, digits)) < 2


@pytest.mark.parametrize(
    ("times", "margins"), [(2, ((0, 60), (13, 0))), (3, ((40, 40), (60, 7))), (5, ((1, 0), (0, 2)))]
)
def test_neither_place_nor_ground_nor_polarity_matters(
    digits: Tensor, tmp_path: Path, times: int, margins: object
) -> None:
    """A digit on a larger sheet is the digit, with its centre of mass where MNIST has it."""
    for i, digit in enumerate(digits[:20]):
        sheet = np.pad(digit[0].numpy().repeat(times, 0).repeat(times, 1), margins)
        path = saved(tmp_path / "sheet.png", Image.fromarray(255 - sheet if i % 2 else sheet))
        found = read_picture(path, SHAPE, "digit")
        assert likeness(found, digit) > 0.8
        rows, columns = (found[0] > 0).any(1).nonzero(), (found[0] > 0).any(0).nonzero()
        sides = (int(rows[-1] - rows[0]) + 1, int(columns[-1] - columns[0]) + 1)
        assert max(sides) in (19, 20)
        weight = found[0].double() / found.sum()
        for axis, side in ((1, sides[0]), (0, sides[1])):
            centre = float((weight.sum(axis) * torch.arange(28)).sum())
            assert 13.4 <= centre < 14.6 or side > 18  # a box at the edge cannot move on


@pytest.mark.parametrize(
    ("pen", "blur", "width"),
    [(40, 0, (4.0, 4.0)), (40, 16, (3.4, 4.1)), (2, 0, (1.0, 2.0))],
    ids=["plain", "soft", "thinner than MNIST's"],
)
def test_how_broad_a_stroke_becomes(
    tmp_path: Path, pen: int, blur: int, width: tuple[float, float]
) -> None:
    bar = ImageOps.expand(Image.new("L", (pen, 200), 255), (150 - pen // 2, 50), 0)
    path = saved(tmp_path / "bar.png", bar.filter(ImageFilter.GaussianBlur(blur)))
    found = read_picture(path, SHAPE, "digit")[0]
    assert width[0] <= found[14].float().sum() / 255 <= width[1]
    large = read_picture(path, (3, 40, 56), "digit")
    assert large.shape == (3, 40, 56) and torch.equal(large[0], large[2])


def missed(counts: dict[str, int]) -> int:
    return counts["refused"] + counts["wrong"]


@pytest.mark.slow
def test_pictures_of_every_kind_are_classified_as_the_ledger_says(tmp_path: Path) -> None:
    """On papers, in frames, on a desk, on a card, in hard light; of several digits, and of none.

    A quarter of the pictures that the ledger counts is drawn; another Pillow may draw single pixels
    otherwise.
    """
    record, counts = ledger.read("pictures/readings.json"), count_kinds(tmp_path)
    more = []
    for row in record["kinds"]:
        more.append(missed(counts[row["kind"], row["half"]]) - missed(row["now"]))
    for row in record["sets"]:
        if row["pictures"] in LIGHTS:
            right = count_hard_light(row["pictures"], tmp_path)
            more.append(DIGITS_PER_LIGHT - right - (row["total"] - row["now"]))
    assert sum(each for each in more if each > 0) <= 2


def test_specks_and_what_reaches_the_border_are_left_out(digits: Tensor, tmp_path: Path) -> None:
    picture = photograph(grey(digits[0]), "even light")
    expected = read_picture(saved(tmp_path / "clean.png", picture), SHAPE, "digit")
    picture.paste((40, 40, 40), (350, 20, 354, 24))  # a speck
    picture.paste((40, 40, 40), (380, 260, 400, 300))  # the table, beyond the sheet
    found = read_picture(saved(tmp_path / "dirty.png", picture), SHAPE, "digit")
    assert likeness(found, expected) > 0.97


def test_plain_cuts_the_centre_and_puts_white_behind(tmp_path: Path) -> None:
    pixels = torch.randint(256, (20, 24, 3), dtype=torch.uint8)
    path = saved(tmp_path / "p.png", Image.fromarray(pixels.numpy()))
    assert torch.equal(read_picture(path, (3, 20, 24)), pixels.permute(2, 0, 1))
    picture = Image.new("RGBA", (90, 30), (0, 0, 0, 0))
    picture.paste((255, 0, 0, 255), (30, 0, 60, 30))
    found = read_picture(saved(path, picture), (3, 10, 10))
    red, *others = found.float()
    assert red.eq(255).all() and max(other.mean() for other in others) < 5  # but for the edges
    assert read_picture(path, (3, 10, 30))[:, :, 0].eq(255).all()


def test_orientation_and_first_frame(tmp_path: Path) -> None:
    levels = np.zeros((40, 40, 3), np.uint8)
    levels[:, 20:] = 255
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by 90 degrees clockwise: the right half becomes the lower one
    path = saved(tmp_path / "turned.png", Image.fromarray(levels), exif=exif)
    found = read_picture(path, (1, 40, 40))[0]
    assert found[30].float().mean() == 255 and found[10].float().mean() == 0
    frames = [Image.new("L", (20, 20), level) for level in (10, 200)]
    path = saved(tmp_path / "two.gif", frames[0], save_all=True, append_images=frames[1:])
    assert read_picture(path, (1, 20, 20)).float().mean() == 10


def test_files_that_are_no_pictures(tmp_path: Path, digits: Tensor, refuses) -> None:
    with refuses("(2, 28, 28)"):
        read_picture(tmp_path, (2, 28, 28))
    with refuses("'upside down'", "digit, figure, picture"):
        read_picture(tmp_path, SHAPE, "upside down")
    with pytest.raises(FileNotFoundError, match=r"no such file: .*nowhere"):
        read_picture(tmp_path / "nowhere")
    with refuses(tmp_path, "no ordinary file"):
        read_picture(tmp_path)
    if hasattr(os, "mkfifo"):  # not on Windows
        pipe = tmp_path / "pipe.png"
        os.mkfifo(pipe)  # reading it would wait for ever
        with refuses(pipe, "no ordinary file"):
            read_picture(pipe)
    large = grey(digits[0]).resize((200, 200))
    whole = {ending: saved(tmp_path / f"whole.{ending}", large) for ending in ("png", "jpg", "eps")}
    for name, content, expected in (
        ("empty.png", b"", "empty"),
        ("text.png", b"<html>no picture</html>", "not a picture"),
        ("cut.png", whole["png"].read_bytes()[:150], "damaged or truncated"),
        ("cut.jpg", whole["jpg"].read_bytes()[:1500], "damaged or truncated"),
        ("endless.jpg", whole["jpg"].read_bytes()[:-2], "damaged or truncated"),  # on the page, too
        ("program.eps", whole["eps"].read_bytes(), "not a picture"),  # it would start a program
        ("nothing.pgm", b"P5 0 0 255\n", "nothing.pgm"),
        ("huge.pbm", b"P4 40000 40000\n", "too large"),  # before its pixels are looked for
    ):
        path = tmp_path / name
        path.write_bytes(content)
        with refuses(path, expected):
            read_picture(path)


BLANK = {
    "black": Image.new("L", (60, 60), 0),
    "white": Image.new("L", (60, 60), 255),
    "transparent": Image.new("RGBA", (40, 40), (9, 9, 9, 0)),
    "even light": photograph(Image.new("L", (28, 28)), "even light"),
    "noise": photograph(Image.new("L", (28, 28)), "noise"),
}


@pytest.mark.parametrize("kind", BLANK)
def test_pictures_of_nothing(tmp_path: Path, refuses, kind: str) -> None:
    ending, options = ("jpg", {"quality": 75}) if kind in LIGHTS else ("png", {})
    path = saved(tmp_path / f"blank.{ending}", BLANK[kind], **options)
    with refuses(path, "blank"):
        read_picture(path, SHAPE, "digit")
