"""Which deviations the class capsules show, as a map from u to v: squash, routing, W."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from scipy import stats
from torch import Tensor, nn

from capsnet.fast.routing import Squash
from capsnet.functional import RoutingStep, squash
from capsnet_lab.check.adapter import require_shape
from capsnet_lab.check.evidence import (
    FLOAT64_ERROR,
    Findings,
    NotExamined,
    Unclear,
    UserCodeError,
    Verdict,
    Verdicts,
    copied,
    depends_on,
    relative_error,
    unsquash,
    user_code,
    without_ones,
)
from capsnet_lab.check.probe_primary import same_type
from capsnet_lab.check.subject import Subject
from capsnet_lab.wild import parts
from capsnet_lab.wild.deviations import DEVIATIONS
from capsnet_lab.wild.parts import Parts
from capsnet_lab.wild.wild_capsnet import route_with

EQUAL_COUPLING = NotExamined(
    "with equal coupling neither logits nor the number of iterations matter"
)


def replacements_of(part: str) -> dict[str, Any]:
    """What each deviation puts in the place of one of the paper's parts, by its name."""
    return {d.name: d.parts[part] for d in DEVIATIONS.values() if part in d.parts}


# The paper's own is "" in each of these. The first squash that fits is taken, so that those of
# deviations come before those that are guarded by another round ε.
SQUASHES: dict[str, Squash] = {"": squash, **replacements_of("squash")}
del SQUASHES["bare-norm"]  # differs from the paper's only at 0
SQUASH_NAMES = [name for name in SQUASHES if name]
for exponent in range(-16, -1):
    epsilon = 10.0**exponent
    SQUASHES[f"{epsilon:.0e} under the root"] = parts.guarded_squash(epsilon)
    SQUASHES[f"{epsilon:.0e} beside the norm"] = parts.squash_beside(epsilon)
COUPLINGS: dict[str, parts.Share] = {"": parts.over_parents, **replacements_of("share")}
AXES: dict[str, int] = {"": 2, **replacements_of("digits_axis")}
# The distribution of W, by the number of children.
INITIALISATIONS: dict[str, Callable[[int], Any]] = {
    "": lambda children: stats.truncnorm(-2, 2, scale=0.1),
    "unit-w": lambda children: stats.norm(0, 1),
    "small-w": lambda children: stats.norm(0, 0.01),
    "uncut-w": lambda children: stats.norm(0, 0.1),
    "uniform-w": lambda children: stats.uniform(-(children**-0.5), 2 * children**-0.5),
}
COUPLING_NAMES, AXIS_NAMES, INITIALISATION_NAMES = (
    [name for name in table if name] for table in (COUPLINGS, AXES, INITIALISATIONS)
)
ITERATIONS = replacements_of("routing_iterations")
LAYER_NAMES = [*SQUASH_NAMES, *AXIS_NAMES, *COUPLING_NAMES, *ITERATIONS, *INITIALISATION_NAMES]
LAYER_NAMES += ["learned-prior", "digit-bias", "shared-w"]
MOST_ITERATIONS = 10
FLOAT32_ERROR = 1e-4  # a worse fit comes from another computation, not from float32
MAX_NONLINEARITY = 1e-6  # routing bends s by no more than this, even with thousands of children


class Layer:
    """The class capsules as a map from u to v."""

    def __init__(self, net: Subject) -> None:
        assert net.adapter.digits is not None
        self.net, self.model, self.digits = net, copied(net.model), net.adapter.digits
        self.children, self.dim = net.uniform.shape[1:]

    def __call__(self, u: Tensor) -> Tensor:
        with user_code():
            v = self.digits(self.model, u)
        if isinstance(v, Tensor) and v.dim():
            v = without_ones(v)
        return require_shape("v, [n, classes, dim]", v, 3, batch=len(u))

    def random(self, n: int) -> Tensor:
        return self.net.random(n, self.children, self.dim)


class Squashed(NamedTuple):
    """The squash that fits best."""

    name: str  # of SQUASHES
    axis: str  # of AXES

    def undo(self, v: Tensor) -> Tensor:
        return unsquash(v, SQUASHES[self.name], AXES[self.axis])


def one_of(names: Iterable[str], present: str, evidence: str) -> Findings:
    """One of several deviations that exclude each other, or none of them."""
    for name in names:
        yield name, evidence if name == present else None


@torch.no_grad()
def scale_for(layer: Layer, u: Tensor, length: float) -> float:
    """The factor t for which the capsules of t u have about this mean length."""
    t = 1e-3
    for _ in range(30):
        size = float(layer(t * u).norm(dim=2).nan_to_num().mean())
        if 0.9 < size / length < 1.1:
            break
        t *= min(max((length / max(size, 1e-300)) ** 0.5, 0.01), 100)
    return t


def examine_layer(net: Subject) -> Findings:
    """All that the map from u to v shows."""
    layer = Layer(net)
    yield from parameter_verdicts(layer).items()  # then a prior and a bias are zero
    u = layer.random(5)
    yield "shared-w", sharing_verdict(layer, scale_for(layer, u, 0.2) * u)
    yield from examine_squash(layer, scale_for(layer, u, 1e-6))


def parameter_verdicts(layer: Layer) -> Verdicts:
    """Which parameters are biases or priors; these are set to zero in ``layer``."""
    u = layer.random(2)
    almost_zero = torch.cat([torch.zeros_like(u[:1]), 1e-18 * u[:1]])  # a bias may skip true zeros
    u = scale_for(layer, u, 0.2) * u
    verdicts: Verdicts = {"digit-bias": None, "learned-prior": None}
    for parameter in depends_on(layer(u), layer.model):
        name, verdict = parameter_verdict(layer, parameter, u, almost_zero)
        if isinstance(verdict, str):
            verdicts[name] = verdict
            parameter.data = torch.zeros_like(parameter)
        elif verdict is not None and verdicts[name] is None:
            verdicts[name] = verdict
    if relative_error(*layer(u)) < FLOAT64_ERROR:
        raise UserCodeError("the class capsules do not depend on the primary ones")
    return verdicts


def parameter_verdict(
    layer: Layer, parameter: nn.Parameter, u: Tensor, almost_zero: Tensor
) -> tuple[str, Verdict]:
    """Whether a parameter is a bias of s, or the prior of the routing logits; it stays as it is."""
    value, before = parameter.detach().clone(), layer(almost_zero)
    parameter.data = 1e3 * layer.net.random(*value.shape)
    moved = layer(almost_zero)
    shifted = []
    for shift in 40, 41:  # changes no softmax; next to these a leak's logit of 0 does not count
        parameter.data = value + shift
        shifted.append(layer(u))
    parameter.data = value

    sides = without_ones(value[None])[0].shape
    shape = " × ".join(map(str, sides))
    if not torch.allclose(moved, before, equal_nan=True):
        longest = moved.nan_to_num().norm(dim=2).max().item()
        text = f"where u is almost zero capsules are {longest:.2g} long once {shape} numbers change"
        after = NotExamined(f"{text}: these act after the squash, or there is none")
        return "digit-bias", text if longest < 1 + FLOAT64_ERROR else after
    is_prior = sorted(sides) == sorted((layer.children, shifted[0].shape[1]))
    if is_prior and relative_error(*shifted) < FLOAT64_ERROR:
        text = f"v depends on {shape} numbers, but not on their sum, and not where u is zero"
        return "learned-prior", text
    return "", None


def examine_squash(layer: Layer, scale: float) -> Findings:
    """How v is squashed, and if that is known, how it is routed."""
    v = outputs_of_sums(layer, scale)
    errors = squash_errors(v)
    best = min(errors, key=lambda squashed: errors[squashed])
    if errors[best] > 1e-3:
        text = f"the nearest, {best.name or 'the paper’s'}, fits to within {errors[best]:.1g}"
        raise Unclear(f"no known squash fits: {text}", unnamed=True)

    text = f"with this squash s is linear in u to within {errors[best]:.0e}, with the paper's to "
    paper = f"{errors[Squashed('', best.axis)]:.1g}"
    if best.name in ("", *SQUASH_NAMES):
        yield from one_of(SQUASH_NAMES, best.name, f"{text}{paper}")
    else:
        why = NotExamined(f"{text}{paper}: squash is guarded by {best.name}", unnamed=True)
        yield from dict.fromkeys(SQUASH_NAMES, why).items()
    own_length = linear_error(v, Squashed(best.name, ""))
    text += f"{own_length:.1g}"
    if best.axis == "squash-over-classes":
        text += "; if the capsules are [n, dim, classes], the Adapter has to transpose them"
    yield from one_of(AXIS_NAMES, best.axis, text)
    yield from examine_routing(layer, scale, best)


@torch.no_grad()
def outputs_of_sums(layer: Layer, scale: float) -> Tensor:
    """The v of two u and of their sum, then of a thousandth of these three."""
    u = layer.random(2)
    u = torch.cat([u, u.sum(dim=0, keepdim=True)])
    return torch.cat([layer(scale * u), layer(1e-3 * scale * u)])


def linear_error(v: Tensor, squashed: Squashed) -> float:
    """How far s is from linear in u if v was squashed so; v is that of :func:`outputs_of_sums`."""
    strong, faint = squashed.undo(v).chunk(2)
    return max(relative_error(1e3 * faint, strong), relative_error(faint[0] + faint[1], faint[2]))


def squash_errors(v: Tensor) -> dict[Squashed, float]:
    """The error of each squash along each axis, until one fits."""
    errors: dict[Squashed, float] = {}
    for name in SQUASHES:
        for axis in AXES:
            errors[Squashed(name, axis)] = linear_error(v, Squashed(name, axis))
        if min(errors.values()) < MAX_NONLINEARITY:  # no other one fits
            break
    return errors


@torch.no_grad()
def examine_routing(layer: Layer, scale: float, best: Squashed) -> Findings:
    """Which routing gives v of a strong u, and how W, measured with faint u, is initialised."""
    # Eight children, and two of one type, which may be added before they are routed.
    sample = torch.linspace(0, layer.children - 1, 8).long()
    sample = torch.cat([sample, torch.tensor(same_type(layer.net.uniform)[:2]).long()]).unique()
    c_w = weights_times_coupling(layer, sample, 0.1 * scale, best)
    classes = c_w.shape[2]

    u = torch.zeros(1, layer.children, layer.dim)
    u[:, sample] = layer.net.random(1, len(sample), layer.dim)
    u = scale_for(layer, u, 0.05) * u
    v = layer(u)
    errors: dict[tuple[str, int], float] = {}
    equal = {}  # the coupling coefficient of each parent before the first update
    for name, coupling in COUPLINGS.items():
        equal[name] = float(coupling(torch.zeros(1, layer.children, classes))[0, 0, 0])
        u_hat = torch.zeros(1, layer.children, classes, v.shape[2])
        u_hat[:, sample] = torch.einsum("nik,ikjd->nijd", u[:, sample], c_w) / equal[name]
        others = Parts(share=coupling, squash=SQUASHES[best.name], digits_axis=AXES[best.axis])
        steps: list[RoutingStep] = []
        route_with(others, u_hat, MOST_ITERATIONS, trace=steps)
        errors |= {(name, n): relative_error(step.v, v) for n, step in enumerate(steps, start=1)}
    name, iterations = min(errors, key=lambda key: errors[key])
    error = errors[name, iterations]
    if error > MAX_NONLINEARITY:  # W was measured to this error
        why = f"no known routing fits: the nearest, {name or 'the paper’s'} with {iterations} "
        why += f"iterations, fits to within {error:.1g}"
        raise Unclear(why, unnamed=error > FLOAT32_ERROR)

    if iterations == 1:  # any equal coupling coefficients fit then, with another W
        name = "uniform-shares"
    paper = min(errors["", n] for n in range(2, MOST_ITERATIONS + 1))
    text = f"such coefficients fit v to within {error:.0e}, a softmax over parents to "
    text += f"{paper:.1g} at best; before routing they sum to {equal[name] * classes:.3g} over "
    text += f"the parents, and to {equal[name] * layer.children:.3g} over the children"
    yield from one_of(COUPLING_NAMES, name, text)
    text = f"{iterations} iterations fit"
    if name == "uniform-shares":
        yield from dict.fromkeys([*ITERATIONS, "learned-prior"], EQUAL_COUPLING).items()
    elif iterations not in (3, *ITERATIONS.values()):
        yield from dict.fromkeys(ITERATIONS, NotExamined(text, unnamed=True)).items()
    else:
        text += f" v to within {error:.0e}, 3 to {errors[name, 3]:.1g}"
        for iterations_name, n in ITERATIONS.items():
            yield iterations_name, text if iterations == n else None
    if iterations == 1:
        raise Unclear(
            "with one iteration only the product of W and the coupling coefficients is seen"
        )
    yield from examine_weights(c_w / equal[name], layer.children)


def weights_times_coupling(layer: Layer, sample: Tensor, scale: float, best: Squashed) -> Tensor:
    """W of a few children times an equal coupling coefficient, from faint u.

    Returns: [few, in_dim, classes, out_dim].
    """
    eye = torch.zeros(len(sample), layer.dim, layer.children, layer.dim)
    for row, child in enumerate(sample):
        eye[row, :, child] = torch.eye(layer.dim)
    v = torch.cat([layer(u) for u in (scale * eye.flatten(0, 1)).split(8)])
    return (best.undo(v) / scale).unflatten(0, (len(sample), layer.dim))


def examine_weights(w: Tensor, children: int) -> Findings:
    """How W, [few, in_dim, classes, out_dim], was initialised."""
    weight = w.round(decimals=9).unique(dim=0)  # children may share one
    fits = [
        name
        for name, distribution in INITIALISATIONS.items()
        if drawn_from(weight, distribution(children))
    ]
    text = f"{weight.numel()} numbers of W have a standard deviation of {float(weight.std()):.3g} "
    text += f"and are at most {float(weight.abs().max()):.3g}"
    if not fits:
        raise Unclear(f"{text}; they fit no known initialisation")
    for name in INITIALISATION_NAMES:
        yield name, text if name in fits else None


def drawn_from(values: Tensor, distribution: Any) -> bool:
    """Whether values may be samples of a symmetric distribution of :mod:`scipy.stats`.

    The Kolmogorov–Smirnov test hardly notices that a normal distribution is cut off, so the
    standard deviation and the largest value are tested, too.
    """
    samples = values.detach().flatten().numpy()
    largest = abs(samples).max()
    ratio = samples.std() / distribution.std()
    return bool(
        len(samples) > 1
        and stats.kstest(samples, distribution.cdf, method="asymp").pvalue > 1e-5
        and abs(ratio - 1) < 4 * (2 * len(samples)) ** -0.5
        and 2 * distribution.sf(largest) < 14 / len(samples)  # so in all but one of a million
        and largest <= distribution.support()[1] * (1 + 1e-6)
    )


def sharing_verdict(layer: Layer, u: Tensor) -> Verdict:
    """Do children of one type have the same W?"""
    first, *others = same_type(layer.net.uniform)[:6] or [0]
    if not others:
        return NotExamined("no two primary capsules are of one type")
    rows = torch.zeros(1 + len(others), layer.children, layer.dim)
    for row, child in enumerate((first, *others)):
        rows[row, child] = u[0, 0]
    v = torch.cat([layer(row[None]) for row in rows])
    difference = relative_error(v[1:], v[:1].expand_as(v[1:]))
    text = f"{len(rows)} children of one type give the same v to within {difference:.0e}"
    return text if difference < FLOAT64_ERROR else None
