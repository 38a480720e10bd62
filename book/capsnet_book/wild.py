"""What *Other implementations* shows of :mod:`capsnet_lab.wild`: costs, source, a board."""

import inspect
import textwrap
from collections.abc import Mapping
from typing import Any

from capsnet import CapsNet, CapsuleLayer
from capsnet_book import claims, ledger
from capsnet_book.claims import Claim, Difference
from capsnet_lab.wild import DEVIATIONS, IMPLEMENTATIONS, Deviation, Parts, found_in
from capsnet_lab.wild.implementations import PAPER_RECIPE

NOT_ALONE = "not measured alone"
# What a deviation's parts and options replace.
OURS: dict[str, Any] = {
    **vars(Parts()),
    **{name: option.default for name, option in inspect.signature(CapsNet).parameters.items()},
    **PAPER_RECIPE,
    "start_w": CapsuleLayer.reset_parameters,
}


def cost_claim(row: str, *sets: str) -> Claim:
    """The claim that the network of the short runs makes fewer errors than one with a deviation.

    `row` is the deviation's name in the ledger. `sets` are those on which errors are counted, as in
    :func:`ledger.missed`.
    """
    deviating, plain = (claims.errors("deviations", name, sets=sets) for name in (row, "none"))
    return Claim(deviating, plain)


def costs(*sets: str) -> dict[str, Difference]:
    """The error that each deviation adds in the short training runs, by its name in the ledger.

    A deviation's runs are compared with those without any, seed by seed.
    """
    rows = [row for row in ledger.trainings("deviations") if row != "none"]
    return {row: claims.difference(cost_claim(row, *sets)) for row in rows}


def assignment(name: str, part: Any) -> str:
    return f"{name} = {getattr(part, '__name__', part)}"


def diff(deviation: Deviation) -> list[str]:
    """What a deviation replaces after "-"; after "+" its value, or the source of its function."""
    replaced = {**deviation.parts, **deviation.recipe}
    lines = [f"- {assignment(name, OURS[name])}" for name in replaced if OURS.get(name) is not None]
    for name, part in replaced.items():
        code = assignment(name, part)
        if getattr(part, "__module__", "").startswith("capsnet"):
            parts = textwrap.dedent(inspect.getsource(part)).split('"""')
            code = "".join(parts[::2])  # without the docstring
        lines += [f"+ {line}" for line in code.splitlines() if line.strip()]
    return lines


def cost_of(name: str, costs: Mapping[str, str]) -> str:
    """What a deviation costs: alone, or with those that it was measured with."""
    for names, cost in costs.items():
        if name in (together := names.split(", ")):
            others = " and ".join(other for other in together if other != name)
            return f"{cost}, with {others}" if others else cost
    return NOT_ALONE


def board(costs: Mapping[str, str]) -> dict[str, Any]:
    """The data of the widget: who has which deviation, what it changes, and what it costs."""
    deviations = [
        {
            "name": name,
            "says": deviation.code,
            "change": diff(deviation),
            "cost": cost_of(name, costs),
            "who": found_in(deviation),
        }
        for name, deviation in DEVIATIONS.items()
    ]
    networks = [
        {"name": name, "link": network.link, "cost": costs.get(f"all of {name}", "")}
        for name, network in IMPLEMENTATIONS.items()
        if network.deviations
    ]
    return {"deviations": deviations, "networks": networks}
