"""Which deviations the primary capsules show, as a map from images to u."""

import copy

import torch
from torch import Tensor, nn

from capsnet.functional import squash
from capsnet_lab.check.evidence import (
    EXACT,
    NotExamined,
    Verdict,
    Verdicts,
    cut_normal,
    depends_on,
    drawn_from,
    no_known_squash,
    not_examined,
    scale_weights,
    tensors_in,
    uniform_within,
    unsquash,
)
from capsnet_lab.check.subject import Call, Subject, watched
from capsnet_lab.wild.parts import RELEASED_BIAS

NORMS = nn.modules.batchnorm._NormBase, nn.GroupNorm, nn.LayerNorm, nn.LocalResponseNorm


def examine_primary(net: Subject) -> Verdicts:
    """What the convolutions and the squash of the primary capsules do."""
    u = net.children(net.images)
    if not u.any():
        raise ValueError("all primary capsules are zero or NaN")
    text = f"none of the {u.numel()} numbers of primary capsules is negative"
    return {"relu-before-squash": None if (u < 0).any() else text, **maps_verdicts(net)}


def norms_of_maps(net: Subject) -> set[str]:
    """The types of the modules that normalise maps on their way to the primary capsules."""
    called: set[str] = set()

    def note(name: str, call: Call) -> None:
        module = net.biased.get_submodule(name)
        if isinstance(module, NORMS) and tensors_in(call.returned)[0].dim() == 4:
            called.add(type(module).__name__)

    with watched(net.biased, note):
        net.children(net.images)
    return called


def maps_verdicts(net: Subject) -> Verdicts:
    """Which numbers are squashed together, and what the convolutions do."""
    u = net.children(net.images)
    own, component = largest_lengths(net)
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


@torch.no_grad()
def largest_lengths(net: Subject) -> tuple[float, float]:
    """How long a primary capsule, and a number of all of them, become as weights grow."""
    model = copy.deepcopy(net.biased)
    own, component = 0.0, 0.0
    for _ in range(8):
        u = net.primary(model, net.images).nan_to_num()
        own = max(own, float(u.norm(dim=2).max()))
        component = max(component, float(u.norm(dim=1).max()))
        scale_weights(model, 1.5)
    return own, component


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
    names = "same-padding", "routed-to-types"
    if norms := norms_of_maps(net):
        text = f"maps are normalised between the convolutions: {', '.join(sorted(norms))}"
        return not_examined(names, text, unnamed=True)
    dim = maps.shape[1]
    kernels, biases = convolutions(net, net.biased)
    first = [kernel.shape[1] == net.images.shape[1] for kernel in kernels]
    channels = sum(len(k) for k, at_first in zip(kernels, first, strict=True) if not at_first)
    if sum(first) != 1:
        why = "the primary capsules do not come from two stages of convolutions"
        return not_examined(names, why)
    if len(kernels) != len(biases):
        why = f"{len(kernels)} kernels of convolutions have {len(biases)} biases"
        return not_examined(names, why)
    if channels % dim:
        why = f"{channels} maps are not a multiple of a capsule's {dim} numbers"
        return not_examined(names, why)
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
    if all(drawn_from(k, uniform_within(k[0].numel() ** -0.5)) for k in kernels):
        return dict.fromkeys(names)  # PyTorch's
    bounds = [(6 / (k[0].numel() + k[:, 0].numel())) ** 0.5 for k in kernels]
    glorot = all(drawn_from(k, uniform_within(b)) for k, b in zip(kernels, bounds, strict=True))
    released = all(any(drawn_from(k, cut_normal(std)) for std in (0.1, 0.05)) for k in kernels)
    for name, fits, value in zip(names, (released, glorot), (RELEASED_BIAS, 0.0), strict=True):
        same = all((bias - value).abs().max() < 1e-6 for bias in biases)
        if fits and same and len(biases) == len(kernels):
            sizes = (f"{k.std().item():.3f} (at most {k.abs().max().item():.3f})" for k in kernels)
            text = f"biases are all {value:g}, standard deviations of the kernels are "
            return {**dict.fromkeys(names), name: text + ", ".join(sizes)}
    return not_examined(names, "kernels and biases fit no known start")
