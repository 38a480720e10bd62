"""Which deviations the class capsules show, as a map from u to v: squash, routing, W."""

import contextlib
import copy
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from capsnet.functional import squash
from capsnet_lab.check.evidence import (
    CERTAIN,
    TURNED,
    Unseen,
    Verdicts,
    of_batch_mates,
    of_gradient,
    unsquashed,
)
from capsnet_lab.check.primary import (
    alike,
    is_cut,
    is_normal,
    is_uniform,
    of_primary,
    of_start,
)
from capsnet_lab.check.subject import (
    EXACT,
    STRANGE,
    Map,
    Subject,
    apart,
    checked,
    depends_on,
    of_each,
    scale_for,
    stages_inside,
    without_ones,
)
from capsnet_lab.wild.deviations import DEVIATIONS
from capsnet_lab.wild.parts import (
    Squash,
    clamped_squash,
    guarded_squash,
    lifted_squash,
    over_parents,
    squash_beside,
)

EQUAL = Unseen("with equal shares no logits matter, nor how many iterations change them")
IDLE = "learned-prior", "batch-logits", "stopped-gradient"  # then


def by_part(part: str) -> dict[str, Any]:
    """The deviations that replace one part, and what by."""
    return {d.name: d.parts[part] for d in DEVIATIONS.values() if part in d.parts}


SQUASHES = {"": squash, **by_part("squash")}
del SQUASHES["bare-norm"]  # the same but at 0
# Where others add an ε, of any size: no deviation with a name.
GUARDS: dict[str, Callable[[float], Squash]] = {
    "under the root": guarded_squash,
    "beside the norm": squash_beside,
    "as the least norm": clamped_squash,
    "in the squared norm": lifted_squash,
}
SHARES = {"": over_parents, **by_part("share")}
AXES = {"": 2, **by_part("digits_axis")}
MOST_ITERATIONS = 10


def squashed(s: Tensor, by: Squash, axis: int) -> Tensor:
    """Capsules [n, capsules, dim], squashed; axis 3 takes each number by itself."""
    return by(s.unsqueeze(3), axis).squeeze(3)


class Layer:
    """The class capsules as a map from u to v."""

    def __init__(self, net: Subject) -> None:
        assert net.adapter.digits is not None
        self.net, self.model, self.of_u = net, copy.deepcopy(net.model), net.adapter.digits
        self.children, self.dim = net.even.shape[1:]

    def __call__(self, u: Tensor) -> Tensor:
        v = self.of_u(self.model, u)
        if isinstance(v, Tensor) and v.dim():
            v = without_ones(v)
        return of_each(u, checked("v, [n, classes, dim]", v, 3))

    def random(self, n: int) -> Tensor:
        return self.net.random(n, self.children, self.dim)


def of_layer(net: Subject) -> Verdicts:
    """All that the map from u to v shows."""
    layer = Layer(net)
    verdicts = of_roles(layer)  # then a prior and a bias are zero
    u = layer.random(5)
    strong = scale_for(layer, u, 0.2) * u
    verdicts |= of_batch_mates(layer, strong) | of_gradient(layer, strong, net.generator)
    verdicts |= of_zero_capsules(layer, strong)

    weak = scale_for(layer, u, 1e-6)
    v = of_sums(layer, weak)
    misfits = squashes_of(v)
    kind, axis = min(misfits, key=lambda pair: misfits[pair])
    misfit, by = misfits[kind, axis], SQUASHES[kind]
    if misfit > LINEAR and (guard := guard_of(v)) and guard[3] < 0.1 * misfit:  # no chance
        kind, axis, by, misfit = guard
    names = [*SQUASHES, *AXES]
    if misfit > 1e-3:
        why = f"no squash known here fits: the nearest, {kind or 'the paper’s'}, to {misfit:.1g}"
        later = [*names, *SHARES, "one-iteration-more", "two-iterations", *STARTS]
        verdicts |= dict.fromkeys(filter(None, later), Unseen(why, otherwise=True))
    else:
        text = f"s is linear in u to {misfit:.0e} if v is squashed so, if as in the paper to "
        verdicts |= {name: None for name in names if name}
        if kind in SQUASHES and kind:
            verdicts[kind] = f"{text}{misfits['', axis]:.1g}"
        elif kind:
            why = f"{text}{misfits['', axis]:.1g}: squash is guarded by {kind}"
            verdicts |= dict.fromkeys(filter(None, SQUASHES), Unseen(why, otherwise=True))
        if axis:
            verdicts[axis] = f"{text}{misfit_of(v, by, AXES['']):.1g}"
        if axis == "squash-over-classes":
            verdicts[axis] = f"{verdicts[axis]}; {TURNED}"
        verdicts |= of_shares(layer, weak, by, AXES[axis])
    return verdicts | of_sharing(layer, strong)


def of_layer_inside(net: Subject) -> Verdicts:
    """The same of a module of the network that is such a map, where there is one."""
    try:
        adapter = stages_inside(net)
        inside = copy.copy(net)
        inside.adapter = adapter
        verdicts = of_layer(inside)
    except STRANGE:  # nobody said that it must work
        return {}
    if isinstance(verdicts["uniform-shares"], Unseen):
        verdicts = without_otherwise(verdicts)  # perhaps it is no routing at all
    with contextlib.suppress(*STRANGE):
        # Not of a layer behind another; and an adapter's own are looked at already.
        if net.adapter.primary is None and alike(inside.even):
            of_u = of_primary(inside)
            del of_u["squash-over-children"]  # for it may come later than this u
            verdicts |= without_otherwise(of_u | of_start(inside))  # u may be squashed later
    return verdicts


def without_otherwise(verdicts: Verdicts) -> Verdicts:
    """What may be no stage of the paper's is not said to be otherwise."""
    return {
        name: Unseen(verdict.why) if isinstance(verdict, Unseen) else verdict
        for name, verdict in verdicts.items()
    }


def of_zero_capsules(layer: Layer, u: Tensor) -> Verdicts:
    """Is v NaN where u is zero, and where all weights of the layer are?"""
    net, zero, black = layer.net, copy.deepcopy(layer), copy.deepcopy(layer.net.model)
    for parameter in zero.model.parameters():
        nn.init.zeros_(parameter)
    for parameter in black.parameters():
        if parameter.dim() == 1:
            nn.init.zeros_(parameter)
    nan = [float(v.isnan().float().mean()) for v in (layer(torch.zeros_like(u)), zero(u))]
    if all(nan):
        text = f"where u is zero {nan[0]:.0%} of the class capsules' numbers are NaN"
        return {"bare-norm": text}
    if net.primary(black, torch.zeros_like(net.images)).isnan().any():
        why = "primary capsules of a black image are NaN, from squash or from elsewhere"
        return {"bare-norm": Unseen(why)}
    return {"bare-norm": None}


def of_roles(layer: Layer) -> Verdicts:
    """What the layer's parameters do; priors and biases are set to zero.

    Raises:
        ValueError: v does not depend on u.
    """
    u = layer.random(2)
    nothing = torch.cat([torch.zeros_like(u[:1]), 1e-12 * u[:1]])  # some add no bias to a true zero
    u = scale_for(layer, u, 0.2) * u
    logits = sorted(side for side in (layer.children, layer(u).shape[1]) if side > 1)
    verdicts: Verdicts = {"digit-bias": None, "learned-prior": None}
    started = copy.deepcopy(layer.model)
    for parameter in depends_on(layer(u), layer.model):
        kept, at_zero = parameter.detach().clone(), layer(nothing)
        sides = without_ones(kept[None])[0].shape
        shape = " × ".join(map(str, sides))
        parameter.data = layer.net.random(*kept.shape)
        moved = layer(nothing)
        parameter.data = 1e3 * parameter.data
        largest = layer(nothing).nan_to_num().abs().max().item()
        shifted = []
        for shift in 40, 41:  # in a softmax nothing; a leak's logit of 0 is lost beside both
            parameter.data = kept + shift
            shifted.append(layer(u))
        if not torch.allclose(moved, at_zero, equal_nan=True):
            lengths = [v.norm(dim=2).mean().item() for v in (at_zero, moved)]
            text = f"where u is all but zero capsules are {lengths[0]:.2g} long, {lengths[1]:.2g} "
            text += f"once {shape} numbers change: these "
            bounded = largest < 1 + EXACT
            if bounded:
                verdicts["digit-bias"] = f"{text}add to s"
            elif verdicts["digit-bias"] is None:  # as those of a layer normalisation
                text += (
                    f"act after the squash, or there is none: v grows with them, to {largest:.2g}"
                )
                verdicts["digit-bias"] = Unseen(text)
            parameter.data = torch.zeros_like(kept) if bounded else kept
        elif apart(*shifted) < EXACT < apart(layer(0.5 * u), shifted[1]):  # and not all of W
            text = f"v depends on {shape} numbers, not on their sum, and not where u is zero"
            fits = sorted(sides) == logits
            if fits:
                verdicts["learned-prior"] = text
            elif verdicts["learned-prior"] is None:  # what is normalised loses a sum too
                verdicts["learned-prior"] = Unseen(f"{text}: not one for each child and parent")
            parameter.data = torch.zeros_like(kept) if fits else kept
        else:
            parameter.data = kept
    if apart(*layer(u)) > EXACT:
        return verdicts
    layer.model = started  # what is zero now did something else too
    if apart(*layer(u)) < EXACT:
        raise ValueError("the class capsules do not depend on the primary ones")
    return dict.fromkeys(verdicts, Unseen("with what could be one at zero, v does not depend on u"))


LINEAR = 1e-6  # the routing bends s by so little, or by hardly more from thousands of children


@torch.no_grad()
def of_sums(layer: Layer, t: float) -> Tensor:
    """The v of two u and of their sum, then of a thousandth of these."""
    u = layer.random(2)
    u = torch.cat([u, u.sum(dim=0, keepdim=True)])
    return torch.cat([layer(t * u), layer(1e-3 * t * u)])


def misfit_of(v: Tensor, by: Squash, along: int) -> float:
    """How far s is from linear in u if v is squashed so: in sums, and to a thousandth."""
    strong, faint = unsquashed(v, by, along).chunk(2)
    return max(apart(1e3 * faint, strong), apart(faint[0] + faint[1], faint[2]))


def squashes_of(v: Tensor) -> dict[tuple[str, str], float]:
    """The misfit of each squash that has a name, along each axis."""
    misfits: dict[tuple[str, str], float] = {}
    for kind, by in SQUASHES.items():
        misfits |= {(kind, axis): misfit_of(v, by, along) for axis, along in AXES.items()}
        if min(misfits.values()) < LINEAR:  # of others, none fits
            break
    return misfits


def guard_of(v: Tensor) -> tuple[str, str, Squash, float] | None:
    """A squash with an ε of any size that fits: where and what it is, its axis, and how well it
    fits; by bisection.
    """
    for (place, guarded), (axis, along) in itertools.product(GUARDS.items(), AXES.items()):

        def beyond(
            power: float, guarded: Callable[[float], Squash] = guarded, along: int = along
        ) -> bool:
            strong, faint = unsquashed(v, guarded(10**power), along).chunk(2)
            return float(strong.norm()) > 1e3 * float(faint.norm())

        low, high = -18.0, -1.0
        if (rising := beyond(high)) == beyond(low):
            continue
        for _ in range(45):
            middle = (low + high) / 2
            low, high = (low, middle) if beyond(middle) == rising else (middle, high)
        for digits in 0, 1, 9:  # most are round, and the roundest that fits is exact
            epsilon = float(f"{10**high:.{digits}e}")
            by = guarded(epsilon)
            if (misfit := misfit_of(v, by, along)) < LINEAR:
                return f"{epsilon:.2g} {place}", axis, by, misfit
    return None


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
    """W of eight children or ten, from faint u; then which routing gives the v of a strong one."""
    # Two of one type, too: they may be added before they are routed.
    some = torch.linspace(0, layer.children - 1, 8).long()
    some = torch.cat([some, torch.tensor(alike(layer.net.even)[:2]).long()]).unique()
    eye = torch.zeros(len(some), layer.dim, layer.children, layer.dim)
    for row, child in enumerate(some):
        eye[row, :, child] = torch.eye(layer.dim)
    v = torch.cat([layer(u) for u in (0.1 * t * eye.flatten(0, 1)).split(8)])
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
    if error > LINEAR:  # W was read off an s as linear as that
        why = f"no routing known here fits: the nearest, {name or 'the paper’s'} with "
        why += f"{iterations} iterations, to {error:.1g}"
        names = [*SHARES, "one-iteration-more", "two-iterations", *STARTS]
        return dict.fromkeys(filter(None, names), Unseen(why, otherwise=error > CERTAIN))
    if iterations == 1:  # then any equal shares fit, with another W
        name = "uniform-shares"
    verdicts: Verdicts = {share: None for share in SHARES if share}
    if name:
        paper = min(misfits["", r] for r in range(2, MOST_ITERATIONS + 1))
        sums = equal[name] * classes, equal[name] * layer.children
        text = f"v fits this to {error:.0e}, shares over the parents to {paper:.1g} at best; at "
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
        verdicts |= dict.fromkeys(counts, Unseen(f"{iterations} iterations fit", otherwise=True))
    if iterations == 1:
        together = Unseen("with one iteration only the product of W and the shares is seen")
        return verdicts | dict.fromkeys(filter(None, STARTS), together)

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
