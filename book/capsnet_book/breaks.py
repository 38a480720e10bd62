"""Procedure 1 with one line changed: what that does to a digit, and which test fails."""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from capsnet import functional
from capsnet.functional import RoutingStep, dynamic_routing

EVERY = 12  # of the children, one is drawn


class Break(NamedTuple):
    """A change of one line of ``dynamic_routing``."""

    name: str
    line: str  # a part of the line
    instead: str
    says: str  # what it does
    test: str  # of tests/capsnet/test_functional.py, which then fails; "" if none does


CHANGES = [
    Break(
        "softmax over the children", "F.softmax(b, dim=2)", "F.softmax(b, dim=1)",
        "Each parent now divides one unit of support among its children, so every sum is small.",
        "test_eq3_couplings_of_a_child_sum_to_1",
    ),
    Break(
        "no squash", "v = squash(s)", "v = s",
        "Lengths are no longer below 1, so they can no longer say how sure the network is.",
        "test_procedure_1_in_every_variable_of_every_iteration",
    ),
    Break(
        "agreement with s", "u_hat, v)", "u_hat, s)",
        "A long sum now counts as much agreement. Every length grows, those of absent digits, too.",
        "test_procedure_1_in_every_variable_of_every_iteration",
    ),
    Break(
        "only the last agreement", "b = b + ", "b = ",
        "The logits forget what the first iteration added, and the length of the 7 grows less.",
        "test_procedure_1_in_every_variable_of_every_iteration",
    ),
    Break(
        "disagreement", "b = b + ", "b = b - ",
        "Each child turns away from the parents that it agrees with, and no capsule becomes long.",
        "test_procedure_1_in_every_variable_of_every_iteration",
    ),
    Break(
        "the last update, too", "if iteration < iterations:", "if True:",
        "Nothing reads the last logits, so no length changes: it only costs time. No test fails.",
        "",
    ),
]  # fmt: skip


def broken(change: Break) -> Callable[..., Tensor]:
    """``dynamic_routing`` with this change."""
    source = inspect.getsource(dynamic_routing)
    if source.count(change.line) != 1:
        raise ValueError(f"expected {change.line!r} once in dynamic_routing")
    names = vars(functional).copy()
    exec(source.replace(change.line, change.instead), names)
    return names["dynamic_routing"]


def traced(route: Callable[..., Tensor], u_hat: Tensor) -> RoutingStep:
    """The third iteration of an image's routing."""
    trace: list[RoutingStep] = []
    route(u_hat, trace=trace)
    return RoutingStep(*(value[0] for value in trace[-1]))


def data(u_hat: Tensor) -> dict[str, Any]:
    """What the widget needs of an image's predictions [1, children, parents, numbers].

    Of b, c, s and v, pictures [1 + changes, parents, columns] in 256 steps up to the largest value
    of each picture. Of the children one in twelve is in them.
    """
    text = inspect.getsource(dynamic_routing).splitlines()
    loop = next(k for k, line in enumerate(text) if "for iteration" in line)
    steps = [traced(route, u_hat) for route in (dynamic_routing, *map(broken, CHANGES))]
    found: dict[str, Any] = {
        "code": inspect.cleandoc("\n".join(["", *text[loop:]])).splitlines(),
        "changes": [change._asdict() for change in CHANGES],
        "lengths": torch.stack([step.v.norm(dim=1) for step in steps]),
    }
    for name in RoutingStep._fields:
        values = [getattr(step, name).abs() for step in steps]
        if name in "bc":  # [children, parents]
            values = [value[::EVERY].T for value in values]
        shades = torch.stack(values)
        found[name] = (255 * (shades / shades.amax((1, 2), keepdim=True))).to(torch.uint8)
    return found
