"""Source with a note for each statement: read from a page, compared with the live files.

A page says ``:::{annotate} capsnet/functional.py`` and holds the file's own lines, in order, in
``python`` listings, each followed by its note. Blank lines and docstrings are left out. All such
directives of a page together hold each file that they name from its first line to its last, so a
line that was changed, added or removed is a fault until somebody has read the note again.

A note that links to ``#equation-1`` says that its lines compute equation 1; a test that carries
``@pytest.mark.equation(1)`` checks them.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, groupby, islice, pairwise, zip_longest
from pathlib import Path

from myst import ChapterError, Directive, directives, parse

Lines = list[tuple[int, str]]  # lines that are not empty, with their numbers
Quoted = dict[str, list[tuple[Lines, str]]]  # listings and notes, by the directive's content
Listings = dict[tuple[str, str], list["Listing"]]  # by file and content of the directive


@dataclass(frozen=True)
class Listing:
    """Lines of a file as they are now, and their note; a docstring has none."""

    file: str
    first: int
    last: int
    within: str  # CapsNet.forward, say; empty outside of functions and classes
    code: str  # dedented as far as its directive allows
    note: str | None
    docstrings: tuple["Listing", ...] = ()  # those between its lines

    @property
    def anchor(self) -> str:
        return f"{Path(self.file).stem}-{self.first}"

    @property
    def lines(self) -> str:
        return f"{self.first}–{self.last}" if self.last > self.first else f"{self.first}"

    @property
    def parts(self) -> Iterator["Listing"]:
        """What stands before, between and after its docstrings, and each docstring."""
        lines, start = self.code.splitlines(), self.first
        for document in (*self.docstrings, None):
            stop = document.first if document else self.last + 1
            code = numbered(lines[start - self.first : stop - self.first], start)
            if code:
                first, last = code[0][0], code[-1][0]
                own = "\n".join(lines[first - self.first : last - self.first + 1])
                yield replace(self, first=first, last=last, code=own, docstrings=())
            if document:
                yield document
                start = document.last + 1

    @property
    def summary(self) -> str:
        """A docstring's first line, as plain text."""
        line = self.code.strip().splitlines()[0].strip('"')
        return re.sub(r"(?::\w+:)?(`+|\*)(.+?)\1", r"\2", line)


def read_notes(page: Path, root: Path) -> Listings:
    """The live source and a page's notes. Refuse a listing that differs from its file."""
    name = page.relative_to(root).as_posix()
    quoted: dict[str, Quoted] = {}  # by file
    for directive in directives(page.read_text(encoding="utf-8"), name):
        if directive.name == "annotate":
            in_file = quoted.setdefault(directive.argument, {})
            in_file[directive.content.strip()] = list(quotes(directive, name))
    listings: Listings = {}
    for file, noted in quoted.items():
        if not (root / file).is_file():
            raise ChapterError(f"{name}: there is no {file}")
        text = (root / file).read_text(encoding="utf-8")
        for content, matched in match_source(noted, name, file, text):
            listings[file, content] = matched
    return listings


def quotes(directive: Directive, page: str) -> Iterator[tuple[Lines, str]]:
    """The listings of an ``annotate`` directive, each with the note under it."""
    lines = directive.content.splitlines()
    fences = [t.map for t in parse(directive.content, page) if t.info.strip() == "python" and t.map]
    if not fences or fences[0][0] > 0:
        raise ChapterError(f"{page}:{directive.line + 1}: expected a listing, got {lines[:1]}")
    for (first, end), (following, _) in pairwise([*fences, [len(lines), 0]]):
        start = directive.line + first + 1  # the page's line of the fence
        code = numbered(lines[first + 1 : end - 1], start + 1)
        note = "\n".join(lines[end:following]).strip()
        if not code or not note:
            raise ChapterError(f"{page}:{start}: expected a listing and its note")
        yield code, note


def numbered(lines: list[str], start: int) -> Lines:
    return [(number, line.rstrip()) for number, line in enumerate(lines, start) if line.strip()]


def match_source(
    noted: Quoted, page: str, file: str, text: str
) -> Iterator[tuple[str, list[Listing]]]:
    """Give each directive of a file its lines as they are, and the docstrings on the way."""
    lines, tree = text.splitlines(), ast.parse(text)
    nodes = list(ast.walk(tree))  # outer nodes come before inner ones
    scopes = [node for node in nodes if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    documents = [node.body[0] for node in (tree, *scopes) if ast.get_docstring(node)]
    docstrings = sorted((node.lineno, node.end_lineno or node.lineno) for node in documents)
    left_out = {n for first, last in docstrings for n in range(first, last + 1)}
    live = [line for line in numbered(lines, 1) if line[0] not in left_out]
    quoted = [line for pairs in noted.values() for code, _ in pairs for line in code]
    compared = zip_longest(quoted, live, fillvalue=("end", ""))
    for (page_line, quote), (file_line, line) in compared:
        if quote != line:
            differs = f"the note is for {quote!r}, but {file}:{file_line} has {line!r}"
            raise ChapterError(f"{page}:{page_line}: {differs}")

    def listing(
        first: int,
        last: int,
        indent: int,
        note: str | None = None,
        inside: tuple[Listing, ...] = (),
    ) -> Listing:
        code = "\n".join(line[indent:] for line in lines[first - 1 : last])
        around = [n for n in scopes if n.lineno <= first <= (n.end_lineno or n.lineno)]
        within = ".".join(node.name for node in around)
        return Listing(file, first, last, within, code, note, inside)

    numbers, done = (number for number, _ in live), 0
    for content, pairs in noted.items():
        indent = min(len(line) - len(line.lstrip()) for code, _ in pairs for _, line in code)
        listings = []
        for code, note in pairs:
            code_numbers = list(islice(numbers, len(code)))
            first, last = code_numbers[0], code_numbers[-1]
            passed = [span for span in docstrings if done < span[0] < first]
            listings += [listing(*span, indent) for span in passed]
            inside = [listing(*span, indent) for span in docstrings if first < span[0] < last]
            listings.append(listing(first, last, indent, note, tuple(inside)))
            done = last
        yield content, listings


def lines_and_tests(
    listings: Listings, root: Path, equation: str
) -> tuple[list[list[Listing]], list[str]]:
    """The listings whose notes link to an equation, by function, and the equation's tests."""
    link = f"](#equation-{equation.replace(' ', '-')})"
    all_listings = chain.from_iterable(listings.values())
    noted = [listing for listing in all_listings if link in (listing.note or "")]
    tests = contracts(root).get(equation)
    if not noted or not tests:
        missing = f"test carries @pytest.mark.equation({equation})" if noted else f"note has {link}"
        raise ChapterError(f"equation {equation}: no {missing}")
    return [list(group) for _, group in groupby(noted, lambda x: (x.file, x.within))], tests


def location(group: list[Listing]) -> str:
    """The text before the line numbers of one function's listings: their file, and "line"."""
    several = len(group) > 1 or group[0].last > group[0].first
    return f"{Path(group[0].file).name}, line{'s' if several else ''} "


@cache
def contracts(root: Path) -> dict[str, list[str]]:
    """The tests of every equation, as pytest names them, from their marks."""
    tests: dict[str, list[str]] = {}
    for path in sorted((root / "tests").rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text if "mark.equation" in text else "")  # few files have any
        for node in (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)):
            for mark in node.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.equation":
                    test = f"{path.relative_to(root).as_posix()}::{node.name}"
                    tests.setdefault(str(ast.literal_eval(mark.args[0])), []).append(test)
    return tests
