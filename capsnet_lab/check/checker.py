"""Which deviations does anybody's capsule network have? ``capsnet check my_module:MyCapsNet``."""

import contextlib
import os
import pkgutil
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import torch
from torch import nn

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
from capsnet_lab.check.probe_primary import examine_primary
from capsnet_lab.check.probe_routing import LAYER_NAMES, examine_layer
from capsnet_lab.check.subject import Subject
from capsnet_lab.wild.deviations import DEVIATIONS


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
        adapter: how to call the network and to reach its inside. Without one, a child
            module that routes is looked for, and what shows from outside is examined.

    Raises:
        ValueError: there is no network, or it cannot be copied, or called with images.
    """
    dtype = torch.get_default_dtype()
    with without_cuda(), torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(0)
        network = model if isinstance(model, nn.Module) else make_network(model)
        try:
            torch.set_default_dtype(torch.float64)
            names = {name for name, _ in network.named_parameters()}
            subject = Subject(network, adapter or Adapter())
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
    with (
        mock.patch.object(torch.Tensor, "cuda", lambda tensor, *args, **options: tensor),
        mock.patch.object(nn.Module, "cuda", lambda module, *args, **options: module),
    ):
        yield


def make_network(maker: Any) -> nn.Module:
    """Call what makes a network."""
    name = getattr(maker, "__name__", repr(maker))
    with user_code(f"{name}() makes no network: "):
        network = maker()
    if not isinstance(network, nn.Module):
        raise ValueError(f"{name}() must make a torch.nn.Module, got {type(network).__name__}")
    return network


class Probe(NamedTuple):
    """One way to examine a network, and the deviations that it decides on."""

    stages: str  # of the adapter; without them there is no such probe
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


PROBES = [
    Probe("call", probe_outside.examine_zero_weights, "bare-norm"),
    Probe("call", probe_outside.examine_batch, "batch-logits"),
    Probe("call", probe_outside.examine_gradient, "stopped-gradient"),
    Probe("call", probe_outside.examine_decoder, "prediction-mask batch-mask other-decoder"),
    Probe(
        "primary",
        examine_primary,
        "relu-before-squash squash-over-children view-without-permute routed-to-types",
    ),
    Probe("primary and digits", examine_layer, " ".join(LAYER_NAMES)),
    Probe(
        "loss",
        examine_loss,
        "unsquared-margin mean-margin halved-margin mean-reconstruction normalised-images "
        "softmax-of-lengths",
    ),
]


def examine(net: Subject) -> tuple[Verdicts, list[str], list[str]]:
    """The verdict of each deviation, which stages failed, and what has no name."""
    why = "how a network is trained, and how its other weights start, is not looked at"
    verdicts: Verdicts = dict.fromkeys(DEVIATIONS, NotExamined(why))
    failed: dict[str, str] = {}
    unnamed: dict[str, None] = {}
    modules = [name for name, _ in net.model.named_children()]
    for probe in PROBES:
        if all(getattr(net.adapter, stage) for stage in probe.stages.split(" and ")):
            try:
                seen = probe.decide(net)
            except UserCodeError as error:
                why = f"{probe.stages} fails: {error}"
                failed.setdefault(probe.stages, why)
                seen = dict.fromkeys(probe.names.split(), NotExamined(why))
        else:
            needs = f"needs an Adapter with {probe.stages}"
            if probe.stages != "loss":
                needs += f", or with routing, which is one of {', '.join(modules)}"
            seen = dict.fromkeys(probe.names.split(), NotExamined(needs))
        for name, verdict in seen.items():
            if isinstance(verdict, NotExamined) and verdict.unnamed:
                unnamed[verdict.why] = None
            if name in DEVIATIONS:
                verdicts[name] = verdict
    return verdicts, [*failed.values()], [*unnamed]


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
    top = module.partition(".")[0]
    loaded = getattr(sys.modules.get(top), "__file__", None)
    for here in Path(f"{top}.py"), Path(top, "__init__.py"):
        if loaded and here.exists() and not here.samefile(loaded):
            raise ValueError(f"{here} has the name of a module in use here: rename it")
    with user_code(f"{target} cannot be imported: "):
        return pkgutil.resolve_name(target)
