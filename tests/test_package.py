"""The package as a whole: what importing it needs, and that its imports run one way."""

import ast
import os
import re
import shutil
import subprocess
import sys
import zipfile
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
# PyTorch may rename what is private. For this one it has no public function (capsnet/model.py).
PRIVATE = {"torch.utils._pytree"}
COMMAND = "capsnet/__main__.py"  # only for `python -m capsnet`: the command is capsnet_lab's


NEEDS = """
import sys
sys.modules.update(dict.fromkeys(sys.argv[1:]))  # None makes an import fail
import torch
before = set(sys.modules)
import capsnet.fast
new = set(sys.modules) - before
from capsnet import CapsNet, PrimaryCapsules, CapsuleLayer, Decoder
from capsnet.functional import squash
print(len(new) <= 10, "torch._dynamo" in new, CapsNet()(torch.zeros(1, 1, 28, 28)).lengths.shape)
"""


def test_import_needs_torch_only_and_nothing_heavy_of_it() -> None:
    """In an interpreter that refuses every other package of pyproject.toml.

    PyTorch's compiler takes longer to import than PyTorch, and few programs compile.
    """
    others = (
        "torchvision", "safetensors", "lightning_fabric", "tensorboard", "tqdm", "PIL",
        "matplotlib", "onnx", "onnxruntime", "onnxscript",
    )  # fmt: skip
    command = [sys.executable, "-c", NEEDS, *others]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "True False torch.Size([1, 10])\n"


SETTINGS = """
import importlib, logging, os, sys, warnings
import lightning_fabric, matplotlib, numpy, scipy.cluster.vq, scipy.ndimage, torch, torchvision
import PIL.Image, PIL.ImageFile

def settings():
    return {
        "Pillow": (PIL.Image.MAX_IMAGE_PIXELS, PIL.ImageFile.LOAD_TRUNCATED_IMAGES),
        "PyTorch": (torch.get_default_dtype(), torch.get_num_threads(), torch.is_grad_enabled()),
        "its precision": (torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32),
        "its seed": torch.initial_seed(),
        "NumPy": numpy.geterr(),
        "matplotlib": {**matplotlib.rcParams},
        "warnings": [*warnings.filters],
        "logging": [logging.getLogger(name).level for name in (None, "PIL", "torch")],
        "the environment": {**os.environ},
        "the path": [*sys.path],
    }

before = settings()
for name in sys.argv[1:]:
    importlib.import_module(name)
print([name for name, value in settings().items() if value != before[name]])
"""


def test_no_import_changes_a_setting_of_another_library() -> None:
    files = [path for room in ("capsnet", "capsnet_lab") for path in (ROOT / room).rglob("*.py")]
    names = {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in files}
    command = [sys.executable, "-c", SETTINGS, *sorted(names - {"capsnet.__main__"})]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "[]\n"


@pytest.mark.slow
def test_what_a_wheel_brings(tmp_path: Path) -> None:
    """Built from the source distribution: all code, types, the small network, and a readme."""
    for name in ("capsnet", "capsnet_lab", "book/capsnet_book", "data", "experiments", "tests"):
        shutil.copytree(ROOT / name, tmp_path / name)
    for name in ("mnist", "page"):
        shutil.copytree(ROOT / "results" / name, tmp_path / "results" / name)
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    old = tmp_path / "build" / "lib" / "capsnet" / "removed.py"
    old.parent.mkdir(parents=True)
    old.write_text("")
    uv = Path(sys.executable).with_name("uv")
    options = ["--quiet", "--offline", "--no-build-isolation", "--python", sys.executable]
    subprocess.run([uv, "build", *options, tmp_path], check=True)
    # The source distribution has what its tests need: all can be collected, and some run here.
    (source,) = (tmp_path / "dist").glob("*.tar.gz")
    shutil.unpack_archive(source, tmp_path / "source", filter="data")
    (unpacked,) = (tmp_path / "source").iterdir()
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"]
    command += ["tests/capsnet", "-k", "test_pretrained"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    subprocess.run(command, cwd=unpacked, env=clean, check=True)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    assert wheel.stat().st_size < 2e6
    with zipfile.ZipFile(wheel) as archive:
        brought = {name for name in archive.namelist() if ".dist-info/" not in name}
        (about,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        text = archive.read(about).decode()
    kinds = {".py", ".js", ".css", ".typed"}
    rooms = [ROOT / "capsnet", ROOT / "capsnet_lab", ROOT / "book" / "capsnet_book"]
    files = [(room, path) for room in rooms for path in room.rglob("*") if path.suffix in kinds]
    code = {path.relative_to(room.parent).as_posix() for room, path in files}
    assert brought == code | {"capsnet/mnist-small.safetensors"}
    # A package index has no files of the checkout.
    assert "# The annotated capsule network" in text
    assert not re.findall(r"\]\((?!https:)[^)]*\)|<img", text)


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
            private = name.startswith("torch.") and "._" in name
            assert not private or name in PRIVATE, f"{path} imports {name}, which is private"
            package, _, inner = name.partition(".")
            module = inner.split(".")[0]
            if package == "capsnet" and module in floor_of:
                assert floor_of[module] <= floor_of[own], f"{path} imports {name}"
