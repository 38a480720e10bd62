"""Which deviations the primary capsules show, as a map from images to u."""

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from capsnet.functional import squash
from capsnet_lab.check.evidence import (
    EXACT,
    NotExamined,
    Verdict,
    Verdicts,
    depends_on,
    is_truncated,
    is_uniform,
    largest_lengths,
    no_known_squash,
    not_examined,
    unsquash,
)
from capsnet_lab.check.subject import Subject
from capsnet_lab.wild.parts import RELEASED_BIAS

NORMS = nn.modules.batchnorm._NormBase, nn.GroupNorm, nn.LayerNorm, nn.LocalResponseNorm


def examine_primary(net: Subject) -> Verdicts:
    """What the convolutions and the squash of the primary capsules do."""
    u = net.children(net.images)
    if not u.any():
        raise ValueError("all primary capsules are zero or NaN")
    text = f"none of the {u.numel()} numbers of primary capsules is negative"
    verdicts: Verdicts = {"relu-before-squash": None if (u < 0).any() else text}
    with without_norms(net.biased) as norms:
        verdicts |= maps_verdicts(net)
    if norms:
        text = f"maps are normalised between the convolutions: {', '.join(sorted(norms))}"
        verdicts["norm"] = NotExamined(text, unnamed=True)
    return verdicts


@contextlib.contextmanager
def without_norms(model: nn.Module) -> Iterator[set[str]]:
    """Make normalisations of maps return their input, and collect the types of those called."""
    called: set[str] = set()

    def return_input(bias: Tensor | None, module: nn.Module, given: Any, named: Any, _: Any) -> Any:
        maps = next(iter([*given, *named.values()]))
        if maps.dim() != 4:  # it normalises capsules
            return None
        called.add(type(module).__name__)
        return maps if bias is None else maps + bias[:, None, None]

    hooks: list[RemovableHandle] = []
    no_bias = False
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            no_bias = module.bias is None
        elif isinstance(module, NORMS):
            # Its own bias takes the place of the one that the convolution before it lacks.
            by_map = no_bias and not isinstance(module, nn.LayerNorm)
            bias = getattr(module, "bias", None) if by_map else None
            hook = functools.partial(return_input, bias)
            hooks.append(module.register_forward_hook(hook, with_kwargs=True))
    try:
        yield called
    finally:
        for handle in hooks:
            handle.remove()


def maps_verdicts(net: Subject) -> Verdicts:
    """Which numbers are squashed together, and what the convolutions do, without normalisation."""
    u = net.children(net.images)
    own, component, _ = largest_lengths(lambda model: net.primary(model, net.images), net.biased)
    if min(own, component) > 1 + EXACT:
        names = "squash-over-children", "view-without-permute", "same-padding", "routed-to-types"
        length = min(own, component)
        return no_known_squash(names, f"primary capsules become {length:.2g} long")

    swapped = net.images.clone()  # swap two pixels in a corner: mean and deviation stay
    swapped[:, :, 0, :2] = swapped[:, :, 0, :2].flip(-1)
    changed = int(((net.children(swapped) - u).abs().amax(dim=(0, 2)) > EXACT).sum())
    all_change = changed == u.shape[1]
    over_children = all_change and component <= 1 + EXACT
    text = f"two pixels in a corner change {changed} of {u.shape[1]} primary capsules"
    verdict: Verdict = text if over_children else None
    if not same_type(net.uniform):
        verdict = NotExamined("all primary capsules are at the same place")
    elif all_change and not over_children:  # a normalisation over all places, or attention
        verdict = NotExamined(f"{text}, which are not squashed over the children")
    maps = unsquash(net.uniform, squash, 1 if over_children else 2)[0]
    return {
        "squash-over-children": verdict,
        **view_verdict(maps),
        **convolution_verdicts(net, maps),
    }


def view_verdict(maps: Tensor) -> Verdicts:
    """Does a capsule hold neighbours of one map, which are equal for a uniform image?"""
    later = maps[:, 1:].abs()
    filled = later > 1e-6
    equal = int((filled & (maps.diff(dim=1).abs() < 1e-5 * later)).sum())
    text = f"for a uniform image {equal} of {filled.sum()} numbers equal the one before them"
    if len(maps) < maps.shape[1]:
        text += "; if u is [n, dim, children], the Adapter has to transpose it"
    return {"view-without-permute": text if equal > filled.sum() / 3 else None}


def convolution_verdicts(net: Subject, maps: Tensor) -> Verdicts:
    """Are there padding, routing to types, a ReLU? ``maps``, [children, dim]: a uniform image's."""
    dim = maps.shape[1]
    kernels, biases = convolutions(net, net.biased)
    first = [kernel.shape[1] == net.images.shape[1] for kernel in kernels]
    channels = sum(len(k) for k, at_first in zip(kernels, first, strict=True) if not at_first)
    names = "same-padding", "routed-to-types"
    if sum(first) != 1:
        return not_examined(
            names, "the primary capsules do not come from two stages of convolutions"
        )
    if len(kernels) != len(biases):
        return not_examined(
            names, f"{len(kernels)} kernels of convolutions have {len(biases)} biases"
        )
    if channels % dim:
        return not_examined(
            names, f"{channels} maps are not a multiple of a capsule's {dim} numbers"
        )
    different = 1 + int((maps.flatten().sort().values.diff() > 1e-5).sum())
    text = f"edges are seen: {channels} maps of a uniform image have {different} different numbers"
    verdicts: Verdicts = {"same-padding": text if different > 2 * channels else None}

    def largest_output(feature: float, by_kernels: float, by_biases: float) -> float:
        """The largest number in the maps if all features are equal."""
        for kernel, bias, at_first in zip(kernels, biases, first, strict=True):
            kernel.data.fill_(0 if at_first else by_kernels * len(kernel) / kernel.numel())
            bias.data.fill_(feature if at_first else by_biases)
        return unsquash(net.children(net.images[:1]), squash, 2).abs().max().item()

    from_kernels = largest_output(1, 0.5, 0)
    share, types = from_kernels / largest_output(1, 0, 0.5), channels // dim
    text = f"kernels give {share:.4f} of what they should, for {types} types"
    routed = types > 1 and any(abs(share * n - 1) < 1e-3 for n in (types, types + 1))  # with a leak
    plain = abs(share - 1) < 1e-3
    if not routed and not plain:
        return verdicts | not_examined(["routed-to-types"], text)
    verdicts["routed-to-types"] = text if routed else None
    passed = largest_output(-1, 0.5, 0) / from_kernels
    why = f"between the convolutions −1 becomes ±{passed:.2g}, where ReLU gives 0"
    verdicts["not-relu"] = NotExamined(why, unnamed=True) if passed > EXACT else None
    return verdicts


def same_type(uniform: Tensor) -> list[int]:
    """The first children that are equal for a uniform image: of one type, at different places."""
    for child in range(uniform.shape[1]):
        same = (uniform[0] - uniform[0, child]).abs().amax(dim=1) < EXACT
        if uniform[0, child].abs().max() > EXACT and same.sum() > 1:
            return same.nonzero().flatten().tolist()
    return []


def convolutions(net: Subject, model: nn.Module) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """The kernels that the primary capsules depend on, and their biases."""
    with without_norms(model):
        parameters = depends_on(net.primary(model, net.images), model)
    wide = {len(p) for p in parameters if p.dim() == 4 and p.shape[2] > 1}
    kernels, loose, biases = [], [], []
    for parameter in parameters:
        # A bias may have sides of 1. So has the norm of a kernel, one number for each map.
        slim = parameter.dim() == 4 and parameter.shape[1] > 1 and parameter.shape[2:] == (1, 1)
        if parameter.dim() == 1 or (slim and parameter.numel() in wide):
            loose.append(parameter)
        elif parameter.dim() == 4:
            kernels.append(parameter)
    for kernel in kernels:
        own = [n for n, bias in enumerate(loose) if bias.numel() == len(kernel)]
        biases += [loose.pop(n) for n in own[:1]]
    return kernels, biases


def examine_start(net: Subject) -> Verdicts:
    """How kernels and biases of the convolutions are initialised."""
    names = "released-start", "glorot-start"
    kernels, biases = convolutions(net, net.model)
    if not kernels:
        return not_examined(names, "the primary capsules do not come from convolutions")
    if all(is_uniform(k, k[0].numel() ** -0.5) for k in kernels):
        return dict.fromkeys(names)  # PyTorch's
    glorot = all(is_uniform(k, (6 / (k[0].numel() + k[:, 0].numel())) ** 0.5) for k in kernels)
    released = all(is_truncated(k, 0.1) or is_truncated(k, 0.05) for k in kernels)
    for name, fits, value in zip(names, (released, glorot), (RELEASED_BIAS, 0.0), strict=True):
        same = all((bias - value).abs().max() < 1e-6 for bias in biases)
        if fits and same and len(biases) == len(kernels):
            sizes = (f"{k.std().item():.3f} (at most {k.abs().max().item():.3f})" for k in kernels)
            text = f"biases are all {value:g}, standard deviations of the kernels are "
            return {**dict.fromkeys(names), name: text + ", ".join(sizes)}
    return not_examined(names, "kernels and biases fit no known start")
