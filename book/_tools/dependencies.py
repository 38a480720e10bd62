"""What the outputs of a chapter depend on besides its own cells: the code that they import.

Imports are followed from module to module, those inside functions too. A package that only hands
names on (``capsnet``, ``capsnet_book.figures``) is followed to the modules of the names that are
used, and to no others: a chapter depends on its own figures alone. A cell that starts
``python -m capsnet`` counts as importing ``capsnet.__main__``.

Of a module only the code counts: a comment or a docstring changes no output. Where a cell shows
the source of an object (``source``, ``inspect.getsource``), all text of its module counts.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

ALL = "*"  # stands for every name of a module
SHOW = {"source", "getsource"}
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def dependencies(code: str, root: Path) -> dict[str, str]:
    """What counts of each module under ``root`` that the code imports, by the module's name."""
    text_of.cache_clear()  # a file may have changed
    cells = parse(code)
    found: dict[str, str] = {}
    queue = imported(cells, root) | started(cells, root)
    while queue:
        module = queue.pop()
        if module not in found:
            tree = parse(text_of(module, root))
            found[module] = code_of(tree)
            parts = module.split(".")
            packages = (".".join(parts[:length]) for length in range(1, len(parts)))
            queue |= imported(tree, root).union(*(homes(name, set(), root) for name in packages))
    return found | {module: text_of(module, root) for module in shown(cells, root)}


@cache
def text_of(module: str, root: Path) -> str:
    """The text of a module; empty if it is not under ``root``, as that of an empty package is."""
    for above in root, root / "book":
        folder = above.joinpath(*module.split("."))
        for path in folder / "__init__.py", folder.with_suffix(".py"):
            if path.is_file():
                return path.read_text(encoding="utf-8")
    return ""


def imports(tree: ast.Module, root: Path) -> Iterator[tuple[str, str, set[str]]]:
    """Each import's local name, its module, and the names of that module which are used."""
    for local, module, name in taken(tree):
        if name and not text_of(f"{module}.{name}", root):
            yield local, module, {name}
        else:
            yield local, f"{module}.{name}".rstrip("."), uses(tree).get(local, {ALL})


@cache
def taken(tree: ast.Module) -> list[tuple[str, str, str]]:
    """Each import's local name, its module, and the name that is taken of that, if any."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(each.asname or each.name, each.name, "") for each in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [(each.asname or each.name, node.module, each.name) for each in node.names]
    return found


@cache
def uses(tree: ast.Module) -> dict[str, set[str]]:
    """The attributes that are asked of each name, and ``ALL`` for a name that is used by itself."""
    found: dict[str, set[str]] = {}
    asked = set()
    for node in ast.walk(tree):  # an attribute comes before the name that it is asked of
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found.setdefault(node.value.id, set()).add(node.attr)
            asked.add(node.value)
        elif isinstance(node, ast.Name) and node not in asked:
            found.setdefault(node.id, set()).add(ALL)
    return found


def homes(module: str, names: set[str], root: Path) -> set[str]:
    """The modules that define these names of a module: itself, unless it only hands names on."""
    tree = parse(text_of(module, root))
    if not all(hands_on(node) for node in tree.body):
        return {module}
    found = {f"{module}.{name}" for name in names if text_of(f"{module}.{name}", root)}
    for name, source, used in imports(tree, root):
        if names & {name, ALL}:
            found |= homes(source, used, root)
    return found


def hands_on(node: ast.stmt) -> bool:
    """Whether a statement only imports names, lists them or documents them."""
    return (
        isinstance(node, ast.ImportFrom)
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        or (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__")
    )


def imported(tree: ast.Module, root: Path) -> set[str]:
    """The modules that a piece of code imports itself."""
    return set().union(*(homes(module, names, root) for _, module, names in imports(tree, root)))


def started(tree: ast.Module, root: Path) -> set[str]:
    """The modules that a cell starts as a process: ``python -m`` and the name of a package."""
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    names = {text for text in texts if isinstance(text, str) and text.isidentifier()}
    commands = {f"{name}.__main__" for name in names if "-m" in texts}
    return {command for command in commands if text_of(command, root)}


def shown(tree: ast.Module, root: Path) -> set[str]:
    """The modules of the objects whose source a cell shows; all of them if these are unknown."""
    names = {
        name.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in SHOW
        for argument in node.args
        for name in ast.walk(argument)
        if isinstance(name, ast.Name)
    }
    modules = {name: homes(module, used, root) for name, module, used in imports(tree, root)}
    return set().union(*(modules[name] for name in (names if names <= {*modules} else modules)))


@cache
def parse(text: str) -> ast.Module:
    return ast.parse(text)


@cache
def code_of(tree: ast.Module) -> str:
    """A module without comments and docstrings; unlike ast.dump's, alike in every Python."""
    return repr(skeleton(tree))


def skeleton(node: Any) -> Any:
    if isinstance(node, list):
        return [skeleton(child) for child in node]
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = {name: value for name, value in ast.iter_fields(node) if value not in (None, [])}
    if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
        fields["body"] = node.body[1:]
    return type(node).__name__, [(name, skeleton(value)) for name, value in fields.items()]
