"""Which deviations the primary capsules show, as a map from images to u."""

from typing import cast

import torch
from torch import Tensor, nn

from capsnet.functional import squash
from capsnet_lab.check.evidence import (
    FLOAT64_ERROR,
    Findings,
    NotExamined,
    Unclear,
    UserCodeError,
    Verdict,
    copied,
    depends_on,
    scale_weights,
    unsquash,
)
from capsnet_lab.check.subject import Subject

NORMS = nn.modules.batchnorm._NormBase, nn.GroupNorm, nn.LayerNorm


def examine_primary(net: Subject) -> Findings:
    """What the convolutions and the squash of the primary capsules do."""
    u = net.children(net.images)
    if not u.any():
        raise UserCodeError("all primary capsules are zero or NaN")
    text = f"none of the {u.numel()} numbers of primary capsules is negative"
    yield "relu-before-squash", None if (u < 0).any() else text
    capsule, component = largest_lengths(net)
    if (length := min(capsule, component)) > 1 + FLOAT64_ERROR:
        text = f"no known squash fits: primary capsules become {length:.2g} long"
        raise Unclear(text, unnamed=True)

    swapped = net.images.clone()  # swap two pixels in a corner: mean and deviation stay
    swapped[:, :, 0, :2] = swapped[:, :, 0, :2].flip(-1)
    changed = int(((net.children(swapped) - u).abs().amax(dim=(0, 2)) > FLOAT64_ERROR).sum())
    all_change = changed == u.shape[1]
    over_children = all_change and component <= 1 + FLOAT64_ERROR
    text = f"two pixels in a corner change {changed} of {u.shape[1]} primary capsules"
    verdict: Verdict = text if over_children else None
    if not same_type(net.uniform):
        verdict = NotExamined("all primary capsules are at the same place")
    elif all_change and not over_children:  # a normalisation over all places, or attention
        verdict = NotExamined(f"{text}, which are not squashed over the children")
    yield "squash-over-children", verdict
    maps = unsquash(net.uniform, squash, 1 if over_children else 2)[0]
    yield "view-without-permute", view_verdict(maps)
    yield from examine_convolutions(net, maps)


@torch.no_grad()
def largest_lengths(net: Subject) -> tuple[float, float]:
    """The largest norm of a capsule, and of a component over all capsules, as the weights grow."""
    model = copied(net.biased)
    capsule, component = 0.0, 0.0
    for _ in range(8):
        u = net.primary(model, net.images).nan_to_num()
        capsule = max(capsule, float(u.norm(dim=2).max()))
        component = max(component, float(u.norm(dim=1).max()))
        scale_weights(model, 1.5)
    return capsule, component


def view_verdict(maps: Tensor) -> Verdict:
    """Does a capsule hold neighbours of one map, which are equal for a uniform image?"""
    later = maps[:, 1:].abs()
    filled = later > 1e-6
    equal = int((filled & (maps.diff(dim=1).abs() < 1e-5 * later)).sum())
    text = f"for a uniform image {equal} of {filled.sum()} numbers equal the one before them"
    if len(maps) < maps.shape[1]:
        text += "; if u is [n, dim, children], the Adapter has to transpose it"
    return text if equal > filled.sum() / 3 else None


def examine_convolutions(net: Subject, maps: Tensor) -> Findings:
    """Are there routing to types, a ReLU? ``maps``, [children, dim]: a uniform image's."""
    used = {id(p) for p in depends_on(net.primary(net.biased, net.images), net.biased)}
    modules = [m for m in net.biased.modules() if id(getattr(m, "weight", None)) in used]
    if norms := [module for module in modules if isinstance(module, NORMS)]:
        text = f"maps are normalised between the convolutions: {type(norms[0]).__name__}"
        raise Unclear(text, unnamed=True)
    dim = maps.shape[1]
    convolutions = [module for module in modules if isinstance(module, nn.Conv2d)]
    first = [conv for conv in convolutions if conv.in_channels == net.images.shape[1]]
    channels = sum(conv.out_channels for conv in convolutions if conv not in first)
    if len(first) != 1 or any(conv.bias is None for conv in convolutions):
        raise Unclear("the primary capsules do not come from two stages of convolutions")
    if channels % dim:
        raise Unclear(f"{channels} maps are not a multiple of a capsule's {dim} numbers")

    def largest_output(feature: float, by_kernels: float, by_biases: float) -> float:
        """The largest number in the maps if all features are equal."""
        for conv in convolutions:
            weights, at_first = conv.weight.data, conv in first
            weights.fill_(0 if at_first else by_kernels * len(weights) / weights.numel())
            cast(Tensor, conv.bias).data.fill_(feature if at_first else by_biases)
        return unsquash(net.children(net.images[:1]), squash, 2).abs().max().item()

    from_kernels = largest_output(1, 0.5, 0)
    share, types = from_kernels / largest_output(1, 0, 0.5), channels // dim
    text = f"kernels give {share:.4f} of what they should, for {types} types"
    routed = types > 1 and any(abs(share * n - 1) < 1e-3 for n in (types, types + 1))  # with a leak
    plain = abs(share - 1) < 1e-3
    if not routed and not plain:
        raise Unclear(text)
    if routed:
        yield "routed-to-types", text
    passed = largest_output(-1, 0.5, 0) / from_kernels
    if passed > FLOAT64_ERROR:
        why = f"between the convolutions −1 becomes ±{passed:.2g}, where ReLU gives 0"
        yield "another activation", NotExamined(why, unnamed=True)


def same_type(uniform: Tensor) -> list[int]:
    """The first children that are equal for a uniform image: of one type, at different places."""
    for child in range(uniform.shape[1]):
        same = (uniform[0] - uniform[0, child]).abs().amax(dim=1) < FLOAT64_ERROR
        if uniform[0, child].abs().max() > FLOAT64_ERROR and same.sum() > 1:
            return same.nonzero().flatten().tolist()
    return []
