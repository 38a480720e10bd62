"""The Makefile, as far as it can be run without installing anything."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def make(tmp_path):
    """Run make in a folder that has the Makefile and nothing installed."""
    for name in ("Makefile", "requirements.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)

    def run(*arguments):
        return subprocess.run(
            ["make", "--no-print-directory", *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )

    return run


def fake_python(folder, script):
    path = folder / "python-of-old"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_help_lists_every_target(make):
    text = (ROOT / "Makefile").read_text()
    targets = set(re.search(r"^\.PHONY: (.*)$", text, re.MULTILINE)[1].split())
    assert {"book", "test", "notebooks", "train", "serve", "lock", "lint", "clean"} < targets
    said = make().stdout
    assert said == make("help").stdout
    assert targets == set(re.findall(r"^  make (\w+) ", said, re.MULTILINE))


def test_a_python_that_is_not_there_is_told_in_one_line(make):
    result = make("lint", "PYTHON=python0.1")
    assert result.returncode != 0
    assert "python0.1 was not found. Install Python 3.11 to 3.13" in result.stdout
    assert "Installing" not in result.stdout


def test_an_old_python_is_told_in_one_line(make, tmp_path):
    old = fake_python(tmp_path, 'test "$1" = -V && echo Python 3.9.2 || exit 1')
    result = make("lint", f"PYTHON={old}")
    assert result.returncode != 0
    assert f"Python 3.11 to 3.13 is needed, {old} is Python 3.9.2." in result.stdout
    assert "Installing" not in result.stdout


def test_a_python_without_ensurepip_is_told_in_one_line(make, tmp_path):
    # Debian's python3 without python3-venv: everything works but ensurepip.
    bare = fake_python(
        tmp_path, f'case "$2" in *ensurepip*) exit 1;; esac; exec "{sys.executable}" "$@"'
    )
    result = make("lint", f"PYTHON={bare}")
    assert result.returncode != 0
    assert "cannot make environments. Install its venv module" in result.stdout
    assert "Installing" not in result.stdout


def test_an_environment_is_made_once_and_again_when_the_lock_changes(make, tmp_path):
    def plan(*arguments):
        return make("--dry-run", "lint", *arguments).stdout

    assert "pip install" in plan()
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").symlink_to(sys.executable)
    (tmp_path / ".venv" / ".ready").touch()
    assert "pip install" not in plan()
    assert "pip install" not in plan(f"PYTHON={sys.executable}")
    other = fake_python(tmp_path, "echo Python 3.12.99")
    assert "--clear" in plan(f"PYTHON={other}")
    later = (tmp_path / ".venv" / ".ready").stat().st_mtime + 10
    os.utime(tmp_path / "requirements.txt", (later, later))
    assert "pip install" in plan()


def test_nothing_names_a_package_index():
    for name in ("Makefile", ".ci/run", "requirements.txt", "pyproject.toml", "_config.yml"):
        text = (ROOT / name).read_text()
        assert not re.search(r"index-url|extra-index|find-links|pypi|trusted-host", text), name
