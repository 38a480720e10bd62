"""Every numbered equation of the book has a contract in the tests, and the reverse."""

import ast
import re
from pathlib import Path

import pytest

import notebooks

ROOT = notebooks.ROOT


def contracts(folder: Path) -> dict[str, set[str]]:
    """The tests that are marked ``equation(number)``, by number."""
    found: dict[str, set[str]] = {}
    for path in sorted(folder.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef) or not node.name.startswith("test_"):
                continue
            for mark in node.decorator_list:
                if ast.unparse(mark).startswith("pytest.mark.equation("):
                    assert isinstance(mark, ast.Call)
                    (number,) = mark.args
                    found.setdefault(str(ast.literal_eval(number)), set()).add(node.name)
    return found


def equations(folder: Path) -> dict[str, set[str]]:
    """The pages that show an equation, by its number."""
    found: dict[str, set[str]] = {}
    for page in sorted(folder.rglob("*.md")):
        for number in re.findall(r"\\tag\{([^}]*)\}", page.read_text(encoding="utf-8")):
            found.setdefault(number, set()).add(page.name)
    return found


CONTRACTS = contracts(ROOT / "tests")
EQUATIONS = equations(ROOT / "book")


@pytest.mark.parametrize("number", EQUATIONS)
def test_every_equation_of_the_book_has_a_contract(number: str) -> None:
    pages = ", ".join(EQUATIONS[number])
    assert CONTRACTS.get(number), f"no test is marked equation({number}), which {pages} shows"


@pytest.mark.parametrize("number", CONTRACTS)
def test_every_contract_is_of_something_in_the_book(number: str) -> None:
    if number.isdigit():
        assert number in EQUATIONS, rf"no page shows \tag{{{number}}}"
    else:
        book = "".join(page.read_text(encoding="utf-8") for page in ROOT.glob("book/*.md"))
        assert re.search(rf"\b{re.escape(number)}\b", " ".join(book.split()), re.IGNORECASE)


def test_the_four_equations_of_the_paper_are_there() -> None:
    assert {"1", "2", "3", "4"} <= EQUATIONS.keys()


def test_marks_and_tags_are_found(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(
        "import pytest\n@pytest.mark.slow\n@pytest.mark.equation(7)\ndef test_x(): pass\n"
        "@pytest.mark.equation('b c')\ndef test_y(): pass\ndef test_z(): pass\n"
    )
    assert contracts(tmp_path) == {"7": {"test_x"}, "b c": {"test_y"}}
    (tmp_path / "page.md").write_text("$$\nx \\tag{1}\n$$\n$$ y \\tag{2a} $$\n")
    assert equations(tmp_path) == {"1": {"page.md"}, "2a": {"page.md"}}
