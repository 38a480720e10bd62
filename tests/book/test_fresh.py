"""Every notebook as Colab would run it: a fresh environment, capsnet from git, an empty folder.

`make fresh` runs this; `make test` does not. The environment is a new one that sees, of the locked
packages, only those that capsnet's own metadata ask for, and a kernel: linked, not installed again,
which would take 6 GB and prove nothing more. capsnet comes into it from a clone of the last commit,
by the very cell that every notebook starts with, and is all that pip installs.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import Distribution, distribution
from pathlib import Path

import nbformat
import pytest
from packaging.requirements import Requirement

import notebooks

ROOT = notebooks.ROOT
MINUTES = 12  # all notebooks together, on two cores

pytestmark = [pytest.mark.fresh, pytest.mark.slow]

COLAB = """\
import sys, types
sys.modules["google.colab"] = types.ModuleType("google.colab")
"""


def needed(names: list[str]) -> dict[str, Distribution]:
    """The packages of these names and all that they require, of those installed here."""
    found: dict[str, Distribution] = {}
    queue, seen = [Requirement(name) for name in names], set()
    while queue:
        requirement = queue.pop()
        if str(requirement) in seen:
            continue
        seen.add(str(requirement))
        package = distribution(requirement.name)
        found[package.name] = package
        for text in package.requires or []:
            child = Requirement(text)
            extras = requirement.extras or {""}
            if child.marker is None or any(child.marker.evaluate({"extra": e}) for e in extras):
                queue.append(child)
    return found


def run(*command: object, **options: object) -> str:
    result = subprocess.run(
        [str(part) for part in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **options,
    )
    assert result.returncode == 0, result.stdout
    return result.stdout


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a clone, the environment, and a kernel of it for Jupyter."""
    folder = tmp_path_factory.mktemp("fresh")
    run("git", "clone", "--quiet", f"file://{ROOT}", folder / "clone")
    branch = notebooks.repository(folder / "clone")["branch"]
    run("git", "-C", folder / "clone", "checkout", "--quiet", "-B", branch)
    run(sys.executable, "-m", "venv", "--without-pip", folder / "env")
    python = folder / "env" / "bin" / "python"
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    asked = [text for text in distribution("capsnet").requires or [] if "extra ==" not in text]
    # setuptools builds capsnet; Colab's pip would fetch it for that.
    packages = needed([*asked, "ipykernel", "pip", "setuptools"])
    assert not {"capsnet", "jupyter-book", "myst-nb", "pytest"} & packages.keys()
    for package in packages.values():
        for name in {file.parts[0] for file in package.files or []} - {"..", "__pycache__"}:
            place = Path(str(package.locate_file(name)))
            if place.exists() and not (site / name).exists():
                (site / name).symlink_to(place)
    (site / "sitecustomize.py").write_text(COLAB)

    # The data sets that a reader of the notebooks downloads.
    (folder / "data").mkdir()
    (folder / "data" / "MNIST").symlink_to(folder / "clone" / "data" / "MNIST")
    clothes = Path(os.environ.get("CAPSNET_DATA") or ROOT / "data") / "FashionMNIST"
    if clothes.exists():
        (folder / "data" / "FashionMNIST").symlink_to(clothes.resolve())

    kernel = folder / "share" / "kernels" / "fresh"
    kernel.mkdir(parents=True)
    argv = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": "fresh", "language": "python"}
    (kernel / "kernel.json").write_text(json.dumps(spec))
    return folder


@pytest.fixture(scope="module")
def environment(fresh: Path) -> dict[str, str]:
    """The environment's variables, with capsnet installed by the notebooks' first cell."""
    variables = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        "JUPYTER_PATH": str(fresh / "share"),
        "CAPSNET_DATA": str(fresh / "data"),  # elsewhere it would be downloaded
        "PIP_NO_INDEX": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip reads it so: no isolation
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "TQDM_DISABLE": "1",
    }
    address = notebooks.repository(fresh / "clone")
    cell = notebooks.setup_cell(fresh / "clone").source
    assert address["url"] in cell
    cell = cell.replace(address["url"], f"file://{fresh / 'clone'}")
    cell += "\nimport capsnet, torch; print(capsnet.__file__, torch.__version__)"
    python = fresh / "env" / "bin" / "python"
    (fresh / "empty").mkdir()
    said = run(python, "-m", "IPython", "-c", cell, cwd=fresh / "empty", env=variables)
    place, version = said.split()[-2:]
    assert Path(place).is_relative_to(fresh / "env"), said
    assert version.split("+")[0] == distribution("torch").version.split("+")[0]
    return variables


def test_the_notebooks_run_where_only_capsnet_is_installed(
    fresh: Path, environment: dict[str, str]
) -> None:
    names = {chapter.stem for chapter in notebooks.chapters()}
    not_run = set() if (fresh / "data" / "FashionMNIST").exists() else {"yours"}
    cells = 0
    for name in sorted(names - not_run):
        folder = fresh / "run" / name
        folder.mkdir(parents=True)
        notebook = Path(shutil.copy(fresh / "clone" / "notebooks" / f"{name}.ipynb", folder))
        cells += sum(cell.cell_type == "code" for cell in nbformat.read(notebook, 4).cells)
    before = os.times()
    said = run(
        *(sys.executable, "-m", "pytest", "-c", fresh / "clone" / "pyproject.toml"),
        *("-p", "no:cacheprovider", "-q", "-n", 2, "--dist", "loadfile", "--durations=20"),
        *("--nbval", "--nbval-kernel-name", "fresh", "."),
        cwd=fresh / "run",
        env=environment,
    )
    after = os.times()
    used = sum(after[2:4]) - sum(before[2:4])
    print(said, f"{used:.0f} s of processor time, {after[4] - before[4]:.0f} s", sep="\n")
    assert re.search(rf"\b{cells} passed", said), said
    assert used / 2 < 60 * MINUTES
    if not_run:
        pytest.skip("NOT VERIFIED: yours; there is no Fashion-MNIST, and nothing is downloaded")
