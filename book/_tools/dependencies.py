"""What the outputs of a chapter depend on besides its own cells.

A notebook notes it when it is executed: hashes of our modules that its cells loaded and of the
ledger's files that they asked for, and the locked versions of the packages that they imported. Of a
module only the code counts, because a comment or a docstring changes no output, unless its source
was read, to be shown.
"""

import ast
import hashlib
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def hashes(files: Iterable[str], root: Path, code_alone: bool) -> dict[str, str | None]:
    """The hash of each file under ``root``, or of the code of modules; None where there is none."""
    return {name: hash_of(root / name, code_alone) for name in sorted(files)}


def hash_of(file: Path, code_alone: bool) -> str | None:
    if not file.is_file():
        return None
    content = file.read_bytes()
    return hashlib.sha256(code_of(content) if code_alone else content).hexdigest()[:16]


def locked_versions(packages: Iterable[str], root: Path) -> dict[str, list[str]]:
    """The versions that requirements.txt names for each package, of those that it names.

    One may have several, each for some versions of Python.
    """
    lock = (root / "requirements.txt").read_text(encoding="utf-8")
    pins = re.findall(r"^([\w.-]+)==([^\s;]+)", lock, re.MULTILINE)
    names = {canonicalize_name(name) for name in packages}
    versions: dict[str, list[str]] = {}
    for name, version in sorted(pins):
        if name in names:
            versions.setdefault(name, []).append(version)
    return versions


@cache
def code_of(module: bytes) -> bytes:
    """A module without comments and docstrings, in a form that every Python makes alike."""
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
