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

import jupytext
import pytest
import yaml

import notebooks
from helpers.constants import CONSTANTS

BOOK = notebooks.ROOT / "book"
PAGES = sorted(BOOK.rglob("*.md"))

FRONT = re.compile(r"\A---\n(.*?)^---\n", re.DOTALL | re.MULTILINE)
FENCE = re.compile(r"^( *)(`{3,}|~{3,}|:{3,})(.*)$")
PROSE = re.compile(
    r"\{(note|tip|hint|important|warning|caution|danger|attention|seealso|admonition|dropdown"
    r"|figure|image|glossary|annotate)\}"
)
MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
# What is no number of a claim: each is blotted out before numbers are looked for.
OTHER = [
    r"\$\$.*?\$\$",  # equations
    r"(?<![\\$])\$[^$]+\$",
    r"\{(?:glue:text|cite(?::\w+)?|math)\}`[^`]*`",  # computed, or a source
    r"(`+).+?(?<!`)\1(?!`)",  # code
    r"(?<=\])\([^)\s]+\)|<[^>\s]+>|https?://\S+",  # where a link leads
    r"^ *(?:\d+[.)]|[-*]) ",  # list items
    r"\((?:\d(?:,| and| to|–)? ?)+\)",  # (1), (2 and 3): equations
    r"\b(?:[Ff]igs?\.|[Ee]qs?\.|[Ee]quations?|[Ff]igures?|[Tt]ables?|[Ss]ections?|[Pp]rocedures?|[Ss]teps?|[Ee]xercises?"
    r"|[Cc]hapters?|[Pp]ages?|[Vv]ersions?|Python|Py[Tt]orch|torch|NumPy|CUDA|TensorFlow|Keras)"
    r"[  ](?:[\d.]*\d(?:, | and | to | or |–))*[\d.]*\d",
    r"\b\d+\.\d+\.\d+\b|\b\d{4}-\d\d-\d\d\b",  # versions, dates
    rf"\b\d+ (?:{MONTHS})\b|\b(?:{MONTHS}) \d+\b",
    r"\b(?:19|20)\d\d\b(?!,\d)",  # years
    r"\b[A-Za-z]+-?\d[\w.]*",  # names: float32, CIFAR-10
    r"\{[\w:.-]+\}",  # the names of roles
]
NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?")


def front_matter(text: str) -> dict[str, Any]:
    match = FRONT.match(text)
    return (yaml.safe_load(match[1]) or {}) if match else {}


def declared(text: str) -> dict[Decimal, str]:
    """The constants of a page's own, by value."""
    own = (front_matter(text).get("capsnet") or {}).get("constants") or {}
    return {Decimal(str(number).replace(",", "")): reason for number, reason in own.items()}


def prose(text: str) -> str:
    """The prose of a page; all else is blank, and the lines keep their numbers.

    Listings and cells are left out, but not a figure's alternative text.
    """
    front = FRONT.match(text)
    lines, kept = text.splitlines(), []
    kept += [""] * (front[0].count("\n") if front else 0)
    closing: list[tuple[str, str]] = []  # the open fences: what closes them, and what they hold
    for line in lines[len(kept) :]:
        fence = FENCE.match(line)
        if closing and line.strip().startswith(closing[-1][0]) and not line.strip("`~: "):
            closing.pop()
            kept.append("")
        elif fence and not (closing and closing[-1][1] == "code"):
            claims = PROSE.match(fence[3].strip()) and "{admonition} Exercise" not in fence[3]
            kind = "prose" if claims else "code"
            closing.append((fence[2], kind))
            title = "" if "{figure}" in fence[3] or "{image}" in fence[3] else fence[3]
            kept.append(PROSE.sub("", title).strip() if kind == "prose" else "")
        elif closing and (closing[-1][1] == "code" or re.match(r"^ *:(?!alt)[\w-]+:", line)):
            kept.append("")  # a line of code, or an option of a directive
        else:
            kept.append(line)
    for row, words in alternative_texts(text):
        kept[row] = words
    return "\n".join(kept)


def alternative_texts(text: str) -> Iterator[tuple[int, str]]:
    """The alternative texts of the figures that cells draw, each with its line."""
    for cell in re.finditer(r"^```\{code-cell\}.*\n---\n((?:.*\n)*?)---\n", text, re.MULTILINE):
        image = (yaml.safe_load(cell[1]).get("mystnb") or {}).get("image") or {}
        yield text[: cell.start()].count("\n"), image.get("alt", "")


def settings(text: str) -> set[Decimal]:
    """The numbers that the page's cells type, also as percent."""
    found: set[Decimal] = set()
    for cell in notebooks.code_cells(jupytext.reads(text, fmt="md:myst")):
        code = re.sub(r"^ *[%!].*$", "pass", cell.source, flags=re.MULTILINE)
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.Constant) and type(node.value) in (int, float):
                value = Decimal(str(node.value))
                found |= {value, 100 * value, 100 - 100 * value}
    return found


def typed(text: str) -> list[tuple[int, str]]:
    """The numbers in a page's prose, each with its line."""
    words = re.sub(r"\{(?:doc|term)\}`([^`<]*)[^`]*`", r"\1", prose(text))
    for pattern in OTHER:
        words = re.sub(
            pattern, lambda m: re.sub(r"\S", " ", m[0]), words, flags=re.MULTILINE | re.DOTALL
        )
    return [(words[: m.start()].count("\n") + 1, m[0]) for m in NUMBER.finditer(words)]


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
    assert {children, parents, small, large, parents * large} <= known
    count = sum(parameter.numel() for parameter in model.parameters())
    decoder = sum(parameter.numel() for parameter in model.decoder.parameters())
    for number in (count, count - decoder, decoder):
        assert f"{number}" in CONSTANTS
        assert f"{number / 1e6:.1f}" in CONSTANTS


FRONT_MATTER = "---\nkernelspec:\n  display_name: Python 3\n  name: python3\n---\n"

# --- The test itself -------------------------------------------------------------------------


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
    text = FRONT_MATTER + cell + "Of 12 more than 95 %, less than 5 %; 13, 14."
    assert [fault.split(":")[1] for fault in unfounded(text)] == [" 13 is typed", " 14 is typed"]


def test_the_list_says_what_each_constant_is() -> None:
    assert all(Decimal(number) >= 0 and what for number, what in CONSTANTS.items())
