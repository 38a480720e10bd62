"""What the chapter *In the wild* shows of :mod:`capsnet_lab.wild`: source, folds, a board."""

import ast
import dataclasses
import functools
import inspect
import re
import textwrap
from collections.abc import Callable, Mapping
from html import escape
from typing import Any

from capsnet import CapsNet, CapsuleLayer
from capsnet.data import shifted
from capsnet.training import TrainingConfig
from capsnet_lab.check.checker import RECIPE
from capsnet_lab.wild import (
    DEVIATIONS,
    IMPLEMENTATIONS,
    Deviation,
    Parts,
    WildCapsNet,
    WildLoss,
    found_in,
)
from capsnet_lab.wild.implementations import PAPER_RECIPE

NOT_ALONE = "not measured alone"
# Other chapters that show in a cell what a deviation does.
ELSEWHERE = {
    "stopped-gradient": "How routing converges",
    "one-iteration-more": "How routing converges",
    "learned-prior": "How routing converges",
    "uniform-shares": "Other ways to route",
    "shared-w": "Other ways to route",
    "leak": "Fewer labels, other data",
    "prediction-mask": "Decoder and reconstruction",
    "mean-margin": "Decoder and reconstruction",
    "mean-reconstruction": "Decoder and reconstruction",
    "view-without-permute": "Layers",
    "bare-norm": "Squash",
    "softmax-of-lengths": "Margin loss",
}


class With(ast.NodeTransformer):
    """Our source as it reads with given parts: with their numbers put in, and without the branches
    that these do not take.
    """

    def __init__(self, parts: Parts) -> None:
        self.values = {k: v for k, v in vars(parts).items() if isinstance(v, bool | int | float)}

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        known = ast.unparse(node.value) in ("parts", "self.parts") and node.attr in self.values
        return ast.Constant(self.values[node.attr]) if known else node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.op, ast.Not) and isinstance(node.operand, ast.Constant):
            return ast.Constant(not node.operand.value)
        return node

    def visit_IfExp(self, node: ast.IfExp | ast.If) -> Any:
        self.generic_visit(node)
        if isinstance(node.test, ast.Constant):
            return node.body if node.test.value else node.orelse
        return node

    visit_If = visit_IfExp

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        if ast.unparse(node) == "self.bias is not None":
            return ast.Constant(self.values["bias"])
        self.generic_visit(node)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.generic_visit(node)
        ends = (n for n, line in enumerate(node.body, 1) if isinstance(line, ast.Return))
        del node.body[next(ends, len(node.body)) :]  # a branch that is decided may end it
        return node


@functools.cache
def text_of(thing: Any) -> str:
    return textwrap.dedent(inspect.getsource(thing))


@functools.cache
def network_with(parts: Parts) -> list[str]:
    """The lines of the network and of its loss, for those of the parts that are plain values."""
    trees = [ast.parse(text_of(kind)) for kind in (WildCapsNet, WildLoss)]
    return [line.strip() for t in trees for line in ast.unparse(With(parts).visit(t)).splitlines()]


def body(function: Callable[..., Any]) -> list[str]:
    """A function's lines but those that refuse, with the values that it was made with."""
    tree = ast.parse(text_of(function))
    inner = next(n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.Lambda))
    lines = []
    for node in inner.body if isinstance(inner, ast.FunctionDef) else [ast.Return(inner.body)]:
        code = ast.unparse(node)
        documents = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        refuses = code.startswith(("assert ", "require_")) or "raise " in code
        lines += [] if documents or refuses else code.splitlines()
    for name, value in inspect.getclosurevars(function).nonlocals.items():
        lines = [re.sub(rf"\b{name}\b(?!=)", f"{value:g}", line) for line in lines]
    return lines


def diff(deviation: Deviation) -> list[str]:
    """What changes in our source, or in the recipe: lines of ours after "-", theirs after "+"."""
    paper = Parts()
    plain = {name: value for name, value in deviation.parts.items() if not callable(value)}
    pairs = [(network_with(paper), network_with(dataclasses.replace(paper, **plain)))]
    options = inspect.signature(CapsNet).parameters
    for name, value in deviation.parts.items():
        ours = getattr(paper, name)
        if name == "start_w":
            pairs.append((body(CapsuleLayer.reset_parameters)[:1], body(value)))
        elif callable(value):
            pairs.append((body(ours) if ours else [], body(value)))
        elif name in options:
            pairs.append(([f"{name} = {options[name].default}"], [f"{name} = {value}"]))
    recipe = vars(TrainingConfig()) | PAPER_RECIPE
    for name, value in deviation.recipe.items():
        pairs.append(([f"{name} = {recipe[name]}"], [f"{name} = {value}"]))
    if deviation.draw:
        pairs.append((body(shifted), body(deviation.draw)))
    lines = []
    for before, after in pairs:
        lines += [f"- {line}" for line in before if line not in after]
        lines += [f"+ {line}" for line in after if line not in before]
    return lines


def test_of(deviation: Deviation) -> str:
    """The test that fails where the deviation is not seen: by the checker, or in the recipe."""
    where = "test_check.py::test_finds_one_alone"
    if not deviation.parts:
        where = "test_deviations.py::test_changes_what_it_says"
    return f"tests/lab/wild/{where}[{deviation.name}]"


def coloured(line: str) -> str:
    """As Pygments marks a line of a difference, for whom the book's theme has colours."""
    return f'<span class="{"gd" if line[0] == "-" else "gi"}">{escape(line)}</span>'


def link(name: str) -> str:
    return f'<a href="{IMPLEMENTATIONS[name].link}">{name}</a>'


def switchboard(costs: Mapping[str, str], measured: Mapping[str, str]) -> Any:
    """A fold for each deviation, for a notebook.

    Args:
        costs: what each costs, by its name.
        measured: the checker's evidence of each that shows in a network.
    """
    from IPython.display import HTML

    folds = []
    for name, deviation in DEVIATIONS.items():
        who = found_in(deviation)
        rows = {
            "the paper": escape(deviation.paper),
            "the code": escape(deviation.code),
            "who": ", ".join(map(link, who)) or "none of these; it is here to compare with",
            "measured": escape(measured.get(name, RECIPE)),
            "cost": escape(cost_of(name, costs)),
            "test": f"<code>{test_of(deviation)}</code>",
        }
        if name in ELSEWHERE:
            rows["shown in"] = f"<em>{ELSEWHERE[name]}</em>"
        told = "<br>".join(f"<b>{term}:</b> {text}" for term, text in rows.items())
        folds.append(
            f"<details><summary><code>{name}</code> · {len(who)}</summary><p>{told}</p>"
            f'<div class="highlight"><pre>{"<br>".join(map(coloured, diff(deviation)))}</pre></div>'
            "</details>"
        )
    return HTML("\n".join(folds))


def cost_of(name: str, costs: Mapping[str, str]) -> str:
    """What a deviation costs: alone, or with those that it was measured with."""
    for names, cost in costs.items():
        if name in (together := names.split(", ")):
            others = [other for other in together if other != name]
            return f"{cost}{', with ' * bool(others)}{' and '.join(others)}"
    return NOT_ALONE


def board(costs: Mapping[str, str]) -> dict[str, Any]:
    """What the widget asks for: who has which deviation, what it changes, and what it costs."""
    return {
        "deviations": [
            {
                "name": name,
                "says": deviation.code,
                "change": diff(deviation),
                "cost": cost_of(name, costs),
                "who": found_in(deviation),
            }
            for name, deviation in DEVIATIONS.items()
        ],
        "networks": [
            {"name": name, "link": made.link, "cost": costs.get(f"all of {name}", "")}
            for name, made in IMPLEMENTATIONS.items()
            if made.deviations
        ],
    }
