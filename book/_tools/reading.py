"""What a reader of a page sees of a cell's code, and how long a chapter is.

    python book/_tools/reading.py           # every chapter: words of prose, lines of code in sight
    python book/_tools/reading.py routing   # this one

A notebook has every cell whole. A page shows what a reader needs and folds the rest: see ``role``.
"""

import ast
import re
import sys
from collections.abc import Mapping
from typing import Any, Literal

import myst
from address import ROOT

BOOK = ROOT / "book"
MOST_WORDS, MOST_LINES = 1500, 150  # of a chapter

Role = Literal["code", "setup", "figure", "plumbing", "glue", "check", "solution"]


def role(source: str, metadata: Mapping[str, Any]) -> Role:
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
    if body and all(isinstance(each, ast.Import | ast.ImportFrom) for each in body):
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
    glued = (each for each in statements(source) if is_glue(each))
    return {n for each in glued for n in range(each.lineno - 1, each.end_lineno or each.lineno)}


def claims(source: str) -> list[tuple[str, str]]:
    """Each sentence of a check, a comment at the margin, and the code that proves it.

    Raises:
        ValueError: code stands above the first sentence, or a sentence has no code.
    """
    found: list[tuple[list[str], list[str]]] = []
    for line in source.strip().splitlines():
        if line.startswith("#"):
            if not found or found[-1][1]:
                found.append(([], []))
            found[-1][0].append(line.removeprefix("#").strip())
        elif found:
            found[-1][1].append(line)
        elif line.strip():
            raise ValueError(f"a check begins with a sentence, a comment, got {line!r}")
    for words, code in found:
        if not any(line.strip() for line in code):
            raise ValueError(f"no code proves {' '.join(words)!r}")
    return [(" ".join(words), "\n".join(code).strip("\n")) for words, code in found]


def words(text: str) -> int:
    """The words of a page's prose: without code, equations, captions and exercises."""
    count, skipped = 0, 0
    for token, found in myst.walk(text):
        line, *end = token.map or [0]
        if found and found.argument.startswith("Exercise"):
            skipped = end[0]
        elif line >= skipped and token.type == "inline" and not found:
            count += len(re.findall(r"\w[\w'’-]*", token.content))
    return count


def lines(text: str) -> int:
    """The lines of code of a page that a reader sees without unfolding anything."""
    count = 0
    for found in myst.directives(text):
        if found.name == "code-cell" and role(found.content, found.options) == "code":
            hidden = glue_lines(found.content)
            code = found.content.strip("\n").splitlines()
            count += sum(1 for n, line in enumerate(code) if line.strip() and n not in hidden)
    return count


if __name__ == "__main__":
    names = sys.argv[1:] or sorted(path.stem for path in BOOK.glob("*.md"))
    for name in names:
        page = (BOOK / f"{name}.md").read_text(encoding="utf-8")
        print(f"{name:<14}{words(page):>6} words{lines(page):>6} lines of code in sight")
