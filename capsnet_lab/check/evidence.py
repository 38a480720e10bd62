"""Which deviations a capsule network shows from outside, in inputs, outputs and gradients.

Nothing else is read but the shapes of the parameters that these depend on. A deviation has as its
verdict a line of evidence, None where it is not there, or why it was not looked for.
"""

import copy
import itertools
from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from capsnet.functional import squash
from capsnet_lab.check.subject import (
    EXACT,
    Map,
    Subject,
    apart,
    depends_on,
    grow,
    sums_to_one,
    without_ones,
)
from capsnet_lab.wild.parts import Squash


class Unseen(NamedTuple):
    """Why it is open whether a deviation is there.

    Attributes:
        why: it was not looked for, or cannot be seen.
        otherwise: what was measured instead is not the paper's, but none of the deviations.
    """

    why: str
    otherwise: bool = False


CERTAIN = 1e-4  # what fits no better is something else, not the same in float32
Verdicts = dict[str, str | Unseen | None]  # by name: the evidence, or None where it is not there


def unsquashed(v: Tensor, by: Squash, axis: int) -> Tensor:
    """The s of which v was squashed, by bisection: between 1e-12 and 1e6."""
    length = torch.linalg.vector_norm(v.unsqueeze(3), dim=axis)
    low, high = torch.full_like(length, -12), torch.full_like(length, 6)
    for _ in range(40):
        middle = (low + high) / 2
        above = by(10 ** middle.unsqueeze(-1), -1).squeeze(-1) > length
        low, high = torch.where(above, low, middle), torch.where(above, middle, high)
    ratio = 10**high / length.clamp(min=1e-300)
    return v * (ratio if axis == 3 else ratio.reshape_as(v.narrow(axis, 0, 1)))


def of_batch_mates(f: Map, x: Tensor) -> Verdicts:
    """Does an answer change with those beside it?"""
    one, other = f(x[[0, 1, 2]])[0], f(x[[0, 3, 4]])[0]
    difference = apart(one, other)
    text = f"an answer changes by {difference:.1g} of itself with its batch-mates"
    return {"batch-logits": text if difference > EXACT else None}


def of_gradient(f: Map, x: Tensor, generator: torch.Generator) -> Verdicts:
    """Is the gradient the derivative? If no steps of two sizes agree, f is rounded inside."""
    x = x.detach().requires_grad_()
    v = f(x)
    along = torch.randn(x.shape, generator=generator)
    weights = torch.randn(v.shape, generator=generator)
    gradient = None
    if v.requires_grad:
        (gradient,) = torch.autograd.grad((v * weights).sum(), x, allow_unused=True)
    if gradient is None:
        return {"stopped-gradient": Unseen("no gradient reaches what the answer is made of")}
    said = (gradient * along).sum().item()
    rises: list[float] = []
    for size in 1e-6, 1e-7, 1e-8:  # where f bends near x, only the smaller ones agree
        step = size * float(x.detach().std())
        with torch.no_grad():
            rise = ((f(x + step * along) - f(x - step * along)) * weights).sum()
        rises.append(float(rise / (2 * step)))
    agreed = [
        large
        for large, small in itertools.pairwise(rises)
        if abs(small - large) <= 1e-5 * abs(large) and large != 0  # NaN do not agree either
    ]
    if not agreed:
        several = ", ".join(f"{rise:.6g}" for rise in rises)
        why = f"finite differences of three steps give derivatives of {several}"
        return {"stopped-gradient": Unseen(why)}
    true = agreed[0]
    text = f"along a line autograd gives a derivative of {said:.6g}, finite differences {true:.6g}"
    return {"stopped-gradient": text if abs(said - true) > 1e-5 * abs(true) else None}


def of_zeros(net: Subject) -> Verdicts:
    """Are capsules NaN if all weights are zero?

    It is squash's 0 / 0 only if zeros in W alone, and in all but W, make NaN as well.
    """
    shares = []
    for zero_w, zero_others in (True, True), (True, False), (False, True):
        model = copy.deepcopy(net.model)
        last = {id(p) for p in net.last(model)}
        for parameter in model.parameters():
            if zero_w if id(parameter) in last else zero_others:
                nn.init.zeros_(parameter)
        shares.append(net.output(model).answer.isnan().float().mean().item())
    text = f"with all weights at zero {shares[0]:.0%} of the capsules' numbers are NaN"
    if all(shares):
        return {"bare-norm": f"{text}, with W alone {shares[1]:.0%}"}
    unknown = Unseen(f"{text}, from squash or from elsewhere")
    return {"bare-norm": unknown if shares[0] else None}


def of_lengths(net: Subject) -> Verdicts:
    """Lengths that are no lengths."""
    out = net.output(net.lively)
    if out.lengths is None:
        return {}
    # Shares may be for the answer alone, if there are lengths as well.
    shares = [x for x in (out.lengths, *out.besides) if sums_to_one(x)]
    if not shares:
        return {"softmax-of-lengths": None}
    text = f"the lengths of all classes sum to {shares[0].sum(dim=1).mean():.6f}, none is beyond "
    text += f"{shares[0].max():.2f}"
    if out.capsules is not None or len(shares) <= len(out.besides):
        why = f"{text}; whether the margins are for them, an Adapter with loss says"
        return {"softmax-of-lengths": Unseen(why)}
    return {"softmax-of-lengths": text}


def of_company(net: Subject) -> Verdicts:
    """Batch-mates, without the routing's layer."""
    return of_batch_mates(lambda x: net.output(net.lively, x).answer, net.images)


def of_slope(net: Subject) -> Verdicts:
    """The gradient, without the routing's layer."""
    return of_gradient(lambda x: net.output(net.lively, x).answer, net.images, net.generator)


def longest(capsules: Callable[[nn.Module], Tensor], model: nn.Module) -> tuple[float, ...]:
    """How long capsules become as all weights of a copy grow: each by itself, one component of all
    of them together, and a number alone.
    """
    model, seen = copy.deepcopy(model), []
    for _ in range(8):
        v = capsules(model).detach().nan_to_num()
        seen.append([float(each.max()) for each in (v.norm(dim=2), v.norm(dim=1), v.abs())])
        grow(model, 1.5)
    return tuple(map(max, zip(*seen, strict=True)))


TURNED = "or capsules are [n, dim, classes]: then the Adapter has to transpose them"


def of_saturation(net: Subject) -> Verdicts:
    """The axis of squash, seen in how long capsules become when all weights grow."""
    if net.output(net.lively).capsules is None:
        return {}
    own, over, number = longest(lambda model: net.output(model).answer, net.lively)
    names = "squash-over-classes", "squash-by-component"
    if max(own, over) < 1:
        return dict.fromkeys(names, Unseen("capsules stay short, whatever the weights"))
    if number > 1 + EXACT:
        why = f"no squash known here: numbers of capsules become {number:.2g}"
        return dict.fromkeys(names, Unseen(why, otherwise=True))
    text = f"capsules become {own:.2f} long, a component of all classes together {over:.2f}"
    if own > 1 + EXACT and over > 1 + EXACT and not are_squashed_numbers(net):
        why = f"no squash known here fits: {text}, numbers at most {number:.2f}"
        return dict.fromkeys(names, Unseen(why, otherwise=True))
    faint = copy.deepcopy(net.lively)
    grow(faint, 1e-3)
    left = net.output(faint).norms.max().item()
    if left > 0.9:
        why = f"capsules stay {left:.2f} long, however small the weights"
        return dict.fromkeys(names, Unseen(why, otherwise=True))
    true = own > 1 + EXACT, own > 1 + EXACT and over > 1 + EXACT
    return {
        names[0]: f"{text}; {TURNED}" if true[0] and not true[1] else None,
        names[1]: text if true[1] else None,
    }


def are_squashed_numbers(net: Subject) -> bool:
    """Are faint capsules such that s is linear in W, if each number is squashed by itself?"""
    faint = []
    for factor in 1e-3, 1e-4:
        model = copy.deepcopy(net.lively)
        for parameter in net.last(model):
            parameter.data *= factor
        v = net.output(model).capsules
        assert v is not None
        faint.append(unsquashed(v.detach(), squash, 3))
    return apart(10 * faint[1], faint[0]) < 1e-3


def of_brightness(net: Subject) -> Verdicts:
    """Does brightness and contrast of an image matter?"""
    model = net.lively
    changed = net.images.clone()
    changed[::2] = 2 * changed[::2] + 0.3  # not of all: what is taken out may be the batch's
    one, other = (net.output(model, x).answer for x in (net.images, changed))
    if apart(one[:1], one[1:2]) < EXACT:
        return {"standardised-images": Unseen("all images get the same answer")}
    difference = apart(one, other)
    text = f"twice the contrast, and 0.3 brighter, changes an answer by {difference:.0e} of itself"
    return {"standardised-images": text if difference < EXACT else None}


def of_decoder(net: Subject) -> Verdicts:
    """Which capsule the decoder sees in training, and its hidden layers."""
    names = ("prediction-mask", "batch-mask", "other-decoder")
    model = net.learning
    out = net.output(model)
    if out.reconstruction is None:
        return dict.fromkeys(names, Unseen("there is no reconstruction"))
    used = {id(p) for p in depends_on(out.answer, model)}
    layers = [p for p in depends_on(out.reconstruction, model) if id(p) not in used]
    weights = [p for p in layers if p.dim() > 1]
    hidden = [len(p) for p in weights][:-1]
    text = f"its hidden layers have {' and '.join(map(str, hidden)) or 'no'} units"
    linear = all(p.dim() == 2 for p in weights)
    if not linear:  # as of convolutions
        text = f"its weights are {', '.join(' × '.join(map(str, p.shape)) for p in weights)}"
    other_decoder = None if linear and hidden == [512, 1024] else text
    verdicts: Verdicts = {names[2]: other_decoder}
    if not weights:
        verdicts[names[2]] = Unseen("the decoder's weights cannot be told apart")

    other = net.output(model, labels=net.labels(net.images, after=1)).reconstruction
    assert other is not None
    if apart(out.reconstruction, other) > EXACT:
        return verdicts | {names[0]: None, names[1]: None}
    return verdicts | of_mask(net, model)


def of_mask(net: Subject, model: nn.Module) -> Verdicts:
    """Which capsule the decoder sees that looks at no label, in all images and in twice the same.

    Over a batch of the same images a softmax is equal everywhere, and the first class leads.
    """
    guesses: dict[str, Map] = {
        "prediction-mask": lambda lengths: lengths.argmax(dim=1),
        "batch-mask": lambda lengths: F.softmax(lengths, dim=0).argmax(dim=1),
    }
    right = set(guesses)
    for images in (net.images, *(image.expand(2, -1, -1, -1) for image in net.images[:4])):
        out = net.output(model, images)
        assert out.reconstruction is not None
        seen = None
        if out.raw is not None:
            drawn = out.reconstruction * torch.randn(images.shape, generator=net.generator)
            (seen,) = torch.autograd.grad(drawn.sum(), out.raw, allow_unused=True)
        if seen is None:
            why = "the decoder does not depend on labels, nor on the capsules as they are returned"
            return dict.fromkeys(guesses, Unseen(why))
        which = without_ones(seen).norm(dim=2) > 0
        chosen = {name: guess(out.norms) for name, guess in guesses.items()}
        right &= {n for n, k in chosen.items() if which.equal(F.one_hot(k, net.classes).bool())}
    if len(right) != 1:
        why = f"no label matters, and the decoder sees {which.sum(dim=1).tolist()} capsules"
        return dict.fromkeys(guesses, Unseen(why))
    text = f"other labels change reconstructions by less than {EXACT}; in 16 images the "
    text += "gradient of each reaches one capsule alone, this one"
    return {name: text if name in right else None for name in guesses}
