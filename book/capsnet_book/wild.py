"""What *Other implementations* shows of :mod:`capsnet_lab.wild`: source, folds, a board."""

import inspect
import textwrap
from collections.abc import Mapping
from html import escape
from typing import Any

from capsnet import CapsNet, CapsuleLayer
from capsnet_lab.check.checker import RECIPE
from capsnet_lab.wild import DEVIATIONS, IMPLEMENTATIONS, Deviation, Parts, found_in
from capsnet_lab.wild.implementations import PAPER_RECIPE

NOT_ALONE = "not measured alone"
# Other chapters that show in a cell what a deviation does.
ELSEWHERE = {
    "stopped-gradient": "Where routing ends",
    "one-iteration-more": "Where routing ends",
    "uniform-shares": "Other routing algorithms",
    "shared-w": "Other routing algorithms",
    "leak": "Few labels, other data",
    "prediction-mask": "Decoder and reconstruction",
    "mean-margin": "Decoder and reconstruction",
    "mean-reconstruction": "Decoder and reconstruction",
    "view-without-permute": "Layers",
    "bare-norm": "Squash",
    "softmax-of-lengths": "Margin loss",
}
# What a deviation's parts and options replace.
OURS: dict[str, Any] = {
    **vars(Parts()),
    **{name: option.default for name, option in inspect.signature(CapsNet).parameters.items()},
    **PAPER_RECIPE,
    "start_w": CapsuleLayer.reset_parameters,
}


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


def switchboard(costs: Mapping[str, str], measured: Mapping[str, str]) -> Any:
    """A fold for each deviation, for a notebook.

    Args:
        costs: what each costs, by its name.
        measured: the checker's evidence of each that shows in a network.
    """
    from IPython.display import HTML

    folds = []
    for name, deviation in DEVIATIONS.items():
        who = [f'<a href="{IMPLEMENTATIONS[each].link}">{each}</a>' for each in found_in(deviation)]
        rows = {
            "the paper": escape(deviation.paper),
            "the code": escape(deviation.code),
            "who": ", ".join(who) or "none of these; it is here to compare with",
            "measured": escape(measured.get(name, RECIPE)),
            "cost": escape(cost_of(name, costs)),
        }
        if name in ELSEWHERE:
            rows["shown in"] = f"<em>{ELSEWHERE[name]}</em>"
        text = "<br>".join(f"<b>{term}:</b> {words}" for term, words in rows.items())
        # The classes of Pygments, for which the theme has colours.
        changes = [
            f'<span class="{"gd" if x[0] == "-" else "gi"}">{escape(x)}</span>'
            for x in diff(deviation)
        ]
        folds.append(
            f"<details><summary><code>{name}</code> · {len(who)}</summary><p>{text}</p>"
            f'<div class="highlight"><pre>{"<br>".join(changes)}</pre></div>'
            "</details>"
        )
    return HTML("\n".join(folds))


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
        {"name": name, "link": made.link, "cost": costs.get(f"all of {name}", "")}
        for name, made in IMPLEMENTATIONS.items()
        if made.deviations
    ]
    return {"deviations": deviations, "networks": networks}
