"""No number in the prose is typed that could have been computed.

A page may type what its own code types too, a setting or a bound that is asserted (0.95 in the code
is 95 % as well); the constants of ``constants.py``; and those that its front matter declares. What
an exercise asks is no claim.
"""

import ast
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from markdown_it.token import Token
from sphinx.util.nodes import split_explicit_title

from capsnet import CapsNet
from helpers import ROOT
from helpers.constants import CONSTANTS
from myst import directives, front_matter
from reading import outside_exercises, statements

PAGES = sorted((ROOT / "book").rglob("*.md"))

MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
# What is no number of a claim: each is blotted out before numbers are looked for.
OTHER = [
    r"https?://\S+",
    r"\((?:\d(?:,| and| to|–)? ?)+\)",  # (1), (2 and 3): equations
    r"\b(?:[Ff]igs?\.|[Ee]qs?\.|[Ee]quations?|[Ff]igures?|[Tt]ables?|[Ss]ections?|[Pp]rocedures?|[Ss]teps?|[Ee]xercises?"
    r"|[Cc]hapters?|[Pp]ages?|[Vv]ersions?|Python|Py[Tt]orch|torch|NumPy|CUDA|Triton|TensorFlow|Keras)"
    r"[  ](?:[\d.]*\d(?:, | and | to | or |–))*[\d.]*\d",
    r"\b\d+\.\d+\.\d+\b|\b\d{4}-\d\d-\d\d\b",  # versions, dates
    rf"\b\d+ (?:{MONTHS})\b|\b(?:{MONTHS}) \d+\b",
    r"\b(?:19|20)\d\d\b(?!,\d)",  # years
    r"\b[A-Za-z]+-?\d[\w.]*",  # names: float32, CIFAR-10
]
NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?")


def value(number: object) -> Decimal:
    return Decimal(str(number).replace(",", ""))


def prose(text: str) -> Iterator[tuple[int, str]]:
    """What a page says, with the line on which it begins: paragraphs, titles, alternative texts."""
    for token, found in outside_exercises(text):
        line = token.map[0] + 1 if token.map else 1
        if found:
            image = (found.options.get("mystnb") or {}).get("image") or found.options
            yield line, image.get("alt") or ""
        elif token.type == "inline":
            yield line, "".join(said(child) for child in token.children or [])


def said(token: Token) -> str:
    """What a reader reads of a part of a paragraph, without code, equations, and what is glued."""
    if token.type == "softbreak":
        return "\n"
    if token.type == "image" or token.type.startswith("text"):
        return token.content
    if token.type == "myst_role" and token.meta["name"] in ("doc", "term"):
        return split_explicit_title(token.content)[1]
    return " " if token.nesting == 0 else ""


def settings(text: str) -> set[Decimal]:
    """The numbers that the page's cells type, also as percent."""
    found: set[Decimal] = set()
    for cell in directives(text):
        if cell.name == "code-cell":
            nodes = (node for each in statements(cell.content) for node in ast.walk(each))
            constants = (node.value for node in nodes if isinstance(node, ast.Constant))
            for number in (value(each) for each in constants if type(each) in (int, float)):
                found |= {number, 100 * number, 100 - 100 * number}
    return found


def typed(text: str) -> list[tuple[int, str]]:
    """The numbers in a page's prose, each with its line."""
    found = []
    for line, words in prose(text):
        for pattern in OTHER:
            words = re.sub(pattern, lambda m: re.sub(r"\S", " ", m[0]), words)
        found += [(line + words[: m.start()].count("\n"), m[0]) for m in NUMBER.finditer(words)]
    return found


def unfounded(text: str) -> list[str]:
    """What is wrong with the numbers of a page."""
    constants = (front_matter(text).get("capsnet") or {}).get("constants") or {}
    own = {value(number): str(reason) for number, reason in constants.items()}
    allowed = {value(number) for number in CONSTANTS} | own.keys() | settings(text)
    numbers = typed(text)
    faults = [
        f"line {line}: {number} is typed: glue it, assert it, say it in words, or declare it"
        for line, number in numbers
        if value(number) not in allowed
    ]
    for number, reason in own.items():
        if number not in {value(text) for _, text in numbers}:
            faults.append(f"the constant {number} is declared, but the prose does not say it")
        if len(reason.split()) < 2:
            faults.append(f"the constant {number} needs a reason: what is it, and who gave it?")
    return faults


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_every_number_in_the_prose_is_computed_or_a_constant(page: Path) -> None:
    faults = unfounded(page.read_text(encoding="utf-8"))
    assert not faults, f"{page.name}\n" + "\n".join(faults)


def test_the_constants_of_the_module_are_those_of_the_list() -> None:
    model = CapsNet()
    count, decoder = (sum(p.numel() for p in m.parameters()) for m in (model, model.decoder))
    millions = {f"{number / 1e6:.1f}" for number in (count, count - decoder)}
    assert {*map(str, model.digits.weight.shape), str(count)} | millions <= CONSTANTS.keys()
