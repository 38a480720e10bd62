"""The checker finds in a network what is there, by numbers, and nothing else."""

import functools
import inspect
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

from capsnet import CapsNet
from capsnet.functional import dynamic_routing, margin_loss
from capsnet.layers import CapsuleLayer
from capsnet_lab import cli
from capsnet_lab.check.checker import Adapter, assert_paper, check, main_check
from capsnet_lab.check.routing import GUARDS
from capsnet_lab.routings import EfficientCapsNet, RoutedCapsNet
from capsnet_lab.wild import DEVIATIONS, IMPLEMENTATIONS, WildCapsNet
from capsnet_lab.wild.network import WildLoss
from helpers import Refuses

SMALL = {"num_classes": 5, "conv_channels": 4, "capsule_types": 3, "capsule_dim": 6}
SMALL["image_shape"] = (1, 24, 24)
SEEN = [name for name, deviation in DEVIATIONS.items() if deviation.parts]  # in a module


def network(*deviations: str) -> WildCapsNet:
    torch.manual_seed(0)
    return WildCapsNet(deviations=deviations, **SMALL)


def test_ours_has_none() -> None:
    report = check(lambda: CapsNet(**SMALL))
    assert not report.found and not report.otherwise and report.clean == SEEN
    assert set(report.not_examined) == set(DEVIATIONS) - set(SEEN)


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_finds_those_of_an_implementation(name: str) -> None:
    made = IMPLEMENTATIONS[name]
    torch.manual_seed(0)
    shape = made.options.get("image_shape", SMALL["image_shape"])
    report = check(made.make(**SMALL | {"image_shape": shape}))
    here = {deviation.name for deviation in made.deviations}
    assert [*report.found] == [seen for seen in SEEN if seen in here] and not report.otherwise
    # what cannot be seen beside the others is said not to be
    assert set(report.clean) | here | set(report.not_examined) == set(DEVIATIONS)
    if "reconstruct" not in made.options:
        assert set(report.not_examined) == set(DEVIATIONS) - set(SEEN)


@pytest.mark.parametrize("name", SEEN)
def test_finds_one_alone(name: str) -> None:
    report = check(network(name))
    assert [*report.found] == [name] and not report.otherwise
    assert any(digit in report.found[name] for digit in "0123456789")
    assert f"measured:  {report.found[name]}" in str(report)
    silent = DEVIATIONS[name].paper.startswith("It does not say")
    assert (f"({name}: the paper leaves that open)" in str(report)) == silent


class Literal(nn.Module):
    """A stranger's network: weights and answers laid out otherwise, on request with slips."""

    def __init__(self, slips: bool = False) -> None:
        super().__init__()
        self.slips = slips
        self.first = nn.Conv2d(1, 4, 9)
        self.units = nn.ModuleList(nn.Conv2d(4, 3, 9, stride=2) for _ in range(8))
        w = 0.01 * torch.randn(1, 5, 48, 6, 8)
        self.route_weights = nn.Parameter(
            w if slips else nn.init.trunc_normal_(w, 0, 0.1, -0.2, 0.2)
        )
        self.draw = nn.Sequential(
            *(nn.Linear(30, 512), nn.ReLU(), nn.Linear(512, 1024), nn.ReLU()),
            *(nn.Linear(1024, 576), nn.Sigmoid()),
        )

    def squash(self, s: Tensor) -> Tensor:
        squared = (s**2).sum(-1, keepdim=True)
        safe = squared if self.slips else squared.clamp(min=1e-150)
        return squared / (1 + squared) * s / safe.sqrt()

    def lower(self, x: Tensor) -> Tensor:
        u = torch.stack([unit(self.first(x).relu()) for unit in self.units], dim=-1)
        return self.squash(u.view(len(x), 48, 8))

    def parents(self, u: Tensor) -> Tensor:
        u_hat = (self.route_weights @ u[:, None, :, :, None]).squeeze(-1)  # [n, out, in, out_dim]
        b = torch.zeros(u_hat.shape[:3])  # in the dtype that happens to be torch's default
        for iteration in range(3):
            c = F.softmax(b, dim=2 if self.slips else 1)
            v = self.squash((c[..., None] * u_hat).sum(2, keepdim=True))
            if iteration < 2:
                b = b + (u_hat * v).sum(-1)
        return v.squeeze(2).unsqueeze(-1)

    def forward(self, x: Tensor, y: Tensor | None = None) -> dict[str, Tensor]:
        v = self.parents(self.lower(x))
        if y is None:
            y = F.one_hot(v.norm(dim=2).squeeze(-1).argmax(dim=1), 5)
        seen = (v * y[:, :, None, None]).view(len(x), -1)
        return {"digits": v, "drawn": self.draw(seen)}

    def loss(self, x: Tensor, classes: Tensor) -> Tensor:
        out = self(x, F.one_hot(classes, 5).to(x.dtype))
        margin = margin_loss(out["digits"].squeeze(-1).norm(dim=2), classes)
        squares = (out["drawn"] - x.flatten(1)).square().sum()
        return margin / (5 if self.slips else 1) + 0.0005 * squares / len(x)


ADAPTER = Adapter(
    primary=lambda net, images: net.lower(images),
    digits=lambda net, u: net.parents(u),
    loss=lambda net, images, labels: net.loss(images, labels),
    image_shape=(1, 24, 24),
)
SLIPS = ["softmax-over-children", "bare-norm", "mean-margin", "small-w"]


def test_a_strangers_network_without_slips() -> None:
    report = check(Literal, ADAPTER)
    assert not report.found and not report.otherwise and report.clean == SEEN


def test_a_strangers_network_with_slips() -> None:
    report = check(lambda: Literal(slips=True), ADAPTER)
    assert [*report.found] == SLIPS
    assert set(SEEN) == {*report.found, *report.clean}


def test_from_outside_it_says_what_it_needs() -> None:
    torch.manual_seed(0)
    report = check(Literal(slips=True), Adapter(image_shape=(1, 24, 24)))
    assert [*report.found] == ["bare-norm"]
    assert (
        report.not_examined["softmax-over-children"] == "needs an Adapter with primary and digits"
    )
    assert report.not_examined["relu-before-squash"] == "needs an Adapter with primary"
    assert report.not_examined["mean-margin"] == "needs an Adapter with loss"
    assert {"batch-logits", "stopped-gradient", "prediction-mask"} <= set(report.clean)
    assert "mean-reconstruction, normalised-images (needs an Adapter with loss)" in str(report)


class Returns(nn.Module):
    """Of a network, some of what it returns, without labels."""

    def __init__(self, net: CapsNet, *names: str) -> None:
        super().__init__()
        self.net, self.names = net, names

    def forward(self, x: Tensor) -> Any:
        out = self.net(x)._asdict()
        return (
            tuple(out[name] for name in self.names) if len(self.names) > 1 else out[self.names[0]]
        )


@pytest.mark.parametrize(
    ("deviations", "returned", "seen"),
    [
        ("batch-logits bare-norm", "capsules", "batch-logits bare-norm"),
        ("batch-logits", "lengths", "batch-logits"),
        ("stopped-gradient", "capsules", "stopped-gradient"),
        ("stopped-gradient", "lengths", "stopped-gradient"),
        ("squash-by-component", "capsules", "squash-by-component"),
        ("squash-over-classes", "capsules", "squash-over-classes"),
        ("softmax-of-lengths", "lengths", "softmax-of-lengths"),
        ("standardised-images", "lengths", "standardised-images"),
        ("other-decoder", "capsules reconstruction", "prediction-mask other-decoder"),
        ("batch-mask", "capsules reconstruction", "batch-mask"),
        ("leak", "capsules", ""),
    ],
)
def test_from_outside(deviations: str, returned: str, seen: str) -> None:
    model = Returns(network(*deviations.split()), *returned.split())
    report = check(model, Adapter(image_shape=(1, 24, 24)))
    assert set(report.found) == set(seen.split())
    assert not set(report.clean) & set(deviations.split())


def test_a_look_that_fails_takes_no_other_with_it() -> None:
    class Never3(Returns):
        def forward(self, x: Tensor) -> Any:
            if len(x) == 3:  # as of_company has it
                raise RuntimeError("not three")
            return super().forward(x)

    report = check(Never3(network("stopped-gradient"), "lengths"), Adapter(image_shape=(1, 24, 24)))
    assert [*report.found] == ["stopped-gradient"]
    assert report.failed == ["call fails: RuntimeError: not three"]
    assert report.not_examined["batch-logits"] == report.failed[0]
    assert report.not_examined["leak"] == "needs an Adapter with primary and digits"
    assert report.not_examined["same-padding"] == "needs an Adapter with primary"
    assert report.not_examined["mean-margin"] == "needs an Adapter with loss"


class Upper(nn.Module):
    """The routing as a module, of a network that has it as a method."""

    def __init__(self, net: Any) -> None:
        super().__init__()
        self.net = net

    def forward(self, u: Tensor, trace: list[Tensor] | None = None) -> Tensor:
        if isinstance(self.net, Literal):
            return self.net.parents(u)
        return self.net.route(self.net.predict(u))


class Layered(nn.Module):
    """A network with that, and something behind it."""

    def __init__(self, slips: bool, last: nn.Module) -> None:
        super().__init__()
        self.upper, self.last = Upper(Literal(slips)), last

    def forward(self, x: Tensor) -> Tensor:
        v = self.upper(self.upper.net.lower(x), None)
        return self.last(v.squeeze(-1))


@pytest.mark.parametrize("slips", [False, True])
def test_from_outside_a_module_that_routes_is_found(slips: bool) -> None:
    torch.manual_seed(0)
    report = check(Layered(slips, nn.Identity()), Adapter(image_shape=(1, 24, 24)))
    assert [*report.found] == [slip for slip in SLIPS if slips and slip != "mean-margin"]
    assert {"leak", "unit-w", "shared-w", "learned-prior"} <= set(report.clean)
    assert {"same-padding", "view-without-permute", "released-start"} <= set(report.clean)
    assert report.not_examined["mean-margin"] == "needs an Adapter with loss"


@pytest.mark.parametrize(
    "deviations",
    ["", "view-without-permute relu-before-squash", "same-padding released-start", "leak"],
)
def test_from_outside_what_comes_before_a_module_that_routes_is_found(deviations: str) -> None:
    class Below(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.upper = Upper(network(*deviations.split()))

        def forward(self, x: Tensor) -> Tensor:
            return self.upper(self.upper.net.children_of(x))

    assert set(check(Below, OUTSIDE).found) == set(deviations.split())


def test_an_adapters_own_primary_capsules_are_looked_at_once() -> None:
    ours = CapsNet(conv_channels=8, capsule_types=2)
    primary = Adapter(primary=lambda net, x: net.primary(net.conv(x).relu()))
    report = check(ours, primary)
    assert not report.found and "relu-before-squash" in report.clean


def test_a_map_of_class_capsules_is_no_routing() -> None:
    torch.manual_seed(0)
    report = check(Layered(True, nn.Linear(6, 6)), Adapter(image_shape=(1, 24, 24)))
    assert [*report.found] == ["bare-norm"]
    assert report.not_examined["uncut-w"] == "needs an Adapter with primary and digits"


def test_what_fits_nothing_known_is_not_guessed() -> None:
    class Odd(Literal):
        def squash(self, s: Tensor) -> Tensor:
            return s.tanh()

        def loss(self, x: Tensor, classes: Tensor) -> Tensor:
            return super().loss(x, classes) ** 2

    report = check(Odd, ADAPTER)
    assert not report.found
    whys = report.not_examined
    assert whys["leak"].startswith("no squash known here fits")
    assert whys["mean-margin"].startswith("the loss is no sum")
    assert "leak" not in report.clean and "mean-margin" not in report.clean


def test_numbers_that_act_after_the_squash_are_no_bias_of_s() -> None:
    class Normed(Literal):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.LayerNorm(6)

        def parents(self, u: Tensor) -> Tensor:
            return self.norm(super().parents(u).squeeze(-1)).unsqueeze(-1)

    report = check(Normed, ADAPTER)
    assert not report.found
    why = report.not_examined["digit-bias"]
    assert "once 6 numbers change: these act after the squash, or there is none" in why


def test_w_is_no_prior() -> None:
    class Leveled(Literal):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.randn(48, 5))

        def parents(self, u: Tensor) -> Tensor:  # a sum added to w is lost, as in a softmax
            s = torch.einsum("nid,ij->ndj", u, self.w)
            return F.layer_norm(s, (5,)).transpose(1, 2)

        def forward(self, x: Tensor, y: Tensor | None = None) -> Tensor:
            return self.parents(self.lower(x))

    report = check(Leveled, replace(ADAPTER, loss=None))
    assert not report.found
    assert report.not_examined["learned-prior"].endswith("at zero, v does not depend on u")
    assert report.not_examined["uniform-shares"].startswith("no squash known here fits")


def test_a_gradient_through_numbers_that_are_rounded_is_not_judged() -> None:
    class Rounded(Literal):
        def parents(self, u: Tensor) -> Tensor:
            return super().parents(u.to(torch.float32).to(u))

    report = check(Rounded, ADAPTER)
    assert "stopped-gradient" not in report.found
    why = report.not_examined["stopped-gradient"]
    assert why.startswith("finite differences of three steps give derivatives of")


SHAPE = {"conv_channels": 8, "capsule_types": 2, "reconstruct": False}


@pytest.mark.parametrize(
    ("make", "options", "seed"),
    [
        *((RoutedCapsNet, {"routing": way} | SHAPE, 0) for way in ("attention", "self-attention")),
        (RoutedCapsNet, {"routing": "em"} | SHAPE, 0),
        (RoutedCapsNet, {"routing": "em"} | SHAPE, 234),  # a bend near the images
        (RoutedCapsNet, {"stack": [8]} | SHAPE, 0),
        (EfficientCapsNet, {"reconstruct": False}, 0),
    ],
    ids=["attention", "self-attention", "em", "em, a bend", "stack", "efficient"],
)
def test_another_routing_of_ours_is_not_taken_for_a_deviation(
    make: Callable[..., CapsNet], options: dict[str, Any], seed: int
) -> None:
    torch.manual_seed(seed)
    report = check(make(**options))
    assert not report.found and not report.failed
    assert {"batch-logits", "stopped-gradient"} <= set(report.clean)


def test_a_subclass_may_do_anything() -> None:
    class Mine(CapsNet):
        def encode(self, images: Tensor, trace: Any = None) -> Tensor:
            return super().encode(1 - images, trace)

    report = check(Mine(**SMALL))
    assert not report.found and not report.failed
    assert report.not_examined["mean-margin"] == "needs an Adapter with loss"


def test_a_w_that_has_learned_has_no_start() -> None:
    model = network()
    with torch.no_grad():
        model.digits.weight.mul_(1.2)
    report = check(model)
    assert not report.found
    assert report.not_examined["uncut-w"].endswith("no start that is known here")


def test_what_another_deviation_hides_is_not_called_clean() -> None:
    report = check(network("uniform-shares", "batch-logits", "two-iterations"))
    assert [*report.found] == ["uniform-shares"]
    hidden = {"batch-logits", "two-iterations", "stopped-gradient", "learned-prior"}
    assert hidden < set(report.not_examined)


def test_several_that_meet_in_one_computation() -> None:
    names = {"leak", "learned-prior", "digit-bias", "shared-w", "unit-w", "squash-over-children"}
    assert set(check(network(*names)).found) == names


def test_more_iterations_than_are_known() -> None:
    report = check(WildCapsNet(routing_iterations=5, **SMALL))
    assert not report.found
    assert report.not_examined["one-iteration-more"] == "5 iterations fit"
    assert report.otherwise == ["5 iterations fit"]


def test_a_stage_that_fails_is_said_to() -> None:
    broken = Adapter(
        primary=lambda net, images: net.nothing(images),
        image_shape=(1, 24, 24),
    )
    report = check(Literal, broken)
    assert "'Literal' object has no attribute 'nothing'" in report.not_examined["same-padding"]
    (failed,) = report.failed
    assert str(report).splitlines()[2] == failed == report.not_examined["same-padding"]
    with pytest.raises(AssertionError, match="\nprimary fails: AttributeError: 'Literal' object"):
        assert_paper(Literal, broken, allow=["same-padding"])


def test_a_stage_that_looks_at_nothing_fails() -> None:
    deaf = replace(ADAPTER, digits=lambda net, u: net.parents(torch.ones_like(u)))
    (failed,) = check(Literal, deaf).failed
    assert failed.endswith("ValueError: the class capsules do not depend on the primary ones")


def test_leaves_everything_as_it_was() -> None:
    model = network("bare-norm").train()
    model.conv.weight.requires_grad_(False)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    state = torch.get_rng_state()
    first = check(model)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_default_dtype() == torch.float32
    assert model.training and not model.conv.weight.requires_grad
    assert all(parameter.grad is None for parameter in model.parameters())
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name]) and tensor.dtype == torch.float32
    torch.rand(1)
    assert check(model) == first


def test_as_an_assertion() -> None:
    model = network("small-w", "mean-margin")
    assert_paper(model, allow=["small-w", "mean-margin", "leak"])
    with pytest.raises(AssertionError, match="mean-margin\n  the paper: The losses of all classes"):
        assert_paper(model, allow=["small-w"])
    with pytest.raises(ValueError, match="no deviation is called smal-w"):
        assert_paper(model, allow=["smal-w"])


def test_what_was_not_examined_cannot_be_allowed() -> None:
    outside = Adapter(image_shape=(1, 24, 24))
    with pytest.raises(ValueError, match="not examined: needs an Adapter with loss") as raised:
        assert_paper(Literal, outside, allow=["bare-norm", "mean-margin"])
    assert str(raised.value).startswith("mean-margin is allowed, but") and "\n" not in str(raised)
    with pytest.raises(ValueError, match=r"^the routing of Literal was not examined: needs an Ada"):
        assert_paper(Literal, outside, allow=["bare-norm"])


def test_the_example_of_an_assertion_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_capsnet.py").write_text(
        "import torch\nfrom capsnet import CapsNet\n\nclass MyCapsNet(CapsNet):\n"
        "    def __init__(self):\n        super().__init__(conv_channels=4, capsule_types=2)\n"
        "        torch.nn.init.normal_(self.digits.weight, std=0.01)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    _, _, example = inspect.getdoc(assert_paper).partition("::\n")
    example, _, _ = example.partition("\nRaises:")
    names: dict[str, Any] = {}
    exec(textwrap.dedent(example), names)
    names["test_is_the_papers_network"]()
    with pytest.raises(AssertionError, match="\nsmall-w\n"):
        assert_paper(names["MyCapsNet"], names["adapter"])


def test_as_a_plugin_of_pytest(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text('pytest_plugins = "capsnet_lab.wild.plugin"\n')
    (tmp_path / "test_mine.py").write_text(
        "from capsnet_lab.wild import WildCapsNet\n\n"
        f"model = WildCapsNet(deviations=['leak'], **{SMALL})\n\n"
        "def test_allowed(assert_paper):\n    assert_paper(model, allow=['leak'])\n\n"
        "def test_refused(assert_paper):\n    assert_paper(model)\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    assert "1 failed, 1 passed" in said and "test_refused" in said, said


MODULE = """
import torch
from capsnet_lab.wild import WildCapsNet
from capsnet_lab.check.checker import Adapter

def make():
    return WildCapsNet((1, 24, 24), 5, conv_channels=4, capsule_types=3, deviations=["leak"])

class Wants(torch.nn.Module):
    def __init__(self, sizes):
        super().__init__()

class Kept(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.last = torch.ones(1, requires_grad=True) * 2

class Empty(torch.nn.Module):
    def forward(self, images):
        return images.mean()

class Hundred(torch.nn.Module):
    def forward(self, images):
        assert len(images) == 100

made, adapter, number = make(), Adapter(image_shape=(1, 24, 24)), 7
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"capsules_of_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    (tmp_path / f"{name}_broken.py").write_text("1 / 0")
    monkeypatch.chdir(tmp_path)
    return name


def test_by_name(module: str) -> None:
    report = main_check(f"{module}:make")
    assert [*report.found] == ["leak"]
    first, *_ = str(report).splitlines()
    counts = "1 of 38 deviations that were looked for; 7 could not be looked at"
    assert first == f"WildCapsNet: {counts}" and "\n\nleak\n" in str(report)
    outside = main_check(f"{module}:made", f"{module}:adapter")
    assert not outside.found and "leak" in outside.not_examined
    unreached = f"WildCapsNet: the routing was not examined; 0 of {len(outside.clean)} deviations"
    assert str(outside).startswith(unreached)


@pytest.mark.parametrize(
    ("target", "error", "message"),
    [
        ("{}", ValueError, "expected a name such as my_module:MyCapsNet, got"),
        ("./{}:Net", ValueError, "expected a name such as my_module:MyCapsNet, got"),
        ("{}.py:Net", ValueError, "expected a module's name, .*:Net, got a file's, .*.py:Net"),
        ("no_such_module:Net", ImportError, "no_such_module cannot be imported: No module named"),
        ("{}_broken:Net", ImportError, "cannot be imported: division by zero"),
        ("{}:Net", ImportError, "has no Net"),
        ("{}:Wants", ValueError, r"Wants\(\) makes no network: .* argument: 'sizes'"),
        ("{}:Kept", ValueError, "the network cannot be copied: Only Tensors created explicitly"),
        ("{}:number", ValueError, "7 must be or make a torch.nn.Module, got int"),
        ("{}:Hundred", ValueError, r"images \[8, 1, 28, 28\]: AssertionError; an Adapter says how"),
        ("{}:Empty", ValueError, r"cannot be called with images \[8, 1, 28, 28\]: it returns nei"),
    ],
)
def test_refuses(module: str, target: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as raised:
        main_check(target.format(module))
    assert "\n" not in str(raised.value)


def test_what_makes_a_network_may_import_what_lies_beside_it(module: str, tmp_path: Path) -> None:
    (tmp_path / f"{module}_late.py").write_text(
        f"def make():\n    from {module} import make\n    return make()"
    )
    before = sys.path.copy()
    assert [*main_check(f"{module}_late:make").found] == ["leak"]
    assert sys.path == before


def test_of_one_type_nothing_is_routed_to_types() -> None:
    assert not check(CapsNet(capsule_types=1)).found


def test_a_module_that_another_hides_is_not_mistaken_for_it(module: str, tmp_path: Path) -> None:
    (tmp_path / "capsnet.py").write_text(MODULE)
    message = r"^capsnet.py has the name of a module in use here: rename it$"
    with pytest.raises(ImportError, match=message):
        main_check("capsnet:make")
    (tmp_path / "capsnet.py").unlink()
    (tmp_path / "capsnet").mkdir()
    (tmp_path / "capsnet" / "model.py").write_text(MODULE)
    with pytest.raises(ImportError, match=r"^capsnet has the name of a module in use here"):
        main_check("capsnet.model:make")
    assert [*main_check(f"{module}:make").found] == ["leak"]


def test_a_network_that_asks_for_a_gpu_is_read_without_one() -> None:
    class Moved(Literal):
        def __init__(self) -> None:
            super().__init__()
            self.cuda()

        def forward(self, x: Tensor, y: Tensor | None = None) -> dict[str, Tensor]:
            return super().forward(x.cuda(non_blocking=True), y)

    assert not check(Moved, OUTSIDE).failed


@pytest.mark.parametrize("shape", [28, "1x28", (28, 28), (1, 28.0, 28), (1, -28, 28)])
def test_an_adapter_refuses_what_is_no_shape(shape: Any, refuses: Refuses) -> None:
    with refuses("image_shape must be [channels, height, width]", f"got {shape!r}"):
        Adapter(image_shape=shape)


class Routed(Literal):
    """Its routing is a module, with children in rows and columns; it returns lengths alone."""

    class Digits(nn.Module):
        def __init__(self, of: Literal) -> None:
            super().__init__()
            self.route_weights, self.squash, self.slips = of.route_weights, of.squash, of.slips

        def forward(self, u: Tensor, iterations: int, dim: int = 0) -> Tensor:
            assert (iterations, dim) == (3, 8)
            return Literal.parents(self, u.flatten(1, 2))  # type: ignore[arg-type]

    def __init__(self, slips: bool = False) -> None:
        super().__init__(slips)
        self.digits = self.Digits(self)
        del self.route_weights

    def forward(self, x: Tensor, y: Tensor | None = None) -> Any:
        return self.digits(self.lower(x).view(len(x), 16, 3, 8), 3, dim=8).squeeze(-1).norm(dim=2)


@pytest.mark.parametrize("slips", [False, True])
def test_a_module_by_its_name_is_both_stages(slips: bool) -> None:
    report = check(lambda: Routed(slips), Adapter(routing="digits", image_shape=(1, 24, 24)))
    assert [*report.found] == [name for name in SLIPS if slips and name != "mean-margin"]
    assert not report.failed and not report.otherwise and not report.unrouted
    assert report.read_as == "5 classes of 6 numbers, 48 children of 8"


def test_a_name_that_is_no_routing(refuses: Refuses) -> None:
    shape = {"image_shape": (1, 24, 24)}
    with refuses("the network has no module digit, but first, units, units.0"):
        check(Routed, Adapter(routing="digit", **shape))
    with refuses("the network has no module , but first, units"):
        check(Routed, Adapter(routing="", **shape))
    with refuses("its first is called 8 times for one answer"):
        check(Routed, Adapter(routing="first", **shape))
    with refuses("its draw is not called"):
        check(Routed, Adapter(routing="draw", **shape))
    with refuses("routing, or primary and digits"):
        replace(ADAPTER, routing="digits")


@pytest.mark.parametrize(
    ("stage", "returned", "message"),
    [
        ("primary", lambda u: u[0], r"it must return u, \[n, children, dim\], got \[48, 8\]"),
        ("primary", lambda u: (u, u), r"it must return u, \[n, children, dim\], got tuple"),
        ("primary", lambda u: u.transpose(0, 1), r"the batch's, \d, got shape \[48, \d, 8\]"),
        ("digits", lambda v: v.transpose(0, 1), r"the batch's, \d, got shape \[5, \d, 6\]"),
        ("digits", lambda v: v.sum(), r"it must return v, \[n, classes, dim\], got \[\]"),
        ("loss", lambda loss: (loss, 3), "it must return a scalar tensor, got tuple"),
        ("loss", lambda loss: 0.5, "it must return a scalar tensor, got float"),
        ("loss", lambda loss: loss.expand(30), r"it must return a scalar tensor, got \[30\]"),
    ],
)
def test_what_a_stage_must_return(stage: str, returned: Any, message: str) -> None:
    right = getattr(ADAPTER, stage)
    report = check(Literal, replace(ADAPTER, **{stage: lambda *given: returned(right(*given))}))
    assert re.search(f"{stage} fails: ValueError: .*{message}$", "\n".join(report.failed), re.M)


def test_the_report_says_how_the_network_was_read() -> None:
    lines = str(check(Literal, ADAPTER)).splitlines()
    assert lines[1] == "read as 5 classes of 6 numbers, 48 children of 8"
    lines = str(check(Returns(network(), "lengths"), OUTSIDE)).splitlines()
    assert lines[1] == "read as 5 classes"


def test_refuses_another_adapter(module: str) -> None:
    with pytest.raises(ValueError, match="must be an Adapter, got int"):
        main_check(f"{module}:make", f"{module}:number")


class Lines(nn.Module):
    """A network of another kind: a linear map, and something behind it."""

    def __init__(self, last: Callable[[Tensor], Any], classes: int = 5) -> None:
        super().__init__()
        self.lines, self.last, self.classes = nn.Linear(576, 6 * classes), last, classes

    def forward(self, x: Tensor) -> Any:
        return self.last(self.lines(x.flatten(1)).view(len(x), self.classes, 6))


OUTSIDE = Adapter(image_shape=(1, 24, 24))


@pytest.mark.parametrize(
    ("last", "message"),
    [
        (lambda v: v * torch.nan, "it returns NaN or infinity; is a capsule of zeros divided by"),
        (lambda v: v * torch.inf, "it returns NaN or infinity; is a capsule of zeros"),
        (
            lambda v: v[..., 0],
            "^expected capsules or their lengths, got negative numbers: are the .8, 5. logits",
        ),
        (lambda v: v.detach(), "what it returns has no gradient$"),
        (lambda v: 0 * v + 1, "all images get the same answer$"),
        (lambda v: None, "nor lengths with a gradient, but NoneType; an Adapter says how"),
        (lambda v: 3, "nor lengths with a gradient, but int; an Adapter says how"),
        (lambda v: (v[0], 3), r"but a tensor \[5, 6\]; an Adapter says how"),
        (lambda v: (), "but tuple; an Adapter says how"),
        (lambda v: SimpleNamespace(v=v), "but SimpleNamespace; an Adapter says how"),
        (
            lambda v: v @ v.float().mT,
            r"an Adapter says how, and with which image_shape \(labels were 0 and 1, or one-hot of "
            r"10 classes; check runs in float64 on the CPU, with batches of 1 to 8: is a batch "
            r"size fixed in the code, or a module kept in a plain list, which PyTorch does not "
            r"see\?\)$",
        ),
        (lambda v: sys.exit(0), "it calls sys.exit; an Adapter says how"),
    ],
)
def test_refuses_what_tells_nothing(last: Callable[[Tensor], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as raised:
        check(Lines(last), OUTSIDE)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("model", [CapsNet(**SMALL | {"num_classes": 1}), None])
def test_refuses_a_single_class(model: nn.Module | None) -> None:
    with pytest.raises(ValueError, match=r"^expected a network of at least two classes, got 1$"):
        check(model or Lines(lambda v: v.norm(dim=2), classes=1), OUTSIDE)


def test_a_look_that_exits_is_said_to() -> None:
    def leave(net: Any, images: Tensor) -> Tensor:
        raise SystemExit

    report = check(Literal, replace(OUTSIDE, primary=leave))
    assert report.failed == ["primary fails: SystemExit: it calls sys.exit"]


def test_no_gradient_to_the_image_is_not_judged() -> None:
    class Binary(Literal):
        def forward(self, x: Tensor, y: Tensor | None = None) -> dict[str, Tensor]:
            return super().forward((x > 0.5).to(x), y)

    report = check(Binary, OUTSIDE)
    assert not report.failed
    why = "no gradient reaches what the answer is made of"
    assert report.not_examined["stopped-gradient"] == why


def unit(h: Tensor) -> Tensor:
    return h / h.norm(dim=(2, 3), keepdim=True)


class Before(nn.Module):
    """Our network, and something before it."""

    def __init__(self, first: Callable[[Tensor], Tensor], *deviations: str) -> None:
        super().__init__()
        self.scale, self.net = nn.Conv2d(1, 1, 1), network(*deviations) if deviations else None
        self.first, self.ours = first, CapsNet(**SMALL)

    def forward(self, x: Tensor) -> Tensor:
        return (self.net or self.ours)(self.first(self.scale(x))).capsules


def test_what_is_nan_elsewhere_is_no_bare_norm() -> None:
    model = CapsNet(**SMALL)
    weight_norm(model.conv)
    report = check(model)
    assert not report.found and not report.failed and "bare-norm" in report.clean
    assert not check(Returns(model, "capsules"), OUTSIDE).found

    report = check(Before(unit), OUTSIDE)
    assert not report.found
    assert report.not_examined["bare-norm"].endswith("NaN, from squash or from elsewhere")
    hidden = check(Before(unit, "leak"), OUTSIDE)  # whose routing cannot be reached
    assert not hidden.found
    assert hidden.not_examined["bare-norm"].endswith("NaN, from squash or from elsewhere")
    assert [*check(Before(lambda h: h, "bare-norm"), OUTSIDE).found] == ["bare-norm"]


def test_a_loss_and_primary_capsules_that_are_nan_fail(capfd: pytest.CaptureFixture[str]) -> None:
    nan = replace(
        ADAPTER,
        primary=lambda net, images: net.lower(images) * torch.nan,
        loss=lambda net, images, labels: net.loss(images, labels) * torch.nan,
    )
    failed = check(Literal, nan).failed
    assert "primary fails: ValueError: all primary capsules are zero or NaN" in failed
    said = "loss fails: ValueError: the loss, or what the network returns in training, is NaN"
    assert failed[-1].startswith(said)
    assert not capfd.readouterr().err


class Decodes(nn.Module):
    """Our network with another decoder, or with one that its answer depends on."""

    def __init__(self, decoder: nn.Module | None) -> None:
        super().__init__()
        self.net, self.decoder = CapsNet(**SMALL), decoder

    def forward(self, x: Tensor, labels: Tensor | None = None) -> tuple[Tensor, Tensor]:
        v, lengths, drawn = self.net(x, labels)
        labels = lengths.argmax(dim=1) if labels is None else labels
        if self.decoder is None:
            return v + 0 * sum(p.sum() for p in self.parameters()), drawn
        seen = v * F.one_hot(labels, 5)[:, :, None]
        return v, self.decoder(seen.flatten(1)[:, :, None, None])


def test_a_decoder_that_cannot_be_told_apart() -> None:
    report = check(Decodes(None), OUTSIDE)
    assert not report.found
    why = "the decoder's weights cannot be told apart"
    assert report.not_examined["other-decoder"] == why


def test_a_decoder_of_convolutions_is_another() -> None:
    up = nn.Sequential(nn.ConvTranspose2d(30, 2, 6), nn.ReLU(), nn.ConvTranspose2d(2, 1, 4, 4))
    report = check(Decodes(up), OUTSIDE)
    assert [*report.found] == ["other-decoder"]
    assert report.found["other-decoder"] == "its weights are 30 × 2 × 6 × 6, 2 × 1 × 4 × 4"
    assert "522" not in str(report)


def test_what_depends_on_batch_mates_before_the_routing() -> None:
    report = check(Before(lambda h: (h - h.mean()) / h.std()), OUTSIDE)
    assert not report.found
    why = report.not_examined["batch-logits"]
    assert why.startswith("an answer changes by") and why.endswith(", but not in the routing")


@pytest.mark.parametrize("last", [torch.tanh, torch.sigmoid])
def test_numbers_below_1_are_no_squash(last: Callable[[Tensor], Tensor]) -> None:
    report = check(Lines(last), OUTSIDE)
    assert not report.found
    assert report.not_examined["squash-by-component"].startswith("no squash known here fits")


EXITS = "import sys\nclass Net:\n    def __new__(cls): sys.exit(5)\n"
ARGUMENTS = f"import argparse\nargparse.ArgumentParser().parse_args()\n{MODULE}"


def test_what_exits_is_told(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / f"{module}_exits.py").write_text(EXITS)
    (tmp_path / f"{module}_ends.py").write_text("import sys; sys.exit(0)")
    (tmp_path / f"{module}_reads.py").write_text(ARGUMENTS)
    words = ["capsnet", "check", f"{module}_reads:make"]
    monkeypatch.setattr(sys, "argv", words)
    for network, said in {
        "exits": "Net() makes no network: it calls sys.exit",
        "ends": f"{module}_ends cannot be imported: it calls sys.exit",
    }.items():
        assert cli.main(["check", f"{module}_{network}:Net"]) == 2
        assert capsys.readouterr().err == f"capsnet check: {said}\n"
    assert cli.main(words[1:]) == 1
    assert sys.argv is words


def test_what_has_no_name_is_otherwise() -> None:
    class Squares(Literal):
        weight = 10.0

        def loss(self, x: Tensor, classes: Tensor) -> Tensor:
            v, drawn = self(x, F.one_hot(classes, 5).to(x.dtype)).values()
            squares = (drawn - x.flatten(1)).square().sum() / len(x)
            return margin_loss(v.squeeze(-1).norm(dim=2), classes) + 0.0005 * self.weight * squares

    class Summed(Literal):
        def loss(self, x: Tensor, classes: Tensor) -> Tensor:
            v, drawn = self(x, F.one_hot(classes, 5).to(x.dtype)).values()
            squares = (drawn - x.flatten(1)).square().sum() / len(x)
            margins = len(x) * margin_loss(v.squeeze(-1).norm(dim=2), classes)
            return margins + 0.0005 * squares

    class Margins(Squares):
        def loss(self, x: Tensor, classes: Tensor) -> Tensor:
            return margin_loss(self(x)["digits"].squeeze(-1).norm(dim=2), classes, m_pos=0.95)

    class Unsquashed(Literal):
        def lower(self, x: Tensor) -> Tensor:
            u = torch.stack([unit(self.first(x).relu()) for unit in self.units], dim=-1)
            return u.view(len(x), 48, 8)

    class Leaky(Literal):
        def lower(self, x: Tensor) -> Tensor:
            features = F.leaky_relu(self.first(x), 0.25)
            u = torch.stack([unit(features) for unit in self.units], dim=-1)
            return self.squash(u.view(len(x), 48, 8))

    for net, says in (
        (Squares, "the sum of squared differences is weighted by 0.005, 10 times the paper's"),
        (Summed, "the squared differences are averaged over the batch, and the margins summed"),
        (Margins, "the loss is no sum of the paper's two"),
        (Unsquashed, "no squash known here: primary capsules become"),
        (Leaky, "between the convolutions −1 becomes ±0.25, where ReLU makes 0 of it"),
    ):
        report = check(net, ADAPTER)
        assert not report.found and len(report.otherwise) == 1, net
        assert report.otherwise[0].startswith(says)
        assert f"\notherwise than in the paper, without a name: {says}" in str(report)
        with pytest.raises(AssertionError, match="otherwise than in the paper"):
            assert_paper(net, ADAPTER)
        assert_paper(net, ADAPTER, allow=["otherwise"])


def test_parameters_that_the_first_call_makes_are_told() -> None:
    class Late(Literal):
        late = False

        def lower(self, x: Tensor) -> Tensor:
            if not self.late:
                self.scale, self.late = nn.Parameter(x.new_ones(())), True
            return self.scale * super().lower(x)

    said = check(Late, ADAPTER).otherwise
    assert said == [
        "parameters that the first call makes, which no optimiser made before trains: scale"
    ]


@pytest.mark.parametrize(
    ("last", "says"),
    [
        (lambda v: 3 * v, "no squash known here: numbers of capsules become"),
        (lambda v: F.normalize(v, dim=2), "capsules stay 1.00 long"),
    ],
)
def test_from_outside_no_squash_is_otherwise(last: Callable[[Tensor], Tensor], says: str) -> None:
    class Plain(Literal):
        def forward(self, x: Tensor, y: Tensor | None = None) -> Tensor:
            return last(torch.einsum("jido,nio->njd", self.route_weights[0], self.lower(x)))

    report = check(Plain, OUTSIDE)
    assert not report.found
    (why,) = report.otherwise
    assert why.startswith(says)


@pytest.mark.parametrize(
    ("place", "epsilon"),
    [
        (place, e)
        for place in GUARDS
        for e in (1.2e-5, 1.2e-7, 3e-11)
        if e > 1e-6 or "least" not in place
    ],
)
def test_another_guard_hides_no_slip_of_the_routing(place: str, epsilon: float) -> None:
    class Guarded(Literal):
        def squash(self, s: Tensor) -> Tensor:
            return GUARDS[place](epsilon)(s, -1)

        def parents(self, u: Tensor) -> Tensor:
            self.slips = True
            v = super().parents(u)
            self.slips = False
            return v

    report = check(Guarded, replace(ADAPTER, loss=None))
    assert [*report.found] == ["softmax-over-children"]
    assert [why.partition("guarded by ")[2] for why in report.otherwise] == [
        f"{epsilon:.2g} {place}"
    ]


@pytest.mark.parametrize("seed", range(4))
def test_of_one_iteration_shares_and_w_are_one(seed: int) -> None:
    class Once(Literal):
        def parents(self, u: Tensor) -> Tensor:
            s = torch.einsum("jido,nio->njd", self.route_weights[0], u)
            return self.squash(s).unsqueeze(-1)  # every share is 1

    torch.manual_seed(seed)
    report = check(Once, ADAPTER)
    assert [*report.found] == ["uniform-shares"]
    assert report.not_examined["unit-w"].startswith("with one iteration only the product of W")


class Answers(nn.Module):
    """What another network's capsules, of so many classes and numbers, are made into."""

    def __init__(
        self, answer: Callable[..., Any], classes: int = 10, dim: int = 6, asks: bool = False
    ) -> None:
        super().__init__()
        sizes = SMALL | {"num_classes": classes, "capsule_dim": dim}
        self.net, self.answer, self.asks = CapsNet(**sizes), answer, asks

    def forward(self, x: Tensor, y: Tensor | None = None) -> Any:
        v = self.net.encode(x)
        assert not self.asks or y is not None
        return self.answer(v, x, y, self.net.decoder)


def drawn(v: Tensor, x: Tensor, y: Any, draw: Any) -> Tensor:
    return draw(v, v.norm(dim=2).argmax(dim=1))


@pytest.mark.parametrize(
    ("answer", "sizes", "read"),
    [
        (lambda v, x, y, draw: (v.mT, v.norm(dim=2)), {}, "10 classes of 6 numbers"),
        (
            lambda v, *rest: (v.norm(dim=2), F.interpolate(drawn(v, *rest), 12)),
            {},
            "10 classes",
        ),
        (
            lambda v, *rest: (v, F.interpolate(drawn(v, *rest), 12).flatten(1)),
            {},
            "10 classes of 6 numbers",
        ),
        (lambda v, *_: v, {"classes": 36, "dim": 16}, "36 classes of 16 numbers"),
        (
            lambda v, x, y, draw: (v, draw(v, y)),
            {"classes": 3, "asks": True},
            "3 classes of 6 numbers",
        ),
        (
            lambda v, x, y, draw: (v, drawn(v * y.to(x)[..., None], x, y, draw)),
            {"classes": 8, "asks": True},
            "8 classes of 6 numbers",
        ),
        (
            lambda v, x, y, draw: (v, (draw(v, y), v.norm(dim=2))),
            {"asks": True},
            "10 classes of 6 numbers",
        ),
    ],
    ids=[
        "transposed",
        "another size",
        "flat",
        "as many as pixels",
        "few classes",
        "eight",
        "nested",
    ],
)
def test_reads_what_a_network_returns(answer: Any, sizes: dict[str, Any], read: str) -> None:
    torch.manual_seed(0)
    call = {"call": lambda net, x, y: net(x, y)} if sizes.get("classes") == 3 else {}
    report = check(Answers(answer, **sizes), replace(OUTSIDE, **call))
    assert not report.found and not report.otherwise and not report.failed
    assert report.read_as.startswith(read)


def test_capsules_the_other_way_round_are_said_to_be_so_perhaps() -> None:
    torch.manual_seed(0)
    ((name, evidence),) = check(Answers(lambda v, *_: v.mT), OUTSIDE).found.items()
    assert name == "squash-over-classes"
    assert evidence.endswith("are [n, dim, classes]: then the Adapter has to transpose them")


def test_asks_which_of_several_are_the_capsules() -> None:
    model = Answers(lambda v, *_: (v[:, :, :3] @ v[:, :, 3:].mT, v))
    with pytest.raises(ValueError, match=r"are the capsules, \[8, 10, 10\] or \[8, 10, 6\]\?; an "):
        check(model, OUTSIDE)


def test_a_softmax_for_the_answer_alone_is_no_deviation() -> None:
    class Reports(Literal):
        def forward(self, x: Tensor, y: Tensor | None = None) -> Any:
            v, drawn = super().forward(x, y).values()
            return v, drawn, v.squeeze(-1).norm(dim=2).softmax(dim=1)

        def loss(self, x: Tensor, classes: Tensor) -> Tensor:
            v, drawn, _ = self(x, F.one_hot(classes, 5).to(x.dtype))
            margin = margin_loss(v.squeeze(-1).norm(dim=2), classes)
            return margin + 0.0005 * (drawn - x.flatten(1)).square().sum() / len(x)

    report = check(Reports, ADAPTER)
    assert not report.found and "softmax-of-lengths" in report.clean
    report = check(Reports, replace(ADAPTER, loss=None))
    assert not report.found and "loss says" in report.not_examined["softmax-of-lengths"]


def test_names_the_module_that_makes_nan() -> None:
    class Zeros(nn.Module):
        def forward(self, u: Tensor) -> Tensor:
            return u / u.relu()

    class Ill(Answers):
        def __init__(self) -> None:
            super().__init__(lambda v, *_: v)
            self.zeros = Zeros()

        def forward(self, x: Tensor, y: Tensor | None = None) -> Any:
            return self.zeros(super().forward(x))

    with pytest.raises(ValueError, match="returns NaN or infinity, first from its zeros; is a"):
        check(Ill, OUTSIDE)


@pytest.mark.parametrize("leak", [0, 0.25])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    ("norm", "has_bias"),  # a number for each map, which can stand in for a convolution's
    [
        (functools.partial(nn.BatchNorm2d, 4), True),
        (functools.partial(nn.GroupNorm, 2, 4), True),
        (functools.partial(nn.InstanceNorm2d, 4), False),
        (functools.partial(nn.LayerNorm, [4, 16, 16]), False),
    ],
)
def test_what_a_normalisation_of_maps_hides_is_seen(
    norm: Callable[[], nn.Module], has_bias: bool, bias: bool, leak: float
) -> None:
    class Normed(Literal):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Sequential(nn.Conv2d(1, 4, 9, bias=bias), norm(), nn.LeakyReLU(leak))
            for number in self.first[1].parameters():  # as of one that has learned
                nn.init.uniform_(number, 0.5, 3)

        def lower(self, x: Tensor) -> Tensor:
            convolution, of_maps, bent = self.first
            maps = bent(of_maps(input=convolution(x)))
            u = torch.stack([unit(maps) for unit in self.units], dim=-1)
            return self.squash(u.view(len(x), 48, 8))

    report = check(Normed, ADAPTER)
    assert not report.found
    expected = [f"maps are normalised between the convolutions: {type(norm()).__name__}"]
    assert {"released-start", "squash-over-children"} <= {*report.clean}
    if bias or has_bias:
        assert {"routed-to-types", "same-padding"} <= {*report.clean}
        if leak:
            expected += ["between the convolutions −1 becomes ±0.25, where ReLU makes 0 of it"]
    else:
        assert report.not_examined["routed-to-types"] == "9 kernels of convolutions have 8 biases"
    assert sorted(report.otherwise) == sorted(expected)


def test_a_norm_over_all_places_is_no_squash_over_the_children() -> None:
    class Normed(Literal):
        def lower(self, x: Tensor) -> Tensor:
            features = F.group_norm(self.first(x), 1).relu()  # a function's own is not taken away
            u = torch.stack([unit(features) for unit in self.units], dim=-1)
            return self.squash(u.view(len(x), 48, 8))

    report = check(Normed, ADAPTER)
    assert not report.found and not report.otherwise
    assert "not squashed over" in report.not_examined["squash-over-children"]


class Biased(Literal):
    """Each convolution's bias is a parameter beside it, of sides of 1."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 4, 9)
        self.units = nn.ModuleList([nn.Conv2d(4, 24, 9, stride=2, bias=False)])
        self.bias = nn.Parameter(torch.zeros(3, 8, 1, 1))

    def lower(self, x: Tensor) -> Tensor:
        maps = self.units[0](self.first(x).relu()).unflatten(1, (3, 8)) + self.bias
        return self.squash(maps.movedim(2, 4).flatten(1, 3))


def test_a_bias_may_have_any_shape_and_act_away_from_zero_alone() -> None:
    class Kept(Biased):
        def __init__(self) -> None:
            super().__init__()
            self.added = nn.Parameter(torch.full((5, 6), 0.1))

        def squash(self, s: Tensor) -> Tensor:
            if s.shape[-1] == 6:
                there = s.ne(0).any(dim=-1, keepdim=True)
                s = torch.where(there, s + self.added[:, None], s)
            return super().squash(s)

    assert [*check(Kept, ADAPTER).found] == ["digit-bias"]
    report = check(Biased, ADAPTER)
    assert not report.found and report.clean == SEEN


def test_children_that_are_added_before_they_are_routed() -> None:
    class Added(CapsuleLayer):
        def forward(self, u: Tensor, trace: Any = None) -> Tensor:
            votes = self.predict(u).unflatten(1, (-1, 16)).sum(dim=2)  # of a type's places
            return dynamic_routing(votes, self.routing_iterations)

    model = CapsNet(**SMALL | {"capsule_types": 12})
    model.digits = Added(192, 8, 5, 6)
    (why,) = check(model).otherwise
    assert why.startswith("no routing known here fits")


def test_of_many_children_no_guard_is_made_up() -> None:
    deviations = ("softmax-over-children", "unit-w")
    torch.manual_seed(0)
    sizes = {"capsule_types": 160, "num_classes": 10, "capsule_dim": 16}
    report = check(WildCapsNet(deviations=deviations, **SMALL | sizes))
    assert [*report.found] == [*deviations] and not report.otherwise


def test_a_guard_of_each_number_hides_no_slip_of_the_routing() -> None:
    class Numbers(Literal):
        def parents(self, u: Tensor) -> Tensor:
            self.slips = self.routes = True
            v = super().parents(u)
            self.slips = self.routes = False
            return v

        def squash(self, s: Tensor) -> Tensor:
            if getattr(self, "routes", False):
                return GUARDS["beside the norm"](1.2e-7)(s.unsqueeze(-1), -1).squeeze(-1)
            return super().squash(s)

    report = check(Numbers, replace(ADAPTER, loss=None))
    assert [*report.found] == ["softmax-over-children", "squash-by-component"]
    (why,) = report.otherwise
    assert "guarded by 1.2e-07 beside the norm" in why


def test_no_more_than_eight_are_shown_at_once() -> None:
    most = []

    class Counts(Literal):
        def lower(self, x: Tensor) -> Tensor:
            most.append(len(x))
            return super().lower(x)

        def parents(self, u: Tensor) -> Tensor:
            most.append(len(u))
            return super().parents(u)

    check(Counts, ADAPTER)
    assert max(most) == 8


def test_shares_beside_lengths_are_not_taken_for_them() -> None:
    class Both(Literal):
        def forward(self, x: Tensor, y: Tensor | None = None) -> Any:
            v, drawn = super().forward(x, y).values()
            lengths = v.squeeze(-1).norm(dim=2)
            return lengths.softmax(dim=1), lengths, drawn

        def loss(self, x: Tensor, classes: Tensor) -> Tensor:
            _, lengths, drawn = self(x, F.one_hot(classes, 5).to(x.dtype))
            squares = (drawn - x.flatten(1)).square().sum()
            return margin_loss(lengths, classes) + 0.0005 * squares / len(x)

    report = check(Both, ADAPTER)
    assert not report.found and not report.otherwise
    assert {"softmax-of-lengths", "mean-reconstruction"} <= set(report.clean)
    report = check(Both, replace(ADAPTER, loss=None))
    assert not report.found and "loss says" in report.not_examined["softmax-of-lengths"]


def test_a_small_part_of_the_loss_that_has_no_name_is_otherwise() -> None:
    class Absolute(Literal):
        def loss(self, x: Tensor, classes: Tensor) -> Tensor:
            v, drawn = self(x, F.one_hot(classes, 5).to(x.dtype)).values()
            margin = margin_loss(v.squeeze(-1).norm(dim=2), classes)
            return margin + 0.002 * (drawn - x.flatten(1)).abs().mean()

    report = check(Absolute, ADAPTER)
    (why,) = report.otherwise
    assert not report.found and why.startswith("the loss is no sum of the paper's two")


def test_a_loss_may_be_summed_over_the_batch_or_draw_by_itself() -> None:
    class Sums(Literal):
        def loss(self, x: Tensor, classes: Tensor) -> Tensor:
            return len(x) * super().loss(x, classes)

    class Draws(Literal):
        def forward(self, x: Tensor, y: Tensor | None = None) -> Any:
            return super().forward(x, y)["digits"]

        def loss(self, x: Tensor, classes: Tensor) -> Tensor:
            v = self(x)
            seen = (v * F.one_hot(classes, 5)[:, :, None, None]).view(len(x), -1)
            margin = margin_loss(v.squeeze(-1).norm(dim=2), classes)
            return margin + 0.0005 * (self.draw(seen) - x.flatten(1)).square().sum() / len(x)

    report = check(Sums, ADAPTER)
    assert not report.found and not report.otherwise and report.clean == SEEN
    assert "mean-margin" in check(lambda: Sums(slips=True), ADAPTER).found
    report = check(Draws, ADAPTER)
    assert not report.found and not report.otherwise
    assert report.not_examined["mean-margin"].startswith("the loss has a drawing in it")


@pytest.mark.parametrize("classes", [7, 14])
def test_a_sum_over_the_batch_and_a_mean_over_the_classes_do_not_cancel(classes: int) -> None:
    deviations = ["mean-margin", "halved-margin"][: classes // 7]
    made = WildCapsNet(deviations=deviations, **SMALL | {"num_classes": classes})
    summed = Adapter(
        loss=lambda net, images, labels: len(images) * WildLoss(net)(images, labels),
        image_shape=SMALL["image_shape"],
    )
    assert [*check(made, summed).found] == deviations


def test_a_routing_without_a_name_can_be_allowed() -> None:
    for model in (
        WildCapsNet(routing_iterations=9, **SMALL),
        RoutedCapsNet(routing="attention", **SHAPE),
    ):
        assert_paper(model, allow=["otherwise"])
        with pytest.raises(AssertionError, match=r"that were looked for, \d+ without a name;"):
            assert_paper(model)
