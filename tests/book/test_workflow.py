"""``.ci/workflows`` reads the workflows as GitHub does. (`make lint` checks their form.)"""

import os
import re
import runpy
import tomllib

import pytest
import yaml

from address import address
from helpers import ROOT

SCRIPT = runpy.run_path(str(ROOT / ".ci" / "workflows"))
WORKFLOW = """\
jobs:
  test:
    runs-on: ${{ matrix.system }}
    strategy:
      matrix:
        system: [ubuntu-24.04, windows-2025]
        versions: ["a==1.* b", "a b"]
    steps:
      - uses: actions/setup-python@v5
        with:
          python-version: "3.10"
      - run: pip install $VERSIONS
        env:
          VERSIONS: ${{ matrix.versions }}
      - run: pytest
  deploy:
    runs-on: ubuntu-24.04
    steps:
      - uses: actions/deploy-pages@v4
"""


def test_a_workflow_becomes_the_jobs_of_its_matrix() -> None:
    *tests, deploy = SCRIPT["jobs"](WORKFLOW)
    assert [job.name for job in tests] == [
        "test (ubuntu-24.04, a==1.* b)",
        "test (ubuntu-24.04, a b)",
        "test (windows-2025, a==1.* b)",
        "test (windows-2025, a b)",
    ]
    first, *_, last = tests
    assert first.steps == [("pip install $VERSIONS", {"VERSIONS": "a==1.* b"}), ("pytest", {})]
    assert (first.system, last.system, first.python) == ("Linux", "Windows", "3.10")
    assert first.actions == ["actions/setup-python@v5"]
    assert SCRIPT["why_not"](deploy) == "has no commands, only actions/deploy-pages@v4"


def test_every_job_has_a_python_that_the_lock_has_packages_for() -> None:
    """The newest Python has none for months: "3.x" stopped the book from being published."""
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    supported = [name.rpartition(" ")[2] for name in classifiers if " :: Python :: " in name]
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        for job in SCRIPT["jobs"](path.read_text(encoding="utf-8")):
            assert job.python in [*supported, ""], f"{path.name}: {job.name}"
    text = (ROOT / ".github" / "workflows" / "book.yml").read_text(encoding="utf-8")
    module = [job.python for job in SCRIPT["jobs"](text) if job.name.startswith("module")]
    assert module == supported
    assert f"for Python {supported[0]} to {supported[-1]}," in (ROOT / "Makefile").read_text()
    # Binder's, and that of Codespaces.
    for name in (".binder/runtime.txt", ".devcontainer/devcontainer.json"):
        assert re.search(r"python[-:]([\d.]+)", (ROOT / name).read_text())[1] in supported, name


@pytest.mark.skipif("GITHUB_REPOSITORY" not in os.environ, reason="published nowhere")
def test_what_colab_installs_is_this_repository() -> None:
    url = f"https://github.com/{os.environ['GITHUB_REPOSITORY']}"
    wrong = f"write {url} into _config.yml, run `make notebooks`, and commit notebooks/"
    assert address().url == url, wrong


def test_the_book_is_published_after_all_other_jobs() -> None:
    text = (ROOT / ".github" / "workflows" / "book.yml").read_text(encoding="utf-8")
    jobs = yaml.load(text, yaml.BaseLoader)["jobs"]
    assert set(jobs.pop("deploy")["needs"]) == set(jobs)
