"""From which length on is a capsule an answer? Measured on digits, and on pictures without one.

    capsnet train --dataset mnist --epochs 2 --out runs/first
    python -m experiments.studies.threshold runs/first/weights.safetensors

The rule: of the validation images, which this network has not seen, SHARE may be refused. Of images
that it has learned the longest capsules are too long for that: the network in results/mnist has
learned these, so only its test images count. Pictures without a digit set nothing; they show what
the rule comes to. They are read as `capsnet predict` reads them, which refuses what is blank, and
shrunk to 28 × 28 pixels as they are ("raw"). No rings, bars, discs, nor letters like digits.
"""

import math
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.random import Generator
from PIL import Image, ImageDraw, ImageFont
from scipy.ndimage import gaussian_filter
from torch import Tensor

from capsnet.checkpoint import load_weights
from capsnet.data import DIGITS, ImageSet, hold_out, load
from capsnet.files import write_json
from capsnet.model import CapsNet
from capsnet.training import evaluate
from capsnet_book import ledger
from capsnet_lab.predict import predict
from experiments.running import LEDGER

SHARE = 0.005  # a network of two epochs misreads twice as many
COUNT = 200  # pictures of a kind
SIDE = 112  # pixels
Y, X = np.indices((SIDE, SIDE)) / SIDE


def letter(dice: Generator) -> Image.Image:
    picture, font = Image.new("L", (SIDE, SIDE)), ImageFont.load_default(dice.uniform(50, 90))
    text, stroke = dice.choice([*"ACEFHKMNPRTUVWXY"]), dice.integers(3)
    ImageDraw.Draw(picture).text((56, 56), text, 255, font, "mm", stroke_width=int(stroke))
    return picture.rotate(dice.uniform(-8, 8))


def star(dice: Generator) -> Image.Image:
    picture, points, turn = Image.new("L", (SIDE, SIDE)), dice.integers(3, 7), dice.uniform(0, 7)
    angles = [turn + math.pi * i / points for i in range(2 * points + 2)]
    radii = [50, 20] * (points + 1)
    corners = [
        (56 + r * math.sin(a), 56 + r * math.cos(a)) for r, a in zip(radii, angles, strict=True)
    ]
    if dice.integers(2):
        ImageDraw.Draw(picture).polygon(corners, 255)
    else:
        ImageDraw.Draw(picture).line(corners, 255, int(dice.integers(4, 9)), "curve")
    return picture


def grey(levels: Any) -> Image.Image:
    return Image.fromarray(np.clip(levels, 0, 255).round().astype(np.uint8))


def clouds(dice: Generator) -> Image.Image:
    soft = gaussian_filter(dice.normal(size=X.shape), 8)
    return grey(255 * (soft - soft.min()) / np.ptp(soft))


def stripes(dice: Generator) -> Image.Image:
    angle, turns = dice.uniform(0, math.pi), dice.uniform(2, 8)
    waves = np.sin(2 * math.pi * turns * (X * math.cos(angle) + Y * math.sin(angle)))
    return grey(127.5 + 127.5 * waves)


def empty(dice: Generator) -> Image.Image:
    """Paper in uneven light, photographed."""
    across, down = dice.uniform(-60, 60, 2)
    return grey(180 + across * X + down * Y + dice.normal(0, 3, X.shape))


KINDS: dict[str, Callable[[Generator], Image.Image]] = {
    "letters": letter,
    "stars": star,
    "clouds": clouds,
    "stripes": stripes,
    "noise": lambda dice: grey(dice.uniform(0, 255, X.shape)),
    "specks": lambda dice: grey(255 * (dice.uniform(size=X.shape) < 0.03)),
    "empty paper": empty,
}


def refused(model: CapsNet, kind: Sequence[Image.Image], threshold: float) -> dict[str, int]:
    """How many of these the network refuses, and the reader before it."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"{i}.png") for i in range(len(kind))]
        for path, picture in zip(paths, kind, strict=True):
            picture.save(path)
        answers = [one.answer for one in predict(model, DIGITS, paths, "digit", threshold)]
    small = [np.array(picture.resize((28, 28), Image.Resampling.BOX)) for picture in kind]
    nothing = torch.zeros(len(kind), dtype=torch.int64)
    raw = ImageSet(torch.from_numpy(np.stack(small)[:, None]), nothing, DIGITS, "raw")
    counts = {"blank": answers.count("blank"), "no digit": answers.count("no digit")}
    return {"pictures": len(kind), **counts, "raw": count(longest(model, raw) < threshold)}


def longest(model: CapsNet, images: ImageSet) -> Tensor:
    """The length of each image's longest capsule."""
    return evaluate(model, images).lengths.max(dim=1).values


def count(mask: Tensor) -> int:
    return int(mask.sum())


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit(f"expected one file of weights, got {sys.argv[1:]}")
    first, metadata = load_weights(sys.argv[1])
    if metadata["images"] > 50_000:
        raise SystemExit("the network has learned the validation images too")
    lengths = longest(first, hold_out(load("mnist", train=True))[1])
    threshold = math.floor(100 * float(lengths.quantile(SHARE))) / 100
    record: dict[str, Any] = {
        "share": SHARE, "threshold": threshold, "config": metadata["config"],
        "validation": {"images": len(lengths), "refused": count(lengths < threshold)},
    }  # fmt: skip
    clothes = load("fashion-mnist", train=False).images[:COUNT, 0].numpy()
    kinds = {"clothes": [*map(Image.fromarray, clothes)]}
    for name, draw in KINDS.items():
        dice = np.random.default_rng(0)
        kinds[name] = [draw(dice) for _ in range(COUNT)]
    released, _ = load_weights(ledger.path("mnist/weights.safetensors"))
    for name, model in (("two epochs", first), ("results/mnist", released)):
        found = evaluate(model, load("mnist", train=False))
        short = found.lengths.max(dim=1).values < threshold
        wrong = found.predictions != found.labels
        test = {"images": found.total, "wrong": count(wrong), "refused": count(short)}
        record[name] = {"test": test | {"refused and wrong": count(short & wrong)}}
        record[name] |= {kind: refused(model, drawn, threshold) for kind, drawn in kinds.items()}
        print(name, *record[name].items(), sep="\n  ")
    write_json(LEDGER / "pictures" / "threshold.json", record, indent=None)


if __name__ == "__main__":
    main()
