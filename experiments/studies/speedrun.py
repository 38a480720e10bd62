"""The speed run: how well does this network read MNIST after ten minutes on a processor?

    python -m experiments.studies.speedrun trials   # short trainings: which change helps?
    python -m experiments.studies.speedrun runs     # the chosen recipe, three seeds, timed
    python -m experiments.studies.speedrun train 0 runs/quick.safetensors   # one of them

The network is the paper's, and so is the loss; what changes is the way to its weights. Trials learn
from some images of the training set and are counted on the others; the test images see the chosen
recipe alone. A run's minutes are those of a new process until its weights are written. Several
processes may make trials at once; the runs want the machine for themselves.
"""

import contextlib
import copy
import dataclasses
import itertools
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import torch
from filelock import FileLock, Timeout
from torch import Tensor, nn

from capsnet import CapsNet
from capsnet.checkpoint import load_weights, save_weights
from capsnet.data import ImageSet, load, shifted, to_float
from capsnet.device import autocast, describe_machine
from capsnet.fast import FastCapsNet
from capsnet.fast.allocator import keep_freed_memory
from capsnet.fast.routing import routed_capsules
from capsnet.files import write_atomically, write_json
from capsnet.functional import margin_loss, reconstruction_loss
from capsnet.training import evaluate
from capsnet.training.loss import RECONSTRUCTION_WEIGHT
from experiments.running import LEDGER, ROOT

FOLDER = LEDGER / "speedrun"
# Images that a trial learns from, the first of the training set; its mistakes are counted on the
# rest of that set.
FEW, HALF, MORE = 20_000, 30_000, 50_000
SEEDS = 3
CPU = torch.device("cpu")


@dataclasses.dataclass(frozen=True)
class Recipe:
    """A way to the network's weights.

    Attributes:
        passes: images seen, in multiples of those there are.
        batch_size: images a step.
        learning_rate: the largest, of Adam.
        rise: share of the steps in which the rate rises; then it falls to 0.
        line: it falls on a straight line, not as a cosine.
        average: decay of the weights' moving average; 0 for none.
        beta2: of Adam: how long it remembers squared gradients.
        shift: in pixels.
        start: σ of W.
        reconstruct_from: share of the steps after which the reconstruction loss counts, too.
        one_iteration: share of the steps, from the first on, with one routing iteration; mistakes
            are counted with three.
        middle: share of the steps, from the first on, in which only the middle 4 × 4 of the 6 × 6
            places have capsules: those of the middle 24 × 24 pixels.
        hardest: after the first pass, learn from this share of the images only, those with the
            largest margin losses when they were last seen: many at first because that was early.
            (Selective-Backprop, Jiang and others 2019, prefers large losses, too.)
        muon: step the second convolution with Muon in place of Adam.
        patches: a warm start: the first kernels are pieces of training images, less their mean,
            as long as they are drawn otherwise.
    """

    passes: float = 3
    batch_size: int = 128
    learning_rate: float = 3e-3
    rise: float = 0.3
    line: bool = False
    average: float = 0.99
    beta2: float = 0.999
    shift: int = 2
    start: float = 0.01
    reconstruct_from: float = 0.0
    one_iteration: float = 0.0
    middle: float = 0.0
    hardest: float = 1.0
    muon: bool = False
    patches: bool = False

    def rate(self, progress: float) -> float:
        """The learning rate after a share of all steps."""
        if progress < self.rise:
            return self.learning_rate * (0.04 + 0.96 * progress / self.rise)
        left = (1 - progress) / (1 - self.rise)
        return self.learning_rate * (left if self.line else (1 - math.cos(math.pi * left)) / 2)


BASE = Recipe()
TRIALS = {
    "base": BASE,
    "W of 0.1": dataclasses.replace(BASE, start=0.1),
    "rate halved": dataclasses.replace(BASE, learning_rate=1.5e-3),
    "rate doubled": dataclasses.replace(BASE, learning_rate=6e-3),
    "1 iteration in the first half": dataclasses.replace(BASE, one_iteration=0.5),
    "1 iteration to the end": dataclasses.replace(BASE, one_iteration=1.0),
    "middle places in the first half": dataclasses.replace(BASE, middle=0.5),
    "hardest half": dataclasses.replace(BASE, hardest=0.5),
    "batches of 64": dataclasses.replace(BASE, batch_size=64),
    "batches of 256": dataclasses.replace(BASE, batch_size=256, average=0.98),
    "no average": dataclasses.replace(BASE, average=0.0),
    "shorter average": dataclasses.replace(BASE, average=0.97),
    "rate falls on a line": dataclasses.replace(BASE, rise=0.1, line=True),
    "Adam forgets sooner": dataclasses.replace(BASE, beta2=0.99),
    "shifts of 1": dataclasses.replace(BASE, shift=1),
    "decoder from the half on": dataclasses.replace(BASE, reconstruct_from=0.5),
    "Muon": dataclasses.replace(BASE, muon=True),
    "first kernels are pieces of digits": dataclasses.replace(BASE, patches=True),
    "hardest third": dataclasses.replace(BASE, hardest=1 / 3),
    "hardest quarter": dataclasses.replace(BASE, hardest=0.25),
}
# What clearly helps and what costs nothing, as a base of further changes.
HARD = dataclasses.replace(BASE, hardest=0.25, one_iteration=0.5)
TRIALS |= {
    "quarter, 1 iteration at first": HARD,
    "quarter, 1 it., rate doubled": dataclasses.replace(HARD, learning_rate=6e-3),
    "quarter, 1 it., batches of 64": dataclasses.replace(HARD, batch_size=64),
    "quarter, 1 it., shifts of 1": dataclasses.replace(HARD, shift=1),
    "quarter, 1 it., rises sooner": dataclasses.replace(HARD, rise=0.1),
    "quarter, 1 it., Adam forgets sooner": dataclasses.replace(HARD, beta2=0.99),
    "sixth, 1 it.": dataclasses.replace(HARD, hardest=1 / 6),
    "quarter, 1 it. for longer, decoder late": dataclasses.replace(
        HARD, one_iteration=0.75, reconstruct_from=0.5
    ),
}
# What helps in a short training may not in a long one: these learn from MORE images.
BETTER = dataclasses.replace(BASE, hardest=0.5, one_iteration=0.5)
LONGER = {
    "longer: hardest half, 1 iteration in the first half": BETTER,
    "longer: the same, rate half as large again": dataclasses.replace(BETTER, learning_rate=4.5e-3),
}
# These see about as many images as a run does, HALF of the training set eight times.
LONG = dataclasses.replace(HARD, passes=8)
LONGEST = {
    "long: all images, 1 it.": dataclasses.replace(LONG, hardest=1.0),
    "long: quarter, 1 it.": LONG,
    "long: quarter, 1 it., rate doubled": dataclasses.replace(LONG, learning_rate=6e-3),
}
TRIED = {  # each with the images that it learns from
    name: (recipe, count)
    for trials, count in ((TRIALS, FEW), (LONGEST, HALF), (LONGER, MORE))
    for name, recipe in trials.items()
}
CHOSEN = dataclasses.replace(HARD, passes=6.6, one_iteration=0.75, reconstruct_from=0.5)


class StagedCapsNet(FastCapsNet):
    """The network, with fewer places and iterations while it is young."""

    middle = one_iteration = False

    def children_of(self, images: Tensor) -> Tensor:
        return super().children_of(images[:, :, 2:-2, 2:-2] if self.middle else images)

    def capsules_of(self, children: Tensor) -> Tensor:
        digits = self.model.digits
        weight = digits.weight  # this network learns no prior
        if self.middle:
            weight = weight.unflatten(0, (-1, 6, 6))[:, 1:-1, 1:-1].flatten(0, 2)
        iterations = 1 if self.one_iteration else digits.routing_iterations
        return routed_capsules(children, weight, iterations, compile=self.compiled)


class Optimizer:
    """Adam, and Muon for the second convolution where it is asked for."""

    def __init__(self, model: CapsNet, recipe: Recipe) -> None:
        self.kernel = model.primary.conv.weight
        others = [p for p in model.parameters() if not (recipe.muon and p is self.kernel)]
        adam = torch.optim.Adam(others, betas=(0.9, recipe.beta2), fused=True)
        self.parts: list[torch.optim.Optimizer] = [adam]
        if recipe.muon:  # which is for matrices: a row for each channel
            self.rows = nn.Parameter(self.kernel.detach().flatten(1))  # the same memory
            options: dict[str, Any] = {"weight_decay": 0.0, "adjust_lr_fn": "match_rms_adamw"}
            self.parts.append(torch.optim.Muon([self.rows], **options))

    def step(self, rate: float) -> None:
        if len(self.parts) > 1:
            assert self.kernel.grad is not None
            self.rows.grad, self.kernel.grad = self.kernel.grad.flatten(1), None
        for part in self.parts:
            for group in part.param_groups:
                group["lr"] = rate
            part.step()
            part.zero_grad()


def pieces(images: ImageSet, like: Tensor, generator: torch.Generator) -> Tensor:
    """Pieces of images with strokes in them, as kernels: [channels, 1, k, k]."""
    k = like.shape[2]
    found = to_float(images.images[:2000]).unfold(2, k, 1).unfold(3, k, 1).reshape(-1, 1, k, k)
    found = found[torch.randperm(len(found), generator=generator)]
    found = found - found.mean(dim=(2, 3), keepdim=True)
    found = found[found.flatten(1).norm(dim=1) > 1][: len(like)]
    norms = like.detach().flatten(1).norm(dim=1), found.flatten(1).norm(dim=1)
    return found * (norms[0] / norms[1])[:, None, None, None]


def margins(lengths: Tensor, labels: Tensor) -> Tensor:
    """Each image's own :func:`margin_loss`, [n, classes] and [n] → [n]."""
    return torch.func.vmap(margin_loss)(lengths.unsqueeze(1), labels.unsqueeze(1))


def batches(
    count: int, recipe: Recipe, hardness: Tensor, generator: torch.Generator
) -> Iterator[Tensor]:
    """Indices of images to learn from, without end; ``hardness`` is read at each pass's start."""
    order = torch.randperm(count, generator=generator)
    while True:
        yield from order[: len(order) // recipe.batch_size * recipe.batch_size].split(
            recipe.batch_size
        )
        hardest = hardness.topk(round(recipe.hardest * count)).indices
        order = hardest[torch.randperm(len(hardest), generator=generator)]


def train(
    recipe: Recipe, images: ImageSet, seed: int = 0, compile: bool = True
) -> tuple[CapsNet, float]:
    """A network by this recipe, and the images a second of its last nine tenths of steps."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = CapsNet(images.images.shape[1:], len(images.classes))
    model.digits.weight.data.mul_(recipe.start / 0.1)
    if recipe.patches:
        model.conv.weight.data = pieces(images, model.conv.weight, generator)
    averaged, network, optimizer = (
        copy.deepcopy(model),
        StagedCapsNet(model),
        Optimizer(model, recipe),
    )
    if compile:
        network.compile()
    hardness = torch.full((len(images),), math.inf)
    steps = round(recipe.passes * len(images) / recipe.batch_size)
    start = time.perf_counter()
    drawn = batches(len(images), recipe, hardness, generator)
    for step, index in enumerate(itertools.islice(drawn, steps)):
        if step == steps // 10:
            start = time.perf_counter()
        progress = step / steps
        network.middle = progress < recipe.middle
        network.one_iteration = progress < recipe.one_iteration
        x, labels = shifted(images, index, recipe.shift, generator)
        with autocast(CPU, "auto"):
            out = network(x, labels)
        loss = margin_loss(out.lengths, labels)
        if progress >= recipe.reconstruct_from:
            redrawn = cast(Tensor, out.reconstruction).float()
            loss = loss + RECONSTRUCTION_WEIGHT * reconstruction_loss(redrawn, x)
        loss.backward()
        optimizer.step(recipe.rate(progress))
        with torch.no_grad():
            if recipe.hardest < 1:
                hardness[index] = margins(out.lengths, labels)
            weight = 1 - min(recipe.average, step / (step + 10))
            torch._foreach_lerp_([*averaged.parameters()], [*model.parameters()], weight)
        if step % 50 == 0 or step == steps - 1:
            print(f"step {step + 1}/{steps}  loss {loss.item():.4f}", file=sys.stderr, flush=True)
    rate = (steps - steps // 10) * recipe.batch_size / (time.perf_counter() - start)
    return averaged.eval(), rate


def made() -> list[dict[str, Any]]:
    """The trials of the ledger."""
    path = FOLDER / "trials.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def make_trial(name: str, seed: int) -> None:
    """Make a trial that the ledger lacks, if no other process does."""
    with contextlib.suppress(Timeout), FileLock(lock(f"{name}-{seed}"), timeout=0):
        if any((each["trial"], each["seed"]) == (name, seed) for each in made()):
            return
        images, (recipe, count) = load("mnist"), TRIED[name]
        print(f"{name}, seed {seed}", flush=True)
        torch.compiler.reset()
        model, rate = train(recipe, images.subset(slice(count)), seed)
        found = evaluate(model, images.subset(slice(count, None)), precision="auto", compile=True)
        record = {"trial": name, "seed": seed, "recipe": dataclasses.asdict(recipe)}
        record |= {"wrong": found.total - found.correct, "total": found.total}
        record |= {"images_per_second": round(rate, 1), "machine": describe_machine(CPU)}
        with FileLock(lock("trials")):
            lines = [json.dumps(each) + "\n" for each in [*made(), record]]
            write_atomically(FOLDER / "trials.jsonl", "".join(lines).encode())
        print(f"  {record['wrong']} wrong of {found.total}, {rate:.0f} images/s", flush=True)


def lock(name: str) -> Path:
    path = ROOT / "runs" / "speedrun" / f".{name}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def run(seed: int) -> dict[str, Any]:
    """The chosen recipe on all images, in a process of its own, counted on the test set.

    Start-up and compilation are part of the time, so nothing is kept of earlier compilations.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "weights.safetensors")
        command = sys.executable, "-m", __spec__.name, "train", str(seed), str(out)
        anew = {"TORCHINDUCTOR_CACHE_DIR": str(Path(folder, "compiled"))}
        start = time.perf_counter()
        subprocess.run(command, check=True, env=os.environ | anew)
        seconds = time.perf_counter() - start
        model, metadata = load_weights(out)
        found = evaluate(model, load("mnist", train=False))
    print(f"seed {seed}: {found.correct} right in {seconds / 60:.1f} minutes", flush=True)
    counted = {"seed": seed, "correct": found.correct, "total": found.total}
    return counted | {"seconds": round(seconds, 1), "images_per_second": metadata["rate"]}


def main() -> None:
    keep_freed_memory()
    match sys.argv[1:]:
        case ["trials", *names]:
            if unknown := set(names) - set(TRIED):
                raise SystemExit(f"trials are {', '.join(TRIED)}, got {', '.join(sorted(unknown))}")
            for name in names or TRIED:
                make_trial(name, 0)
        case ["runs"]:
            runs: list[dict[str, Any]] = []
            record = {"recipe": dataclasses.asdict(CHOSEN), "machine": describe_machine(CPU)}
            for seed in range(SEEDS):
                runs.append(run(seed))
                write_json(FOLDER / "runs.json", record | {"runs": runs})
        case ["train", seed, out]:
            images = load("mnist")
            model, rate = train(CHOSEN, images, int(seed))
            metadata = {"classes": list(images.classes), "dataset": images.name, "rate": rate}
            save_weights(Path(out), model, metadata)
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
