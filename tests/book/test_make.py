"""The Makefile, as far as it can be run without installing anything."""

import itertools
import re
import shutil
import subprocess
import sys
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import fingerprint
from helpers import ROOT


@pytest.fixture
def make(tmp_path):
    """Run make in a folder that has the Makefile and nothing installed."""
    for name in ("Makefile", "requirements.txt", "pyproject.toml", "package-lock.json"):
        shutil.copy(ROOT / name, tmp_path)

    def run(*arguments):
        command = ["make", "--no-print-directory", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    return run


def test_help_lists_every_target(make):
    text = (ROOT / "Makefile").read_text()
    targets = set(re.search(r"^\.PHONY: (.*)$", text, re.MULTILINE)[1].split())
    said = make().stdout
    assert said == make("help").stdout
    assert targets == set(re.findall(r"^  make (\w+) ", said, re.MULTILINE))


# A Python that says that it is another.
OF_VERSION = """\
test "$1" = -V && echo Python {} && exit
exec {} -c "import sys; sys.version_info = {}; $2"
"""


def of_version(*version):
    return OF_VERSION.format(".".join(map(str, version)), sys.executable, version)


@pytest.mark.parametrize(
    ("python", "said"),
    [
        (None, "was not found. Install Python 3.11 to 3.14"),
        (of_version(3, 10, 9), "for Python 3.11 to 3.14, "),
        (of_version(3, 15, 2), "is Python 3.15.2. Name another"),
        # Debian's python3 without python3-venv: everything works but ensurepip.
        ('case "$2" in *ensurepip*) exit 1;; esac', "cannot make environments. Install its venv"),
    ],
)
def test_a_python_that_will_not_do_ends_in_one_line(make, tmp_path, python, said):
    path = tmp_path / "some-python"
    if python:
        path.write_text(f"#!/bin/sh\n{python}\n")
        path.chmod(0o755)
    result = make("lint", f"PYTHON={path}")
    assert result.returncode != 0
    (line,) = result.stdout.splitlines()
    assert said in line


def test_another_pytorch_by_name_makes_the_environment_anew(make, tmp_path):
    folder = tmp_path / ".venv"
    folder.mkdir()
    (folder / ".ready").write_text("cpu\n")
    assert "Installing" not in make("-n", "lint", "TORCH=cpu").stdout
    assert "Installing" not in make("-n", "lint").stdout
    anew = make("-n", "lint", "TORCH=cuda").stdout
    assert "-m venv --clear" in anew
    # The README says how much is downloaded.
    sizes = re.findall(r"^SIZE_.*?([\d.]+ GB) to download", (ROOT / "Makefile").read_text(), re.M)
    readme = (ROOT / "README.md").read_text()
    assert len(sizes) == 2 and all(size in readme for size in sizes) and sizes[1] in anew


def test_a_home_that_cannot_be_written_to_is_replaced(make, tmp_path, monkeypatch):
    show = "--eval=show: ; @echo $$HOME $$npm_config_userconfig"
    monkeypatch.setenv("HOME", str(tmp_path))
    assert make(show, "show").stdout.split()[0] == str(tmp_path)
    monkeypatch.setenv("HOME", "/nowhere")
    assert make(show, "show").stdout.split() == [f"{tmp_path}/.venv/home", "/nowhere/.npmrc"]


def test_a_site_is_built_from_what_is_not_made(tmp_path, monkeypatch):
    monkeypatch.setattr(fingerprint, "ROOT", tmp_path)
    files = ("book/a.md", "results/b.json", "_config.yml")
    made = (".venv/c", "_build/d", "runs/e", "book/__pycache__/f.pyc")
    unread = ("experiments/g.py", "tests/test_h.py")
    for name in (*files, *made, *unread):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert fingerprint.source_files() == {*files}


def test_the_lock_is_whole_and_has_hashes():
    """Every requirement of pyproject.toml, at a version that it allows, and a hash for each."""
    lock = (ROOT / "requirements.txt").read_text().replace("\\\n", "")
    lines = [line for line in lock.splitlines() if not line.startswith("#")]
    assert all(re.match(r"\S+==.* --hash=sha256:[0-9a-f]{64}", line) for line in lines)
    pins: dict[str, set[str]] = {}
    for line in lines:
        name, version = line.split()[0].split("==")
        pins.setdefault(name, set()).add(version)
    about = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = about["project"]["optional-dependencies"]
    wanted = [about["project"]["dependencies"], *extras.values()]
    for text in itertools.chain(*wanted, *about["dependency-groups"].values()):
        requirement = Requirement(text)
        pinned = pins[canonicalize_name(requirement.name)]
        assert all(requirement.specifier.contains(version) for version in pinned), text


def test_nothing_names_a_package_index():
    """The Makefile hands uv what pip is configured to search, whatever that is."""
    named = re.compile(r"(?:index-url|extra-index|find-links)[ =]|pypi|npmjs|registry|trusted-host")
    names = "Makefile .ci/run requirements.txt pyproject.toml _config.yml package.json"
    for name in (*names.split(), "package-lock.json"):
        assert not named.search((ROOT / name).read_text()), name
