"""What the outputs of a chapter depend on besides its own cells, as hashes of files.

A notebook notes the files when it is executed: those of our modules that its cells loaded, those of
the ledger that they asked for, and the lock. Of a module only the code counts, because a comment or
a docstring changes no output. Where cells show source, the text of every module counts.
"""

import ast
import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def hashes(files: Iterable[str], root: Path, shows_source: bool) -> dict[str, str | None]:
    """The hash of what counts of each file under ``root``; None for one that is not there."""
    return {name: hash_of(root / name, shows_source) for name in sorted(files)}


def hash_of(file: Path, shows_source: bool) -> str | None:
    if not file.is_file():
        return None
    content = file.read_bytes()
    if file.suffix == ".py" and not shows_source:
        content = code_of(content)
    return hashlib.sha256(content).hexdigest()[:16]


@cache
def code_of(module: bytes) -> bytes:
    """A module without comments and docstrings; unlike ast.dump's, alike in every Python."""
    return repr(skeleton(ast.parse(module))).encode()


def skeleton(node: Any) -> Any:
    if isinstance(node, list):
        return [skeleton(child) for child in node]
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = {name: value for name, value in ast.iter_fields(node) if value not in (None, [])}
    if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
        fields["body"] = node.body[1:]
    return type(node).__name__, [(name, skeleton(value)) for name, value in fields.items()]
