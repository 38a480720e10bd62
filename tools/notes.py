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
from itertools import groupby
from pathlib import Path

DIRECTIVE = re.compile(r"^(:{3,})\{annotate\}\s+(\S+)\s*$")
EQUATION = re.compile(r"\]\(#equation-([\w-]+)\)")


class NotesError(ValueError):
    """Notes and source do not fit; the message says where, one fault a paragraph."""


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


def quotes(page: str) -> list[tuple[str, list[Quote]]]:
    """Every ``annotate`` directive of a page: its file, and what stands in it."""
    found: list[tuple[str, list[Quote]]] = []
    end, listing = "", False
    for number, line in enumerate(page.splitlines(), 1):
        if not end:
            if match := DIRECTIVE.match(line):
                end = match[1]
                found.append((match[2], []))
            continue
        blocks = found[-1][1]
        if line == end and not listing:
            end = ""
        elif line == "```python" and not listing:
            listing = True
            blocks.append(Quote([], ""))
        elif line == "```" and listing:
            listing = False
            if not blocks[-1].code:
                raise NotesError(f"line {number}: an empty listing")
        elif listing:
            if line.strip():
                blocks[-1].code.append((number, line.rstrip()))
        elif blocks:
            blocks[-1] = Quote(blocks[-1].code, f"{blocks[-1].note}{line}\n")
        elif line.strip():
            raise NotesError(f"line {number}: a note comes after its listing, got {line!r}")
    if end:
        raise NotesError(f"the last directive is not closed by {end}")
    return found


def annotated(page: Path, root: Path) -> list[list[Listing]]:
    """The live source and the page's notes, directive by directive.

    Raises:
        NotesError: a note's lines have changed or are gone, a line or a listing has no note.
    """
    name = page.relative_to(root).as_posix()
    directives = quotes(page.read_text(encoding="utf-8"))
    faults: list[str] = []
    pieces: list[list[Listing]] = [[] for _ in directives]
    for file in dict.fromkeys(file for file, _ in directives):
        if not (root / file).is_file():
            raise NotesError(f"{name}: there is no {file}")
        source = (root / file).read_text(encoding="utf-8")
        own = [
            (piece, found)
            for piece, (f, found) in zip(pieces, directives, strict=True)
            if f == file
        ]
        every = [quote for _, found in own for quote in found]
        faults += [
            f"{name}:{quote.line}: there is no note under this listing"
            for quote in every
            if not quote.note.strip()
        ]
        differences = list(compare(name, file, source, every))
        faults += differences or list(fill(name, file, source, own))
    if faults:
        raise NotesError("\n\n".join(faults))
    return pieces


def compare(name: str, file: str, source: str, wanted: list[Quote]) -> Iterator[str]:
    """What the notes expect and the file does not have, or the other way round."""
    live = code_lines(source)
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
    name: str, file: str, source: str, own: list[tuple[list[Listing], list[Quote]]]
) -> Iterator[str]:
    """Give each directive of a file its lines, with the docstrings on the way."""
    text = source.splitlines()
    numbers = iter(code_lines(source))
    documents = docstrings(source)
    for piece, found in own:
        spans: list[tuple[int, int, str | None]] = []
        for quote in found:
            lines = [next(numbers)[0] for _ in quote.code]
            while documents and documents[0][0] < lines[0]:
                spans.append((*documents.pop(0), None))
            if documents and documents[0][0] < lines[-1]:
                yield f"{name}:{quote.line}: end it before the docstring, {file}:{documents[0][0]}"
            spans.append((lines[0], lines[-1], quote.note.strip()))
        shown = [line for first, last, _ in spans for line in text[first - 1 : last] if line]
        indent = min((len(line) - len(line.lstrip()) for line in shown), default=0)
        for first, last, note in spans:
            code = "\n".join(line[indent:] for line in text[first - 1 : last])
            piece.append(Listing(file, first, last, scope(source, first), code, note))


def code_lines(source: str) -> list[tuple[int, str]]:
    """Number and text of every line that is neither blank nor of a docstring."""
    skipped = {n for first, last in docstrings(source) for n in range(first, last + 1)}
    return [
        (number, line.rstrip())
        for number, line in enumerate(source.splitlines(), 1)
        if line.strip() and number not in skipped
    ]


def docstrings(source: str) -> list[tuple[int, int]]:
    """First and last line of every docstring, in order."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            found.append((node.body[0].lineno, node.body[0].end_lineno or node.body[0].lineno))
    return sorted(found)


def scope(source: str, line: int) -> str:
    """The function or class that a line stands in."""
    names = [
        (node.lineno, node.name)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
        and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    return ".".join(name for _, name in sorted(names))


def computed(pieces: list[list[Listing]], equation: str) -> list[list[Listing]]:
    """The listings whose notes link to an equation, those of one function together.

    Raises:
        NotesError: there is none.
    """
    anchor = equation.replace(" ", "-")
    found = [
        listing
        for piece in pieces
        for listing in piece
        if listing.note is not None and anchor in EQUATION.findall(listing.note)
    ]
    if not found:
        raise NotesError(f"no note links to #equation-{anchor}")
    return [list(group) for _, group in groupby(found, lambda x: (x.file, x.within))]


def place(group: list[Listing]) -> str:
    """The file of listings of one function, to say before their numbers."""
    several = len(group) > 1 or group[0].last > group[0].first
    return f"{Path(group[0].file).name}, line{'s' if several else ''} "


def contracts(root: Path) -> dict[str, list[str]]:
    """The tests of every equation, as pytest names them, from their marks."""
    found: dict[str, list[str]] = {}
    for path in sorted((root / "tests").rglob("test_*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
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
        NotesError: there is none.
    """
    found = contracts(root).get(equation)
    if not found:
        raise NotesError(f"no test carries @pytest.mark.equation({equation})")
    return found
