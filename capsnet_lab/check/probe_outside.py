"""Which deviations show from outside: in inputs, outputs and gradients."""

import torch
import torch.nn.functional as F
from torch import nn

from capsnet_lab.check.adapter import Output
from capsnet_lab.check.evidence import (
    FLOAT64_ERROR,
    Findings,
    NotExamined,
    Unclear,
    Verdict,
    copied,
    depends_on,
    gradients,
    relative_error,
    without_ones,
)
from capsnet_lab.check.subject import Subject


def examine_zero_weights(net: Subject) -> Findings:
    """Are capsules NaN if all weights are zero?"""
    model = copied(net.model)
    for parameter in model.parameters():
        nn.init.zeros_(parameter)
    nan = net.output(model).answer.isnan().float().mean().item()
    text = f"with all weights at zero {nan:.0%} of the capsules' numbers are NaN"
    yield "bare-norm", text if nan else None


def examine_decoder(net: Subject) -> Findings:
    """Which capsule does the decoder see in training, and what are its hidden layers?"""
    model = net.rescaled_training
    out = net.output(model)
    if out.reconstruction is None:
        raise Unclear("there is no reconstruction")
    used = {id(p) for p in depends_on(out.answer, model)}
    decoder = [p for p in depends_on(out.reconstruction, model) if id(p) not in used]
    weights = [p for p in decoder if p.dim() > 1]
    shapes = [tuple(p.shape) for p in weights]
    text = f"its weights are {', '.join(' × '.join(map(str, shape)) for shape in shapes)}"
    hidden = [shape[:-1] for shape in shapes][:-1]
    verdict: Verdict = None if hidden == [(512,), (1024,)] else text
    if not weights:
        verdict = NotExamined("the decoder's weights cannot be told from those of the capsules")
    yield "other-decoder", verdict
    yield from examine_mask(net, model, out)


def examine_mask(net: Subject, model: nn.Module, out: Output) -> Findings:
    """Which capsule does the decoder see, if that does not depend on the label?"""
    other = net.output(model, labels=net.labels(net.images, shift=1))
    assert out.reconstruction is not None and other.reconstruction is not None
    if relative_error(out.reconstruction, other.reconstruction) > FLOAT64_ERROR:
        return
    gradient = None
    if out.raw is not None:
        weighted = out.reconstruction * net.random(*net.images.shape)
        (gradient,) = gradients(weighted, [out.raw])
    if gradient is None:
        raise Unclear("the decoder depends neither on labels nor on the returned capsules")
    seen = without_ones(gradient).norm(dim=2) > 0
    text = f"labels change reconstructions by less than {FLOAT64_ERROR}; "
    text += "gradients reach only this capsule"
    for name, guess in (
        ("prediction-mask", out.norms.argmax(dim=1)),
        ("batch-mask", F.softmax(out.norms, dim=0).argmax(dim=1)),
    ):
        if seen.equal(F.one_hot(guess, net.classes).bool()):
            yield name, text
            return
    counts = seen.sum(dim=1).tolist()
    raise Unclear(f"no label matters, and the decoder sees {counts} capsules")


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
    for step in 1e-7, 1e-8:
        with torch.no_grad():
            rise = net.answer(x + step * direction) - net.answer(x - step * direction)
        slopes.append(float((rise * weights).sum() / (2 * step)))
    if not abs(slopes[1] - slopes[0]) < 1e-5 * abs(slopes[0]):  # false for NaN, too
        several = " and ".join(f"{slope:.6g}" for slope in slopes)
        raise Unclear(f"finite differences of two steps give different derivatives, {several}")
    true = slopes[0]
    text = f"autograd gives a derivative of {by_autograd:.6g}, finite differences {true:.6g}"
    is_derivative = abs(by_autograd - true) <= 1e-5 * abs(true)
    yield "stopped-gradient", None if is_derivative else text
