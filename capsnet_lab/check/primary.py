"""Which deviations the primary capsules show, as a map from images to u."""

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from capsnet.functional import squash
from capsnet_lab.check.evidence import Unseen, Verdicts, longest, unsquashed
from capsnet_lab.check.subject import EXACT, Map, Subject, depends_on
from capsnet_lab.wild.parts import RELEASED_BIAS


def of_primary(net: Subject) -> Verdicts:
    """Tagged images through the convolutions."""
    u = net.children(net.images)
    if not u.any():
        raise ValueError("all primary capsules are zero or NaN")
    negative = int((u < 0).sum())
    text = f"of {u.numel()} numbers of primary capsules none is negative"
    verdicts: Verdicts = {"relu-before-squash": None if negative else text}
    with without_norms(net.biased) as norms:
        verdicts |= of_maps(net)
    if norms:
        text = f"maps are normalised between the convolutions: {', '.join(sorted(norms))}"
        verdicts["norm"] = Unseen(text, otherwise=True)
    return verdicts


def of_maps(net: Subject) -> Verdicts:
    """What is squashed, and what the convolutions do, without their normalisations."""
    u = net.children(net.images)
    own, over, _ = longest(lambda model: net.primary(model, net.images), net.biased)
    if min(own, over) > 1 + EXACT:
        why = f"no squash known here: primary capsules become {min(own, over):.2g} long"
        names = "squash-over-children", "view-without-permute", "same-padding", "routed-to-types"
        return dict.fromkeys(names, Unseen(why, otherwise=True))

    swapped = net.images.clone()  # two pixels in a corner; mean and deviation stay
    swapped[:, :, 0, :2] = swapped[:, :, 0, :2].flip(-1)
    changed = int(((net.children(swapped) - u).abs().amax(dim=(0, 2)) > EXACT).sum())
    over_children = changed == u.shape[1] and over <= 1 + EXACT
    text = f"two pixels in a corner change {changed} of {u.shape[1]} primary capsules"
    verdicts: Verdicts = {"squash-over-children": text if over_children else None}
    if not alike(net.even):
        verdicts["squash-over-children"] = Unseen("the primary capsules are at one place only")
    elif changed == u.shape[1] and not over_children:  # a norm over all places, or attention
        why = f"{text}, which are not squashed over the children"
        verdicts["squash-over-children"] = Unseen(why)
    maps = unsquashed(net.even, squash, 1 if over_children else 2)[0]
    return verdicts | of_views(maps) | of_convolutions(net, maps)


NORMS = nn.modules.batchnorm._NormBase, nn.GroupNorm, nn.LayerNorm, nn.LocalResponseNorm


@contextlib.contextmanager
def without_norms(model: nn.Module) -> Iterator[set[str]]:
    """Meanwhile normalisations of maps return what they are given; the set has those that were met.

    The bias of one that follows a convolution without a bias is the convolution's.
    """
    met: set[str] = set()

    def return_maps(bias: Tensor | None, module: nn.Module, given: Any, named: Any, _: Any) -> Any:
        maps = next(iter([*given, *named.values()]))
        if maps.dim() != 4:  # of capsules: leave it
            return None
        met.add(type(module).__name__)
        return maps if bias is None else maps + bias[:, None, None]

    hooks: list[RemovableHandle] = []
    bare = False
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            bare = module.bias is None
        elif isinstance(module, NORMS):
            by_map = bare and not isinstance(module, nn.LayerNorm)
            hook = functools.partial(return_maps, getattr(module, "bias", None) if by_map else None)
            hooks.append(module.register_forward_hook(hook, with_kwargs=True))
    try:
        yield met
    finally:
        for handle in hooks:
            handle.remove()


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

    given = size(1, 0.5, 0)
    share, types = given / size(1, 0, 0.5), channels // dim
    text = f"kernels that should give 0.5 give {0.5 * share:.2g}: {share:.4f} of it, for {types} "
    text += "types"
    routed = types > 1 and any(abs(share * n - 1) < 1e-3 for n in (types, types + 1))  # with a leak
    plain = abs(share - 1) < 1e-3
    unknown = Unseen(f"kernels give {share:.3g} of what they should")
    verdicts["routed-to-types"] = text if routed else None if plain else unknown
    if routed or plain:
        passed = size(-1, 0.5, 0) / given
        why = f"between the convolutions −1 becomes ±{passed:.2g}, where ReLU makes 0 of it"
        verdicts["not-relu"] = Unseen(why, otherwise=True) if passed > EXACT else None
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
    with without_norms(model):
        parameters = depends_on(net.primary(model, net.images), model)
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
