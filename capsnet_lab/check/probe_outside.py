"""Which deviations show from outside: in inputs, outputs and gradients.

Of the parameters, only the shapes are read of those that an output depends on.
"""

import itertools

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from capsnet_lab.check.evidence import (
    FLOAT64_ERROR,
    CapsuleMap,
    Findings,
    NotExamined,
    Unclear,
    Verdict,
    copied,
    depends_on,
    gradients,
    one_of,
    relative_error,
    without_ones,
)
from capsnet_lab.check.subject import Subject


def examine_zero_weights(net: Subject) -> Findings:
    """Are capsules NaN if weights are zero?

    They come from squash's 0 / 0 only if zeros in W alone, and zeros in all parameters but W, give
    NaN, too.
    """
    nan: list[float] = []
    for zero_w, zero_others in (True, True), (True, False), (False, True):
        model = copied(net.model)
        w = {id(p) for p in net.class_weights(model)}
        for parameter in model.parameters():
            if zero_w if id(parameter) in w else zero_others:
                nn.init.zeros_(parameter)
        nan.append(net.output(model).answer.isnan().float().mean().item())
    text = f"with all weights at zero {nan[0]:.0%} of the capsules' numbers are NaN"
    if all(nan):
        yield "bare-norm", f"{text}, with only W at zero {nan[1]:.0%}"
    elif nan[0]:
        raise Unclear(f"{text}, from squash or from elsewhere")


def examine_brightness(net: Subject) -> Findings:
    """Do brightness and contrast of an image matter?"""
    changed = net.images.clone()
    changed[::2] = 2 * changed[::2] + 0.3  # only half of them: the batch may be standardised
    difference = relative_error(net.answer(net.images), net.answer(changed))
    text = f"another contrast and brightness change an answer by {difference:.0e} of its size"
    yield "standardised-images", text if difference < FLOAT64_ERROR else None


def examine_decoder(net: Subject) -> Findings:
    """Which capsule does the decoder see in training, and what are its hidden layers?"""
    model = net.rescaled_training
    out = net.output(model)
    if out.reconstruction is None:
        raise Unclear("there is no reconstruction")
    used = {id(p) for p in depends_on(out.answer, model)}
    decoder = [p for p in depends_on(out.reconstruction, model) if id(p) not in used]
    weights = [p for p in decoder if p.dim() > 1]
    hidden = [len(p) for p in weights][:-1]
    text = f"its hidden layers have {' and '.join(map(str, hidden)) or 'no'} units"
    linear = all(p.dim() == 2 for p in weights)
    if not linear:
        text = f"its weights are {', '.join(' × '.join(map(str, p.shape)) for p in weights)}"
    verdict: Verdict = None if linear and hidden == [512, 1024] else text
    if not weights:
        verdict = NotExamined("the decoder's weights cannot be told from those of the capsules")
    yield "other-decoder", verdict
    yield from examine_mask(net, model, out.reconstruction)


def examine_mask(net: Subject, model: nn.Module, reconstruction: Tensor) -> Findings:
    """Which capsule does the decoder see, if that does not depend on the label?

    Batches of two equal images are tried, too: a softmax over such a batch is 0.5 everywhere, so
    that its argmax is the first class.
    """
    guesses: dict[str, CapsuleMap] = {
        "prediction-mask": lambda lengths: lengths.argmax(dim=1),
        "batch-mask": lambda lengths: F.softmax(lengths, dim=0).argmax(dim=1),
    }
    other = net.output(model, labels=net.labels(net.images, shift=1)).reconstruction
    assert other is not None
    if relative_error(reconstruction, other) > FLOAT64_ERROR:
        return
    right = set(guesses)
    for images in (net.images, *(image.expand(2, -1, -1, -1) for image in net.images[:4])):
        out = net.output(model, images)
        assert out.reconstruction is not None
        gradient = None
        if out.raw is not None:
            weighted = out.reconstruction * torch.randn(images.shape, generator=net.generator)
            (gradient,) = gradients(weighted, [out.raw])
        if gradient is None:
            why = "the decoder depends neither on labels nor on the capsules that are returned"
            raise Unclear(why)
        seen = without_ones(gradient).norm(dim=2) > 0
        for name, guess in guesses.items():
            if not seen.equal(F.one_hot(guess(out.norms), net.classes).bool()):
                right.discard(name)
    if len(right) != 1:
        counts = seen.sum(dim=1).tolist()
        raise Unclear(f"no label matters, and the decoder sees {counts} capsules")
    text = f"labels change reconstructions by less than {FLOAT64_ERROR}; "
    text += "gradients reach only this capsule"
    yield from one_of(guesses, right.pop(), text)


def examine_batch(net: Subject) -> Findings:
    """Does an answer depend on the rest of its batch?"""
    first, second = net.answer(net.images[[0, 1, 2]])[0], net.answer(net.images[[0, 3, 4]])[0]
    difference = relative_error(first, second)
    text = f"other images in its batch change an answer by {difference:.1g} of its size"
    yield "batch-logits", text if difference > FLOAT64_ERROR else None


def examine_gradient(net: Subject) -> Findings:
    """Is the gradient the derivative? Left open if finite differences do not settle on one."""
    x = net.images.clone().requires_grad_()
    v = net.answer(x)
    direction, weights = net.random(*x.shape), net.random(*v.shape)
    (gradient,) = gradients(v * weights, [x])
    if gradient is None:
        raise Unclear("no gradient reaches the images")
    by_autograd = (gradient * direction).sum().item()
    slopes: list[float] = []
    for step in 1e-7, 1e-8, 1e-9:  # if the answer bends nearby, only the smaller steps agree
        with torch.no_grad():
            rise = net.answer(x + step * direction) - net.answer(x - step * direction)
        slopes.append(float((rise * weights).sum() / (2 * step)))
    agreed = [
        large
        for large, small in itertools.pairwise(slopes)
        if abs(small - large) <= 1e-5 * abs(large) and large != 0  # false for NaN, too
    ]
    if not agreed:
        several = ", ".join(f"{slope:.6g}" for slope in slopes)
        raise Unclear(f"finite differences of three steps give different derivatives, {several}")
    true = agreed[0]
    text = f"autograd gives a derivative of {by_autograd:.6g}, finite differences {true:.6g}"
    is_derivative = abs(by_autograd - true) <= 1e-5 * abs(true)
    yield "stopped-gradient", None if is_derivative else text
