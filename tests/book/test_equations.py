"""Every numbered equation of the book has a contract in the tests, and the reverse."""

import re

from helpers import ROOT
from notes import contracts

BOOK = " ".join(" ".join(page.read_text("utf-8") for page in ROOT.glob("book/*.md")).split())


def test_every_equation_of_the_book_has_a_contract_and_the_reverse() -> None:
    numbers = {*re.findall(r"\\tag\{([^}]*)\}", BOOK)}
    named = {name for name in contracts(ROOT) if not name.isdigit()}
    assert {"1", "2", "3", "4"} <= numbers == contracts(ROOT).keys() - named
    for name in named:
        assert re.search(rf"\b{re.escape(name)}\b", BOOK, re.IGNORECASE), name
