"""The speed run: how accurate is this network on MNIST after ten minutes on a processor?

    python -m experiments.studies.speedrun   # three seeds, timed, into results/speedrun/runs.json

The network is the paper's, and so is the loss; what changes is how its weights are found. The
recipe was chosen by the trials in results/speedrun/trials.jsonl, which learned from some of the
training images and were counted on the others. A run's minutes are those of a new process until its
weights are written, so leave the machine alone.
"""

import dataclasses
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor
from torch.optim.lr_scheduler import LambdaLR
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from capsnet import CapsNet
from capsnet.checkpoint import load_weights, save_weights
from capsnet.data import ImageSet, load, shifted_batch
from capsnet.device import describe_machine
from capsnet.fast.allocator import keep_freed_memory
from capsnet.files import write_json
from capsnet.functional import margin_loss
from capsnet.training import TrainingConfig, TrainingLoss, evaluate, make_optimizer, make_step
from capsnet.training.loss import RECONSTRUCTION_WEIGHT
from experiments.running import LEDGER

SEEDS = 3


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How the weights are found. Mistakes are counted with three routing iterations."""

    passes: float = 6.6  # images seen, in multiples of those there are
    batch_size: int = 128
    learning_rate: float = 3e-3  # the largest, of Adam
    rise: float = 0.3  # share of the steps in which the rate rises; then it falls as a cosine
    average: float = 0.99  # decay of the weights' moving average
    shift: int = 2  # pixels
    start: float = 0.01  # σ of W
    reconstruct_from: float = 0.5  # share of the steps without the reconstruction loss
    one_iteration: float = 0.75  # share of the steps, from the first on, with one iteration
    # After the first pass, learn from this share of the images only, those with the largest margin
    # losses when they were last seen: many at first because that was early. (Selective-Backprop,
    # Jiang and others 2019, prefers large losses, too.)
    hardest: float = 0.25


RECIPE = Recipe()


def rate_factor(progress: float, rise: float) -> float:
    """The learning rate after a share of all steps, in units of the largest."""
    if progress < rise:
        return 0.04 + 0.96 * progress / rise
    return (1 - math.cos(math.pi * (1 - progress) / (1 - rise))) / 2


def train(images: ImageSet, seed: int) -> tuple[CapsNet, float]:
    """A network by the recipe, and the images a second of its training."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = CapsNet(tuple(images.images.shape[1:]), len(images.classes))
    model.digits.weight.data.mul_(RECIPE.start / 0.1)
    averaged = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(RECIPE.average))
    steps = round(RECIPE.passes * len(images) / RECIPE.batch_size)
    config = TrainingConfig(learning_rate=RECIPE.learning_rate, compile=None)
    optimizer = make_optimizer(model, config)
    schedule = LambdaLR(optimizer, lambda step: rate_factor(step / steps, RECIPE.rise))
    hardness = torch.full((len(images),), math.inf)  # each image's margin loss, when last seen
    index = order = torch.empty(0, dtype=torch.int64)

    def criterion(lengths: Tensor, labels: Tensor) -> Tensor:
        each = torch.func.vmap(margin_loss)(lengths.unsqueeze(1), labels.unsqueeze(1))
        hardness[index] = each.detach()
        return each.mean()

    update = make_step(model, optimizer, config, criterion=criterion)
    loss, iterations = cast(TrainingLoss, update.loss), model.digits.routing_iterations
    start = time.perf_counter()
    for step in range(steps):
        if len(order) < RECIPE.batch_size:  # a pass is over
            count = len(images) if step == 0 else round(RECIPE.hardest * len(images))
            hardest = hardness.topk(count).indices
            order = hardest[torch.randperm(count, generator=generator)]
        index, order = order[: RECIPE.batch_size], order[RECIPE.batch_size :]
        progress = step / steps
        model.digits.routing_iterations = 1 if progress < RECIPE.one_iteration else iterations
        late = progress >= RECIPE.reconstruct_from
        loss.reconstruction_weight = RECONSTRUCTION_WEIGHT if late else 0.0
        value = update(*shifted_batch(images, index, RECIPE.shift, generator))
        schedule.step()
        averaged.update_parameters(model)
        if step % 50 == 0:
            print(f"step {step}/{steps}  loss {value.item():.4f}", file=sys.stderr, flush=True)
    rate = steps * RECIPE.batch_size / (time.perf_counter() - start)
    model.load_state_dict(averaged.module.state_dict())
    return model.eval(), rate


def train_and_time(seed: int) -> dict[str, Any]:
    """The recipe on all images, in a process of its own, counted on the test set.

    Start-up and compilation are part of the time, so nothing is kept of earlier compilations.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "weights.safetensors")
        command = sys.executable, "-m", __spec__.name, str(seed), str(out)
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
    if len(sys.argv) == 3:  # one of the processes that are timed
        images = load("mnist")
        model, rate = train(images, int(sys.argv[1]))
        metadata = {"classes": list(images.classes), "dataset": images.name, "rate": rate}
        save_weights(Path(sys.argv[2]), model, metadata)
        return
    machine = describe_machine(torch.device("cpu"))
    record = {"recipe": dataclasses.asdict(RECIPE), "machine": machine}
    runs = [train_and_time(seed) for seed in range(SEEDS)]
    write_json(LEDGER / "speedrun" / "runs.json", record | {"runs": runs})


if __name__ == "__main__":
    main()
