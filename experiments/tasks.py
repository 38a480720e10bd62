"""What a network learns and is tested on: single digits, pairs of them, or digits anywhere."""

import dataclasses
import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from capsnet import CapsNet
from capsnet.data import ImageSet, random_shift, shifted_batch, to_float
from capsnet.fast import arrange
from capsnet.layers import CapsuleLayer
from capsnet.multimnist import multimnist, overlaid_batch
from capsnet.training import TrainingLoss, evaluate
from capsnet.training.fit import MakeBatch
from capsnet_book.pairs import PairsLoss
from experiments.attacks import count_attacked
from experiments.distortions import affine, moved_whole

BATCH = 250  # images at a time
TRACED_IMAGES, TRACED_ITERATIONS = 128, 10  # of which the ledger keeps the routing


class Task(NamedTuple):
    """How a batch is drawn, what is learned from it, and how a network is tested.

    ``test`` takes the network, the test images on the run's canvas, the largest shift in training,
    and the arrangement; it returns what the record says of the test, the table's row under "test".
    ``count_epoch`` takes the same but the shift, after each epoch; what it returns is added to the
    epoch's record.
    """

    make_batch: MakeBatch
    test: Callable[[CapsNet, ImageSet, int, str], dict[str, Any]]
    make_loss: type[TrainingLoss] = TrainingLoss
    count_epoch: Callable[[CapsNet, ImageSet, str], dict[str, Any]] | None = None


def fixed_generator() -> torch.Generator:
    """A generator that draws the same test sets each time."""
    return torch.Generator().manual_seed(0)


def digits_test(model: CapsNet, test: ImageSet, shift: int, arrangement: str) -> dict[str, Any]:
    """The images as they are; and how the routing settles, where there is one."""
    counts = {"test": evaluate(model, test, arrangement=arrangement).summary()}
    if isinstance(model, CapsNet) and type(model.digits) is CapsuleLayer:
        counts["routing"] = routing_statistics(model, test)
        if arrangement != "plain":  # of a network that has a fast one
            counts["primary"] = primary_lengths(model, test)
    return counts


@torch.no_grad()
def primary_lengths(model: CapsNet, test: ImageSet) -> dict[str, float]:
    """How long the primary capsules are: with the first test images, and with an empty page."""
    primary_capsules: Any = arrange(model, "fast").primary_capsules
    images = to_float(test.images[:TRACED_IMAGES]).to(model.digits.weight.device)
    lengths, empty = (primary_capsules(seen).norm(dim=2) for seen in (images, 0 * images[:1]))
    sizes = {
        "mean": lengths.mean(),
        "shortest thousandth": lengths.flatten().sort().values[lengths.numel() // 1000],
        "empty page": empty.mean(),
    }
    return {name: round(length.item(), 6) for name, length in sizes.items()}


@torch.no_grad()
def routing_statistics(model: CapsNet, test: ImageSet) -> dict[str, Any]:
    """How the trained network's routing settles, were it to go on.

    Over the first test images: by how much the logits change from one iteration to the next (mean
    of |Δb|), how evenly a child's output is shared out (mean entropy of c, in units of that of
    equal shares), and how far the shares have come from the first ones (mean of |Δc|, in units of
    the mean share). And where the prior b_ij is learned, how far it has come from 0.
    """
    digits = model.digits
    images = to_float(test.images[:TRACED_IMAGES]).to(digits.weight.device)
    trained = digits.routing_iterations
    try:
        digits.routing_iterations = TRACED_ITERATIONS
        trace = model.routing_trace(images)
    finally:
        digits.routing_iterations = trained
    changes = [(b.b - a.b).abs().mean().item() for a, b in itertools.pairwise(trace)]
    entropies = [torch.special.entr(step.c).sum(dim=2).mean().item() for step in trace]
    first = trace[0].c
    moved = [((step.c - first).abs().mean() / first.mean()).item() for step in trace]
    even = math.log(digits.weight.shape[1])
    statistics: dict[str, Any] = {
        "images": len(images),
        "change": [round(change, 6) for change in changes],
        "entropy": [round(entropy / even, 6) for entropy in entropies],
        "moved": [round(share, 6) for share in moved],
    }
    if digits.prior is not None:
        sizes = {"mean": digits.prior.abs().mean(), "max": digits.prior.abs().max()}
        statistics["prior"] = {name: round(size.item(), 6) for name, size in sizes.items()}
    return statistics


def attacked_test(model: CapsNet, test: ImageSet, shift: int, arrangement: str) -> dict[str, Any]:
    """The first thousand images as they are; and the first of them under attack."""
    plain = evaluate(model, test.subset(slice(1000)), arrangement=arrangement)
    return {"test": plain.summary(), "attacked": count_attacked(model, test)}


def distorted(
    image_set: ImageSet, index: Tensor, max_shift: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """A batch as of :func:`capsnet.data.shifted_batch`, of digits that are also turned, sheared and
    stretched a little, as those are that a reader draws.
    """
    images, labels = image_set.images[index], image_set.labels[index]
    bent = affine(images, generator, degrees=12)
    return to_float(random_shift(bent, max_shift, generator)), labels


def pairs_test(model: CapsNet, test: ImageSet, shift: int, arrangement: str) -> dict[str, Any]:
    """Overlay each image with another: the two longest capsules must be their two classes."""
    pairs = multimnist(
        test, generator=fixed_generator(), max_shift=shift, size=test.images.shape[-1]
    )
    first_digits = dataclasses.replace(test, images=pairs.images, labels=pairs.labels[:, 0])
    lengths = evaluate(model, first_digits, BATCH, arrangement=arrangement).lengths
    predicted = lengths.topk(2, dim=1).indices
    is_named = (pairs.labels.unsqueeze(2) == predicted.unsqueeze(1)).any(dim=2)
    right = is_named.all(dim=1)
    counts: dict[str, Any] = {
        "test": {
            "correct": int(right.sum()),
            "total": len(right),
            "errors": right.logical_not().nonzero().flatten().tolist(),
            "digits": int(is_named.sum()),  # single digits that are among the two that are named
        }
    }
    if isinstance(model, CapsNet) and type(model.digits) is CapsuleLayer:
        counts["routing"] = routing_statistics(model, first_digits)
    return counts


def placed(
    image_set: ImageSet, index: Tensor, max_shift: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """A batch of images, each anywhere; there is no largest shift."""
    images = moved_whole(image_set.images[index], generator)
    return to_float(images), image_set.labels[index]


def placed_sets(test: ImageSet) -> dict[str, ImageSet]:
    """Digits anywhere, bent as affNIST's ("test") and plain, as in training ("placed"); and bent
    ones in the middle ("bent").
    """
    generator = fixed_generator()
    bent = affine(test.images, generator)
    images = {
        "test": moved_whole(bent, generator),
        "placed": moved_whole(test.images, fixed_generator()),
        "bent": bent,
    }
    return {name: dataclasses.replace(test, images=moved) for name, moved in images.items()}


def count_placed(model: CapsNet, test: ImageSet, arrangement: str) -> dict[str, Any]:
    """Count the right answers for digits anywhere after an epoch."""
    sets = placed_sets(test)
    return {
        name: evaluate(model, sets[name], BATCH, arrangement=arrangement).correct
        for name in ("test", "placed")
    }


def placed_test(model: CapsNet, test: ImageSet, shift: int, arrangement: str) -> dict[str, Any]:
    """:func:`placed_sets`, and plain digits in the middle."""
    sets = placed_sets(test) | {"middle": test}
    return {
        name: evaluate(model, images, BATCH, arrangement=arrangement).summary()
        for name, images in sets.items()
    }


TASKS = {
    "digits": Task(shifted_batch, digits_test),
    "drawn": Task(distorted, digits_test),
    "attacked": Task(shifted_batch, attacked_test),
    "pairs": Task(overlaid_batch, pairs_test, PairsLoss),
    "placed": Task(placed, placed_test, count_epoch=count_placed),
}
