"""Pictures of digits in KINDS, and how many of them `capsnet predict` classifies correctly.

They are drawn from MNIST's test digits and from fonts: on plain, squared and ruled paper, in frames
and form fields, on a desk, on transparent ground, flat or as a photograph. Each is drawn from its
own seed. Those of even seeds served to choose the rules of `capsnet_lab.pictures`; those of odd
seeds chose nothing. The ledger counts 16 pictures of each kind, in pictures/readings.json.
"""

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter, ImageFont
from scipy import ndimage

from capsnet.checkpoint import load_weights
from capsnet.data import CLASSES, load
from capsnet_book import ledger
from capsnet_lab.predict import predict
from helpers.photographs import photograph

DIGITS_PER_LIGHT = 5  # of the 20 that the ledger counts
PICTURES_PER_KIND = 4  # of 16
SIDE = 320  # pixels
FONTS = ("DejaVuSans", "DejaVuSans-Bold", "DejaVuSerif", "DejaVuSansMono", "STIXGeneral")
DESKS = ((25, 22, 20), (90, 60, 40), (120, 115, 110), (170, 130, 90))
PENS = (
    (250, 220, 0), (255, 150, 0), (230, 90, 160), (0, 150, 220), (40, 160, 60), (210, 30, 30)
)  # fmt: skip
Random = np.random.Generator
Sheet = NDArray[np.float64]  # [height, width, 3], levels 0..255
Strokes = NDArray[np.float64]  # [height, width], 0..1
Picture = tuple[Sheet, int | None]  # and the label; None where no digit is right


def handwritten(random: Random) -> tuple[Strokes, int]:
    """A digit of MNIST's test set, large, with hard edges; and its label."""
    test = load("mnist", train=False)
    index = int(random.integers(len(test)))
    side = int(random.integers(130, 230))
    digit = Image.fromarray(test.images[index, 0].numpy())
    large = digit.resize((side, side), Image.Resampling.BICUBIC)
    return ((np.asarray(large) / 255 - 0.35) / 0.3).clip(0, 1), int(test.labels[index])


def printed(random: Random, text: str | None = None) -> tuple[Strokes, int]:
    """A digit of a font, and its label; or other text."""
    label = int(random.integers(10))
    path = Path(mpl.get_data_path(), "fonts", "ttf", f"{random.choice(FONTS)}.ttf")
    font = ImageFont.truetype(path, int(random.integers(110, 200)))
    picture = Image.new("L", (SIDE, SIDE))
    ImageDraw.Draw(picture).text((SIDE // 2, SIDE // 2), text or str(label), 255, font, "mm")
    return np.asarray(picture.crop(picture.getbbox())) / 255, label


def placed(random: Random, strokes: Strokes, margin: int) -> Strokes:
    """The strokes anywhere on a sheet."""
    height, width = strokes.shape
    top = int(random.integers(margin, max(margin, SIDE - margin - height) + 1))
    left = int(random.integers(margin, max(margin, SIDE - margin - width) + 1))
    sheet = np.zeros((SIDE + height, SIDE + width))
    sheet[top : top + height, left : left + width] = strokes
    return sheet[:SIDE, :SIDE]


def random_digit(random: Random, margin: int = 40) -> tuple[Strokes, int]:
    """A digit anywhere on a sheet, by hand or of a font, and its label."""
    strokes, label = (handwritten, printed)[random.integers(2)](random)
    return placed(random, strokes, margin), label


def draw_ink(sheet: Sheet, strokes: Strokes, colour: object) -> Sheet:
    return sheet + (np.asarray(colour, float) - sheet) * strokes[..., None]


# Colours of ink.


def dark(random: Random) -> NDArray[np.int64]:
    return random.integers(0, 90, 3)


def chalk(random: Random) -> NDArray[np.int64]:
    return random.integers(190, 256, 3)


def coloured(random: Random) -> object:
    return PENS[random.integers(len(PENS))]


# What a digit is drawn on.


def paper(random: Random) -> Sheet:
    return np.full((SIDE, SIDE, 3), random.integers(225, 256, 3).astype(float))


def board(random: Random) -> Sheet:
    return np.full((SIDE, SIDE, 3), random.integers(20, 80, 3).astype(float))


def lines(random: Random, across: bool, down: bool) -> Strokes:
    """A pattern of thin lines."""
    sheet = np.zeros((SIDE, SIDE))
    step, width = int(random.integers(18, 50)), int(random.integers(1, 3))
    for k in range(width):
        if across:
            sheet[step // 2 + k :: step] = 1
        if down:
            sheet[:, step // 2 + k :: step] = 1
    return sheet


def patterned(kind: str, random: Random) -> Sheet:
    if kind == "dotted":
        marks = lines(random, True, False) * lines(random, False, True)
        marks = ndimage.maximum_filter(marks, 3)
    else:
        marks = lines(random, True, kind == "squared")
    return draw_ink(paper(random), marks, random.integers(130, 215, 3))


def draw_box(sheet: Sheet, inset: int, width: int, colour: object) -> Sheet:
    marks = np.zeros((SIDE, SIDE))
    marks[inset : SIDE - inset, inset : SIDE - inset] = 1
    inner = inset + width
    marks[inner : SIDE - inner, inner : SIDE - inner] = 0
    return draw_ink(sheet, marks, colour)


def framed(random: Random) -> Sheet:
    return draw_box(paper(random), 0, 1, np.full(3, random.integers(0, 236)))


def form(random: Random) -> Sheet:
    sheet, inset = paper(random), int(random.integers(6, 26))
    return draw_box(sheet, inset, int(random.integers(1, 5)), dark(random))


def underlined(random: Random) -> Sheet:
    sheet, y = paper(random), int(random.integers(290, 308))
    left, width = int(random.integers(0, 50)), int(random.integers(1, 5))
    sheet[y : y + width, left : SIDE - left] = dark(random)
    return sheet


def outside_sheet(random: Random, some: bool) -> Strokes:
    """What is not the sheet, on all sides or on some."""
    low, high = (4, 20) if some else (20, 64)
    margins = random.integers(low, high, 4)
    if some:
        margins *= random.permutation([1, *random.integers(0, 2, 2), 0])
    top, left, bottom, right = (int(margin) for margin in margins)
    outside = np.ones((SIDE, SIDE))
    outside[top : SIDE - bottom, left : SIDE - right] = 0
    return outside


def scanned(random: Random) -> Sheet:
    return draw_ink(paper(random), outside_sheet(random, True), random.integers(0, 60, 3))


def on_desk(some: bool, random: Random) -> Sheet:
    colour = random.choice(DESKS)
    return draw_ink(paper(random), outside_sheet(random, some), colour)


def photographed(random: Random, sheet: Sheet) -> Sheet:
    """In light that falls to one side, tilted, blurred, with noise, now and then with a shadow."""
    large = Image.fromarray(sheet.clip(0, 255).astype(np.uint8))
    edge = tuple(int(level) for level in sheet[0, 0])
    turned = large.rotate(random.uniform(-4, 4), Image.Resampling.BICUBIC, fillcolor=edge)
    soft = turned.filter(ImageFilter.GaussianBlur(random.uniform(0.5, 1.8)))
    y, x = np.mgrid[0:SIDE, 0:SIDE] / SIDE
    light = 0.9 - random.uniform(0, 0.35) * (x if random.integers(2) else 1 - x)
    light -= random.uniform(0, 0.25) * (y if random.integers(2) else 1 - y)
    if random.integers(3) == 0:
        light *= 1 - 0.35 / (1 + np.exp(-(x + y - random.uniform(0.7, 1.3)) * 60))
    noise = random.normal(0, random.uniform(1, 7), (SIDE, SIDE, 1))
    return np.asarray(soft) * light[..., None] + noise


# Pictures.


def digit_on(
    ground: Callable[[Random], Sheet],
    random: Random,
    ink: Callable[[Random], object] = dark,
    margin: int = 40,
) -> Picture:
    strokes, label = random_digit(random, margin)
    return draw_ink(ground(random), strokes, ink(random)), label


def ink_on_transparency(random: Random) -> Picture:
    """Ink on a transparent ground."""
    strokes, label = random_digit(random)
    colour = [(0, 0, 0), (255, 255, 255), (200, 30, 30)][random.integers(3)]
    sheet = np.full((SIDE, SIDE, 3), np.array(colour, float))
    return np.dstack([sheet, 255 * strokes]), label


def card_on_transparency(random: Random) -> Picture:
    """A white card, or a window with a shadow, on a transparent ground."""
    sheet, label = digit_on(paper, random)
    margin = int(random.integers(12, 36))
    inside = np.zeros((SIDE, SIDE))
    inside[margin:-margin, margin:-margin] = 1
    shadow = ndimage.gaussian_filter(inside, 6) * 0.4 * random.integers(2)
    return np.dstack([sheet * inside[..., None], 255 * np.maximum(inside, shadow)]), label


def several_digits(random: Random) -> Picture:
    """Two or more digits, which no answer of one digit can be right for."""
    text = "".join(map(str, random.integers(0, 10, random.integers(2, 4))))
    strokes, _ = printed(random, text)
    if strokes.shape[1] > SIDE - 40:
        strokes = strokes[::2, ::2]
    return draw_ink(paper(random), placed(random, strokes, 20), dark(random)), None


def no_digit(random: Random) -> Picture:
    patterns = [partial(patterned, kind) for kind in ("ruled", "squared")]
    grounds: list[Callable[[Random], Sheet]] = [paper, *patterns, framed, form, underlined, scanned]
    sheet = grounds[random.integers(len(grounds))](random)
    return (photographed(random, sheet) if random.integers(2) else sheet), None


KINDS: dict[str, Callable[[Random], Picture]] = {  # those called "photograph" become one
    "drawing": partial(digit_on, paper),
    "drawing, light on dark": partial(digit_on, board, ink=chalk),
    "photograph": partial(digit_on, paper),
    "photograph, chalk on a board": partial(digit_on, board, ink=chalk),
    "photograph, coloured pens": partial(digit_on, paper, ink=coloured),
    "squared paper": partial(digit_on, partial(patterned, "squared")),
    "ruled paper": partial(digit_on, partial(patterned, "ruled")),
    "dotted paper": partial(digit_on, partial(patterned, "dotted")),
    "photograph, squared paper": partial(digit_on, partial(patterned, "squared")),
    "photograph, ruled paper": partial(digit_on, partial(patterned, "ruled")),
    "frame of one pixel": partial(digit_on, framed),
    "form field": partial(digit_on, form),
    "photograph, form field": partial(digit_on, form),
    "underline": partial(digit_on, underlined),
    "photograph, underline": partial(digit_on, underlined),
    "edges of a scan": partial(digit_on, scanned),
    "photograph, desk all round": partial(digit_on, partial(on_desk, False), margin=72),
    "photograph, desk on some sides": partial(digit_on, partial(on_desk, True)),
    "ink on transparent ground": ink_on_transparency,
    "card on transparent ground": card_on_transparency,
    "several digits": several_digits,
    "photograph, several digits": several_digits,
    "no digit": no_digit,
}


def draw_pictures(folder: Path) -> dict[str, tuple[str, int, int | None]]:
    """File name → kind, seed and label; None where no digit is right."""
    drawn: dict[str, tuple[str, int, int | None]] = {}
    for number, (kind, make) in enumerate(KINDS.items()):
        for seed in range(PICTURES_PER_KIND):
            random = np.random.default_rng([number, seed])
            sheet, label = make(random)
            ending = "png"
            if kind.startswith("photograph"):
                sheet, ending = photographed(random, sheet), "jpg"
            name = f"{number:02}-{seed:02}.{ending}"
            Image.fromarray(sheet.clip(0, 255).astype(np.uint8)).save(folder / name, quality=80)
            drawn[name] = (kind, seed, label)
    return drawn


def count_kinds(folder: Path) -> dict[tuple[str, str], dict[str, int]]:
    """Right, refused and wrong answers to each kind of picture, for each half of the seeds."""
    drawn = draw_pictures(folder)
    model, _ = load_weights(ledger.path("mnist/weights.safetensors"))
    counts: dict[tuple[str, str], Counter[str]] = {}
    for found in predict(model, CLASSES["mnist"], [folder / name for name in drawn], "digit"):
        kind, seed, label = drawn[Path(found.picture).name]
        if found.answer.isdigit():
            outcome = "right" if found.answer == str(label) else "wrong"
        else:
            outcome = "right" if label is None else "refused"
        half = ("chosen on", "held out")[seed % 2]
        counts.setdefault((kind, half), Counter(right=0, refused=0, wrong=0))[outcome] += 1
    return {key: dict(count) for key, count in counts.items()}


def count_hard_light(light: str, folder: Path) -> int:
    """Right answers to photographs of test digits in this light."""
    model, _ = load_weights(ledger.path("mnist/weights.safetensors"))
    test = load("mnist", train=False).subset(slice(DIGITS_PER_LIGHT))
    paths = [folder / f"{number:02}.jpg" for number in range(DIGITS_PER_LIGHT)]
    for path, digit in zip(paths, test.images[:, 0], strict=True):
        photograph(Image.fromarray(digit.numpy()), light).save(path, quality=75)
    found = predict(model, CLASSES["mnist"], paths, "digit", threshold=0)
    return sum(one.answer == str(int(k)) for one, k in zip(found, test.labels, strict=True))
