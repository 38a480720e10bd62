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
    "standardised-images": parts.standardise,
}
WEIGHTS = "mean-margin", "halved-margin"


class Variant(NamedTuple):
    """A margin loss of some lengths, and a reconstruction loss with some target."""

    lengths: str
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
    count = 7 if net.classes % 7 else 5  # images: neither one nor two for each class
    for _ in range(6):
        images = net.random(count, *net.adapter.image_shape).sigmoid()
        labels = torch.randint(net.classes, (count,), generator=net.generator)
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
    classes = net.classes
    summed = not near_weights(margin, classes) and bool(near_weights(margin / count, classes))
    images_summed = count if summed else 1  # the loss may be a sum over the batch
    yield from examine_margin(fits, best, margin / images_summed, classes)
    pixels = net.images[0].numel()
    weight = reconstruction[0] / images_summed if reconstruction else 0.0
    if abs(weight) < 1e-3 * RECONSTRUCTION_WEIGHT / pixels:
        raise Unclear("the loss has no reconstruction in it")
    is_normalised = best.target == "normalised-images"
    yield "normalised-images", fit_text(fits, best, "target") if is_normalised else None
    if summed and abs(RECONSTRUCTION_WEIGHT / weight / count - 1) < 1e-4:
        why = "squared differences are averaged over the batch, and the margin losses are summed"
        raise Unclear(why, unnamed=True)
    yield "mean-reconstruction", reconstruction_weight_verdict(weight, pixels)


def terms_of(out: Output, images: Tensor, labels: Tensor) -> dict[Variant, list[float]]:
    """The margin loss of each variant, and its reconstruction loss if there is a reconstruction."""
    lengths = {
        "": out.norms if out.lengths is None else out.lengths,
        "norms": out.norms,
        "softmax-of-lengths": parts.softmax_of_lengths(out.norms),
    }
    lengths |= {f"other {n}": other for n, other in enumerate(out.other_lengths)}
    terms = {}
    for variant in itertools.starmap(Variant, itertools.product(lengths, MARGINS, TARGETS)):
        row = [MARGINS[variant.margin](lengths[variant.lengths], labels)]
        if out.reconstruction is not None:
            row.append(reconstruction_loss(out.reconstruction, TARGETS[variant.target](images)))
        terms[variant] = [term.item() for term in row]
    return terms


def least_squares(rows: list[list[float]], losses: list[float]) -> Fit:
    """Weights of the terms by least squares; ``rows`` has the terms of each batch."""
    terms, loss = torch.tensor(rows), torch.tensor(losses)
    scale = terms.abs().amax(dim=0).clamp(min=1e-300)
    solution = torch.linalg.lstsq(terms / scale, loss[:, None], driver="gelsd").solution[:, 0]
    return Fit(relative_error(terms / scale @ solution, loss), (solution / scale).tolist())


def fit_text(fits: dict[Variant, Fit], best: Variant, part: str) -> str:
    """How well the best variant fits, and the best of those whose part is the paper's."""
    paper = min(fit.error for variant, fit in fits.items() if not getattr(variant, part))
    return f"this loss fits to within {fits[best].error:.0e}, the paper's to {paper:.1g} at best"


def no_known_loss(net: Subject, out: Output, loss: Tensor, error: float) -> Unclear:
    """Why the loss may not be a sum of known losses."""
    used = {id(p) for p in depends_on(out.answer, net.rescaled_training)}
    reconstructs = any(id(p) not in used for p in depends_on(loss, net.rescaled_training))
    if out.reconstruction is None and reconstructs:
        return Unclear("the loss may have a reconstruction in it that the call does not return")
    why = "the loss is not a sum of the paper's two losses, or of known variants: they fit to"
    return Unclear(f"{why} within {error:.1g}", unnamed=error > OTHER_LOSS_ERROR)


def examine_margin(
    fits: dict[Variant, Fit], best: Variant, weight: float, classes: int
) -> Findings:
    """Which margin loss of which lengths, and with which weight."""
    yield "unsquared-margin", fit_text(fits, best, "margin") if best.margin else None
    text = f"the margin loss is weighted by {weight:.4g}, with {classes} classes"
    near = near_weights(weight, classes)
    for name in WEIGHTS:
        if len(near) == 1:
            yield name, text if name in near[0] else None
        else:  # none, or two: with two classes a mean is a half
            yield name, NotExamined(text, unnamed=not near)
    lengths, softmax = (
        min(fit.error for variant, fit in fits.items() if variant.lengths == name)
        for name in ("norms", "softmax-of-lengths")
    )
    if lengths < MAX_FIT_ERROR:
        yield "softmax-of-lengths", None
    elif softmax < MAX_FIT_ERROR:
        text = f"this loss fits to within {softmax:.0e}, that of the lengths to {lengths:.1g}"
        yield "softmax-of-lengths", text
    else:
        yield "softmax-of-lengths", NotExamined("the loss is of other lengths than are returned")


def near_weights(weight: float, classes: int) -> list[tuple[str, ...]]:
    """The deviations that give the margin loss this weight: a mean over the classes, a half."""
    mean, halved = WEIGHTS
    weights = (1.0, ()), (1 / classes, (mean,)), (0.5, (halved,)), (0.5 / classes, (mean, halved))
    return [names for value, names in weights if abs(weight / value - 1) < 1e-4]


def reconstruction_weight_verdict(weight: float, pixels: int) -> Verdict:
    """Is the reconstruction loss a sum over the pixels, a mean, or something else?"""
    ratio = RECONSTRUCTION_WEIGHT / weight
    if abs(ratio - 1) < 1e-4:
        return None
    times = f"0.0005 / {ratio:.6g}" if ratio > 1 else f"{1 / ratio:.6g} times the paper's"
    text = f"the sum of squared differences is weighted by {weight:.3g}, {times}"
    return text if abs(ratio / pixels - 1) < 1e-4 else NotExamined(text, unnamed=True)
