"""Do the defaults train, whatever the pictures? And what would another rate, start … do?

    python -m experiments.studies.defaults [FOLDER]

FOLDER holds pictures of CIFAR-10's classes in train/ and test/; without it that set is left out.
Each training is counted on validation images, which it does not see. What the record has is not
made again.
"""

import dataclasses
import functools
import json
import sys
import time
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

import torch
from torch.optim.lr_scheduler import LRScheduler, OneCycleLR

from capsnet import CapsNet
from capsnet.data import ImageSet, centred, hold_out, load
from capsnet.fast.allocator import keep_freed_memory
from capsnet.files import write_json
from capsnet.training import TrainingConfig, evaluate, fit
from capsnet_lab import folders
from experiments.running import LEDGER

RECORD = LEDGER / "defaults.json"
COUNTED = 2000  # validation images, at most
CIFAR, LARGE = "CIFAR-10's pictures", "MNIST on 40 × 40"
THREE_CLASSES, CLOTHES = "folder of 150 digits, 3 classes", "folder of 500 clothes"
# Data set, number of classes, and images to learn from: of each class in a folder, else in all.
SETS: dict[str, tuple[str, int, int]] = {
    CIFAR: ("folder", 10, 50_000),
    THREE_CLASSES: ("mnist", 3, 50),
    "folder of 50 digits": ("mnist", 10, 5),
    CLOTHES: ("fashion-mnist", 10, 50),
    LARGE: ("mnist", 10, 3_000),
    "Fashion-MNIST": ("fashion-mnist", 10, 5_000),
    "MNIST": ("mnist", 10, 10_000),
}


class Arm(NamedTuple):
    """What is done otherwise than by default."""

    rate: float = 1  # factor
    weight: float = 1  # factor of W's standard deviation, 0.1
    rising: float = 0.3  # share of the steps in which the rate rises
    averaged: bool = True  # the weights, over the steps
    sets: Collection[str] = SETS  # on which the arm is tried
    seeds: int = 1  # on digits of 3 classes: what turns learning into guessing is made three times


ARMS = {
    "default": Arm(),
    "rate ÷ 3": Arm(rate=1 / 3),
    "rate × 3": Arm(rate=3),
    "rate × 9": Arm(rate=9, seeds=3),
    "σ of W 0.03": Arm(weight=0.3, sets=(CIFAR, THREE_CLASSES, LARGE)),
    "rate rises for 3 %": Arm(rising=0.03, sets=(CIFAR, THREE_CLASSES, LARGE)),
    "no average": Arm(averaged=False, sets=(CIFAR, THREE_CLASSES, LARGE)),
    "no warm-up": Arm(rising=0.0, seeds=3),
    # Does a smaller start, or a longer warm-up, save a network from too high a rate? (At nine times
    # the rate the other sets learn nothing.)
    "rate × 9, σ of W 0.03": Arm(rate=9, weight=0.3, sets=(CIFAR, THREE_CLASSES, CLOTHES), seeds=3),
    "rate × 9, rises for 60 %": Arm(rate=9, rising=0.6, sets=(CIFAR, THREE_CLASSES, CLOTHES)),
}


def declared_trainings() -> Iterator[tuple[str, str, str, int]]:
    """Set, arm, budget and seed of each training."""
    for name, arm in ARMS.items():
        yield from ((of, name, "short", 0) for of in arm.sets)
    yield from ((of, "default", "long", 0) for of in SETS if not of.startswith("folder"))
    for seed in (1, 2):
        yield from (
            (THREE_CLASSES, name, "short", seed) for name, arm in ARMS.items() if arm.seeds > seed
        )


@functools.cache
def images_of(name: str) -> tuple[ImageSet, ImageSet]:
    """The images to learn from, and those for validation."""
    dataset, classes, count = SETS[name]
    if name == CIFAR:
        return hold_out(folders.load(f"folder:{sys.argv[1]}"))
    learned, held = hold_out(load(dataset))
    if name.startswith("folder"):
        return first_of_each(learned, classes, count), first_of_each(held, classes, COUNTED)
    learned, held = learned.subset(slice(count)), held.subset(slice(COUNTED))
    if name == LARGE:
        return centred(learned, 40), centred(held.subset(slice(COUNTED // 2)), 40)
    return learned, held


def first_of_each(images: ImageSet, classes: int, count: int) -> ImageSet:
    chosen = [(images.labels == k).nonzero()[:count, 0] for k in range(classes)]
    return dataclasses.replace(images.subset(torch.cat(chosen)), classes=images.classes[:classes])


def train(name: str, arm: Arm, seed: int, **given: Any) -> dict[str, Any]:
    """What a record says of one training."""
    learned, held = images_of(name)
    torch.compiler.reset()
    torch.manual_seed(seed)
    model = CapsNet(tuple(learned.images.shape[1:]), len(learned.classes))
    with torch.no_grad():
        model.digits.weight.mul_(arm.weight)
    suited = TrainingConfig.for_model(model, len(learned), seed=seed, **given)
    rate = float(f"{arm.rate * suited.learning_rate:.2g}")
    average = suited.average if arm.averaged else 0.0
    config = dataclasses.replace(suited, learning_rate=rate, average=average)

    def schedule(optimizer: torch.optim.Optimizer, _: Any, steps: int) -> LRScheduler:
        options: dict[str, Any] = {"cycle_momentum": False, "pct_start": arm.rising}
        return OneCycleLR(optimizer, rate, total_steps=steps, **options)

    start = time.perf_counter()
    fit(model, learned, config=config, schedule=schedule, progress=False)
    seconds = round(time.perf_counter() - start)
    result = evaluate(model, held)
    shortest, longest = result.lengths.aminmax(dim=1)
    return {
        "seconds": seconds,
        **{n: getattr(config, n) for n in ("epochs", "batch_size", "learning_rate", "average")},
        "images": len(learned),
        "correct": result.correct,
        "total": result.total,
        "shortest": round(float(shortest.mean()), 3),  # capsule of an image
        "longest": round(float(longest.mean()), 3),
    }


def main() -> None:
    keep_freed_memory()
    done = json.loads(RECORD.read_text())
    made = {(row["set"], row["arm"], row["budget"], row["seed"]) for row in done}
    for key in declared_trainings():
        name, arm, budget, seed = key
        if key in made or (name == CIFAR and len(sys.argv) < 2):
            continue
        given: dict[str, Any] = {} if name.startswith("folder") else {"compile": None}
        if budget == "short" and not name.startswith("folder"):
            given["epochs"] = 2
        found = train(name, ARMS[arm], seed, **given)
        done.append({"set": name, "arm": arm, "budget": budget, "seed": seed, **found})
        write_json(RECORD, done, indent=None)
        print(*done[-1].values(), sep=", ", flush=True)


if __name__ == "__main__":
    main()
