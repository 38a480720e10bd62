"""Do the defaults train, whatever the pictures? And what would another rate, start … do?

    python -m experiments.studies.defaults [FOLDER]

FOLDER holds pictures of CIFAR-10's classes in train/ and test/; without it that set is left out.
Each training is counted on images for validation, which it does not see. What the record has is not
made again.
"""

import dataclasses
import functools
import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from unittest import mock

import torch
from torch.optim.lr_scheduler import OneCycleLR

from capsnet import CapsNet
from capsnet.data import ImageSet, centred, hold_out, load
from capsnet.fast.allocator import keep_freed_memory
from capsnet.files import write_json
from capsnet.training import TrainingConfig, evaluate, fit, loop
from experiments.running import LEDGER

RECORD = LEDGER / "defaults.json"
COUNTED = 2000  # images for validation, at most
CIFAR, LARGE = "CIFAR-10's pictures", "MNIST on 40 × 40"
THREE, CLOTHES = "folder of 150 digits, 3 classes", "folder of 500 clothes"
Halves = tuple[ImageSet, ImageSet]  # to learn from, and for validation


def some(name: str, count: int = 50_000) -> Halves:
    learned, held = hold_out(load(name))
    return learned.subset(slice(count)), held.subset(slice(COUNTED))


def large(count: int) -> Halves:
    learned, held = some("mnist", count)
    return centred(learned, 40), centred(held.subset(slice(COUNTED // 2)), 40)


def folder(name: str, classes: int, each: int) -> Halves:
    """So few images of each of the first so many classes; all that there are for validation."""
    learned, held = some(name)
    return few(learned, classes, each), few(held, classes, COUNTED)


def few(images: ImageSet, classes: int, each: int) -> ImageSet:
    chosen = [(images.labels == k).nonzero()[:each, 0] for k in range(classes)]
    return dataclasses.replace(images.subset(torch.cat(chosen)), classes=images.classes[:classes])


SETS: dict[str, Callable[[], Halves]] = {
    CIFAR: lambda: hold_out(load(f"folder:{sys.argv[1]}")),
    THREE: lambda: folder("mnist", 3, 50),
    "folder of 50 digits": lambda: folder("mnist", 10, 5),
    CLOTHES: lambda: folder("fashion-mnist", 10, 50),
    LARGE: lambda: large(3_000),
    "Fashion-MNIST": lambda: some("fashion-mnist", 5_000),
    "MNIST": lambda: some("mnist", 10_000),
}
BUDGETS: dict[str, dict[str, Any]] = {"short": {"epochs": 2}, "long": {}}  # folders: only short


class Arm(NamedTuple):
    """What is done otherwise than by default."""

    rate: float = 1  # factor
    weight: float = 1  # factor of W's standard deviation, 0.1
    rising: float = 0.3  # share of the steps in which the rate rises
    averaged: bool = True  # the weights, over the steps


ARMS = {
    "default": Arm(),
    "rate ÷ 3": Arm(rate=1 / 3),
    "rate × 3": Arm(rate=3),
    "rate × 9": Arm(rate=9),
    "σ of W 0.03": Arm(weight=0.3),
    "rate rises for 3 %": Arm(rising=0.03),
    "no average": Arm(averaged=False),
    "no warm-up": Arm(rising=0.0),
    # Does a smaller start, or a longer warm-up, save a network from too high a rate?
    "rate × 9, σ of W 0.03": Arm(rate=9, weight=0.3),
    "rate × 9, rises for 60 %": Arm(rate=9, rising=0.6),
}
# Where an arm is tried, if not on all sets. At nine times the rate these three learn nothing.
SOME, FAILING = (CIFAR, THREE, LARGE), (CIFAR, THREE, CLOTHES)
TRIED = {
    **dict.fromkeys(("σ of W 0.03", "rate rises for 3 %", "no average"), SOME),
    **dict.fromkeys((arm for arm in ARMS if arm.startswith("rate × 9, ")), FAILING),
}
# What turns learning into guessing, and back, is made three times.
REPEATED = ("rate × 9", "no warm-up", "rate × 9, σ of W 0.03")


def declared() -> Iterator[tuple[str, str, str, int]]:
    """Set, arm, budget and seed of each training."""
    for arm in ARMS:
        yield from ((name, arm, "short", 0) for name in TRIED.get(arm, SETS))
    yield from ((name, "default", "long", 0) for name in SETS if not name.startswith("folder"))
    yield from ((THREE, arm, "short", seed) for seed in (1, 2) for arm in REPEATED)


def train(learned: ImageSet, held: ImageSet, arm: Arm, seed: int, **given: Any) -> dict[str, Any]:
    """What a record says of one training."""
    torch.compiler.reset()
    torch.manual_seed(seed)
    model = CapsNet(tuple(learned.images.shape[1:]), len(learned.classes))
    with torch.no_grad():
        model.digits.weight.mul_(arm.weight)
    suited = TrainingConfig.suited(model, len(learned), seed=seed, **given)
    rate = float(f"{arm.rate * suited.learning_rate:.2g}")
    average = suited.average if arm.averaged else 0.0
    config = dataclasses.replace(suited, learning_rate=rate, average=average)
    start = time.perf_counter()
    rising = functools.partial(OneCycleLR, pct_start=arm.rising)
    with mock.patch.object(loop, "OneCycleLR", rising):
        fit(model, learned, config=config, progress=False)
    seconds = round(time.perf_counter() - start)
    result = evaluate(model, held)
    shortest, longest = (  # capsule of an image
        round(float(bound.mean()), 3) for bound in result.lengths.aminmax(dim=1)
    )
    return {
        "seconds": seconds,
        **{n: getattr(config, n) for n in ("epochs", "batch_size", "learning_rate", "average")},
        "images": len(learned),
        "correct": result.correct,
        "total": result.total,
        "shortest": shortest,
        "longest": longest,
    }


def main() -> None:
    keep_freed_memory()
    done = json.loads(RECORD.read_text()) if RECORD.exists() else []
    loaded = functools.cache(lambda name: SETS[name]())
    for key in declared():
        name, arm, budget, seed = key
        known = any((row["set"], row["arm"], row["budget"], row["seed"]) == key for row in done)
        if known or (name == CIFAR and len(sys.argv) < 2):
            continue
        given = {} if name.startswith("folder") else {"compile": None, **BUDGETS[budget]}
        found = train(*loaded(name), ARMS[arm], seed, **given)
        done.append({"set": name, "arm": arm, "budget": budget, "seed": seed, **found})
        write_json(RECORD, done, indent=None)
        print(*done[-1].values(), sep=", ", flush=True)


if __name__ == "__main__":
    main()
