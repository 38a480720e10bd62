"""Which deviations the loss of a network shows, as a sum of the paper's two."""

import itertools

import torch

from capsnet.functional import margin_loss, reconstruction_loss
from capsnet.training.loss import RECONSTRUCTION_WEIGHT
from capsnet_lab.check.evidence import Unseen, Verdicts
from capsnet_lab.check.subject import Subject, apart, checked, depends_on
from capsnet_lab.wild.parts import (
    normalised,
    softmax_of_lengths,
    standardised,
    unchanged,
    unsquared_margin_loss,
)

FITS = 1e-7  # a loss that is such a sum is no further from it
CERTAIN_OF_LOSS = 1e-5  # as CERTAIN: its terms round less, and a drawing's part may be small


def of_loss(net: Subject) -> Verdicts:
    """Which margin loss of which lengths, and which reconstruction loss, the loss is a sum of."""
    assert net.adapter.loss is not None
    margins = {"": margin_loss, "unsquared-margin": unsquared_margin_loss}
    targets = {"": unchanged, "normalised-images": normalised, "standardised-images": standardised}
    terms: dict[tuple[str, str, str], list[list[float]]] = {}
    losses = []
    count = 7 if net.classes % 7 else 5  # of images: neither one nor two for a class
    for _ in range(6):
        images = net.random(count, *net.adapter.image_shape).sigmoid()
        labels = torch.randint(net.classes, (count,), generator=net.generator)
        out = net.output(net.learning, images, labels)
        torch.default_generator.manual_seed(0)
        found = net.adapter.loss(net.learning, images, labels)
        losses.append(checked("a scalar tensor", found, 0).item())
        lengths = {"": out.norms if out.lengths is None else out.lengths, "norms": out.norms}
        lengths["softmax-of-lengths"] = softmax_of_lengths(out.norms)
        lengths |= {f"besides {n}": other for n, other in enumerate(out.besides)}
        for key in itertools.product(lengths, margins, targets):
            row = [margins[key[1]](lengths[key[0]], labels).item()]
            if out.reconstruction is not None:
                row.append(reconstruction_loss(out.reconstruction, targets[key[2]](images)).item())
            terms.setdefault(key, []).append(row)
    if not all(torch.tensor(each).isfinite().all() for each in (losses, *terms.values())):
        raise ValueError("the loss, or what the network returns in training, is NaN or infinite")
    loss, fits = torch.tensor(losses), {}
    for key, rows in terms.items():
        x = torch.tensor(rows)
        scale = x.abs().amax(dim=0).clamp(min=1e-300)
        weights = torch.linalg.lstsq(x / scale, loss[:, None], driver="gelsd").solution[:, 0]
        fits[key] = apart(x / scale @ weights, loss), (weights / scale).tolist()
    best = min(fits, key=lambda key: fits[key][0])
    error, (weight, *drawn) = fits[best]
    margin = ["unsquared-margin", "softmax-of-lengths", *MARGIN_WEIGHTS]
    drawing = ["mean-reconstruction", "normalised-images"]
    if error > FITS:
        why = f"the loss is no sum of the paper's two, or of variants known here: to {error:.1g}"
        used = {id(p) for p in depends_on(out.answer, net.learning)}
        draws = any(id(p) not in used for p in depends_on(found, net.learning))
        if out.reconstruction is None and draws:
            why = "the loss has a drawing in it, perhaps, which the call does not return"
            return dict.fromkeys([*margin, *drawing], Unseen(why))
        return dict.fromkeys([*margin, *drawing], Unseen(why, otherwise=error > CERTAIN_OF_LOSS))

    summed = not margins_weighted(weight, net.classes) and margins_weighted(
        weight / count, net.classes
    )
    if summed:
        weight, drawn = weight / count, [each / count for each in drawn]  # a sum over the batch

    def at_best(part: int) -> str:
        paper = min(fit for key, (fit, _) in fits.items() if not key[part])
        return f"the loss is computed so to {error:.0e}, as in the paper at best to {paper:.1g}"

    verdicts: Verdicts = {
        "unsquared-margin": at_best(1) if best[1] else None,
        **of_margin_weight(weight, net.classes),
    }
    plain, soft = (
        min(fit for (lengths, *_), (fit, _) in fits.items() if lengths == name)
        for name in ("norms", "softmax-of-lengths")
    )
    if plain < FITS:
        verdicts["softmax-of-lengths"] = None
    elif soft < FITS:
        text = f"the loss is computed so to {soft:.0e}, of the lengths themselves to {plain:.1g}"
        verdicts["softmax-of-lengths"] = text
    pixels = net.images[0].numel()
    if not drawn or abs(drawn[0]) < 1e-3 * RECONSTRUCTION_WEIGHT / pixels:
        return verdicts | dict.fromkeys(drawing, Unseen("the loss has no reconstruction in it"))
    ratio = RECONSTRUCTION_WEIGHT / drawn[0]
    times = f"0.0005 / {ratio:.6g}" if ratio > 1 else f"{1 / ratio:.6g} times the paper's"
    text = f"the sum of squared differences is weighted by {drawn[0]:.3g}, {times}"
    if summed and abs(ratio / count - 1) < 1e-4:
        text = "the squared differences are averaged over the batch, and the margins summed"
    known = {1.0: None, float(pixels): text}
    near = [verdict for value, verdict in known.items() if abs(ratio / value - 1) < 1e-4]
    verdicts["mean-reconstruction"] = near[0] if near else Unseen(text, otherwise=True)
    verdicts["normalised-images"] = at_best(2) if best[2] == "normalised-images" else None
    return verdicts


MARGIN_WEIGHTS = "mean-margin", "halved-margin"


def margins_weighted(weight: float, classes: int) -> list[tuple[str, ...]]:
    """Sum or mean over the classes, halved or not: what gives the margin loss this weight."""
    mean, halved = MARGIN_WEIGHTS
    known = (1.0, ()), (1 / classes, (mean,)), (0.5, (halved,)), (0.5 / classes, (mean, halved))
    return [has for value, has in known if abs(weight / value - 1) < 1e-4]


def of_margin_weight(weight: float, classes: int) -> Verdicts:
    """Which of these the margin loss's weight shows."""
    near = margins_weighted(weight, classes)
    text = f"the margin loss is weighted by {weight:.4g}, with {classes} classes"
    if len(near) != 1:  # with two classes a mean is a half
        return dict.fromkeys(MARGIN_WEIGHTS, Unseen(text, otherwise=not near))
    return {name: text if name in near[0] else None for name in MARGIN_WEIGHTS}
