"""From which length on is a capsule an answer? Measured on digits, and on pictures without one.

    capsnet train --dataset mnist --epochs 2 --out runs/first
    python -m experiments.studies.threshold runs/first/weights.safetensors

The rule: of the validation images, which this network has not seen, SHARE may be refused. Of images
that it has learned the longest capsules are too long for that: the network in results/mnist has
learned these, so only its test images count. Pictures without a digit set nothing; they show what
the rule comes to. They are read as `capsnet predict` reads them. The record has more kinds of them
than are drawn here.
"""

import math
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from PIL import Image, ImageDraw, ImageFont

from capsnet.checkpoint import load_weights
from capsnet.data import DIGITS, hold_out, load
from capsnet.files import write_json
from capsnet.model import CapsNet
from capsnet.training import evaluate
from capsnet_book import ledger
from capsnet_lab.predict import predict
from experiments.running import LEDGER

SHARE = 0.005  # a network of two epochs misreads twice as many
COUNT = 200  # pictures of a kind
SIDE = 112  # pixels


def letter(random: Generator) -> Image.Image:
    picture = Image.new("L", (SIDE, SIDE))
    font = ImageFont.load_default(random.uniform(50, 90))
    text, stroke = random.choice([*"ACEFHKMNPRTUVWXY"]), random.integers(3)
    ImageDraw.Draw(picture).text((56, 56), text, 255, font, "mm", stroke_width=int(stroke))
    return picture.rotate(random.uniform(-8, 8))


def star(random: Generator) -> Image.Image:
    picture = Image.new("L", (SIDE, SIDE))
    points, turn = random.integers(3, 7), random.uniform(0, 7)
    corners = []
    for i in range(2 * points + 2):
        angle, radius = turn + math.pi * i / points, (50, 20)[i % 2]
        corners.append((56 + radius * math.sin(angle), 56 + radius * math.cos(angle)))
    if random.integers(2):
        ImageDraw.Draw(picture).polygon(corners, 255)
    else:
        ImageDraw.Draw(picture).line(corners, 255, int(random.integers(4, 9)), "curve")
    return picture


KINDS: dict[str, Callable[[Generator], Image.Image]] = {"letters": letter, "stars": star}


def refusals(model: CapsNet, pictures: Sequence[Image.Image], threshold: float) -> dict[str, int]:
    """How many of these pictures the network refuses, and how many are called blank before it."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"{i}.png") for i in range(len(pictures))]
        for path, picture in zip(paths, pictures, strict=True):
            picture.save(path)
        answers = [one.answer for one in predict(model, DIGITS, paths, "digit", threshold)]
    counts = {answer: answers.count(answer) for answer in ("blank", "no digit")}
    return {"pictures": len(pictures), **counts}


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit(f"expected one file of weights, got {sys.argv[1:]}")
    first, metadata = load_weights(sys.argv[1])
    if metadata["images"] > 50_000:
        raise SystemExit("the network has learned the validation images too")
    lengths = evaluate(first, hold_out(load("mnist"))[1]).lengths.amax(dim=1)
    threshold = math.floor(100 * float(lengths.quantile(SHARE))) / 100
    validation = {"images": len(lengths), "refused": int((lengths < threshold).sum())}
    record: dict[str, Any] = {"share": SHARE, "threshold": threshold}
    record |= {"config": metadata["config"], "validation": validation}
    clothes = load("fashion-mnist", train=False).images[:COUNT, 0].numpy()
    kinds = {"clothes": [*map(Image.fromarray, clothes)]}
    for name, draw in KINDS.items():
        random = np.random.default_rng(0)
        kinds[name] = [draw(random) for _ in range(COUNT)]
    released, _ = load_weights(ledger.path("mnist/weights.safetensors"))
    for name, model in (("two epochs", first), ("results/mnist", released)):
        found = evaluate(model, load("mnist", train=False))
        short, wrong = found.lengths.amax(dim=1) < threshold, found.predictions != found.labels
        masks = {"wrong": wrong, "refused": short, "refused and wrong": short & wrong}
        test = {"images": found.total} | {key: int(mask.sum()) for key, mask in masks.items()}
        refused = {kind: refusals(model, drawn, threshold) for kind, drawn in kinds.items()}
        record[name] = {"test": test, **refused}
        print(name, *record[name].items(), sep="\n  ")
    write_json(LEDGER / "pictures" / "threshold.json", record, indent=None)


if __name__ == "__main__":
    main()
