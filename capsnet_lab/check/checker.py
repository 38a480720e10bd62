"""Which deviations anybody's capsule network has: ``capsnet check my_module:MyCapsNet``."""

import contextlib
import importlib
import os
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F
from torch import nn

from capsnet.model import CapsNet
from capsnet.training.loss import TrainingLoss
from capsnet_lab.check import evidence
from capsnet_lab.check.evidence import Unseen, Verdicts
from capsnet_lab.check.loss import of_loss
from capsnet_lab.check.primary import of_primary, of_start
from capsnet_lab.check.routing import EQUAL, IDLE, of_layer, of_layer_inside
from capsnet_lab.check.subject import STRANGE, Subject, words_of
from capsnet_lab.check.subject import Adapter as Adapter
from capsnet_lab.routings import RoutedCapsNet
from capsnet_lab.wild.deviations import DEVIATIONS
from capsnet_lab.wild.network import WildCapsNet, WildLoss


@dataclass(frozen=True)
class Report:
    """What :func:`check` saw; names are those of :data:`DEVIATIONS`.

    Attributes:
        title: of the network.
        found: deviations that it has, and by which numbers each shows.
        clean: deviations that were looked for, and that it has not.
        not_examined: those that were not, and why.
        failed: stages of the adapter, or calls, that ended in an error, and in which.
        read_as: how many classes and children it was taken to have, of how many numbers.
        otherwise: what was measured that is not the paper's, and none of the deviations.
    """

    title: str
    found: dict[str, str]
    clean: list[str]
    not_examined: dict[str, str]
    failed: list[str]
    read_as: str
    otherwise: list[str]

    @property
    def unrouted(self) -> str:
        """Why the routing was not examined; empty where it was."""
        why = self.not_examined.get("softmax-over-children", "")
        return why if self.not_examined.keys() >= ROUTING and why not in self.otherwise else ""

    def __str__(self) -> str:
        looked = len(self.found) + len(self.clean)
        counts = "the routing was not examined; " if self.unrouted else ""
        counts += f"{len(self.found)} of {looked} deviations that were looked for"
        if choices := [name for name in self.found if DEVIATIONS[name].is_choice]:
            counts += f" ({', '.join(choices)}: the paper leaves that open)"
        if self.otherwise:
            counts += f", {len(self.otherwise)} without a name"
        lines = [f"{self.title}: {counts}; {len(self.not_examined)} could not be looked at"]
        lines += [f"read as {self.read_as}", *self.failed]
        for name, measured in self.found.items():
            lines += [f"\n{name}", f"  the paper: {DEVIATIONS[name].paper}"]
            if name != "other-decoder":  # whose words are one implementation's numbers
                lines += [f"  yours:     {DEVIATIONS[name].code}"]
            lines += [f"  measured:  {measured}"]
        lines += [f"\notherwise than in the paper, without a name: {why}" for why in self.otherwise]
        lines += [f"\nnot there: {', '.join(self.clean) or 'none'}"]
        for why in dict.fromkeys(self.not_examined.values()):
            names = [name for name, reason in self.not_examined.items() if reason == why]
            lines.append(f"not examined: {', '.join(names)} ({why})")
        if self.unrouted:
            lines.append(f"\nthe routing was not examined: {self.unrouted}")
        return "\n".join(lines)


RECIPE = "how a network is trained does not show in it"


def check(model: nn.Module | Callable[[], nn.Module], adapter: Adapter | None = None) -> Report:
    """Say which deviations a capsule network has, by what it computes.

    Copies of the network are looked at, in float64 on the CPU; it stays as it is. A network that
    has learned shows how it was started no more.

    Args:
        model: the network, or what makes one without arguments.
        adapter: how to call it and to reach its inside; by itself for our networks, but for
            those of subclasses. Without one, only what shows from outside is examined, or in a
            module that alone maps primary capsules to the classes'.

    Raises:
        ValueError: there is no network, or it cannot be copied, or called with images.
    """
    dtype = torch.get_default_dtype()
    with without_cuda(), torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(0)
        made = model if isinstance(model, nn.Module) else make(model)
        adapter = adapter or own_adapter(made)
        try:
            torch.set_default_dtype(torch.float64)
            there = {name for name, _ in made.named_parameters()}
            subject = Subject(made, adapter)
            verdicts, failed, otherwise = examine(subject)
            if late := [n for n, _ in subject.model.named_parameters() if n not in there]:
                text = "parameters that the first call makes, which no optimiser made before trains"
                otherwise.append(f"{text}: {', '.join(late)}")
            read_as = subject.read_as
        finally:
            torch.set_default_dtype(dtype)
    seen = {name: verdicts[name] for name in DEVIATIONS}
    found = {name: verdict for name, verdict in seen.items() if isinstance(verdict, str)}
    clean = [name for name, verdict in seen.items() if verdict is None]
    unseen = {name: verdict.why for name, verdict in seen.items() if isinstance(verdict, Unseen)}
    return Report(type(made).__name__, found, clean, unseen, failed, read_as, otherwise)


@contextlib.contextmanager
def without_cuda() -> Iterator[None]:
    """Calls of ``cuda()``, which some have in their code, do nothing."""

    def where_it_is(value: Any, *given: Any, **named: Any) -> Any:
        return value

    with (
        mock.patch.object(torch.Tensor, "cuda", where_it_is),
        mock.patch.object(nn.Module, "cuda", where_it_is),
    ):
        yield


def make(maker: Any) -> nn.Module:
    """A network, of what makes one.

    Raises:
        ValueError: it makes none, or not without arguments.
    """
    name = getattr(maker, "__name__", repr(maker))
    if not callable(maker):
        raise ValueError(f"{name} must be or make a torch.nn.Module, got {type(maker).__name__}")
    try:
        made = maker()
    except STRANGE as error:
        raise ValueError(f"{name}() makes no network: {words_of(error)}") from error
    if not isinstance(made, nn.Module):
        raise ValueError(f"{name}() must make a torch.nn.Module, got {type(made).__name__}")
    return made


def own_adapter(model: nn.Module) -> Adapter:
    """Of our networks; of others, and of a subclass, which may do anything, the images' shape."""
    if not isinstance(model, CapsNet):
        return Adapter()
    shape = Adapter(image_shape=model.config["image_shape"])
    if type(model) is WildCapsNet:
        return replace(
            shape,
            primary=lambda net, images: net.children_of(images),
            digits=lambda net, u: net.route(net.predict(u)),
            loss=lambda net, images, labels: WildLoss(net)(images, labels),
        )
    routed = type(model) is RoutedCapsNet and model.config["routing"] != "em"
    if type(model) is not CapsNet and not routed:
        return shape
    return replace(
        shape,
        primary=lambda net, images: net.primary(F.relu(net.conv(images))),
        digits=lambda net, u: net.route(u) if routed else net.digits(u),
        loss=lambda net, images, labels: TrainingLoss(net)(images, labels),
    )


# Where the routing is reached, one of these at least is examined.
ROUTING = {name for name, of in DEVIATIONS.items() if "share" in of.parts}
# What an Adapter needs to have, by what a deviation replaces of Parts; the rest needs both stages.
STAGES = "primary and digits"
NEEDS = {
    **dict.fromkeys(("maps", "group", "primary_axis", "same_padding", "start"), "primary"),
    **dict.fromkeys(("margin", "mean_over_classes", "margin_weight"), "loss"),
    **dict.fromkeys(("mean_over_pixels", "prepare", "lengths"), "loss"),
}


def examine(net: Subject) -> tuple[Verdicts, list[str], list[str]]:
    """All that can be seen, a finding before a clean result, and that before none; what failed;
    what is otherwise.
    """
    adapter = net.adapter
    # What a look needs, and of the call alone what it is for: nothing else is lost if it fails.
    looks: list[tuple[str, Callable[[Subject], Verdicts], str]] = [
        ("call", evidence.of_zeros, "bare-norm"),
        ("call", evidence.of_lengths, "softmax-of-lengths"),
        ("call", evidence.of_brightness, "standardised-images"),
        ("call", evidence.of_decoder, "prediction-mask batch-mask other-decoder"),
    ]
    if adapter.primary is not None:
        looks += [("primary", of_primary, ""), ("primary", of_start, "")]
    if adapter.primary is not None and adapter.digits is not None:
        looks.append((STAGES, of_layer, ""))
    else:
        looks += [
            ("call", evidence.of_company, "batch-logits"),
            ("call", evidence.of_slope, "stopped-gradient"),
            ("call", evidence.of_saturation, "squash-over-classes squash-by-component"),
            ("call", of_layer_inside, ""),
        ]
    if adapter.loss is not None:
        looks.append(("loss", of_loss, ""))

    verdicts: Verdicts = {}
    failed: dict[str, str] = {}
    otherwise: dict[str, None] = {}
    for field, look, names in looks:
        try:
            seen = look(net)
        except STRANGE as error:
            why = f"{field} fails: {type(error).__name__}"
            said = words_of(error)
            why += f": {said}" if said != type(error).__name__ else ""
            failed.setdefault(field, why)
            seen = dict.fromkeys(names.split(), Unseen(why))
        for name, verdict in seen.items():
            known = verdicts.get(name, Unseen(""))
            if isinstance(verdict, Unseen) and verdict.otherwise:
                otherwise[verdict.why] = None
            if look in (of_layer, of_layer_inside) and verdict is None and isinstance(known, str):
                verdicts[name] = Unseen(f"{known}, but not in the routing")
            elif isinstance(known, Unseen) or (known is None and isinstance(verdict, str)):
                verdicts[name] = verdict
    if isinstance(verdicts.get("uniform-shares"), str):
        verdicts |= {name: EQUAL for name in IDLE if verdicts[name] is None}
    for name, deviation in DEVIATIONS.items():
        if deviation.parts:
            field = NEEDS.get(next(iter(deviation.parts)), STAGES)
            why = failed.get(field, f"needs an Adapter with {field}")
            verdicts.setdefault(name, Unseen(why))
        else:
            verdicts[name] = Unseen(RECIPE)
    return verdicts, [*failed.values()], [*otherwise]


def assert_paper(
    model: nn.Module | Callable[[], nn.Module],
    adapter: Adapter | None = None,
    allow: Collection[str] = (),
) -> None:
    """For a test of your own: the network has no deviations but those that you allow.

    What is otherwise than in the paper, but no deviation with a name, is allowed by "otherwise".
    What the adapter does not reach is not looked for, but it must reach the routing. In
    ``test_my_capsnet.py``::

        from capsnet_lab.check.checker import Adapter, assert_paper
        from my_capsnet import MyCapsNet

        adapter = Adapter(
            primary=lambda net, images: net.primary(net.conv(images).relu()),
            digits=lambda net, u: net.digits(u),
        )

        def test_is_the_papers_network():
            assert_paper(MyCapsNet, adapter, allow=["small-w"])

    Raises:
        AssertionError: it has others, or a stage of the adapter fails; the report says by which
            numbers, or how.
        ValueError: as :func:`check`, or a name that is allowed is not known, or was not examined,
            or the routing was not.
    """
    if unknown := set(allow) - {*DEVIATIONS, "otherwise"}:
        raise ValueError(f"no deviation is called {', '.join(sorted(unknown))}")
    report = check(model, adapter)
    if report.failed:
        raise AssertionError(str(report))
    for name in allow:
        if why := report.not_examined.get(name):
            raise ValueError(f"{name} is allowed, but was not examined: {why}")
    if {*report.found, *(["otherwise"] if report.otherwise else [])} - set(allow):
        raise AssertionError(str(report))
    if report.unrouted:
        raise ValueError(f"the routing of {report.title} was not examined: {report.unrouted}")


def main_check(
    target: str,
    adapter: str | None = None,
    image_shape: Sequence[int] | None = None,
    routing: str | None = None,
) -> Report:
    """Check what an importable name stands for; the current directory is looked in first.

    Args:
        target: "my_module:MyCapsNet", a network or what makes one without arguments.
        adapter: "my_module:adapter", an :class:`Adapter`.
        image_shape: in place of the adapter's.
        routing: of an adapter without stages, the module.

    Raises:
        ImportError: there is no such module, it cannot be imported, or it has no such name.
        ValueError: a name without a colon, another thing than an adapter, or as :func:`check`.
    """
    kept = sys.path.copy(), sys.argv
    sys.path.insert(0, os.getcwd())
    sys.argv = [target.partition(":")[0]]  # a script that reads its arguments has none of ours
    try:
        with without_cuda():
            model = imported(target)
            how = None if adapter is None else imported(adapter)
        if how is not None and not isinstance(how, Adapter):
            raise ValueError(f"{adapter} must be an Adapter, got {type(how).__name__}")
        if image_shape is not None:
            how = replace(how or Adapter(), image_shape=image_shape)
        if routing is not None:
            how = replace(how or Adapter(), routing=routing)
        return check(model, how)  # what makes a network may import, too
    finally:
        sys.path[:], sys.argv = kept


def imported(target: str) -> Any:
    """What a name such as "my_module:MyCapsNet" stands for."""
    module, _, name = target.partition(":")
    if not (name and all(part.isidentifier() for part in module.split("."))):
        raise ValueError(f"expected a name such as my_module:MyCapsNet, got {target}")
    if module.endswith(".py"):
        raise ValueError(f"expected a module's name, {module[:-3]}:{name}, got a file's, {target}")
    top = module.partition(".")[0]
    here = [path.resolve() for path in (Path(top + ".py"), Path(top)) if path.exists()]
    loaded = getattr(sys.modules.get(top), "__file__", None)
    if loaded and here:
        file = Path(loaded).resolve()
        if file not in here and file.parent not in here:
            raise ImportError(f"{here[0].name} has the name of a module in use here: rename it")
    try:
        found = importlib.import_module(module)
    except STRANGE as error:
        raise ImportError(f"{module} cannot be imported: {words_of(error)}") from error
    if not hasattr(found, name):
        raise ImportError(f"{module} has no {name}")
    return getattr(found, name)
