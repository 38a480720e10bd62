"""The package as a whole: what importing it needs, and that its imports run one way."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers import ROOT

# What the code of a room may import of the repository, besides itself.
ROOMS = {
    "capsnet": set(),
    "capsnet_lab": {"capsnet"},
    "book/capsnet_book": {"capsnet", "capsnet_lab"},
    "experiments": {"capsnet", "capsnet_lab", "capsnet_book"},
}
PACKAGES = {Path(room).name for room in ROOMS}
# Inside the module imports run upwards; modules of one line may import each other.
FLOORS = (
    ("checks", "text", "files"),
    ("functional",),
    ("layers",),
    ("model",),
    ("data", "multimnist", "checkpoint", "device"),
    ("pretrained", ""),
    ("fast",),
    ("training",),
)
COMMAND = "capsnet/__main__.py"  # only for `python -m capsnet`: the command is capsnet_lab's


def test_import_needs_torch_only() -> None:
    """In an interpreter that refuses every other package of pyproject.toml."""
    others = (
        "torchvision", "safetensors", "lightning_fabric", "tensorboard", "tqdm", "PIL",
        "matplotlib", "onnx", "onnxruntime", "onnxscript",
    )  # fmt: skip
    code = (
        "import sys\n"
        f"sys.modules.update(dict.fromkeys({others!r}))\n"  # None makes an import fail
        "import torch\n"
        "from capsnet import CapsNet, PrimaryCapsules, CapsuleLayer, Decoder\n"
        "from capsnet.functional import squash\n"
        "print(CapsNet()(torch.zeros(1, 1, 28, 28)).lengths.shape)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "torch.Size([1, 10])\n"


def test_the_fast_arrangement_imports_nothing_heavy() -> None:
    """PyTorch's compiler takes longer to import than PyTorch, and few programs compile."""
    code = (
        "import sys, torch; before = set(sys.modules)\n"
        "import capsnet.fast; new = set(sys.modules) - before\n"
        "print(len(new), 'torch._dynamo' in new)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules, compiler = done.stdout.split()
    assert int(modules) <= 10 and compiler == "False"


def imported(path: Path) -> Iterator[str]:
    """The modules that a file imports, inside functions as well."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module, f"{path} has a relative import"
            submodules = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (node.module, *submodules)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_those_below_it(room: str) -> None:
    allowed = ROOMS[room] | {Path(room).name}
    for path in (ROOT / room).rglob("*.py"):
        if path != ROOT / COMMAND:
            packages = {name.split(".")[0] for name in imported(path)} & PACKAGES
            assert packages <= allowed, f"{path} imports {packages - allowed}"


def test_imports_of_the_module_run_upwards() -> None:
    floor_of = {name: floor for floor, names in enumerate(FLOORS) for name in names}
    for path in (ROOT / "capsnet").rglob("*.py"):
        own = path.relative_to(ROOT / "capsnet").with_suffix("").parts[0].replace("__init__", "")
        for name in imported(path) if path != ROOT / COMMAND else ():
            assert not name.startswith("torch._"), f"{path} imports {name}, which torch may rename"
            package, _, inner = name.partition(".")
            module = inner.split(".")[0]
            if package == "capsnet" and module in floor_of:
                assert floor_of[module] <= floor_of[own], f"{path} imports {name}"


def test_studies_are_recorded_and_no_room_is_tested_with_them() -> None:
    for path in (ROOT / "tests").rglob("*.py"):
        if path.parent != ROOT / "tests" / "experiments":
            studies = [name for name in imported(path) if name.startswith("experiments.studies")]
            assert not studies, f"{path} imports {studies}"
