"""Every numbered equation of the book has a contract in the tests, and the reverse."""

import re
from pathlib import Path

import pytest

from notes import contracts

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = {page.name: page.read_text(encoding="utf-8") for page in sorted(ROOT.glob("book/*.md"))}
CONTRACTS = contracts(ROOT)
EQUATIONS: dict[str, list[str]] = {}  # the pages that show an equation, by its number
for name, text in PAGES.items():
    for number in re.findall(r"\\tag\{([^}]*)\}", text):
        EQUATIONS.setdefault(number, []).append(name)


@pytest.mark.parametrize("number", EQUATIONS)
def test_every_equation_of_the_book_has_a_contract(number: str) -> None:
    pages = ", ".join(EQUATIONS[number])
    assert CONTRACTS.get(number), f"no test is marked equation({number}), which {pages} shows"


@pytest.mark.parametrize("number", CONTRACTS)
def test_every_contract_is_of_something_in_the_book(number: str) -> None:
    if number.isdigit():
        assert number in EQUATIONS, rf"no page shows \tag{{{number}}}"
    else:
        book = " ".join(" ".join(PAGES.values()).split())
        assert re.search(rf"\b{re.escape(number)}\b", book, re.IGNORECASE)


def test_the_four_equations_of_the_paper_are_there() -> None:
    assert {"1", "2", "3", "4"} <= EQUATIONS.keys()
