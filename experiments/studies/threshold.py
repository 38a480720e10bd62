"""From which length on is a capsule an answer? Measured on digits, and on letters.

    capsnet train --dataset mnist --epochs 2 --out runs/first
    python -m experiments.studies.threshold runs/first/weights.safetensors

Without a file the threshold stays, and only the row of results/mnist is measured again.
The threshold refuses REFUSED_SHARE of the validation images, which this network has not seen. The
network in results/mnist has learned them, and its capsules are too long for images that it has
learned, so only its test images count. The letters choose nothing: they show how many pictures that
are no digits the threshold refuses, as `capsnet predict` prepares them.
"""

import math
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from capsnet.checkpoint import load_weights
from capsnet.data import DIGITS, hold_out, load
from capsnet.files import write_json
from capsnet.model import CapsNet
from capsnet.training import evaluate
from capsnet_book import ledger
from capsnet_lab.predict import predict
from experiments.running import LEDGER

REFUSED_SHARE = 0.005  # a network of two epochs misreads twice as many
LETTERS = 200


def draw_letters(folder: Path) -> list[Path]:
    """Files of 112 × 112 pixels."""
    random = np.random.default_rng(0)
    paths = []
    for i in range(LETTERS):
        picture = Image.new("L", (112, 112))
        font = ImageFont.load_default(random.uniform(50, 90))
        text, stroke = random.choice([*"ACEFHKMNPRTUVWXY"]), random.integers(3)
        ImageDraw.Draw(picture).text((56, 56), text, 255, font, "mm", stroke_width=int(stroke))
        paths.append(folder / f"{i}.png")
        picture.rotate(random.uniform(-8, 8)).save(paths[-1])
    return paths


def refusals(model: CapsNet, threshold: float, letters: list[Path]) -> dict[str, dict[str, int]]:
    """How many test digits a network refuses and gets wrong, and how many letters it refuses."""
    found = evaluate(model, load("mnist", train=False))
    short, wrong = found.lengths.amax(dim=1) < threshold, found.predictions != found.labels
    masks = {"wrong": wrong, "refused": short, "refused and wrong": short & wrong}
    test = {"images": found.total} | {key: int(mask.sum()) for key, mask in masks.items()}
    answers = [one.answer for one in predict(model, DIGITS, letters, "digit", threshold)]
    counts = {answer: answers.count(answer) for answer in ("blank", "no digit")}
    return {"test": test, "letters": {"pictures": len(letters), **counts}}


def choose(first: CapsNet, metadata: dict[str, Any]) -> dict[str, Any]:
    """The threshold of a network of two epochs, and what it comes to."""
    if metadata["images"] > 50_000:
        raise SystemExit("the network has learned the validation images too")
    lengths = evaluate(first, hold_out(load("mnist"))[1]).lengths.amax(dim=1)
    threshold = math.floor(100 * float(lengths.quantile(REFUSED_SHARE))) / 100
    validation = {"images": len(lengths), "refused": int((lengths < threshold).sum())}
    record = {"share": REFUSED_SHARE, "threshold": threshold}
    return record | {"config": metadata["config"], "validation": validation}


def main() -> None:
    if len(sys.argv) > 2:
        raise SystemExit(f"expected one file of weights or none, got {sys.argv[1:]}")
    networks = {"results/mnist": load_weights(ledger.path("mnist/weights.safetensors"))[0]}
    if len(sys.argv) == 2:
        networks["two epochs"], metadata = load_weights(sys.argv[1])
        record = choose(networks["two epochs"], metadata)
    else:
        record = ledger.read("pictures/threshold.json")
    with tempfile.TemporaryDirectory() as folder:
        letters = draw_letters(Path(folder))
        for name, model in networks.items():
            record[name] = refusals(model, record["threshold"], letters)
            print(name, *record[name].items(), sep="\n  ")
    write_json(LEDGER / "pictures" / "threshold.json", record, indent=None)


if __name__ == "__main__":
    main()
