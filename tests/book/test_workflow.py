"""What the workflows rely on. (`make lint` checks their form.)"""

import os
import re
import tomllib

import nbformat
import pytest
import yaml

import make_notebooks as notebooks
from helpers import ROOT

WORKFLOWS = ROOT / ".github" / "workflows"
JOBS = yaml.load((WORKFLOWS / "book.yml").read_text(encoding="utf-8"), yaml.BaseLoader)["jobs"]


def test_every_python_is_one_that_the_lock_has_packages_for() -> None:
    """The newest Python has none for months: "3.x" stopped the book from being published."""
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    supported = [name.rpartition(" ")[2] for name in classifiers if " :: Python :: " in name]
    assert JOBS["module"]["strategy"]["matrix"]["python"] == supported
    assert f"for Python {supported[0]} to {supported[-1]}," in (ROOT / "Makefile").read_text()
    # Binder's, and that of Codespaces.
    others = ROOT / ".binder" / "runtime.txt", ROOT / ".devcontainer" / "devcontainer.json"
    for path in (*WORKFLOWS.glob("*.yml"), *others):
        named = re.findall(r'python-version: "(.*)"|python[-:](\d[\d.]*)', path.read_text())
        assert named and {*map("".join, named)} <= {*supported}, path.name


@pytest.mark.skipif("GITHUB_REPOSITORY" not in os.environ, reason="a clone may have any address")
def test_what_colab_installs_is_this_repository() -> None:
    """`make book` leaves the address in the committed notebooks as it is, so a push must set it."""
    wanted = notebooks.setup_cell().source
    for chapter in notebooks.chapters():
        path = notebooks.notebook_path(chapter)
        address = re.search(r'repository = ".*?"', nbformat.read(path, 4).cells[0].source)[0]
        assert address in wanted, (
            f"notebooks/{path.name} has {address}, which this repository is not: "
            "run `make notebooks` where `origin` is the forge, and commit notebooks/"
        )


def test_the_book_is_published_after_all_other_jobs() -> None:
    before = JOBS["deploy"]["needs"]
    assert {*before, "deploy"} == JOBS.keys()
