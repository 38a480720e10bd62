"""Every numbered equation of the book has a contract in the tests, and the reverse."""

import re

import pytest

from helpers import ROOT
from notes import contracts

BOOK = " ".join(page.read_text(encoding="utf-8") for page in sorted(ROOT.glob("book/*.md")))
EQUATIONS = sorted({"1", "2", "3", "4", *re.findall(r"\\tag\{([^}]*)\}", BOOK)})
CONTRACTS = contracts(ROOT)


@pytest.mark.parametrize("number", EQUATIONS)
def test_every_equation_of_the_book_has_a_contract(number: str) -> None:
    assert number in CONTRACTS, f"no test is marked equation({number})"


@pytest.mark.parametrize("number", CONTRACTS)
def test_every_contract_is_of_something_in_the_book(number: str) -> None:
    if number.isdigit():
        assert rf"\tag{{{number}}}" in BOOK, f"no page shows equation {number}"
    else:
        assert re.search(rf"\b{re.escape(number)}\b", " ".join(BOOK.split()), re.IGNORECASE)
