"""The checker finds in a network what is there, by numbers, and nothing else."""

import operator
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from capsnet.functional import margin_loss
from capsnet_lab import cli
from capsnet_lab.check import Adapter, assert_paper, check, probe_outside
from capsnet_lab.check.checker import check_by_name
from capsnet_lab.routings import RoutedCapsNet
from capsnet_lab.wild import DEVIATIONS, IMPLEMENTATIONS, WildCapsNet, parts
from capsnet_lab.wild.wild_capsnet import WildLoss
from helpers import Refuses

SMALL = {"num_classes": 5, "conv_channels": 4, "capsule_types": 3, "capsule_dim": 6}
SMALL["image_shape"] = (1, 24, 24)
SHAPE = {"conv_channels": 8, "capsule_types": 2, "reconstruct": False}
SEEN = [  # in a module
    name
    for name, deviation in DEVIATIONS.items()
    if deviation.parts and "start" not in deviation.parts
]
ALL = " ".join(SEEN)
OUTSIDE = Adapter(image_shape=(1, 24, 24))
STAGES = Adapter(
    primary=lambda net, images: net.lower(images),
    digits=lambda net, u: net.parents(u),
    image_shape=(1, 24, 24),
)
ADAPTER = replace(STAGES, loss=lambda net, images, labels: net.loss(images, labels))


WILD = Adapter(
    primary=lambda net, images: net.primary_capsules(images),
    digits=lambda net, u: net.route(net.predict(u)),
    loss=lambda net, images, labels: WildLoss(net)(images, labels),
    image_shape=(1, 24, 24),
)
ROUTED = Adapter(
    primary=lambda net, images: net.primary(net.conv(images).relu()),
    digits=lambda net, u: net.route(u),
)


def network(deviations: str = "", **options: Any) -> WildCapsNet:
    return WildCapsNet(deviations=deviations.split(), **SMALL | options)


class Literal(nn.Module):
    """Somebody's network: weights and answers are laid out differently, on request with slips."""

    def __init__(self, slips: bool = False) -> None:
        super().__init__()
        self.slips = slips
        self.first = nn.Conv2d(1, 4, 9)
        self.units = nn.ModuleList(nn.Conv2d(4, 3, 9, stride=2) for _ in range(8))
        w = 0.01 * torch.randn(1, 5, 48, 6, 8)
        self.w = nn.Parameter(w if slips else nn.init.trunc_normal_(w, 0, 0.1, -0.2, 0.2))
        hidden = nn.Linear(30, 512), nn.ReLU(), nn.Linear(512, 1024), nn.ReLU()
        self.draw = nn.Sequential(*hidden, nn.Linear(1024, 576), nn.Sigmoid())

    def squash(self, s: Tensor) -> Tensor:
        squared = (s**2).sum(-1, keepdim=True)
        safe = squared if self.slips else squared.clamp(min=1e-150)
        return squared / (1 + squared) * s / safe.sqrt()

    def features(self, x: Tensor) -> Tensor:
        return self.first(x).relu()

    def join(self, maps: Tensor) -> Tensor:
        return torch.stack([unit(maps) for unit in self.units], dim=-1).view(len(maps), 48, 8)

    def lower(self, x: Tensor) -> Tensor:
        assert len(x) <= 8  # no more images at once
        return self.squash(self.join(self.features(x)))

    def parents(self, u: Tensor) -> Tensor:
        assert len(u) <= 8
        u_hat = (self.w @ u[:, None, :, :, None]).squeeze(-1)  # [n, out, in, out_dim]
        b = torch.zeros(u_hat.shape[:3])  # in the dtype that happens to be torch's default
        for iteration in range(3):
            c = F.softmax(b, dim=2 if self.slips else 1)
            v = self.squash((c[..., None] * u_hat).sum(2, keepdim=True))
            if iteration < 2:
                b = b + (u_hat * v).sum(-1)
        return v.squeeze(2).unsqueeze(-1)

    def forward(self, x: Tensor, y: Tensor | None = None) -> Any:
        v = self.parents(self.lower(x))
        if y is None:
            y = F.one_hot(v.norm(dim=2).squeeze(-1).argmax(dim=1), 5)
        seen = (v * y[:, :, None, None]).view(len(x), -1)
        return {"digits": v, "drawn": self.draw(seen)}

    def loss(self, x: Tensor, classes: Tensor) -> Tensor:
        out = Literal.forward(self, x, F.one_hot(classes, 5).to(x.dtype))
        margin = margin_loss(out["digits"].squeeze(-1).norm(dim=2), classes)
        squares = (out["drawn"] - x.flatten(1)).square().sum() / len(x)
        return self.total(margin / (5 if self.slips else 1), squares, len(x))

    def total(self, margin: Tensor, squares: Tensor, n: int) -> Tensor:
        return margin + 0.0005 * squares


def literal(**methods: Any) -> type[nn.Module]:
    """A :class:`Literal` with some methods replaced."""
    return type("Mutated", (Literal,), methods)


def adds(**modules: Callable[[], Any]) -> Callable[..., None]:
    """An ``__init__`` that makes more modules or parameters, or others."""

    def init(self: Any, slips: bool = False) -> None:
        Literal.__init__(self, slips)
        for name, make in modules.items():
            setattr(self, name, make())

    return init


class Made(nn.Module):
    """A network of some modules, and a function of them, the images and the labels."""

    def __init__(self, call: Callable[..., Any], **modules: nn.Module) -> None:
        super().__init__()
        self.call = call
        for name, module in modules.items():
            setattr(self, name, module)

    def forward(self, x: Tensor, y: Any = None, **named: Any) -> Any:
        return self.call(self, x, y)


def returns(names: str, net: nn.Module) -> nn.Module:
    """Some of what a network returns, without labels."""
    return Made(lambda m, x, _: operator.attrgetter(*names.split())(m.net(x)), net=net)


def lines(last: Callable[[Tensor], Any], classes: int = 5) -> nn.Module:
    """A linear map, and something behind it."""
    linear = nn.Linear(576, 6 * classes)
    return Made(lambda m, x, _: last(m.linear(x.flatten(1)).unflatten(1, (-1, 6))), linear=linear)


def answers(answer: Callable[..., Any], **sizes: int) -> nn.Module:
    """What is made of a network's capsules, the images, the labels, and the decoder."""
    return Made(lambda m, x, y: answer(m.net.encode(x), x, y, m.net.decoder), net=network(**sizes))


def routed(slips: bool = False) -> nn.Module:
    """A routing that is given children in rows and columns; only lengths are returned."""

    def route(m: Any, u: Tensor, iterations: int) -> Tensor:
        assert iterations == 3
        return m.net.parents(u.flatten(1, 2))

    def call(m: Any, x: Tensor, _: Any) -> Tensor:
        u = m.digits.net.lower(x).view(len(x), 16, 3, 8)
        return m.digits(u, 3, dim=8).squeeze(-1).norm(dim=2)

    return Made(call, digits=Made(route, net=Literal(slips)))


def trained() -> WildCapsNet:
    net = network()
    net.digits.weight.data *= 1.2
    return net


def normed() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 4, 9), nn.BatchNorm2d(4))


# In place of some method of Literal, or behind a network.


def drawn(v: Tensor, draw: Any) -> Tensor:
    return draw(v, v.norm(dim=2).argmax(dim=1))


def shared_decoder(v: Tensor, x: Tensor, y: Tensor, draw: Any) -> Any:
    return v + 0 * sum(p.sum() for p in draw.parameters()), draw(v, y)


def with_slips(net: Any, u: Tensor) -> Tensor:
    net.slips = True
    v = Literal.parents(net, u)
    net.slips = False
    return v


def squash_by(squash: Callable[[Tensor, int], Tensor]) -> Callable[[Any, Tensor], Tensor]:
    return lambda net, s: squash(s, -1)


def softmax_first(net: Any, x: Tensor, y: Any = None) -> Any:
    v, drawn = Literal.forward(net, x, y).values()
    lengths = v.squeeze(-1).norm(dim=2)
    return lengths.softmax(dim=1), lengths, drawn


def late(net: Any, x: Tensor) -> Tensor:
    if not hasattr(net, "scale"):
        net.scale = nn.Parameter(x.new_ones(()))
    return net.scale * Literal.lower(net, x)


def votes(net: Any, u: Tensor) -> Tensor:
    return torch.einsum("jido,nio->njd", net.w[0], u)


def once(net: Any, u: Tensor) -> Tensor:
    return net.squash(votes(net, u)).unsqueeze(-1)


def added_where_not_zero(net: Any, s: Tensor) -> Tensor:
    if s.shape[-1] == 6:
        s = torch.where(s.ne(0).any(dim=-1, keepdim=True), s + net.added[:, None], s)
    return Literal.squash(net, s)


class Case(NamedTuple):
    """What the report says of a network: all that is found, and all without a name."""

    make: Callable[[], Any]
    adapter: Adapter | None = STAGES
    found: str = ""
    unnamed: str = ""  # the beginning of what has no name; "any" is not compared
    open: dict[str, str] = {}  # parts of reasons why a deviation was not examined  # noqa: RUF012
    clean: str = ""


NORM = "maps are normalised between the convolutions: BatchNorm2d"
SQUASH, LOSS = "no known squash fits", "the loss is not a sum of the paper's two losses"
RELU = "between the convolutions −1 becomes ±0.25, where ReLU gives 0"
BOTH = "needs an Adapter with primary and digits, or with routing, which is one of "
NEEDS = {
    "leak": f"{BOTH}first, units, draw",
    "routed-to-types": "needs an Adapter with primary, or",
}
NEEDS["mean-margin"] = "needs an Adapter with loss"
EQUAL = "with equal coupling neither logits nor the number of iterations matter"
IDLE = dict.fromkeys(("two-iterations", "learned-prior"), EQUAL)
NO_GRADIENT = {"stopped-gradient": "no gradient reaches the images"}
ROUNDED = {"stopped-gradient": "finite differences of two steps give different"}
AFTER = {"digit-bias": "6 numbers change: these act after the squash, or there is none"}
ONCE = {"unit-w": "with one iteration only the product of W and the coupling coefficients is seen"}
EVERYWHERE = {"squash-over-children": "which are not squashed over the children"}
SHARED = {"other-decoder": "weights cannot be told from those of the capsules"}
NO_RECONSTRUCTION = {"mean-margin": "may have a reconstruction in it that the call does not return"}
SLIPS = "softmax-over-children bare-norm small-w"
CHILDREN = "softmax-over-children unit-w"
TOGETHER = "learned-prior leak digit-bias shared-w squash-over-children unit-w"
NAMED = replace(OUTSIDE, routing="digits")
CASES: dict[str, Case] = {
    # Networks of ours: another routing is no deviation, and some deviations hide others.
    "ours": Case(network, WILD, clean=ALL),
    "one type": Case(lambda: network(capsule_types=1), WILD),
    "attention": Case(lambda: RoutedCapsNet(routing="attention", **SHAPE), ROUTED, "", SQUASH),
    "together": Case(lambda: network(TOGETHER), WILD, TOGETHER),
    "hidden": Case(
        lambda: network("uniform-shares learned-prior"), WILD, "uniform-shares", "", IDLE
    ),
    "iterations": Case(lambda: network(routing_iterations=5), WILD, "", "5 iterations fit"),
    "trained": Case(trained, WILD, open={"uncut-w": "they fit no known initialisation"}),
    "many": Case(lambda: network(CHILDREN, capsule_types=160, capsule_dim=16), WILD, CHILDREN),
    "many iterations": Case(
        lambda: network(routing_iterations=20), WILD, "", "no known routing fits"
    ),
    # From outside, some with a module that routes.
    "outside": Case(lambda: Literal(True), OUTSIDE, "bare-norm", "", NEEDS, "prediction-mask"),
    "lengths": Case(lambda: returns("lengths", network("batch-mask leak")), OUTSIDE),
    "no labels": Case(
        lambda: returns("capsules reconstruction", network("batch-mask leak")),
        *(OUTSIDE, "batch-mask"),
    ),
    "decoder": Case(lambda: answers(shared_decoder), OUTSIDE, open=SHARED),
    "binary": Case(
        literal(forward=lambda net, x, y=None: Literal.forward(net, (x > 0.5).to(x), y)),
        *(OUTSIDE, "", "", NO_GRADIENT),
    ),
    "cuda": Case(
        literal(forward=lambda net, x, y=None: net.cuda().parents(net.lower(x.cuda(0)))), OUTSIDE
    ),
    "named, slips": Case(lambda: routed(True), NAMED, SLIPS),
    # Stages, with one method replaced.
    "literal": Case(Literal, ADAPTER, clean=ALL),
    "slips": Case(lambda: Literal(slips=True), ADAPTER, f"{SLIPS} mean-margin", clean="leak"),
    "once": Case(literal(parents=once), STAGES, "uniform-shares", "", ONCE),
    "unsquashed": Case(
        literal(lower=lambda net, x: net.join(net.features(x))),
        unnamed=f"{SQUASH}: primary capsules become",
    ),
    "normalised v": Case(
        literal(
            __init__=adds(norm=lambda: nn.LayerNorm(6)),
            parents=lambda net, u: net.norm(Literal.parents(net, u).mT).mT,
        ),
        *(STAGES, "", SQUASH, AFTER),
    ),
    "float32": Case(
        literal(parents=lambda net, u: Literal.parents(net, u.float().double())),
        *(STAGES, "", "any", ROUNDED),
    ),
    "leaky": Case(literal(features=lambda net, x: F.leaky_relu(net.first(x), 0.25)), unnamed=RELU),
    "group norm": Case(
        literal(features=lambda net, x: F.group_norm(net.first(x), 1).relu()), open=EVERYWHERE
    ),
    "batch norm": Case(
        literal(__init__=adds(first=normed), features=lambda net, x: net.first(x).relu()),
        unnamed=NORM,
        open={"routed-to-types": NORM},
    ),
    "bias": Case(
        literal(
            __init__=adds(added=lambda: nn.Parameter(torch.full((5, 6), 0.1))),
            squash=added_where_not_zero,
        ),
        found="digit-bias",
    ),
    "late": Case(literal(lower=late), unnamed="parameters that only the first call makes"),
    "softmax, loss": Case(
        literal(forward=softmax_first), ADAPTER, clean="softmax-of-lengths mean-reconstruction"
    ),
    "no drawing": Case(
        literal(forward=lambda net, x, y=None: Literal.forward(net, x, y)["digits"]),
        *(ADAPTER, "", "", NO_RECONSTRUCTION),
    ),
}
GUARDS = {
    "1e-11 under the root": parts.guarded_squash(1e-11),
    "1e-05 beside the norm": parts.squash_beside(1e-5),
}
for place, guarded in GUARDS.items():  # another guard hides no slip of the routing
    CASES[place] = Case(
        literal(squash=squash_by(guarded), parents=with_slips),
        *(STAGES, "softmax-over-children", "any"),
        {"guard-1e-8": f"squash is guarded by {place}"},
    )
LOSSES: dict[str, tuple[Callable[[Tensor, Tensor, int], Tensor], str]] = {
    "small and absolute": (lambda margin, squares, n: margin + 1e-4 * squares.sqrt(), LOSS),
    "of the batch": (lambda margin, squares, n: n * (margin + 0.0005 * squares), ""),
    "ten times": (
        lambda margin, squares, n: margin + 0.005 * squares,
        "the sum of squared differences is weighted by 0.005, 10 times the paper's",
    ),
}
for name, (total, says) in LOSSES.items():
    open = {"mean-margin": says} if says == LOSS else {}
    CASES[name] = Case(literal(total=staticmethod(total)), ADAPTER, "", says, open)


@pytest.mark.parametrize("name", CASES)
def test_finds_what_is_there_and_nothing_else(name: str) -> None:
    case = CASES[name]
    torch.manual_seed(0)
    report = check(case.make, case.adapter)
    assert [*report.found] == sorted(case.found.split(), key=SEEN.index) and not report.failed
    if case.unnamed != "any":
        (why,) = report.unnamed or [""]
        assert why.startswith(case.unnamed) and bool(why) == bool(case.unnamed)
    assert all(f"without a name: {why}" in str(report) for why in report.unnamed)
    for deviation, expected in case.open.items():
        assert expected in report.not_examined[deviation]
    assert {*case.clean.split()} <= {*report.clean}
    # Each deviation is found, or clean, or not examined.
    assert sorted([*report.found, *report.clean, *report.not_examined]) == sorted(DEVIATIONS)


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_finds_those_of_an_implementation(name: str) -> None:
    made = IMPLEMENTATIONS[name]
    torch.manual_seed(0)
    report = check(made.make(**SMALL), WILD)
    here = {deviation.name for deviation in made.deviations}
    assert [*report.found] == [seen for seen in SEEN if seen in here] and not report.unnamed
    assert {*report.not_examined} == {*DEVIATIONS} - {*SEEN}


@pytest.mark.parametrize("name", SEEN)
def test_finds_one_alone(name: str) -> None:
    torch.manual_seed(0)
    report = check(network(name), WILD)
    assert [*report.found] == [name] and not report.unnamed
    assert any(digit in report.found[name] for digit in "0123456789")
    assert f"measured:  {report.found[name]}" in str(report)
    assert (f"({name}: the paper leaves that open)" in str(report)) == DEVIATIONS[name].is_choice


@pytest.mark.parametrize(
    ("answer", "sizes", "read"),
    [
        (lambda v, x, y, draw: (v.mT, v.norm(dim=2)), {}, "5 classes of 6 numbers"),
        (lambda v, x, y, draw: (v, x[:, :, ::2, ::2].flatten(1)), {}, "5 classes of 6"),
        (lambda v, *_: v, {"num_classes": 36, "capsule_dim": 16}, "36 classes of 16"),
        (lambda v, x, y, draw: (v, draw(v, y)), {"num_classes": 3}, "3 classes of 6"),
        (lambda v, x, y, draw: (v, drawn(v * y[..., None], draw)), {"num_classes": 8}, "8 classes"),
        (lambda v, x, y, draw: (v, (draw(v, y), v.norm(dim=2))), {}, "5 classes of 6"),
    ],
    ids=["transposed", "flat", "as many as pixels", "labels", "one-hot", "nested"],
)
def test_reads_what_a_network_returns(answer: Any, sizes: dict[str, Any], read: str) -> None:
    torch.manual_seed(0)
    report = check(answers(answer, **sizes), OUTSIDE)
    assert not report.found and not report.unnamed and not report.failed
    assert report.read_as.startswith(read)


def fails(net: Any, *given: Any) -> Any:
    return net.nothing


@pytest.mark.parametrize(
    ("stage", "change", "message"),
    [
        ("primary", fails, "AttributeError: 'Literal' object has no attribute 'nothing'"),
        ("primary", lambda u: u[0], "it must return u, [n, children, dim], got [48, 8]"),
        ("primary", lambda u: u.transpose(0, 1), "must be the batch's, 8, got shape [48, 8, 8]"),
        ("primary", lambda u: u * torch.nan, "all primary capsules are zero or NaN"),
        ("digits", lambda v: v.sum(), "it must return v, [n, classes, dim], got []"),
        ("digits", lambda v: 0 * v, "the class capsules do not depend on the primary ones"),
        ("loss", lambda loss: (loss, 3), "it must return a scalar tensor, got tuple"),
        ("loss", lambda loss: loss.expand(30), "it must return a scalar tensor, got [30]"),
        ("loss", lambda loss: loss * torch.nan, "the network returns in training, is NaN"),
    ],
)
def test_a_stage_that_fails_is_in_the_report(stage: str, change: Any, message: str) -> None:
    right = getattr(ADAPTER, stage)
    new = change if change is fails else lambda *given: change(right(*given))
    with pytest.raises(AssertionError) as failure:  # its message is the report
        assert_paper(Literal, replace(ADAPTER, **{stage: new}))
    lines = str(failure.value).splitlines()
    assert any(f"{stage} fails: " in line and message in line for line in lines)


def test_a_probe_that_fails_takes_no_other_with_it() -> None:
    def never_3(m: Any, x: Tensor, _: Any) -> Any:
        if len(x) == 3:  # as examine_batch has it
            raise RuntimeError("not three")
        return m.net(x).lengths

    report = check(Made(never_3, net=network("stopped-gradient")), OUTSIDE)
    assert [*report.found] == ["stopped-gradient"]
    assert report.failed == ["call fails: RuntimeError: not three"]
    assert report.not_examined["batch-logits"] == report.failed[0]
    assert report.not_examined["leak"] == f"{BOTH}net"


def test_an_error_of_a_probe_is_not_taken_for_the_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    """And a network that keeps what it computed, so that it cannot be copied, takes the blame."""
    keeps = Made(lambda m, x, _: setattr(m, "kept", m.net(x).lengths) or m.kept, net=network())
    report = check(keeps, OUTSIDE)
    assert report.failed and all(
        "it cannot be copied: RuntimeError" in why for why in report.failed
    )
    monkeypatch.setattr(probe_outside, "relative_error", lambda *given: {}["a probe's own error"])
    with pytest.raises(KeyError, match="a probe's own error"):
        check(Literal, OUTSIDE)


@pytest.mark.parametrize(
    ("last", "message"),
    [
        (lambda v: v * torch.nan, "it returns NaN or infinity; is a capsule of zeros divided by"),
        (lambda v: v[..., 0], "got negative numbers: are the [8, 5] logits?"),
        (lambda v: 0 * v + 1, "all images get the same answer"),
        (
            lambda v: None,
            "[8, 1, 24, 24]: expected capsules [n, classes, dim] or lengths [n, class",
        ),
        (lambda v: None, "with a gradient, got NoneType; give an Adapter with another call or"),
        (lambda v: (v[:, :, :3] @ v[:, :, 3:].mT, v), "capsules, [8, 5, 5] or [8, 5, 6]?; give"),
        (lambda v: v @ v.float().mT, "check runs in float64 on the CPU, with batches of 1 to 8"),
        (lambda v: sys.exit(0), "it calls sys.exit; give an Adapter"),
    ],
)
def test_refuses_what_tells_nothing(last: Any, message: str, refuses: Refuses) -> None:
    with refuses(message):
        check(lines(last), OUTSIDE)


def test_refuses_an_adapter(refuses: Refuses) -> None:
    with refuses("image_shape", "got 28"):
        Adapter(image_shape=28)  # type: ignore[arg-type]
    with refuses("routing, or primary and digits, got both"):
        replace(ADAPTER, routing="digits")
    twice = Made(
        lambda m, x, _: m.linear(m.linear(x.flatten(1))).unflatten(1, (-1, 6)),
        linear=nn.Linear(576, 576),
    )
    for net, name, message in (
        (routed(), "digit", "the network has no module 'digit'; it has digits, digits.net"),
        (routed(), "", "the network has no module ''; it has digits, digits.net"),
        (routed(), "digits.net.draw", "its digits.net.draw is not called"),
        (twice, "linear", "its linear is called 2 times for one answer"),
        (lines(torch.clone), "linear", "linear must be given u, [n, children, dim], first"),
    ):
        with refuses(message):
            check(net, replace(OUTSIDE, routing=name))


def test_leaves_everything_as_it_was() -> None:
    model = network("bare-norm").train()
    model.conv.weight.requires_grad_(False)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    state = torch.get_rng_state()
    first = check(model, WILD)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_default_dtype() == torch.float32
    assert model.training and not model.conv.weight.requires_grad
    assert all(parameter.grad is None for parameter in model.parameters())
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name]) and tensor.dtype == torch.float32
    torch.rand(1)
    assert check(model, WILD) == first


def test_as_an_assertion() -> None:
    model = network("small-w mean-margin")
    assert_paper(model, WILD, allow=["small-w", "mean-margin", "leak"])
    with pytest.raises(AssertionError, match="mean-margin\n  the paper: The losses of all classes"):
        assert_paper(model, WILD, allow=["small-w"])
    with pytest.raises(ValueError, match="no deviation is called smal-w"):
        assert_paper(model, WILD, allow=["smal-w"])
    with pytest.raises(
        ValueError, match=r"^mean-margin is allowed, but was not examined: needs an"
    ):
        assert_paper(Literal, OUTSIDE, allow=["bare-norm", "mean-margin"])
    with pytest.raises(ValueError, match=r"^the routing of Literal was not examined: needs an Ada"):
        assert_paper(Literal, OUTSIDE, allow=["bare-norm"])
    odd = network(routing_iterations=9)
    assert_paper(odd, WILD, allow=["unnamed"])
    with pytest.raises(AssertionError, match=r"that were looked for, 1 without a name;"):
        assert_paper(odd, WILD)


MODULE = """
import torch
from torch import nn
from capsnet import CapsNet
from capsnet_lab.check import Adapter
from capsnet_lab.wild import WildCapsNet

small = {"num_classes": 5, "conv_channels": 4, "capsule_types": 3}

def make():
    return WildCapsNet(deviations=["bare-norm"], **small)

ours, mine = CapsNet(**small), CapsNet((1, 24, 24), routing_iterations=5, **small)
plain = nn.Sequential(nn.Flatten(), nn.Linear(784, 10), nn.Sigmoid())
broken = Adapter(primary=lambda net, images: net.nothing(images))

class Kept(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.last = torch.ones(1, requires_grad=True) * 2

made, number = make(), 7
wants = lambda sizes: made
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"capsules_of_{tmp_path.name}"
    monkeypatch.chdir(tmp_path)
    for suffix, text in {
        "": MODULE,
        "_broken": "1 / 0",
        "_reads": f"import argparse\nargparse.ArgumentParser().parse_args()\n{MODULE}",
        "_late": f"def make():\n    from {name} import make\n    return make()",
    }.items():
        Path(f"{name}{suffix}.py").write_text(text)
    return name


def test_by_name(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path, words = sys.path.copy(), ["capsnet", "check", "a", "b"]
    monkeypatch.setattr(sys, "argv", words)
    for suffix in "", "_late", "_reads":
        assert [*check_by_name(f"{module}{suffix}:make").found] == ["bare-norm"]
        assert sys.path == path and sys.argv is words
    outside = check_by_name(f"{module}:made")
    assert str(outside).startswith("WildCapsNet: the routing was not examined; 1 of ")


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (":ours", 0, "0 of 28 "),
        (":made", 1, "\nbare-norm\n"),
        (":ours --adapter {}:broken", 3, "\nprimary fails: AttributeError: "),
        (":plain", 3, "\nthe routing was not examined: needs an Adapter"),
        (":mine --image-shape 1x24x24 --routing digits", 1, "without a name: 5 iterations fit"),
        (":ours --image-shape 1x24x24", 2, "with images [8, 1, 24, 24]: "),
    ],
)
def test_the_command(
    module: str, words: str, code: int, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["check", *(module + words.format(module)).split()]) == code
    printed = capsys.readouterr()
    assert text in (printed.err if code == 2 else printed.out)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("./{}:Net", "expected a name such as my_module:MyCapsNet, got"),
        ("{}_broken:Net", "cannot be imported: ZeroDivisionError: division by zero"),
        ("{}:Net", " has no attribute 'Net'"),
        ("{}:wants", "() makes no network: TypeError: "),
        ("{}:Kept", "the network cannot be copied: RuntimeError: Only Tensors created explicitly"),
        ("{}:number", "7() makes no network: TypeError: 'int' object is not callable"),
        ("{}:make {}:number", "number must be an Adapter, got int"),
        ("capsnet:make", "capsnet.py has the name of a module in use here: rename"),
        ("capsnet_lab.x:make", "capsnet_lab/__init__.py has the name of a module in use here"),
    ],
)
def test_refuses_a_name(module: str, target: str, message: str, refuses: Refuses) -> None:
    Path("capsnet.py").write_text(MODULE)
    Path("capsnet_lab").mkdir()
    Path("capsnet_lab/__init__.py").touch()
    with refuses(message):
        check_by_name(*target.format(module, module).split())
