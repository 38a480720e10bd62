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
from myst import directives, front_matter, walk
from reading import statements

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
    skipped = 0  # the line on which an exercise ends
    for token, found in walk(text, "a page"):
        line, *end = token.map or [0]
        if found and found.argument.startswith("Exercise"):
            skipped = end[0]
        elif line >= skipped and found:
            image = (found.options.get("mystnb") or {}).get("image") or found.options
            yield line + 1, image.get("alt") or ""
        elif line >= skipped and token.type == "inline":
            yield line + 1, "".join(said(child) for child in token.children or [])


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


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("It takes 17 seconds, 1,234.5 in all, and 98.7 % is right.", ["17", "1,234.5", "98.7"]),
        ("A 7-fold gain, ×6.5, −0.3, 4/5", ["7", "6.5", "0.3", "4", "5"]),
        ("In $x = 17$ and $$\ny = 17\n$$ and `17` and ``a`17` ``", []),
        ("{glue:text}`seventeen17` {cite:t}`sabour2017` [17](https://a.org/18)", ["17"]),
        ("By (4), (2 and 3), equation 4, figs. 3 and 5, Procedure 1, Exercise 17", []),
        ("Python 3.11 to 3.13, torch 2.14.1, in 2017, on 2026-11-20, 5 May, float16", []),
        ("17. a list item\n18) another\n\n17 apples", ["17"]),
        ("```{code-cell}\n17\n```\n\n```sh\n17\n```\n18", ["18"]),
        ("````{tip} 17\n```{note}\n:class: w-1\n18\n```\n19\n````\n20", ["17", "18", "19", "20"]),
        ("```{figure} a-17.png\n:alt: 18 dots\n:width: 17%\n19\n```", ["18", "19"]),
        ("```{code-cell}\n---\nmystnb:\n  image:\n    alt: 18 lines\n---\n17\n```", ["18"]),
        (":::{admonition} Exercise 1\n:class: exercise\n17?\n\n18?\n:::\n19", ["19"]),
        ("{doc}`17 words <page18>`, {term}`19 of them`", ["17", "19"]),
    ],
)  # fmt: skip
def test_numbers_are_found_where_they_are_claims(text: str, numbers: list[str]) -> None:
    assert [number for _, number in typed(text)] == numbers


CELL = "```{code-cell}\nassert x > 0.95\nfor i in range(12): ...\n# 13\n'14'\n```\n"


@pytest.mark.parametrize(
    ("constants", "said", "faults"),
    [
        ("'12,345': copies of it, says its author", "12,345", []),
        ("30: percent, PyTorch's default", "30 %\n31 %", ["line 7: 31 is typed"]),
        ("30: percent, PyTorch's default", "none", ["the constant 30 is declared, but"]),
        ("30: yes", "30 %", ["the constant 30 needs a reason"]),
        ("", CELL + "12, 95 %, 5 %", []),
        ("", CELL + "13\n14", ["line 12: 13 is typed", "line 13: 14 is typed"]),
    ],
)
def test_what_a_page_declares_or_its_code_types_may_be_typed(constants, said, faults) -> None:
    found = unfounded(f"---\ncapsnet:\n  constants:\n    {constants}\n---\n{said}\n")
    assert [fault[: len(told)] for fault, told in zip(found, faults, strict=True)] == faults
