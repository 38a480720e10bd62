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
from typing import Any

import pytest
import yaml
from markdown_it.token import Token

from helpers.constants import CONSTANTS
from myst import Directive, directive, directives, parse, split_target, walk

BOOK = Path(__file__).resolve().parent.parent.parent / "book"
PAGES = sorted(BOOK.rglob("*.md"))

MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
# What is no number of a claim: each is blotted out before numbers are looked for.
OTHER = [
    r"https?://\S+",
    r"\((?:\d(?:,| and| to|–)? ?)+\)",  # (1), (2 and 3): equations
    r"\b(?:[Ff]igs?\.|[Ee]qs?\.|[Ee]quations?|[Ff]igures?|[Tt]ables?|[Ss]ections?|[Pp]rocedures?|[Ss]teps?|[Ee]xercises?"
    r"|[Cc]hapters?|[Pp]ages?|[Vv]ersions?|Python|Py[Tt]orch|torch|NumPy|CUDA|TensorFlow|Keras)"
    r"[  ](?:[\d.]*\d(?:, | and | to | or |–))*[\d.]*\d",
    r"\b\d+\.\d+\.\d+\b|\b\d{4}-\d\d-\d\d\b",  # versions, dates
    rf"\b\d+ (?:{MONTHS})\b|\b(?:{MONTHS}) \d+\b",
    r"\b(?:19|20)\d\d\b(?!,\d)",  # years
    r"\b[A-Za-z]+-?\d[\w.]*",  # names: float32, CIFAR-10
]
NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?")


def front_matter(text: str) -> dict[str, Any]:
    found = [token.content for token in parse(text) if token.type == "front_matter"]
    return (yaml.safe_load(found[0]) or {}) if found else {}


def declared(text: str) -> dict[Decimal, str]:
    """The constants of a page's own, by value."""
    own = (front_matter(text).get("capsnet") or {}).get("constants") or {}
    return {Decimal(str(number).replace(",", "")): reason for number, reason in own.items()}


def is_claim(found: Directive) -> bool:
    return not (found.name == "admonition" and found.argument.startswith("Exercise"))


def prose(text: str) -> Iterator[tuple[int, str]]:
    """What a page says, with the line on which it begins: paragraphs, titles, alternative texts."""
    for token in walk(text, enter=is_claim):
        line = (token.map or [0])[0] + 1
        if token.type == "inline":
            yield line, "".join(said(child) for child in token.children or [])
        elif found := directive(token):
            image = (found.options.get("mystnb") or {}).get("image") or found.options
            yield line, image.get("alt") or ""


def said(token: Token) -> str:
    """What a reader reads of a part of a paragraph, without code, equations, and what is glued."""
    if token.type == "softbreak":
        return "\n"
    if token.type == "image" or token.type.startswith("text"):
        return token.content
    if token.type == "myst_role" and token.meta["name"] in ("doc", "term"):
        return split_target(token.content)[0]
    return " " if token.nesting == 0 else ""


def settings(text: str) -> set[Decimal]:
    """The numbers that the page's cells type, also as percent."""
    found: set[Decimal] = set()
    for cell in directives(text):
        if cell.name != "code-cell":
            continue
        code = re.sub(r"^ *[%!].*$", "pass", cell.content, flags=re.MULTILINE)
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.Constant) and type(node.value) in (int, float):
                value = Decimal(str(node.value))
                found |= {value, 100 * value, 100 - 100 * value}
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
    own = declared(text)
    anywhere = {Decimal(number) for number in CONSTANTS}
    allowed = anywhere | own.keys() | settings(text)
    found = {(line, number): Decimal(number.replace(",", "")) for line, number in typed(text)}
    faults = [
        f"line {line}: {number} is typed: glue it, assert it, say it in words, or declare it"
        for (line, number), value in found.items()
        if value not in allowed
    ]
    for value, reason in own.items():
        if value in anywhere:
            faults.append(f"the constant {value} may be typed anywhere: need not be declared")
        elif value not in found.values():
            faults.append(f"the constant {value} is declared, but the prose does not say it")
        if len(str(reason).split()) < 2:
            faults.append(f"the constant {value} needs a reason: what is it, and who gave it?")
    return faults


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_every_number_in_the_prose_is_computed_or_a_constant(page: Path) -> None:
    faults = unfounded(page.read_text(encoding="utf-8"))
    assert not faults, f"{page.name}\n" + "\n".join(faults)


def test_the_constants_of_the_module_are_those_of_the_list() -> None:
    from capsnet import CapsNet

    model = CapsNet()
    children, parents, small, large = model.digits.weight.shape
    known = {Decimal(number) for number in CONSTANTS}
    count = sum(parameter.numel() for parameter in model.parameters())
    decoder = sum(parameter.numel() for parameter in model.decoder.parameters())
    millions = {round(Decimal(number) / 10**6, 1) for number in (count, count - decoder)}
    assert {children, parents, small, large, parents * large, count} | millions <= known


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("It takes 17 seconds, 1,234.5 in all, and 98.7 % is right.", ["17", "1,234.5", "98.7"]),
        ("A 7-fold gain, ×6.5, −0.3, 4/5", ["7", "6.5", "0.3", "4", "5"]),
        ("In $x = 17$ and $$\ny = 17\n$$ and `17` and ``a`17` ``", []),
        ("{glue:text}`seventeen17` {cite:t}`sabour2017` {math}`17`", []),
        ("[17 links](https://example.org/18) <https://example.org/19>", ["17"]),
        ("By (4), (2 and 3), equation 4, figures 3 and 5, Procedure 1, Exercise 17", []),
        ("Python 3.11 to 3.13, torch 2.14.1, in 2017, on 2026-11-20, 5 May", []),
        ("bfloat16, CIFAR-10, MNIST", []),
        ("17. a list item\n18) another\n\n17 apples", ["17"]),
        ("```{code-cell} ipython3\n17\n```\n\n```sh\n17\n```\n18", ["18"]),
        (":::{tip}\n:class: w-17\n18\n\n```python\n17\n```\n:::", ["18"]),
        ("````{admonition} 17\n```{note}\n18\n```\n19\n````\n20", ["17", "18", "19", "20"]),
        ("```{figure} a-17.png\n:alt: 18 dots\n:width: 17%\n19\n```", ["18", "19"]),
        (
            "```{code-cell} ipython3\n---\nmystnb:\n  image:\n    alt: 18 lines\n---\n17\n```",
            ["18"],
        ),
        ("---\ntitle: 17\n---\n18", ["18"]),
        ("Fig. 17, figs. 4 and 5", []),
        (":::{admonition} Exercise 1\n:class: exercise\n17?\n:::\n18", ["18"]),
        ("{doc}`17 words <page18>`, {term}`19 of them`", ["17", "19"]),
    ],
)
def test_numbers_are_found_where_they_are_claims(text: str, numbers: list[str]) -> None:
    assert [number for _, number in typed(text)] == numbers


def test_a_number_is_told_with_its_line() -> None:
    text = "---\na: 1\n---\n\n```\n1\n```\nIt is 17.\n"
    assert typed(text) == [(8, "17")]
    (fault,) = unfounded(text)
    assert fault.startswith("line 8: 17 is typed")


@pytest.mark.parametrize(
    ("constants", "said", "fault"),
    [
        ("30: percent of the steps, PyTorch's default", "30 %", None),
        ("'12,345': copies of it, says its author", "12,345", None),
        ("30: percent of the steps, PyTorch's default", "31 %", "31 is typed"),
        ("30: percent of the steps, PyTorch's default", "none", "does not say it"),
        ("30: yes", "30 %", "needs a reason"),
        ("28: rows of an image", "28 rows", "may be typed anywhere"),
    ],
)
def test_a_page_declares_constants_with_a_reason(
    constants: str, said: str, fault: str | None
) -> None:
    text = f"---\ncapsnet:\n  constants:\n    {constants}\n---\n{said}\n"
    faults = unfounded(text)
    assert (faults == []) if fault is None else any(fault in found for found in faults)


def test_what_the_code_of_a_page_types_its_prose_may_type_too() -> None:
    cell = "```{code-cell} ipython3\nassert x > 0.95\nfor i in range(12): ...\n# 13\n'14'\n```\n"
    text = cell + "Of 12 more than 95 %, less than 5 %; 13, 14."
    assert [fault.split(":")[1] for fault in unfounded(text)] == [" 13 is typed", " 14 is typed"]
