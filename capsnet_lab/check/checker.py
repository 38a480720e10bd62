"""Which deviations does anybody's capsule network have? ``capsnet check my_module:MyCapsNet``."""

import contextlib
import copy
import os
import pkgutil
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import torch
import torch.nn.functional as F
from torch import nn

from capsnet.model import CapsNet
from capsnet.training.loss import TrainingLoss
from capsnet_lab.check import probe_outside
from capsnet_lab.check.adapter import Adapter
from capsnet_lab.check.evidence import (
    Findings,
    NotExamined,
    Unclear,
    UserCodeError,
    Verdict,
    Verdicts,
    user_code,
)
from capsnet_lab.check.probe_loss import examine_loss
from capsnet_lab.check.probe_primary import examine_primary, examine_start, same_type
from capsnet_lab.check.probe_routing import EQUAL_SHARES, LAYER_NAMES, NEED_ROUTING, examine_layer
from capsnet_lab.check.subject import Subject, find_routing
from capsnet_lab.routings import EfficientCapsNet, RoutedCapsNet
from capsnet_lab.wild.deviations import DEVIATIONS
from capsnet_lab.wild.wild_capsnet import WildCapsNet, WildLoss

RECIPE = "how a network is trained does not show in it"


@dataclass(frozen=True)
class Report:
    """What :func:`check` saw; names are those of :data:`DEVIATIONS`.

    Attributes:
        title: the network's class.
        found: deviations that the network has, with the numbers that show each.
        clean: deviations that were looked for and not found.
        not_examined: deviations that were not looked for, and why.
        failed: stages of the adapter, or calls, that raised an error, and which error.
        read_as: how many classes and children the network was taken to have, and their sizes.
        unnamed: what was measured that is not the paper's, but is no named deviation either.
    """

    title: str
    found: dict[str, str]
    clean: list[str]
    not_examined: dict[str, str]
    failed: list[str]
    read_as: str
    unnamed: list[str]

    @property
    def unrouted(self) -> str:
        """Why the routing was not examined; empty if it was."""
        why = self.not_examined.get("softmax-over-children", "")
        return "" if why in self.unnamed else why

    def __str__(self) -> str:
        looked = len(self.found) + len(self.clean)
        counts = "the routing was not examined; " if self.unrouted else ""
        counts += f"{len(self.found)} of {looked} deviations that were looked for"
        if choices := [name for name in self.found if DEVIATIONS[name].is_choice]:
            counts += f" ({', '.join(choices)}: the paper leaves that open)"
        if self.unnamed:
            counts += f", {len(self.unnamed)} without a name"
        lines = [f"{self.title}: {counts}; {len(self.not_examined)} were not examined"]
        lines += [f"read as {self.read_as}", *self.failed]
        for name, measured in self.found.items():
            lines += [f"\n{name}", f"  the paper: {DEVIATIONS[name].paper}"]
            if name != "other-decoder":  # whose text has the numbers of one implementation
                lines += [f"  yours:     {DEVIATIONS[name].code}"]
            lines += [f"  measured:  {measured}"]
        lines += [f"\nnot as in the paper, without a name: {why}" for why in self.unnamed]
        lines += [f"\nnot found: {', '.join(self.clean) or 'none'}"]
        for why in dict.fromkeys(self.not_examined.values()):
            names = [name for name, reason in self.not_examined.items() if reason == why]
            lines.append(f"not examined: {', '.join(names)} ({why})")
        if self.unrouted:
            lines.append(f"\nthe routing was not examined: {self.unrouted}")
        return "\n".join(lines)


def check(model: nn.Module | Callable[[], nn.Module], adapter: Adapter | None = None) -> Report:
    """Say which deviations a capsule network has, by what it computes.

    Copies of the network are examined, in float64 on the CPU; the network itself does not change.
    How the weights were initialised can only be seen before training.

    Args:
        model: the network, or a function that makes it without arguments.
        adapter: how to call the network and to reach its inside. Networks of this project, but not
            of a subclass, need none. Without one, only what shows from outside is examined, and a
            module that maps primary capsules to the classes' if there is one.

    Raises:
        ValueError: there is no network, or it cannot be copied, or called with images.
    """
    dtype = torch.get_default_dtype()
    with without_cuda(), torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(0)
        network = model if isinstance(model, nn.Module) else make_network(model)
        adapter = adapter or own_adapter(network)
        try:
            torch.set_default_dtype(torch.float64)
            names = {name for name, _ in network.named_parameters()}
            subject = Subject(network, adapter)
            verdicts, failed, unnamed = examine(subject)
            late = [name for name, _ in subject.model.named_parameters() if name not in names]
            read_as = subject.read_as
        finally:
            torch.set_default_dtype(dtype)
    if late:
        text = "parameters that only the first call makes, so that an optimiser made before it "
        unnamed.append(f"{text}does not train them: {', '.join(late)}")
    return Report(
        title=type(network).__name__,
        found={name: verdict for name, verdict in verdicts.items() if isinstance(verdict, str)},
        clean=[name for name, verdict in verdicts.items() if verdict is None],
        not_examined={
            name: verdict.why
            for name, verdict in verdicts.items()
            if isinstance(verdict, NotExamined)
        },
        failed=failed,
        read_as=read_as,
        unnamed=unnamed,
    )


@contextlib.contextmanager
def without_cuda() -> Iterator[None]:
    """Make ``cuda()``, which some networks call themselves, do nothing."""

    def unchanged(value: Any, *args: Any, **kwargs: Any) -> Any:
        return value

    with (
        mock.patch.object(torch.Tensor, "cuda", unchanged),
        mock.patch.object(nn.Module, "cuda", unchanged),
    ):
        yield


def make_network(maker: Any) -> nn.Module:
    """Call what makes a network."""
    name = getattr(maker, "__name__", repr(maker))
    if not callable(maker):
        raise ValueError(f"{name} must be or make a torch.nn.Module, got {type(maker).__name__}")
    with user_code(f"{name}() makes no network: "):
        network = maker()
    if not isinstance(network, nn.Module):
        raise ValueError(f"{name}() must make a torch.nn.Module, got {type(network).__name__}")
    return network


def own_adapter(model: nn.Module) -> Adapter:
    """The stages of this project's networks. A subclass may do anything, so it has none."""
    if not isinstance(model, CapsNet | EfficientCapsNet):
        return Adapter()
    adapter = Adapter(image_shape=model.image_shape)
    if type(model) is WildCapsNet:
        return replace(
            adapter,
            primary=lambda net, images: net.children_of(images),
            digits=lambda net, u: net.route(net.predict(u)),
            loss=lambda net, images, labels: WildLoss(net)(images, labels),
        )
    routed = type(model) is RoutedCapsNet and model.config["routing"] != "em"
    if type(model) is not CapsNet and not routed:
        return adapter
    return replace(
        adapter,
        primary=lambda net, images: net.primary(F.relu(net.conv(images))),
        digits=lambda net, u: net.route(u) if routed else net.digits(u),
        loss=lambda net, images, labels: TrainingLoss(net)(images, labels),
    )


class Probe(NamedTuple):
    """One way to examine a network, and the deviations that it decides on."""

    stage: str  # of the adapter; without it there is no such probe
    examine: Callable[[Subject], Findings]
    names: str

    def decide(self, net: Subject) -> Verdicts:
        """Its verdicts; raise UserCodeError if the network fails, or cannot be examined so."""
        verdicts: Verdicts = {}
        rest: Verdict = None
        try:
            for name, verdict in self.examine(net):
                verdicts[name] = verdict
        except Unclear as unclear:
            rest = unclear.verdict
        return dict.fromkeys(self.names.split(), rest) | verdicts


def examine_inside(net: Subject) -> Findings:
    """What the module that routes shows; an error if there is none."""
    inside = copy.copy(net)
    inside.adapter = find_routing(net)
    verdicts = LAYER.decide(inside)
    routes = not isinstance(verdicts["uniform-shares"], NotExamined)
    yield from (verdicts if routes else without_unnamed(verdicts)).items()
    with contextlib.suppress(UserCodeError):
        # If no child has a twin, the module may follow another layer of capsules.
        if net.adapter.primary is None and same_type(inside.uniform):
            shown = PRIMARY.decide(inside) | START.decide(inside)
            del shown["squash-over-children"]  # u may be squashed only inside the module
            yield from without_unnamed(shown).items()


def without_unnamed(verdicts: Verdicts) -> Verdicts:
    """Clear the flag ``unnamed``: what was examined may not be a stage of the paper's."""
    return {
        name: NotExamined(verdict.why) if isinstance(verdict, NotExamined) else verdict
        for name, verdict in verdicts.items()
    }


PRIMARY = Probe(
    "primary",
    examine_primary,
    "relu-before-squash squash-over-children view-without-permute same-padding routed-to-types",
)
START = Probe("primary", examine_start, "released-start glorot-start")
LAYER = Probe("primary and digits", examine_layer, " ".join(LAYER_NAMES))
INSIDE = Probe("call", examine_inside, "")
LOSS = "unsquared-margin mean-margin halved-margin mean-reconstruction normalised-images"
PROBES = [
    Probe("call", probe_outside.examine_zero_weights, "bare-norm"),
    Probe("call", probe_outside.examine_lengths, "softmax-of-lengths"),
    Probe("call", probe_outside.examine_brightness, "standardised-images"),
    Probe("call", probe_outside.examine_decoder, "prediction-mask batch-mask other-decoder"),
    PRIMARY,
    START,
    LAYER,
    Probe("loss", examine_loss, f"{LOSS} softmax-of-lengths"),
]
PROBES_WITHOUT_LAYER = [
    Probe("call", probe_outside.examine_batch, "batch-logits"),
    Probe("call", probe_outside.examine_gradient, "stopped-gradient"),
    INSIDE,
]


def examine(net: Subject) -> tuple[Verdicts, list[str], list[str]]:
    """The verdict of each deviation, which stages failed, and what has no name."""
    verdicts: Verdicts = {name: NotExamined(RECIPE) for name in DEVIATIONS}
    for probe in PROBES:
        needs = NotExamined(f"needs an Adapter with {probe.stage}")
        verdicts |= dict.fromkeys(probe.names.split(), needs)
    adapter = net.adapter
    stages = {
        "call": True,
        "primary": adapter.primary,
        "primary and digits": adapter.primary and adapter.digits,
        "loss": adapter.loss,
    }
    failed: dict[str, str] = {}
    unnamed: dict[str, None] = {}
    for probe in PROBES if stages[LAYER.stage] else PROBES + PROBES_WITHOUT_LAYER:
        if not stages[probe.stage]:
            continue
        try:
            seen = probe.decide(net)
        except UserCodeError as error:
            why = f"{probe.stage} fails: {error}"
            seen = dict.fromkeys(probe.names.split(), NotExamined(why))
            if seen:
                failed.setdefault(probe.stage, why)
        for name, verdict in seen.items():
            if isinstance(verdict, NotExamined) and verdict.unnamed:
                unnamed[verdict.why] = None
            if name in DEVIATIONS:
                verdicts[name] = stronger_verdict(verdicts[name], verdict, probe in (LAYER, INSIDE))
    if isinstance(verdicts["uniform-shares"], str):
        verdicts |= {name: EQUAL_SHARES for name in NEED_ROUTING if verdicts[name] is None}
    return verdicts, [*failed.values()], [*unnamed]


def stronger_verdict(earlier: Verdict, verdict: Verdict, at_layer: bool) -> Verdict:
    """Of two probes: a finding outweighs its absence, which outweighs an open question."""
    if at_layer and verdict is None and isinstance(earlier, str):
        return NotExamined(f"{earlier}, but not in the routing")
    better = isinstance(earlier, NotExamined) or (earlier is None and isinstance(verdict, str))
    return verdict if better else earlier


def assert_paper(
    model: nn.Module | Callable[[], nn.Module],
    adapter: Adapter | None = None,
    allow: Collection[str] = (),
) -> None:
    """For a test of your own: the network has no deviations but those that you allow.

    What is not the paper's, but is no named deviation, is allowed by "unnamed". Stages that the
    adapter does not have are not examined, but it must reach the routing::

        def test_is_the_papers_network():
            assert_paper(MyCapsNet, Adapter(routing="digits"), allow=["small-w"])

    Raises:
        AssertionError: it has others, or a stage of the adapter fails; the message is the report.
        ValueError: as :func:`check`; or an allowed name is unknown, or was not examined; or the
            routing was not.
    """
    if unknown := set(allow) - {*DEVIATIONS, "unnamed"}:
        raise ValueError(f"no deviation is called {', '.join(sorted(unknown))}")
    report = check(model, adapter)
    if report.failed:
        raise AssertionError(str(report))
    for name in allow:
        if why := report.not_examined.get(name):
            raise ValueError(f"{name} is allowed, but was not examined: {why}")
    if {*report.found, *(["unnamed"] if report.unnamed else [])} - set(allow):
        raise AssertionError(str(report))
    if report.unrouted:
        raise ValueError(f"the routing of {report.title} was not examined: {report.unrouted}")


def check_by_name(
    target: str,
    adapter: str | None = None,
    image_shape: Sequence[int] | None = None,
    routing: str | None = None,
) -> Report:
    """Check the network that an importable name stands for; the current directory goes first.

    Args:
        target: "my_module:MyCapsNet", a network or a function that makes it without arguments.
        adapter: "my_module:adapter", an :class:`Adapter`.
        image_shape: replaces the adapter's.
        routing: the name of the routing's module; only for an adapter without stages.

    Raises:
        ValueError: a name has no colon, cannot be imported, or is that of a module in use here;
            ``adapter`` is not an Adapter; or as :func:`check`.
    """
    saved = sys.path.copy(), sys.argv
    sys.path.insert(0, os.getcwd())
    sys.argv = [target.partition(":")[0]]  # a script that parses its arguments must not see ours
    try:
        with without_cuda():
            model = import_object(target)
            chosen = None if adapter is None else import_object(adapter)
        if chosen is not None and not isinstance(chosen, Adapter):
            raise ValueError(f"{adapter} must be an Adapter, got {type(chosen).__name__}")
        if image_shape is not None:
            chosen = replace(chosen or Adapter(), image_shape=image_shape)
        if routing is not None:
            chosen = replace(chosen or Adapter(), routing=routing)
        return check(model, chosen)  # inside, because a network may import more when it is made
    finally:
        sys.path[:], sys.argv = saved


def import_object(target: str) -> Any:
    """The object that a name such as "my_module:MyCapsNet" stands for."""
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
            raise ValueError(f"{here[0].name} has the name of a module in use here: rename it")
    with user_code(f"{target} cannot be imported: "):
        return pkgutil.resolve_name(target)
