"""Any picture file as a network's input: real digits, drawn and photographed in many ways."""

import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image, ImageFilter
from torch import Tensor

from capsnet.data import load
from capsnet.pictures import read_picture

SHAPE = (1, 28, 28)


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


# --- digits


def test_mnist_and_its_negative_come_through_as_they_are(digits: Tensor, tmp_path: Path) -> None:
    for i, digit in enumerate(digits):
        for levels in (digit, 255 - digit):
            found = read_picture(saved(tmp_path / f"{i}.png", grey(levels)), SHAPE, "digit")
            assert found.shape == SHAPE and found.dtype == torch.uint8
            assert difference(found, digit) < 2, i


Maker = Callable[[Image.Image], Image.Image]


def transparent(colour: tuple[int, int, int]) -> Maker:
    def make(ink: Image.Image) -> Image.Image:
        picture = Image.new("RGBA", ink.size, (*colour, 0))
        picture.putalpha(ink)
        return picture

    return make


def on_paper(ink: Image.Image) -> Image.Image:
    """As a phone sees it: a digit on a sheet, light that falls off, noise and blur."""
    dice = np.random.default_rng(0)
    y, x = np.mgrid[0:600, 0:450] / 600
    paper = 215 - 60 * x - 40 * y
    strokes = np.zeros((600, 450))
    strokes[150:430, 90:370] = np.asarray(ink.resize((280, 280), Image.Resampling.BICUBIC)) / 255
    levels = paper * (1 - 0.8 * strokes) + dice.normal(0, 4, paper.shape)
    picture = Image.fromarray(levels.clip(0, 255).astype(np.uint8))
    return picture.filter(ImageFilter.GaussianBlur(1.5)).convert("RGB")


MAKERS: dict[str, tuple[Maker, str, float]] = {
    "ten times larger": (lambda ink: ink.resize((280, 280), Image.Resampling.BICUBIC), "png", 0.8),
    "dark on light": (lambda ink: Image.eval(ink, lambda level: 255 - level), "png", 0.99),
    "colour": (
        lambda ink: Image.composite(
            Image.new("RGB", ink.size, (20, 40, 140)), Image.new("RGB", ink.size, "white"), ink
        ),
        "png",
        0.95,
    ),
    "black on nothing": (transparent((0, 0, 0)), "png", 0.99),
    "white on nothing": (transparent((255, 255, 255)), "png", 0.99),
    "palette": (lambda ink: ink.convert("P"), "gif", 0.95),
    "one bit": (lambda ink: ink.point(lambda level: 255 * (level > 127)).convert("1"), "png", 0.85),
    "sixteen bits": (
        lambda ink: Image.fromarray(np.asarray(ink).astype(np.uint16) * 257),
        "png",
        0.99,
    ),
    "CMYK": (lambda ink: Image.eval(ink, lambda level: 255 - level).convert("CMYK"), "tiff", 0.95),
    "wide": (lambda ink: _pasted(ink, (120, 40)), "png", 0.95),
    "photographed": (on_paper, "jpg", 0.75),
}  # fmt: skip


def _pasted(ink: Image.Image, size: tuple[int, int]) -> Image.Image:
    picture = Image.new("L", size)
    picture.paste(ink, (5, 8))
    return picture


@pytest.mark.parametrize("kind", MAKERS)
def test_digits_of_every_kind(digits: Tensor, tmp_path: Path, kind: str) -> None:
    make, ending, least = MAKERS[kind]
    for i, digit in enumerate(digits[:10]):
        path = saved(tmp_path / f"{i}.{ending}", make(grey(digit)))
        found = read_picture(path, SHAPE, "digit")
        assert likeness(found, digit) > least, i


def test_a_digit_is_centred_by_its_mass_in_a_box_of_twenty(tmp_path: Path) -> None:
    levels = np.zeros((200, 300), np.uint8)
    levels[20:120, 40:70] = 255  # a bar of 100 × 30 pixels, off the centre
    found = read_picture(saved(tmp_path / "bar.png", Image.fromarray(levels)), SHAPE, "digit")[0]
    rows, columns = (found > 127).any(1).nonzero().flatten(), (found > 127).any(0).nonzero()
    assert rows.tolist() == list(range(4, 24))
    assert len(columns) == 6
    y, x = torch.meshgrid(torch.arange(28.0), torch.arange(28.0), indexing="ij")
    weight = found.float() / found.sum()
    assert abs((weight * y).sum() + 0.5 - 14) <= 0.5
    assert abs((weight * x).sum() + 0.5 - 14) <= 0.5


def test_another_size_and_colour_channels(digits: Tensor, tmp_path: Path) -> None:
    path = saved(tmp_path / "d.png", grey(digits[0]).resize((100, 100)))
    found = read_picture(path, (3, 40, 56), "digit")
    assert found.shape == (3, 40, 56)
    assert torch.equal(found[0], found[2])


# --- garments and pictures in general


def test_garment_fills_its_frame_and_is_bright(tmp_path: Path) -> None:
    levels = np.full((300, 200), 240, np.uint8)
    levels[50:250, 60:140] = 40  # dark, 200 × 80 pixels
    found = read_picture(saved(tmp_path / "g.png", Image.fromarray(levels)), SHAPE, "garment")[0]
    assert (found > 100).any(1).all()
    columns = (found > 100).any(0).nonzero().flatten().tolist()
    assert len(columns) in (11, 12)
    assert abs((columns[0] + columns[-1]) / 2 - 13.5) <= 0.5


def test_plain_keeps_a_picture_of_the_right_size(tmp_path: Path) -> None:
    pixels = torch.randint(256, (20, 24, 3), dtype=torch.uint8)
    path = saved(tmp_path / "p.png", Image.fromarray(pixels.numpy()))
    assert torch.equal(read_picture(path, (3, 20, 24)), pixels.permute(2, 0, 1))
    assert read_picture(path, (1, 20, 24)).shape == (1, 20, 24)


def test_plain_cuts_the_centre_and_puts_white_behind(tmp_path: Path) -> None:
    picture = Image.new("RGBA", (90, 30), (0, 0, 0, 0))
    picture.paste((255, 0, 0, 255), (30, 0, 60, 30))
    found = read_picture(saved(tmp_path / "p.png", picture), (3, 10, 10))
    red, *others = found.float()
    assert red.eq(255).all() and max(other.mean() for other in others) < 5  # but for the edges
    wide = read_picture(tmp_path / "p.png", (3, 10, 30))
    assert wide[:, :, 0].eq(255).all()


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


# --- what is refused


def test_files_that_are_no_pictures(tmp_path: Path, digits: Tensor, refuses) -> None:
    with pytest.raises(FileNotFoundError, match=r"no such file: .*nowhere"):
        read_picture(tmp_path / "nowhere")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        read_picture(tmp_path)
    empty = tmp_path / "empty.png"
    empty.write_bytes(b"")
    with refuses(empty, "empty"):
        read_picture(empty)
    text = tmp_path / "text.png"
    text.write_text("<html>no picture</html>")
    with refuses(text, "not a picture"):
        read_picture(text)
    whole = saved(tmp_path / "whole.png", grey(digits[0]))
    cut = tmp_path / "cut.png"
    cut.write_bytes(whole.read_bytes()[:150])
    with refuses(cut, "damaged or truncated"):
        read_picture(cut)


@pytest.mark.parametrize("style", ["digit", "garment"])
@pytest.mark.parametrize("level", [0, 128, 255])
def test_blank_pictures(tmp_path: Path, refuses, style: str, level: int) -> None:
    path = saved(tmp_path / "blank.png", Image.new("L", (60, 60), level))
    with refuses(path, "blank"):
        read_picture(path, SHAPE, style)


@pytest.mark.parametrize("side", [9_500, 40_000])  # Pillow warns of the one, refuses the other
def test_too_many_pixels_are_refused_before_they_are_decoded(
    tmp_path: Path, refuses, side: int
) -> None:
    def chunk(kind: bytes, body: bytes) -> bytes:
        crc = struct.pack(">I", zlib.crc32(kind + body))
        return struct.pack(">I", len(body)) + kind + body + crc

    path = tmp_path / "huge.png"
    header = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IEND", b""))
    with refuses(path, "too large"):  # not "damaged", though it has no pixels at all
        read_picture(path)


def test_arguments_that_are_none(tmp_path: Path, refuses) -> None:
    with refuses("(2, 28, 28)"):
        read_picture(tmp_path, (2, 28, 28))
    with refuses("'upside down'", "plain, digit, garment"):
        read_picture(tmp_path, SHAPE, "upside down")
