"""What the outputs of a chapter depend on, beside its own cells: the code that they import.

Imports are followed from module to module, those inside functions too. A package that only hands
names on (``capsnet``, ``capsnet_book.figures``) is followed to the modules of the names that are
used, and to no others: a chapter depends on its own figures alone. A cell that starts
``python -m capsnet`` counts as importing ``capsnet.__main__``.

Of a module only the code counts: a comment or a docstring changes no output. Where a cell shows
the source of an object (``source``, ``inspect.getsource``), all text of its module counts.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

Names = frozenset[str]
SHOW = {"source", "getsource"}
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def dependencies(code: str, root: Path) -> dict[str, str]:
    """What counts of each module under ``root`` that the code imports, by the module's name."""
    tree = parse(code)
    found: dict[str, str] = {}
    queue = direct(tree, root) | started(tree, root)
    while queue:
        module = queue.pop()
        if module not in found:
            text = file_of(module, root).read_text(encoding="utf-8")
            found[module] = code_of(text)
            queue |= direct(parse(text), root)
    for module in shown(tree, root):
        found[module] = file_of(module, root).read_text(encoding="utf-8")
    return found


def file_of(module: str, root: Path) -> Path:
    """The file of a module; one that does not exist if the module is not under ``root``."""
    folder = root.joinpath(*module.split("."))
    package = folder / "__init__.py"
    return package if package.is_file() else folder.with_suffix(".py")


def is_ours(module: str, root: Path) -> bool:
    return file_of(module, root).is_file()


def imports(tree: ast.Module, root: Path) -> Iterator[tuple[str, str, Names | None]]:
    """Each import's local name, its module, and which names of that module are used (None: all)."""
    used = attributes(tree)
    for node in nodes(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name
                yield name, alias.name, used.get(name)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                name, submodule = alias.asname or alias.name, f"{node.module}.{alias.name}"
                if is_ours(submodule, root):
                    yield name, submodule, used.get(name)
                else:
                    yield name, node.module, None if name == "*" else frozenset({alias.name})


@cache
def attributes(tree: ast.Module) -> dict[str, Names]:
    """The attributes that are asked of each name that is used in no other way."""
    asked: dict[str, set[str]] = {}
    uses: Counter[str] = Counter()
    for node in nodes(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            asked.setdefault(node.value.id, set()).add(node.attr)
            uses[node.value.id] -= 1
        elif isinstance(node, ast.Name):
            uses[node.id] += 1
    return {name: frozenset(names) for name, names in asked.items() if uses[name] == 0}


def direct(tree: ast.Module, root: Path) -> set[str]:
    """The modules that a piece of code imports itself, and the packages that they lie in."""
    found = set()
    for _, module, names in imports(tree, root):
        found |= holders(module, names, root)
        parts = module.split(".")
        for length in range(1, len(parts)):
            found |= holders(".".join(parts[:length]), frozenset(), root)
    return found


def started(tree: ast.Module, root: Path) -> set[str]:
    """The modules that a cell starts as a process: ``python -m`` and the name of a package."""
    texts = {node.value for node in nodes(tree) if isinstance(node, ast.Constant)}
    if "-m" not in texts:
        return set()
    names = {text for text in texts if isinstance(text, str) and text.isidentifier()}
    commands = {f"{name}.__main__" for name in names}
    return {command for command in commands if is_ours(command, root)}


def holders(module: str, names: Names | None, root: Path) -> set[str]:
    """The modules that hold these names of a module, seen through packages that hand names on."""
    if not is_ours(module, root):
        return set()
    tree = parse(file_of(module, root).read_text(encoding="utf-8"))
    if names is None or not hands_on(tree):
        return {module}
    found = {f"{module}.{name}" for name in names if is_ours(f"{module}.{name}", root)}
    for name, source, taken in imports(tree, root):
        if name in names:
            found |= holders(source, taken, root)
    return found


def hands_on(tree: ast.Module) -> bool:
    """Whether a module holds nothing but imports of names, a docstring and ``__all__``."""
    return all(
        isinstance(node, ast.ImportFrom)
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        or (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__")
        for node in tree.body
    )


def shown(tree: ast.Module, root: Path) -> set[str]:
    """The modules of the objects whose source a cell shows; all where that cannot be told."""
    names = {
        name.id
        for node in nodes(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in SHOW
        for argument in node.args
        for name in ast.walk(argument)
        if isinstance(name, ast.Name)
    }
    imported = {name: holders(module, used, root) for name, module, used in imports(tree, root)}
    if not names <= imported.keys():
        names = set(imported)
    return set().union(*(imported[name] for name in names))


@cache
def parse(text: str) -> ast.Module:
    return ast.parse(text)


@cache
def nodes(tree: ast.Module) -> list[ast.AST]:
    return list(ast.walk(tree))


@cache
def code_of(text: str) -> str:
    """What counts of a module: its code, whatever its comments, docstrings and line breaks."""
    return repr(skeleton(parse(text)))


def skeleton(node: Any) -> Any:
    """A syntax tree without docstrings, the same in every version of Python.

    ``ast.dump`` would differ: newer versions have fields that older ones lack.
    """
    if isinstance(node, list):
        return [skeleton(child) for child in node]
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = {name: value for name, value in ast.iter_fields(node) if value not in (None, [])}
    if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
        fields["body"] = node.body[1:]
    return type(node).__name__, [(name, skeleton(value)) for name, value in fields.items()]
