"""What a capsule network computes, and which deviations that shows: :func:`examine`.

Nothing is read but inputs, outputs, gradients, and the shapes of parameters that these depend on.
"""

import copy
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from capsnet.functional import margin_loss, reconstruction_loss, squash
from capsnet.training.loss import RECONSTRUCTION_WEIGHT
from capsnet.wild.deviations import DEVIATIONS
from capsnet.wild.parts import (
    RELEASED_BIAS,
    normalised,
    over_parents,
    softmax_of_lengths,
    standardised,
    unchanged,
    unsquared_margin_loss,
)

EXACT = 1e-9  # two float64 computations of the same thing agree to this
Map = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Adapter:
    """How to call a network, and how to reach its inside; what is left out is not examined.

    Each function's first argument is the network, because copies of it are looked at::

        adapter = Adapter(
            call=lambda net, images, labels: net(images, labels),
            primary=lambda net, images: net.primary(net.conv(images).relu()),
            digits=lambda net, u: net.digits(u),
            loss=lambda net, images, labels: my_loss(*net(images, labels), images, labels),
        )

    Attributes:
        call: images and class indices → what the network returns in training: capsules [n, classes,
            dim], lengths [n, classes], a reconstruction, or several of them. By default
            ``net(images, labels)``, with indices or one-hot, or ``net(images)``.
        primary: images → u, the primary capsules, squashed, [n, children, dim].
        digits: u → v, the class capsules, [n, classes, dim].
        loss: images and class indices → the loss of training.
        image_shape: [channels, height, width].
    """

    call: Callable[[Any, Tensor, Tensor], Any] | None = None
    primary: Callable[[Any, Tensor], Tensor] | None = None
    digits: Callable[[Any, Tensor], Tensor] | None = None
    loss: Callable[[Any, Tensor, Tensor], Tensor] | None = None
    image_shape: Sequence[int] = (1, 28, 28)


class Unseen(NamedTuple):
    """Why a deviation was not looked for."""

    why: str


EQUAL = Unseen("with equal shares no logits matter, nor how many iterations change them")
Verdicts = dict[str, str | Unseen | None]  # by name: the evidence, or None where it is not there


class Output(NamedTuple):
    capsules: Tensor | None  # [n, classes, dim]
    lengths: Tensor | None  # [n, classes], as the network returns them
    reconstruction: Tensor | None  # like the images
    raw: Tensor | None  # the capsules as the network returns them: the decoder may have seen these

    @property
    def answer(self) -> Tensor:
        """The most that is known of the classes."""
        answer = self.lengths if self.capsules is None else self.capsules
        assert answer is not None
        return answer

    @property
    def norms(self) -> Tensor:
        """How long the capsules are; the lengths where they are all that is returned."""
        return self.answer if self.capsules is None else self.capsules.norm(dim=2)


def by_part(part: str) -> dict[str, Any]:
    """The deviations that replace one part, and what by."""
    return {d.name: d.parts[part] for d in DEVIATIONS.values() if part in d.parts}


SQUASHES = {"": squash, **by_part("squash")}
del SQUASHES["bare-norm"]  # the same but at 0
SHARES = {"": over_parents, **by_part("share")}
AXES = {"": 2, **by_part("digits_axis")}
MOST_ITERATIONS = 6


class Subject:
    """A copy of a network in float64, and how to call it.

    Raises:
        ValueError: it cannot be called, or returns no capsules and no lengths.
    """

    def __init__(self, model: nn.Module, adapter: Adapter) -> None:
        self.model = copy.deepcopy(model).cpu().double().eval().requires_grad_(True)
        self.adapter = adapter
        self.generator = torch.Generator().manual_seed(0)
        self.images = self.random(8, *adapter.image_shape).sigmoid()
        self.classes = 10  # until it answers
        ways: list[Callable[[Any, Tensor, Tensor], Any]] = [
            lambda net, images, labels: net(images),
            lambda net, images, labels: net(images, F.one_hot(labels, self.classes).to(images)),
            lambda net, images, labels: net(images, labels),
        ]
        works, wrong = None, []
        for self.call in [adapter.call] if adapter.call else ways:
            try:
                self.classes = self.output(self.model).answer.shape[1]
                works = self.call  # the last that does
            except Exception as error:  # a stranger's
                wrong.append(error)
        if works is None:
            telling = [error for error in wrong if not isinstance(error, TypeError)] or wrong
            raise ValueError(
                f"the network cannot be called with images {list(self.images.shape)}: "
                f"{telling[0]}; an Adapter says how"
            ) from telling[0]
        self.call = works

    def random(self, *shape: int) -> Tensor:
        return torch.randn(shape, generator=self.generator)

    def labels(self, images: Tensor, after: int = 0) -> Tensor:
        return (torch.arange(len(images)) + after) % self.classes

    def output(
        self, model: nn.Module, images: Tensor | None = None, labels: Tensor | None = None
    ) -> Output:
        """What the network returns, told apart by shape."""
        images = self.images if images is None else images
        labels = self.labels(images) if labels is None else labels
        torch.default_generator.manual_seed(0)  # of dropout
        returned = self.call(model, images, labels)
        if isinstance(returned, dict):
            returned = list(returned.values())
        found: dict[str, Tensor] = {}
        for tensor in [returned] if isinstance(returned, Tensor) else returned:
            if not isinstance(tensor, Tensor) or tensor.dim() < 2 or len(tensor) != len(images):
                continue
            slim = without_ones(tensor)
            if tensor.numel() == images.numel():
                found.setdefault("reconstruction", tensor.reshape(images.shape))
            elif slim.dim() == 3:
                found.setdefault("capsules", slim)
                found.setdefault("raw", tensor)
            elif slim.dim() == 2 and slim.requires_grad:  # a mask is no lengths
                found.setdefault("lengths", slim)
        out = Output(*(found.get(name) for name in Output._fields))
        if out.capsules is None and out.lengths is None:
            raise ValueError("it returns neither capsules [n, classes, dim] nor lengths")
        return out

    @functools.cached_property
    def lively(self) -> nn.Module:
        """A copy of it with weights such that capsules are neither short nor long."""
        model = copy.deepcopy(self.model)
        for _ in range(12):
            size = self.output(model).norms.detach().nan_to_num().mean().item()
            if 0.2 < size < 0.7:
                break
            grow(model, min(max((0.45 / max(size, 1e-9)) ** (1 / 6), 0.5), 2))
        return model

    @functools.cached_property
    def learning(self) -> nn.Module:
        """The same in training."""
        return copy.deepcopy(self.lively).train()

    @functools.cached_property
    def biased(self) -> nn.Module:
        """A copy of it with biases that are all different."""
        model = copy.deepcopy(self.model)
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.data = 0.2 * self.random(*parameter.shape)
        return model

    def children(self, images: Tensor) -> Tensor:
        """The primary capsules of that copy."""
        assert self.adapter.primary is not None
        return self.adapter.primary(self.biased, images).detach().nan_to_num()

    @functools.cached_property
    def even(self) -> Tensor:
        """The primary capsules of an even image."""
        return self.children(torch.full_like(self.images[:1], 0.5))


@torch.no_grad()
def grow(model: nn.Module, factor: float) -> None:
    """Scale all weights, but no biases."""
    for parameter in model.parameters():
        if parameter.dim() > 1:
            parameter.mul_(factor)


def without_ones(tensor: Tensor) -> Tensor:
    return tensor.reshape(len(tensor), *(side for side in tensor.shape[1:] if side > 1))


def apart(one: Tensor, other: Tensor) -> float:
    """The largest difference, relative to the largest number."""
    one, other = one.detach().nan_to_num(), other.detach().nan_to_num()
    return float((one - other).abs().max() / other.abs().max().clamp(min=1e-300))


def depends_on(value: Tensor, model: nn.Module) -> list[nn.Parameter]:
    """The parameters that a value is made of."""
    parameters = list(model.parameters())
    gradients = torch.autograd.grad(value.sum(), parameters, retain_graph=True, allow_unused=True)
    return [p for p, g in zip(parameters, gradients, strict=True) if g is not None]


def squashed(s: Tensor, by: Callable[[Tensor, int], Tensor], axis: int) -> Tensor:
    """Capsules [n, capsules, dim], squashed; axis 3 takes each number by itself."""
    return by(s.unsqueeze(3), axis).squeeze(3)


def unsquashed(v: Tensor, by: Callable[[Tensor, int], Tensor], axis: int) -> Tensor:
    """The s of which v was squashed, by bisection: between 1e-12 and 1e6."""
    length = torch.linalg.vector_norm(v.unsqueeze(3), dim=axis)
    low, high = torch.full_like(length, -12), torch.full_like(length, 6)
    for _ in range(40):
        middle = (low + high) / 2
        above = by(10 ** middle.unsqueeze(-1), -1).squeeze(-1) > length
        low, high = torch.where(above, low, middle), torch.where(above, middle, high)
    ratio = 10**high / length.clamp(min=1e-300)
    return v * (ratio if axis == 3 else ratio.reshape_as(v.narrow(axis, 0, 1)))


@torch.no_grad()
def scale_for(f: Map, x: Tensor, length: float) -> float:
    """The t for which f(t x) is of about such a mean length."""
    t = 1e-3
    for _ in range(30):
        size = float(f(t * x).norm(dim=2).nan_to_num().mean())
        if 0.9 < size / length < 1.1:
            break
        t *= min(max((length / max(size, 1e-300)) ** 0.5, 0.01), 100)
    return t


# Of the whole network, from outside.


def of_batch_mates(f: Map, x: Tensor) -> Verdicts:
    """Does an answer change with those beside it?"""
    one, other = f(x[[0, 1, 2]])[0], f(x[[0, 3, 4]])[0]
    difference = apart(one, other)
    text = f"an answer changes by {difference:.1g} of itself with its batch-mates"
    return {"batch-logits": text if difference > EXACT else None}


def of_gradient(f: Map, x: Tensor, generator: torch.Generator) -> Verdicts:
    """Is the gradient the derivative?"""
    x = x.detach().requires_grad_()
    v = f(x)
    along = torch.randn(x.shape, generator=generator)
    weights = torch.randn(v.shape, generator=generator)
    (gradient,) = torch.autograd.grad((v * weights).sum(), x)
    said = (gradient * along).sum().item()
    step = 1e-6 * float(x.detach().std())
    with torch.no_grad():
        rise = ((f(x + step * along) - f(x - step * along)) * weights).sum()
    true = float(rise / (2 * step))
    text = f"along a line autograd gives a derivative of {said:.6g}, finite differences {true:.6g}"
    return {"stopped-gradient": text if abs(said - true) > 1e-5 * abs(true) else None}


def of_lengths(net: Subject) -> Verdicts:
    """Capsules when all weights are large, or all are zero; lengths that are no lengths."""
    zero = copy.deepcopy(net.model)
    for parameter in zero.parameters():
        nn.init.zeros_(parameter)
    nan = net.output(zero).answer.isnan().float().mean()
    text = f"with all weights at zero {nan:.0%} of the capsules' numbers are NaN"
    verdicts: Verdicts = {"bare-norm": text if nan else None}

    out = net.output(net.lively)
    if out.lengths is not None:
        sums = out.lengths.sum(dim=1)
        text = f"the lengths of all classes sum to {sums.mean():.6f}, none is beyond "
        text += f"{out.lengths.max():.2f}"
        one = apart(sums, torch.ones_like(sums)) < EXACT
        verdicts["softmax-of-lengths"] = text if one else None
    return verdicts


def of_whole(net: Subject) -> Verdicts:
    """What of the routing shows without its layer."""
    model = net.lively

    def answers(images: Tensor) -> Tensor:
        return net.output(model, images).answer

    mates = of_batch_mates(answers, net.images)
    return mates | of_gradient(answers, net.images, net.generator) | of_saturation(net)


def of_saturation(net: Subject) -> Verdicts:
    """The axis of squash, seen in how long capsules become when all weights grow."""
    model, own, over = copy.deepcopy(net.lively), 0.0, 0.0
    for _ in range(8):
        v = net.output(model).capsules
        if v is None:
            return {}
        own = max(own, v.norm(dim=2).max().item())
        over = max(over, v.norm(dim=1).max().item())
        grow(model, 1.5)
    names = "squash-over-classes", "squash-by-component"
    if max(own, over) < 1:
        return dict.fromkeys(names, Unseen("capsules stay short, whatever the weights"))
    text = f"capsules become {own:.2f} long, a component of all classes together {over:.2f}"
    true = own > 1 + EXACT, own > 1 + EXACT and over > 1 + EXACT
    return {
        names[0]: text if true[0] and not true[1] else None,
        names[1]: text if true[1] else None,
    }


def of_brightness(net: Subject) -> Verdicts:
    """Does brightness and contrast of an image matter?"""
    model = net.lively
    one, other = (net.output(model, x).answer for x in (net.images, 2 * net.images + 0.3))
    if apart(one[:1], one[1:2]) < EXACT:
        return {"standardised-images": Unseen("all images get the same answer")}
    text = f"an image twice as bright gets the same answer, to {apart(one, other):.0e}"
    return {"standardised-images": text if apart(one, other) < EXACT else None}


def of_decoder(net: Subject) -> Verdicts:
    """Which capsule the decoder sees in training, and its hidden layers."""
    names = ("prediction-mask", "batch-mask", "other-decoder")
    model = net.learning
    out = net.output(model)
    if out.reconstruction is None:
        return dict.fromkeys(names, Unseen("there is no reconstruction"))
    used = {id(p) for p in depends_on(out.answer, model)}
    layers = [p for p in depends_on(out.reconstruction, model) if id(p) not in used]
    hidden = [len(p) for p in layers if p.dim() == 2][:-1]
    text = f"its hidden layers have {' and '.join(map(str, hidden)) or 'no'} units"
    verdicts: Verdicts = {names[2]: None if hidden == [512, 1024] else text}

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
    text = f"other labels change reconstructions by less than {EXACT}; each has a gradient in one "
    text += "capsule alone, and it is this"
    return {name: text if name in right else None for name in guesses}


# Of the primary capsules.


def of_primary(net: Subject) -> Verdicts:
    """Tagged images through the convolutions."""
    u, even = net.children(net.images), net.even
    count, dim = u.shape[1:]
    negative = int((u < 0).sum())
    text = f"of {u.numel()} numbers of primary capsules none is negative"
    verdicts: Verdicts = {"relu-before-squash": None if negative else text}

    swapped = net.images.clone()  # two pixels in a corner; mean and deviation stay
    swapped[:, :, 0, :2] = swapped[:, :, 0, :2].flip(-1)
    changed = int(((net.children(swapped) - u).abs().amax(dim=(0, 2)) > EXACT).sum())
    if not alike(even):
        verdicts["squash-over-children"] = Unseen("the primary capsules are at one place only")
    else:
        text = f"two pixels in a corner change {changed} of {count} primary capsules"
        verdicts["squash-over-children"] = text if changed == count else None

    axis = 1 if changed == count else 2
    maps = unsquashed(even, squash, axis)[0]
    later = maps[:, 1:].abs()
    filled = later > 1e-6
    level = int((filled & (maps.diff(dim=1).abs() < 1e-5 * later)).sum())
    text = f"in an even image {level} of {filled.sum()} numbers of primary capsules equal the one "
    text += "before them"
    verdicts["view-without-permute"] = text if level > filled.sum() / 3 else None

    kernels, biases = convolutions(net, net.biased)
    first = [k.shape[1] == net.images.shape[1] for k in kernels]
    channels = sum(len(k) for k, at_first in zip(kernels, first, strict=True) if not at_first)
    if sum(first) != 1 or len(kernels) != len(biases) or channels % dim:
        why = "the primary capsules come from something else than two stages of convolutions"
        return verdicts | dict.fromkeys(("same-padding", "routed-to-types"), Unseen(why))
    different = 1 + int((maps.flatten().sort().values.diff() > 1e-5).sum())
    text = f"an even image gives {different} different numbers in {channels} maps: edges are seen"
    verdicts["same-padding"] = text if different > channels else None

    # Features of 1 everywhere, then maps that are 0.5 by the kernels, or by the biases.
    sizes = []
    for by_kernels in (True, False):
        for kernel, bias, at_first in zip(kernels, biases, first, strict=True):
            kernel.data.fill_(0.5 * len(kernel) / kernel.numel() * (by_kernels and not at_first))
            bias.data.fill_(1 if at_first else 0.5 * (not by_kernels))
        sizes.append(unsquashed(net.children(net.images[:1]), squash, axis).max().item())
    share, types = sizes[0] / sizes[1], channels // dim
    text = f"kernels that should give 0.5 give {0.5 * share:.2g}: {share:.4f} of it, for {types} "
    text += "types"
    routed = any(abs(share * n - 1) < 1e-3 for n in (types, types + 1))  # with a leak
    plain = abs(share - 1) < 1e-3
    unknown = Unseen(f"kernels give {share:.3g} of what they should")
    verdicts["routed-to-types"] = text if routed else None if plain else unknown
    return verdicts


def alike(even: Tensor) -> list[int]:
    """Children that are the same in an even image as one other: of one type, in two places."""
    for child in range(even.shape[1]):
        same = (even[0] - even[0, child]).abs().amax(dim=1) < EXACT
        if even[0, child].abs().max() > EXACT and same.sum() > 1:
            return same.nonzero().flatten().tolist()
    return []


def convolutions(net: Subject, model: nn.Module) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """The kernels that the primary capsules depend on, and their biases."""
    assert net.adapter.primary is not None
    parameters = depends_on(net.adapter.primary(model, net.images), model)
    kernels = [p for p in parameters if p.dim() == 4]
    biases = [
        bias
        for kernel, bias in itertools.pairwise(parameters)
        if kernel.dim() == 4 and bias.shape == kernel.shape[:1]
    ]
    return kernels, biases


def of_start(net: Subject) -> Verdicts:
    """How the convolutions start."""
    names = "released-start", "glorot-start"
    kernels, biases = convolutions(net, net.model)
    if all(is_uniform(k, k[0].numel() ** -0.5) for k in kernels):
        return dict.fromkeys(names)  # PyTorch's
    glorot = all(is_uniform(k, (6 / (k[0].numel() + k[:, 0].numel())) ** 0.5) for k in kernels)
    released = all(is_cut(k, 0.1) or is_cut(k, 0.05) for k in kernels)
    for name, fits, bias in zip(names, (released, glorot), (RELEASED_BIAS, 0.0), strict=True):
        if fits and all((b - bias).abs().max() < 1e-6 for b in biases):
            numbers = ", ".join(
                f"{k.std().item():.3f} (≤ {k.abs().max().item():.3f})" for k in kernels
            )
            text = f"biases are all {bias:g}, standard deviations of the kernels {numbers}"
            return {**dict.fromkeys(names), name: text}
    return dict.fromkeys(names, Unseen("the kernels fit no start that is known here"))


def follows(values: Tensor, cdf: Map, std: float, low: float, high: float) -> bool:
    """Could these be drawn so? Kolmogorov's and Smirnov's test, their deviation, the largest."""
    values = values.detach().flatten().sort().values
    count, drawn = len(values), cdf(values)
    steps = torch.arange(count + 1) / count
    distance = torch.maximum(drawn - steps[:-1], steps[1:] - drawn).max().item()
    return (
        distance < 2.5 * count**-0.5
        and abs(values.std().item() / std - 1) < 4 * (2 * count) ** -0.5
        and low < values.abs().max().item() <= high * (1 + 1e-6)
    )


def is_uniform(values: Tensor, bound: float) -> bool:
    return follows(values, lambda x: (x / bound + 1) / 2, bound / 3**0.5, 0.95 * bound, bound)


def is_normal(values: Tensor, std: float) -> bool:
    cdf = torch.distributions.Normal(0.0, std).cdf
    return follows(values, cdf, std, 2 * std, float("inf"))


def is_cut(values: Tensor, std: float) -> bool:
    """A normal without what is beyond two deviations: 0.9545 are left, and 0.8796 of its own."""
    cdf = torch.distributions.Normal(0.0, std).cdf
    return follows(values, lambda x: (cdf(x) - 0.5) / 0.9545 + 0.5, 0.8796 * std, std, 2 * std)


# Of the class capsules and their routing.


class Layer:
    """The class capsules as a map from u to v."""

    def __init__(self, net: Subject) -> None:
        assert net.adapter.digits is not None
        self.net, self.model, self.of_u = net, copy.deepcopy(net.model), net.adapter.digits
        self.children, self.dim = net.even.shape[1:]

    def __call__(self, u: Tensor) -> Tensor:
        return without_ones(self.of_u(self.model, u))

    def random(self, n: int) -> Tensor:
        return self.net.random(n, self.children, self.dim)


def of_layer(net: Subject) -> Verdicts:
    """All that the map from u to v shows."""
    layer = Layer(net)
    verdicts = of_roles(layer)  # then a prior and a bias are zero
    u = layer.random(5)
    strong = scale_for(layer, u, 0.2) * u
    verdicts |= of_batch_mates(layer, strong) | of_gradient(layer, strong, net.generator)

    weak = scale_for(layer, u, 1e-6)
    misfits = squashes_of(layer, weak)
    kind, axis = min(misfits, key=lambda pair: misfits[pair])
    misfit = misfits[kind, axis]
    names = [*SQUASHES, *AXES]
    if misfit > 1e-3:
        why = f"no squash known here fits: the nearest, {kind or 'the paper’s'}, to {misfit:.1g}"
        later = [*names, *SHARES, "one-iteration-more", "two-iterations", *STARTS]
        verdicts |= dict.fromkeys(filter(None, later), Unseen(why))
    else:
        text = f"s is linear in u to {misfit:.0e} if v is squashed so, else to no better than "
        verdicts |= {name: None for name in names if name}
        if kind:
            verdicts[kind] = f"{text}{misfits['', axis]:.1g}"
        if axis:
            verdicts[axis] = f"{text}{misfits[kind, '']:.1g}"
        verdicts |= of_shares(layer, weak, SQUASHES[kind], AXES[axis])
        if verdicts["uniform-shares"]:
            idle = "learned-prior", "batch-logits", "stopped-gradient"
            verdicts |= {name: EQUAL for name in idle if verdicts[name] is None}
    return verdicts | of_sharing(layer, strong)


def of_roles(layer: Layer) -> Verdicts:
    """What the layer's parameters do; priors and biases are set to zero."""
    u, nothing = layer.random(1), torch.zeros(1, layer.children, layer.dim)
    u = scale_for(layer, u, 0.2) * u
    verdicts: Verdicts = {"digit-bias": None, "learned-prior": None}
    for parameter in depends_on(layer(u), layer.model):
        kept, at_zero = parameter.detach().clone(), layer(nothing)
        shape = " × ".join(map(str, without_ones(kept[None])[0].shape))
        parameter.data = layer.net.random(*kept.shape)
        moved = layer(nothing)
        shifted = []
        for shift in 40, 41:  # in a softmax nothing; a leak's logit of 0 is lost beside both
            parameter.data = kept + shift
            shifted.append(layer(u))
        if not torch.allclose(moved, at_zero, equal_nan=True):
            lengths = [v.norm(dim=2).mean().item() for v in (at_zero, moved)]
            text = f"where u is zero capsules are {lengths[0]:.2g} long, and {lengths[1]:.2g} "
            text += f"once {shape} numbers change: these add to s"
            verdicts["digit-bias"] = text
            parameter.data.zero_()
        elif apart(*shifted) < EXACT < apart(layer(0.5 * u), shifted[1]):  # and not all of W
            text = f"v depends on {shape} numbers, not on their sum, and not where u is zero"
            verdicts["learned-prior"] = text
            parameter.data.zero_()
        else:
            parameter.data = kept
    return verdicts


@torch.no_grad()
def squashes_of(layer: Layer, t: float) -> dict[tuple[str, str], float]:
    """How far s is from linear in u if v is squashed so: in sums, and from t to t / 1000."""
    u = layer.random(2)
    u = torch.cat([u, u.sum(dim=0, keepdim=True)])
    v = torch.cat([layer(t * u), layer(1e-3 * t * u)])
    misfits: dict[tuple[str, str], float] = {}
    for kind, by in SQUASHES.items():
        for axis, along in AXES.items():
            strong, faint = unsquashed(v, by, along).chunk(2)
            misfit = max(apart(1e3 * faint, strong), apart(faint[0] + faint[1], faint[2]))
            misfits[kind, axis] = misfit
        if min(misfits.values()) < 1e-4:  # of others, none is below 1e-3
            break
    return misfits


STARTS: dict[str, Callable[[Tensor, int], bool]] = {
    "": lambda w, children: is_cut(w, 0.1),
    "unit-w": lambda w, children: is_normal(w, 1.0),
    "small-w": lambda w, children: is_normal(w, 0.01),
    "uncut-w": lambda w, children: is_normal(w, 0.1),
    "uniform-w": lambda w, children: is_uniform(w, children**-0.5),
}


def routed(u_hat: Tensor, share: Map, by: Any, axis: int) -> Iterator[Tensor]:
    """What each iteration gives, v, up to the most that are looked for."""
    b = torch.zeros(u_hat.shape[:3])
    for _ in range(MOST_ITERATIONS):
        v = squashed(torch.einsum("nij,nijd->njd", share(b), u_hat), by, axis)
        yield v
        b = b + torch.einsum("nijd,njd->nij", u_hat, v)


@torch.no_grad()
def of_shares(layer: Layer, t: float, by: Any, axis: int) -> Verdicts:
    """W of eight children, from faint u; then which routing gives the v of a strong one."""
    some = torch.linspace(0, layer.children - 1, 8).long().unique()
    eye = torch.zeros(len(some), layer.dim, layer.children, layer.dim)
    for row, child in enumerate(some):
        eye[row, :, child] = torch.eye(layer.dim)
    v = layer(0.1 * t * eye.flatten(0, 1))
    c_w = (unsquashed(v, by, axis) / (0.1 * t)).unflatten(0, (len(some), layer.dim))
    _, dim, classes, _ = c_w.shape  # [some, in_dim, classes, dim]: c W, all c alike

    u = torch.zeros(1, layer.children, layer.dim)
    u[:, some] = layer.net.random(1, len(some), dim)
    u = scale_for(layer, u, 0.05) * u
    v = layer(u)
    misfits: dict[tuple[str, int], float] = {}
    equal = {}
    for name, share in SHARES.items():
        equal[name] = float(share(torch.zeros(1, layer.children, classes))[0, 0, 0])
        u_hat = torch.zeros(1, layer.children, classes, v.shape[2])
        u_hat[:, some] = torch.einsum("nik,ikjd->nijd", u[:, some], c_w) / equal[name]
        for iteration, reference in enumerate(routed(u_hat, share, by, axis), start=1):
            misfits[name, iteration] = apart(reference, v)
    name, iterations = min(misfits, key=lambda key: misfits[key])
    error = misfits[name, iterations]
    if error > 1e-6:
        why = f"no routing known here fits: the nearest, {name or 'the paper’s'} with "
        why += f"{iterations} iterations, to {error:.1g}"
        names = [*SHARES, "one-iteration-more", "two-iterations", *STARTS]
        return dict.fromkeys(filter(None, names), Unseen(why))
    if name == "" and iterations == 1:
        name = "uniform-shares"
    verdicts: Verdicts = {share: None for share in SHARES if share}
    if name:
        paper = min(misfits["", r] for r in range(2, MOST_ITERATIONS + 1))
        sums = equal[name] * classes, equal[name] * layer.children
        text = f"v is such to {error:.0e}, with shares over the parents at best to {paper:.1g}; at "
        text += f"first shares sum to {sums[0]:.3g} over parents, to {sums[1]:.3g} over children"
        verdicts[name] = text
    counts = {"one-iteration-more": 4, "two-iterations": 2}
    if name == "uniform-shares":
        verdicts |= dict.fromkeys(counts, EQUAL)
    elif iterations in (3, *counts.values()):
        text = f"v is that of {iterations} iterations to {error:.0e}, of 3 to "
        text += f"{misfits[name, 3]:.1g}"
        verdicts |= {key: text if iterations == r else None for key, r in counts.items()}
    else:
        verdicts |= dict.fromkeys(counts, Unseen(f"{iterations} iterations fit"))

    weight = (c_w / equal[name]).round(decimals=9).unique(dim=0)  # once, where children share it
    fits = [start for start, test in STARTS.items() if test(weight, layer.children)]
    text = f"{weight.numel()} numbers of W: standard deviation {float(weight.std()):.3g}, at most "
    text += f"{float(weight.abs().max()):.3g}"
    if not fits:
        unknown = Unseen(f"{text}; no start that is known here")
        return verdicts | dict.fromkeys(filter(None, STARTS), unknown)
    return verdicts | {start: text if start in fits else None for start in STARTS if start}


def of_sharing(layer: Layer, u: Tensor) -> Verdicts:
    """Do children of one type predict alike?"""
    one, *others = alike(layer.net.even)[:6] or [0]
    if not others:
        return {"shared-w": Unseen("no two primary capsules are of one type")}
    rows = torch.zeros(1 + len(others), layer.children, layer.dim)
    for row, child in enumerate((one, *others)):
        rows[row, child] = u[0, 0]
    v = torch.cat([layer(row[None]) for row in rows])
    difference = apart(v[1:], v[:1].expand_as(v[1:]))
    text = f"{len(rows)} children of one type give the same v for the same u, to {difference:.0e}"
    return {"shared-w": text if difference < EXACT else None}


# Of the loss.


def of_loss(net: Subject) -> Verdicts:
    """Which margin loss of which lengths, and which reconstruction loss, the loss is a sum of."""
    assert net.adapter.loss is not None
    margins = {"": margin_loss, "unsquared-margin": unsquared_margin_loss}
    targets = {"": unchanged, "normalised-images": normalised, "standardised-images": standardised}
    terms: dict[tuple[str, str, str], list[list[float]]] = {}
    losses = []
    for _ in range(6):
        images = net.random(3, *net.adapter.image_shape).sigmoid()
        labels = torch.randint(net.classes, (3,), generator=net.generator)
        out = net.output(net.learning, images, labels)
        torch.default_generator.manual_seed(0)
        losses.append(net.adapter.loss(net.learning, images, labels).item())
        lengths = {"": out.norms if out.lengths is None else out.lengths, "norms": out.norms}
        lengths["softmax-of-lengths"] = softmax_of_lengths(out.norms)
        for key in itertools.product(lengths, margins, targets):
            row = [margins[key[1]](lengths[key[0]], labels).item()]
            if out.reconstruction is not None:
                row.append(reconstruction_loss(out.reconstruction, targets[key[2]](images)).item())
            terms.setdefault(key, []).append(row)
    loss, fits = torch.tensor(losses), {}
    for key, rows in terms.items():
        x = torch.tensor(rows)
        scale = x.abs().amax(dim=0).clamp(min=1e-300)
        weights = torch.linalg.lstsq(x / scale, loss[:, None], driver="gelsd").solution[:, 0]
        fits[key] = apart(x / scale @ weights, loss), (weights / scale).tolist()
    best = min(fits, key=lambda key: fits[key][0])
    error, (weight, *drawn) = fits[best]
    drawing = ["mean-reconstruction", "normalised-images"]
    if error > 1e-7:
        why = f"the loss is no sum of the paper's two, or of variants known here: to {error:.1g}"
        return dict.fromkeys(["unsquared-margin", *MARGIN_WEIGHTS, *drawing], Unseen(why))

    def at_best(part: int) -> str:
        paper = min(fit for key, (fit, _) in fits.items() if not key[part])
        return f"the loss is computed so to {error:.0e}, as in the paper at best to {paper:.1g}"

    verdicts: Verdicts = {
        "softmax-of-lengths": at_best(0) if best[0] == "softmax-of-lengths" else None,
        "unsquared-margin": at_best(1) if best[1] else None,
        **of_margin_weight(weight, net.classes),
    }
    pixels = net.images[0].numel()
    if not drawn or abs(drawn[0]) < 1e-3 * RECONSTRUCTION_WEIGHT / pixels:
        return verdicts | dict.fromkeys(drawing, Unseen("the loss has no reconstruction in it"))
    ratio = RECONSTRUCTION_WEIGHT / drawn[0]
    text = f"the sum of squared differences is weighted by {drawn[0]:.3g}, 0.0005 / {ratio:.6g}"
    known = {1.0: None, float(pixels): text}
    near = [verdict for value, verdict in known.items() if abs(ratio / value - 1) < 1e-4]
    verdicts["mean-reconstruction"] = near[0] if near else Unseen(text)
    verdicts["normalised-images"] = at_best(2) if best[2] == "normalised-images" else None
    return verdicts


MARGIN_WEIGHTS = "mean-margin", "halved-margin"


def of_margin_weight(weight: float, classes: int) -> Verdicts:
    """Sum or mean over the classes, halved or not: from the margin loss's weight."""
    mean, halved = MARGIN_WEIGHTS
    known = (1.0, ()), (1 / classes, (mean,)), (0.5, (halved,)), (0.5 / classes, (mean, halved))
    near = [has for value, has in known if abs(weight / value - 1) < 1e-4]
    text = f"the margin loss is weighted by {weight:.4g}, with {classes} classes"
    if len(near) != 1:  # with two classes a mean is a half
        return dict.fromkeys(MARGIN_WEIGHTS, Unseen(text))
    return {name: text if name in near[0] else None for name in MARGIN_WEIGHTS}
