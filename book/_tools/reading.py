"""What a reader of a page sees of a cell's code, and how long a chapter is.

A notebook has every cell whole. A page shows what a reader needs and folds the rest, as
:func:`cell_role` decides.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Literal

from markdown_it.token import Token

from myst import Directive, walk

MOST_WORDS, MOST_LINES = 2000, 150  # of a chapter: a quarter of an hour, and its code

# The lines of a sentence, and those of its proof.
CLAIM = re.compile(r"((?:#.*\n)+)((?:(?!#).*\n)+)")
MARGIN = re.compile(r"\s*^#\s*", re.MULTILINE)

Role = Literal["code", "setup", "figure", "plumbing", "glue", "check", "solution"]


def cell_role(source: str, metadata: Mapping[str, Any]) -> Role:
    """What a cell is for.

    ``setup`` imports and nothing else; ``check`` asserts what the text says; a ``solution`` is an
    exercise's; a ``figure`` has a caption; ``glue`` only names values for the text; ``plumbing`` is
    tagged ``hide-input``. All these are folded. What is left, ``code``, is what the page is about.
    """
    tags = metadata.get("tags", [])
    body = statements(source)
    if "hide-cell" in tags:
        return "solution"
    if "check" in tags:
        return "check"
    if "figure" in metadata.get("mystnb", {}):
        return "figure"
    if body and all(isinstance(statement, ast.Import | ast.ImportFrom) for statement in body):
        return "setup"
    if body and all(map(is_glue, body)):
        return "glue"
    return "plumbing" if "hide-input" in tags else "code"


def statements(source: str) -> list[ast.stmt]:
    """The cell's statements; a line of IPython's own (``%pip``) is none."""
    return ast.parse(re.sub(r"^ *[%!].*$", "pass", source, flags=re.MULTILINE)).body


def is_glue(statement: ast.stmt) -> bool:
    """Whether it only names a value for the text: ``glue("name", value)``."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "glue"


def glue_lines(source: str) -> set[int]:
    """The lines of a cell, from 0, that only name values for the text."""
    lines: set[int] = set()
    for statement in statements(source):
        if is_glue(statement):
            lines.update(range(statement.lineno - 1, statement.end_lineno or statement.lineno))
    return lines


def split_check(source: str) -> list[tuple[str, str]]:
    """Each sentence of a check, a comment at the margin, and the code that proves it.

    Raise ValueError if code stands above the first sentence, or a sentence has no code.
    """
    source = source.strip() + "\n"
    claims = CLAIM.findall(source)
    if "".join(map("".join, claims)) != source or not all(proof.strip() for _, proof in claims):
        expected = "expected comments at the margin, each with its proof under it"
        raise ValueError(f"{expected}, got {source!r}")
    return [(MARGIN.sub(" ", text).strip(), proof.strip("\n")) for text, proof in claims]


@cache
def blocks(text: str) -> list[tuple[Token, Directive | None]]:
    return list(walk(text))


def outside_exercises(text: str) -> Iterator[tuple[Token, Directive | None]]:
    """The blocks of a page and of its directives, without exercises and what a question offers."""
    skipped = asked = 0  # the lines on which an exercise and a question end
    for token, block in blocks(text):
        line, *end = token.map or [0]
        if block and block.argument == "Predict first":
            asked = end[0]
        choices = token.type == "bullet_list_open" and line < asked
        if choices or (block and block.argument.startswith("Exercise")):
            skipped = end[0]
        elif line >= skipped:
            yield token, block


def count_words(text: str) -> int:
    """The words of a page's prose: without code, equations, captions and exercises."""
    blocks = outside_exercises(text)
    prose = [token.content for token, _ in blocks if token.type == "inline"]
    return sum(len(re.findall(r"\w[\w'’-]*", block)) for block in prose)


def count_cells(text: str) -> int:
    """The cells of code that a reader sees without unfolding anything."""
    return sum(1 for _ in shown_cells(text))


def count_lines(text: str) -> int:
    """The lines of code of a page that a reader sees without unfolding anything."""
    count = 0
    for cell in shown_cells(text):
        hidden = glue_lines(cell.content)
        code = cell.content.strip("\n").splitlines()
        count += sum(1 for n, line in enumerate(code) if line.strip() and n not in hidden)
    return count


def shown_cells(text: str) -> Iterator[Directive]:
    for _, cell in blocks(text):
        if cell and cell.name == "code-cell" and cell_role(cell.content, cell.options) == "code":
            yield cell
