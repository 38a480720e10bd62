"""Which deviations the loss of a network shows, as a weighted sum of the paper's two losses."""

import itertools
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from capsnet.functional import margin_loss, reconstruction_loss
from capsnet.training.loss import RECONSTRUCTION_WEIGHT
from capsnet_lab.check.adapter import Output, require_shape
from capsnet_lab.check.evidence import (
    Findings,
    NotExamined,
    Unclear,
    UserCodeError,
    Verdict,
    depends_on,
    relative_error,
    sums_to_one,
    user_code,
)
from capsnet_lab.check.subject import Subject
from capsnet_lab.wild import parts

MAX_FIT_ERROR = 1e-7  # the relative error of a loss that is such a sum
OTHER_LOSS_ERROR = 1e-5  # with a larger error, even a small term is another one
MARGINS = {"": margin_loss, "unsquared-margin": parts.unsquared_margin_loss}
TARGETS: dict[str, Callable[[Tensor], Tensor]] = {
    "": parts.unchanged,
    "normalised-images": parts.normalise_mnist,
}
WEIGHTS = "mean-margin", "halved-margin"


class Variant(NamedTuple):
    """A margin loss of some lengths, and a reconstruction loss with some target."""

    lengths: str  # "softmax-of-lengths" if they sum to 1
    number: int  # among the lengths that the network may mean
    margin: str
    target: str


class Fit(NamedTuple):
    """How well a variant explains the losses of several batches."""

    error: float
    weights: list[float]  # of the margin loss and, if there is one, of the reconstruction loss


def examine_loss(net: Subject) -> Findings:
    """Which margin loss and which reconstruction loss does the loss consist of?"""
    assert net.adapter.loss is not None
    terms: dict[Variant, list[list[float]]] = {}
    losses = []
    for _ in range(8):  # of one image, so that a sum over the batch is a mean, too
        images = net.random(1, *net.adapter.image_shape).sigmoid()
        labels = torch.randint(net.classes, (1,), generator=net.generator)
        out = net.output(net.rescaled_training, images, labels)
        torch.default_generator.manual_seed(0)
        with user_code():
            loss = net.adapter.loss(net.rescaled_training, images, labels)
        losses.append(require_shape("a scalar tensor", loss, 0).item())
        for variant, row in terms_of(out, images, labels).items():
            terms.setdefault(variant, []).append(row)
    if not all(torch.tensor(values).isfinite().all() for values in (losses, *terms.values())):
        raise UserCodeError("the loss, or what the network returns in training, is NaN or infinite")
    fits = {variant: least_squares(rows, losses) for variant, rows in terms.items()}
    best = min(fits, key=lambda variant: fits[variant].error)
    if fits[best].error > MAX_FIT_ERROR:
        raise no_known_loss(net, out, loss, fits[best].error)

    margin, *reconstruction = fits[best].weights
    yield variant_verdict(fits, best, "unsquared-margin")
    yield variant_verdict(fits, best, "softmax-of-lengths")
    yield from weight_verdicts(margin, net.classes)
    pixels = net.images[0].numel()
    weight = reconstruction[0] if reconstruction else 0.0
    if abs(weight) < 1e-3 * RECONSTRUCTION_WEIGHT / pixels:
        raise Unclear("the loss has no reconstruction in it")
    yield variant_verdict(fits, best, "normalised-images")
    ratio = RECONSTRUCTION_WEIGHT / weight
    times = f"0.0005 / {ratio:.6g}" if ratio > 1 else f"{1 / ratio:.6g} times the paper's"
    text = f"the sum of squared differences is weighted by {weight:.3g}, {times}"
    if abs(ratio / pixels - 1) < 1e-4:
        yield "mean-reconstruction", text
    elif abs(ratio - 1) > 1e-4:
        raise Unclear(text, unnamed=True)


def terms_of(out: Output, images: Tensor, labels: Tensor) -> dict[Variant, list[float]]:
    """The margin loss of each variant, and its reconstruction loss if there is a reconstruction."""
    lengths = [out.norms, parts.softmax_of_lengths(out.norms), *out.other_lengths]
    if out.lengths is not None:
        lengths.append(out.lengths)
    terms = {}
    for number, margin, target in itertools.product(range(len(lengths)), MARGINS, TARGETS):
        row = [MARGINS[margin](lengths[number], labels)]
        if out.reconstruction is not None:
            row.append(reconstruction_loss(out.reconstruction, TARGETS[target](images)))
        softmax = "softmax-of-lengths" if sums_to_one(lengths[number]) else ""
        terms[Variant(softmax, number, margin, target)] = [term.item() for term in row]
    return terms


def least_squares(rows: list[list[float]], losses: list[float]) -> Fit:
    """Weights of the terms by least squares; ``rows`` has the terms of each batch."""
    terms, loss = torch.tensor(rows), torch.tensor(losses)
    scale = terms.abs().amax(dim=0).clamp(min=1e-300)
    solution = torch.linalg.lstsq(terms / scale, loss[:, None], driver="gelsd").solution[:, 0]
    return Fit(relative_error(terms / scale @ solution, loss), (solution / scale).tolist())


def variant_verdict(fits: dict[Variant, Fit], best: Variant, name: str) -> tuple[str, Verdict]:
    """Is one of the best variant's parts that of a deviation, and how well would ours fit?"""
    if name not in best:
        return name, None
    part = best.index(name)
    paper = min((fit.error for variant, fit in fits.items() if not variant[part]), default=1.0)
    text = f"this loss fits to within {fits[best].error:.0e}, the paper's to {paper:.1g} at best"
    return name, text


def no_known_loss(net: Subject, out: Output, loss: Tensor, error: float) -> Unclear:
    """Why the loss may not be a sum of known losses."""
    used = {id(p) for p in depends_on(out.answer, net.rescaled_training)}
    reconstructs = any(id(p) not in used for p in depends_on(loss, net.rescaled_training))
    if out.reconstruction is None and reconstructs:
        return Unclear("the loss may have a reconstruction in it that the call does not return")
    why = "the loss is not a sum of the paper's two losses, or of known variants: they fit to"
    return Unclear(f"{why} within {error:.1g}", unnamed=error > OTHER_LOSS_ERROR)


def weight_verdicts(weight: float, classes: int) -> Findings:
    """Which deviations give the margin loss this weight: a mean over the classes, a half."""
    text = f"the margin loss is weighted by {weight:.4g}, with {classes} classes"
    mean, halved = WEIGHTS
    weights = (1.0, ()), (1 / classes, (mean,)), (0.5, (halved,)), (0.5 / classes, WEIGHTS)
    near = [names for value, names in weights if abs(weight / value - 1) < 1e-4]
    for name in WEIGHTS:
        if len(near) == 1:
            yield name, text if name in near[0] else None
        else:  # none, or two: with two classes a mean is a half
            yield name, NotExamined(text, unnamed=not near)
