"""Which deviations a capsule network shows, in inputs, outputs and gradients.

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

from capsnet.functional import margin_loss, reconstruction_loss, squash
from capsnet.training.loss import RECONSTRUCTION_WEIGHT
from capsnet.wild.parts import (
    RELEASED_BIAS,
    Squash,
    normalised,
    softmax_of_lengths,
    standardised,
    unchanged,
    unsquared_margin_loss,
)
from capsnet.wild.subject import (
    EXACT,
    Map,
    Subject,
    apart,
    checked,
    depends_on,
    grow,
    sums_to_one,
    without_ones,
)


class Unseen(NamedTuple):
    """Why it is open whether a deviation is there.

    Attributes:
        why: it was not looked for, or cannot be seen.
        otherwise: what was measured instead is not the paper's, but none of the deviations.
    """

    why: str
    otherwise: bool = False


CERTAIN = 1e-4  # what fits no better is something else, not the same in float32
CERTAIN_OF_LOSS = 1e-5  # likewise: its terms round less, and a drawing's part may be small
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


# Of the whole network, from outside.


def of_batch_mates(f: Map, x: Tensor) -> Verdicts:
    """Does an answer change with those beside it?"""
    one, other = f(x[[0, 1, 2]])[0], f(x[[0, 3, 4]])[0]
    difference = apart(one, other)
    text = f"an answer changes by {difference:.1g} of itself with its batch-mates"
    return {"batch-logits": text if difference > EXACT else None}


def of_gradient(f: Map, x: Tensor, generator: torch.Generator) -> Verdicts:
    """Is the gradient the derivative? If steps of two sizes do not agree, f is rounded inside."""
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
    rises = []
    for size in 1e-7, 1e-6:
        step = size * float(x.detach().std())
        with torch.no_grad():
            rise = ((f(x + step * along) - f(x - step * along)) * weights).sum()
        rises.append(float(rise / (2 * step)))
    other, true = rises
    if not abs(other - true) <= 1e-5 * abs(true) or true == 0:  # NaN do not agree either
        why = f"finite differences of two steps give derivatives of {other:.6g} and {true:.6g}"
        return {"stopped-gradient": Unseen(why)}
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


# Of the primary capsules.


def of_primary(net: Subject) -> Verdicts:
    """Tagged images through the convolutions."""
    u = net.children(net.images)
    if not u.any():
        raise ValueError("all primary capsules are zero or NaN")
    negative = int((u < 0).sum())
    text = f"of {u.numel()} numbers of primary capsules none is negative"
    verdicts: Verdicts = {"relu-before-squash": None if negative else text}
    own, over, _ = longest(lambda model: net.primary(model, net.images), net.biased)
    if min(own, over) > 1 + EXACT:
        why = f"no squash known here: primary capsules become {min(own, over):.2g} long"
        names = "squash-over-children", "view-without-permute", "same-padding", "routed-to-types"
        return verdicts | dict.fromkeys(names, Unseen(why, otherwise=True))

    swapped = net.images.clone()  # two pixels in a corner; mean and deviation stay
    swapped[:, :, 0, :2] = swapped[:, :, 0, :2].flip(-1)
    changed = int(((net.children(swapped) - u).abs().amax(dim=(0, 2)) > EXACT).sum())
    over_children = changed == u.shape[1] and over <= 1 + EXACT
    text = f"two pixels in a corner change {changed} of {u.shape[1]} primary capsules"
    verdicts["squash-over-children"] = text if over_children else None
    if not alike(net.even):
        verdicts["squash-over-children"] = Unseen("the primary capsules are at one place only")
    elif changed == u.shape[1] and not over_children:  # a norm over all places, or attention
        why = f"{text}, which are not squashed over the children"
        verdicts["squash-over-children"] = Unseen(why)
    maps = unsquashed(net.even, squash, 1 if over_children else 2)[0]
    return verdicts | of_views(maps) | of_convolutions(net, maps)


def of_views(maps: Tensor) -> Verdicts:
    """Does a capsule hold neighbours of one map, which are equal in an even image?"""
    later = maps[:, 1:].abs()
    filled = later > 1e-6
    level = int((filled & (maps.diff(dim=1).abs() < 1e-5 * later)).sum())
    text = f"in an even image {level} of {filled.sum()} numbers of primary capsules equal the one "
    text += "before them"
    if len(maps) < maps.shape[1]:
        text += "; or u is [n, dim, children]: then the Adapter has to transpose it"
    return {"view-without-permute": text if level > filled.sum() / 3 else None}


def of_convolutions(net: Subject, maps: Tensor) -> Verdicts:
    """Are edges seen, what do kernels give beside biases, and is there a ReLU in between?

    The maps are an even image's, before the squash, [children, dim].
    """
    dim = maps.shape[1]
    kernels, biases = convolutions(net, net.biased)
    first = [k.shape[1] == net.images.shape[1] for k in kernels]
    channels = sum(len(k) for k, at_first in zip(kernels, first, strict=True) if not at_first)
    why = ""
    if sum(first) != 1:
        why = "the primary capsules come from something else than two stages of convolutions"
    elif len(kernels) != len(biases):
        why = f"{len(kernels)} kernels of convolutions have {len(biases)} biases"
    elif channels % dim:
        why = f"a primary capsule has {dim} numbers, and {channels} maps are no multiple"
    if why:
        return dict.fromkeys(("same-padding", "routed-to-types"), Unseen(why))
    different = 1 + int((maps.flatten().sort().values.diff() > 1e-5).sum())
    text = f"an even image gives {different} different numbers in {channels} maps: edges are seen"
    verdicts: Verdicts = {"same-padding": text if different > 2 * channels else None}

    def size(feature: float, by_kernels: float, by_biases: float) -> float:
        """The largest number of a map made of features that are the same everywhere."""
        for kernel, bias, at_first in zip(kernels, biases, first, strict=True):
            kernel.data.fill_(0 if at_first else by_kernels * len(kernel) / kernel.numel())
            bias.data.fill_(feature if at_first else by_biases)
        return unsquashed(net.children(net.images[:1]), squash, 2).abs().max().item()

    share, types = size(1, 0.5, 0) / size(1, 0, 0.5), channels // dim
    text = f"kernels that should give 0.5 give {0.5 * share:.2g}: {share:.4f} of it, for {types} "
    text += "types"
    routed = types > 1 and any(abs(share * n - 1) < 1e-3 for n in (types, types + 1))  # with a leak
    plain = abs(share - 1) < 1e-3
    unknown = Unseen(f"kernels give {share:.3g} of what they should")
    verdicts["routed-to-types"] = text if routed else None if plain else unknown
    passed = size(-1, 0.5, 0) / size(1, 0.5, 0)
    if (routed or plain) and passed > EXACT:
        why = f"between the convolutions −1 becomes ±{passed:.2g}, where ReLU makes 0 of it"
        verdicts["not-relu"] = Unseen(why, otherwise=True)
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
    scales = {
        id(p)
        for module in model.modules()
        if isinstance(module, nn.modules.batchnorm._BatchNorm | nn.GroupNorm)
        for p in module.parameters()
    }
    parameters = [
        p for p in depends_on(net.primary(model, net.images), model) if id(p) not in scales
    ]
    wide = {len(p) for p in parameters if p.dim() == 4 and p.shape[2] > 1}
    kernels, loose, biases = [], [], []
    for parameter in parameters:
        # A bias may have sides of 1; so has a kernel's norm, of one number for each map.
        bare = parameter.dim() == 4 and parameter.shape[1] > 1 and parameter.shape[2:] == (1, 1)
        if parameter.dim() == 1 or (bare and parameter.numel() in wide):
            loose.append(parameter)
        elif parameter.dim() == 4:
            kernels.append(parameter)
    for kernel in kernels:
        own = [n for n, bias in enumerate(loose) if bias.numel() == len(kernel)]
        biases += [loose.pop(n) for n in own[:1]]
    return kernels, biases


def of_start(net: Subject) -> Verdicts:
    """How the convolutions start."""
    names = "released-start", "glorot-start"
    kernels, biases = convolutions(net, net.model)
    if not kernels:
        return dict.fromkeys(names, Unseen("the primary capsules come from no convolutions"))
    if all(is_uniform(k, k[0].numel() ** -0.5) for k in kernels):
        return dict.fromkeys(names)  # PyTorch's
    glorot = all(is_uniform(k, (6 / (k[0].numel() + k[:, 0].numel())) ** 0.5) for k in kernels)
    released = all(is_cut(k, 0.1) or is_cut(k, 0.05) for k in kernels)
    for name, fits, bias in zip(names, (released, glorot), (RELEASED_BIAS, 0.0), strict=True):
        has_all = len(biases) == len(kernels)
        if fits and has_all and all((b - bias).abs().max() < 1e-6 for b in biases):
            numbers = ", ".join(
                f"{k.std().item():.3f} (≤ {k.abs().max().item():.3f})" for k in kernels
            )
            text = f"biases are all {bias:g}, standard deviations of the kernels {numbers}"
            return {**dict.fromkeys(names), name: text}
    return dict.fromkeys(names, Unseen("kernels and biases fit no start that is known here"))


def follows(values: Tensor, cdf: Map, std: float, bound: float = float("inf")) -> bool:
    """Could these be drawn so? By Kolmogorov and Smirnov, their deviation, and the largest."""
    values = values.detach().flatten().sort().values
    count, drawn, largest = len(values), cdf(values), values.abs().max()
    if count < 2:
        return False
    steps = torch.arange(count + 1) / count
    distance = torch.maximum(drawn - steps[:-1], steps[1:] - drawn).max().item()
    beyond = 1 - (cdf(largest) - cdf(-largest)).item()
    return (
        distance < 2.5 * count**-0.5
        and abs(values.std().item() / std - 1) < 4 * (2 * count) ** -0.5
        and beyond < 14 / count  # or one in a million draws has none there
        and largest.item() <= bound * (1 + 1e-6)
    )


def is_uniform(values: Tensor, bound: float) -> bool:
    return follows(values, lambda x: (x / bound + 1) / 2, bound / 3**0.5, bound)


def is_normal(values: Tensor, std: float) -> bool:
    return follows(values, torch.distributions.Normal(0.0, std).cdf, std)


def is_cut(values: Tensor, std: float) -> bool:
    """A normal without what is beyond two deviations: 0.9545 are left, and 0.8796 of its own."""
    cdf = torch.distributions.Normal(0.0, std).cdf
    return follows(values, lambda x: (cdf(x) - 0.5) / 0.9545 + 0.5, 0.8796 * std, 2 * std)


# Of the loss.


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
    drawing = ["mean-reconstruction", "normalised-images"]
    if error > 1e-7:
        why = f"the loss is no sum of the paper's two, or of variants known here: to {error:.1g}"
        used = {id(p) for p in depends_on(out.answer, net.learning)}
        draws = any(id(p) not in used for p in depends_on(found, net.learning))
        if out.reconstruction is None and draws:
            why = "the loss has a drawing in it, perhaps, which the call does not return"
            return dict.fromkeys(["unsquared-margin", *MARGIN_WEIGHTS, *drawing], Unseen(why))
        unknown = Unseen(why, otherwise=error > CERTAIN_OF_LOSS)
        return dict.fromkeys(["unsquared-margin", *MARGIN_WEIGHTS, *drawing], unknown)

    if not margins_weighted(weight, net.classes) and margins_weighted(weight / count, net.classes):
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
    if plain < 1e-7:
        verdicts["softmax-of-lengths"] = None
    elif soft < 1e-7:
        text = f"the loss is computed so to {soft:.0e}, of the lengths themselves to {plain:.1g}"
        verdicts["softmax-of-lengths"] = text
    pixels = net.images[0].numel()
    if not drawn or abs(drawn[0]) < 1e-3 * RECONSTRUCTION_WEIGHT / pixels:
        return verdicts | dict.fromkeys(drawing, Unseen("the loss has no reconstruction in it"))
    ratio = RECONSTRUCTION_WEIGHT / drawn[0]
    text = f"the sum of squared differences is weighted by {drawn[0]:.3g}, 0.0005 / {ratio:.6g}"
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
