"""Which deviations show from outside: in inputs, outputs and gradients.

Of the parameters, only the shapes are read of those that an output depends on.
"""

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
    batch_verdict,
    copied,
    depends_on,
    gradient_verdict,
    gradients,
    one_of,
    relative_error,
    sums_to_one,
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


def examine_lengths(net: Subject) -> Findings:
    """Are the returned lengths a softmax?"""
    out = net.output(net.rescaled)
    if out.lengths is None:
        raise Unclear("no lengths are returned, and only an Adapter with loss shows others")
    # If there are also true lengths, the softmax may be only for the answer.
    softmaxes = [x for x in (out.lengths, *out.other_lengths) if sums_to_one(x)]
    if not softmaxes:
        return
    mean, largest = softmaxes[0].sum(dim=1).mean(), softmaxes[0].max()
    text = f"the lengths of all classes sum to {mean:.6f}, and none exceeds {largest:.2f}"
    if out.capsules is not None or len(softmaxes) <= len(out.other_lengths):
        why = "whether the margins are for them shows only through an Adapter with loss"
        raise Unclear(f"{text}; {why}")
    yield "softmax-of-lengths", text


def examine_brightness(net: Subject) -> Findings:
    """Do brightness and contrast of an image matter?"""
    changed = net.images.clone()
    changed[::2] = 2 * changed[::2] + 0.3  # only half of them: the batch may be standardised
    before, after = net.answer(net.images), net.answer(changed)
    if relative_error(before[:1], before[1:2]) < FLOAT64_ERROR:
        raise Unclear("all images get the same answer")
    difference = relative_error(before, after)
    if difference < FLOAT64_ERROR:
        text = f"another contrast and brightness change an answer by {difference:.0e} of its size"
        yield "standardised-images", text


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
    """Does an answer of the whole network depend on the rest of the batch?"""
    yield "batch-logits", batch_verdict(net.answer, net.images)


def examine_gradient(net: Subject) -> Findings:
    """Is the gradient of the whole network its derivative?"""
    yield "stopped-gradient", gradient_verdict(net.answer, net.images, net.generator)
