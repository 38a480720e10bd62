"""Every notebook as Colab would run it: a fresh environment, a clone of git, an empty folder.

`make fresh` runs this; `make test` does not. The environment is a new one that sees, of the locked
packages, only those that capsnet's own metadata ask for, and a kernel: linked, not installed again,
which would take 6 GB and prove nothing more. The last commit comes into it by the very cell that
every notebook starts with. Then each notebook runs, that cell included, and nbval compares it.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import Distribution, distribution
from pathlib import Path

import nbformat
import pytest
from packaging.requirements import Requirement

import make_notebooks as notebooks
from address import address

ROOT = notebooks.ROOT

pytestmark = [pytest.mark.fresh, pytest.mark.slow]

COLAB = """\
import sys, types
sys.modules["google.colab"] = types.ModuleType("google.colab")
"""


def needed(names: list[str]) -> dict[str, Distribution]:
    """The packages of these names and all that they require, of those installed here."""
    found: dict[str, Distribution] = {}
    queue, seen = {*names}, set[str]()
    while queue:
        seen.add(text := queue.pop())
        requirement = Requirement(text)
        package = distribution(requirement.name)
        found[package.name] = package
        for child in package.requires or []:
            marker = Requirement(child).marker
            extras = requirement.extras or {""}
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in extras):
                queue |= {child} - seen
    return found


def run(*command: object, **options: object) -> str:
    """Run a command and return its output, errors included."""
    options |= {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    result = subprocess.run([str(part) for part in command], **options)
    assert result.returncode == 0, result.stdout
    return result.stdout


def prepare(folder: Path) -> None:
    """Make a repository to clone, the environment, and a kernel of it for Jupyter."""
    run("git", "clone", "--quiet", "--bare", f"file://{ROOT}", folder / "git")
    branch = f"refs/heads/{address().branch}"  # whatever is checked out here
    run("git", "-C", folder / "git", "update-ref", branch, "HEAD")
    run(sys.executable, "-m", "venv", "--without-pip", folder / "env")
    python = folder / "env" / "bin" / "python"
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    # setuptools builds capsnet, the recipes export a network, widgets run: pip would fetch them.
    extras = [
        name for extra in ("export", "play") for name in project["optional-dependencies"][extra]
    ]
    packages = needed([*project["dependencies"], *extras, "ipykernel", "pip", "setuptools"])
    assert not {"capsnet", "jupyter-book", "myst-nb", "pytest"} & packages.keys()
    for package in packages.values():
        for name in {file.parts[0] for file in package.files or []} - {"..", "__pycache__"}:
            place = Path(str(package.locate_file(name)))
            if place.exists() and not (site / name).exists():
                (site / name).symlink_to(place)
    (site / "sitecustomize.py").write_text(COLAB)

    kernel = folder / "share" / "kernels" / "fresh"
    kernel.mkdir(parents=True)
    argv = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": "fresh", "language": "python"}
    (kernel / "kernel.json").write_text(json.dumps(spec))


def installed(fresh: Path) -> dict[str, str]:
    """The environment's variables, with the repository installed by the notebooks' first cell."""
    variables = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        "JUPYTER_PATH": str(fresh / "share"),
        "PIP_NO_INDEX": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip reads it so: no isolation
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "TQDM_DISABLE": "1",
    }
    # The form's address is this clone.
    repository = f'repository = "file://{fresh / "git"}"'
    cell = re.sub('repository = ".*?"', repository, notebooks.setup_cell().source)
    assert repository in cell
    cell += """
import capsnet, torch
from capsnet_book import ledger
print(capsnet.__file__, ledger.path("mnist/evaluation.json"), torch.__version__, sep="\\n")
"""
    (fresh / "colab").mkdir()
    python = fresh / "env" / "bin" / "python"
    said = run(python, "-m", "IPython", "-c", cell, cwd=fresh / "colab", env=variables)
    *places, torch = said.split()[-3:]
    clone = fresh / "colab" / notebooks.CLONE
    assert [Path(place).is_relative_to(clone) for place in places] == [True, True], said
    assert torch.split("+")[0] == distribution("torch").version.split("+")[0]
    return variables


def test_the_notebooks_run_where_only_capsnet_is_installed(tmp_path: Path) -> None:
    fresh = tmp_path
    prepare(fresh)
    environment = installed(fresh)
    made = fresh / "colab" / notebooks.CLONE / "notebooks"
    wanted = os.environ.get("NOTEBOOKS", "").split()  # their names, to try some
    names = wanted or [chapter.stem for chapter in notebooks.chapters()]
    read = {name: nbformat.read(made / f"{name}.ipynb", 4) for name in names}
    # The longest first: at the end no process runs alone for long.
    names.sort(key=lambda name: -read[name].metadata.capsnet.get("seconds", 0))
    cells = sum(cell.cell_type == "code" for name in names for cell in read[name].cells)
    for name in names:
        (fresh / "run" / name).mkdir(parents=True)
        shutil.copy(made / f"{name}.ipynb", fresh / "run" / name)
    shutil.copy(made / "conftest.py", fresh / "run")
    said = run(
        *(sys.executable, "-m", "pytest", "-c", ROOT / "pyproject.toml", "--rootdir", "."),
        *("-p", "no:cacheprovider", "-q", "-n", "auto", "--maxprocesses", 4),
        *("--dist", "loadfile", "--no-loadscope-reorder", "--durations=20"),
        *("--nbval", "--nbval-kernel-name", "fresh", *(f"{name}/{name}.ipynb" for name in names)),
        cwd=fresh / "run",
        env=environment,
    )
    print(said)
    counts = re.findall(r"(\d+) (passed|skipped)", said.splitlines()[-1])
    count = {verdict: int(number) for number, verdict in counts}
    assert sum(count.values()) == cells
    # Where the package is there already, the first cell does nothing.
    assert not list((fresh / "run").glob(f"*/{notebooks.CLONE}"))
    if "skipped" in count:
        pytest.skip(f"{count['skipped']} of {cells} cells were NOT VERIFIED")
