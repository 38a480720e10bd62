"""Source with a note beside each statement: read from a page, compared with the live files.

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
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from itertools import chain, groupby
from pathlib import Path

from myst import ChapterError, Directive, directives, parse

EQUATION = re.compile(r"\]\(#equation-([\w-]+)\)")


@dataclass(frozen=True)
class Quote:
    """A listing of a page and its note."""

    code: list[tuple[int, str]]  # each line with its number on the page
    note: str

    @property
    def line(self) -> int:
        return self.code[0][0]


@dataclass(frozen=True)
class Listing:
    """Lines of a file as they are now, and their note; a docstring has none."""

    file: str
    first: int
    last: int
    within: str  # CapsNet.forward, say; empty outside of functions and classes
    code: str  # dedented as far as its directive allows
    note: str | None

    @property
    def anchor(self) -> str:
        return f"{Path(self.file).stem}-{self.first}"

    @property
    def lines(self) -> str:
        return f"{self.first}–{self.last}" if self.last > self.first else f"{self.first}"

    @property
    def summary(self) -> str:
        """A docstring's first line, as plain text."""
        line = self.code.strip().splitlines()[0].strip('"')
        return re.sub(r"(?::\w+:)?(`+|\*)(.+?)\1", r"\2", line)


class Source:
    """A file as it is now: its lines, and what they are."""

    def __init__(self, file: str, text: str) -> None:
        self.file, self.lines = file, text.splitlines()
        tree = ast.parse(text)
        self.scopes = [
            node for node in ast.walk(tree) if isinstance(node, ast.ClassDef | ast.FunctionDef)
        ]
        self.docstrings = sorted(  # first and last line of each
            (node.body[0].lineno, node.body[0].end_lineno or node.body[0].lineno)
            for node in (tree, *self.scopes)
            if ast.get_docstring(node)
        )
        left_out = {n for first, last in self.docstrings for n in range(first, last + 1)}
        self.code = [  # the others that are not empty, with their numbers
            (number, line.rstrip())
            for number, line in enumerate(self.lines, 1)
            if line.strip() and number not in left_out
        ]

    def within(self, line: int) -> str:
        """The function or class that a line stands in."""
        around = [n for n in self.scopes if n.lineno <= line <= (n.end_lineno or n.lineno)]
        return ".".join(node.name for node in sorted(around, key=lambda node: node.lineno))


def quotes(found: Directive, page: str) -> list[Quote]:
    """The listings of an ``annotate`` directive, each with its note."""
    lines = found.content.splitlines()
    listings = [token for token in parse(found.content, page) if token.info.strip() == "python"]
    ends = [0, *(token.map[1] for token in listings if token.map)]
    starts = [*(token.map[0] for token in listings if token.map), len(lines)]
    before, *notes = ("\n".join(lines[a:b]).strip() for a, b in zip(ends, starts, strict=True))
    if before:
        raise ChapterError(
            f"{page}:{found.line + 1}: a note comes after its listing, got {before!r}"
        )
    made = []
    for token, start, note in zip(listings, starts, notes, strict=False):
        code = enumerate(token.content.splitlines(), found.line + start + 2)
        made.append(Quote([(number, line.rstrip()) for number, line in code if line.strip()], note))
        if not made[-1].code:
            raise ChapterError(f"{page}:{found.line + start + 1}: an empty listing")
    return made


def annotated(page: Path, root: Path) -> dict[tuple[str, str], list[Listing]]:
    """The live source and a page's notes, by file and content of the directive that holds them.

    Raises:
        ChapterError: a note's lines have changed or are gone, a line or a listing has no note; the
            message has a paragraph for each fault.
    """
    name = page.relative_to(root).as_posix()
    every = [d for d in directives(page.read_text(encoding="utf-8"), name) if d.name == "annotate"]
    faults: list[str] = []
    pieces: dict[tuple[str, str], list[Listing]] = {}
    for file in dict.fromkeys(found.argument for found in every):
        if not (root / file).is_file():
            raise ChapterError(f"{name}: there is no {file}")
        source = Source(file, (root / file).read_text(encoding="utf-8"))
        own = {d.content.strip(): quotes(d, name) for d in every if d.argument == file}
        wanted = list(chain(*own.values()))
        faults += [
            f"{name}:{quote.line}: there is no note under this listing"
            for quote in wanted
            if not quote.note
        ]
        differences = list(compare(name, source, wanted))
        faults += differences
        if not differences:
            pieces |= {(file, content): made for content, made in fill(name, source, own)}
    if faults:
        raise ChapterError("\n\n".join(faults))
    return pieces


def compare(name: str, source: Source, wanted: list[Quote]) -> Iterator[str]:
    """What the notes expect and the file does not have, or the other way round."""
    file, live = source.file, source.code
    quoted = [line for quote in wanted for line in quote.code]
    matcher = SequenceMatcher(None, [c for _, c in quoted], [c for _, c in live], autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        expected = "".join(f"\n  - {line}" for _, line in quoted[a:b])
        now = "".join(f"\n  + {line}" for _, line in live[c:d])
        page_line = f"{name}:{(quoted[a:] or quoted[-1:])[0][0]}" if quoted else name
        file_line = f"{file}:{(live[c:] or live[-1:])[0][0]}" if live else file
        if kind == "replace":
            yield (
                f"{page_line}: a note's statement has changed at {file_line}; the note is for (-), "
                f"there is now (+){expected}{now}"
            )
        elif kind == "delete":
            yield f"{page_line}: a note for what {file} no longer has{expected}"
        elif kind == "insert":
            yield f"{file_line}: no note for this; it belongs at {page_line}{now}"


def fill(
    name: str, source: Source, own: dict[str, list[Quote]]
) -> Iterator[tuple[str, list[Listing]]]:
    """Give each directive of a file its lines, with the docstrings on the way."""
    numbers = iter(number for number, _ in source.code)
    documents = list(source.docstrings)
    for content, found in own.items():
        spans: list[tuple[int, int, str | None]] = []
        for quote in found:
            lines = [next(numbers) for _ in quote.code]
            while documents and documents[0][0] < lines[0]:
                spans.append((*documents.pop(0), None))
            if documents and documents[0][0] < lines[-1]:
                docstring = f"{source.file}:{documents[0][0]}"
                raise ChapterError(f"{name}:{quote.line}: end it before the docstring, {docstring}")
            spans.append((lines[0], lines[-1], quote.note))
        if content == list(own)[-1]:
            spans += [(*docstring, None) for docstring in documents]
        shown = [line for first, last, _ in spans for line in source.lines[first - 1 : last]]
        indent = min((len(line) - len(line.lstrip()) for line in shown if line), default=0)
        listings = []
        for first, last, note in spans:
            code = "\n".join(line[indent:] for line in source.lines[first - 1 : last])
            listings.append(Listing(source.file, first, last, source.within(first), code, note))
        yield content, listings


def computed(pieces: dict[tuple[str, str], list[Listing]], equation: str) -> list[list[Listing]]:
    """The listings whose notes link to an equation, those of one function together.

    Raises:
        ChapterError: there is none.
    """
    anchor = equation.replace(" ", "-")
    found = [
        listing
        for listing in chain(*pieces.values())
        if listing.note is not None and anchor in EQUATION.findall(listing.note)
    ]
    if not found:
        raise ChapterError(f"no note links to #equation-{anchor}")
    return [list(group) for _, group in groupby(found, lambda x: (x.file, x.within))]


def place(group: list[Listing]) -> str:
    """The file of listings of one function, to say before their numbers."""
    several = len(group) > 1 or group[0].last > group[0].first
    return f"{Path(group[0].file).name}, line{'s' if several else ''} "


@cache
def contracts(root: Path) -> dict[str, list[str]]:
    """The tests of every equation, as pytest names them, from their marks."""
    found: dict[str, list[str]] = {}
    for path in sorted((root / "tests").rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef):
                continue
            for mark in node.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.equation":
                    test = f"{path.relative_to(root).as_posix()}::{node.name}"
                    found.setdefault(str(ast.literal_eval(mark.args[0])), []).append(test)
    return found


def checked_by(root: Path, equation: str) -> list[str]:
    """The tests of one equation.

    Raises:
        ChapterError: there is none.
    """
    found = contracts(root).get(equation)
    if not found:
        raise ChapterError(f"no test carries @pytest.mark.equation({equation})")
    return found
