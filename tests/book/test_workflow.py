"""``.ci/workflows`` reads the workflows as GitHub does. (`make lint` checks their form.)"""

import runpy

import yaml

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


def test_the_book_is_published_after_all_other_jobs() -> None:
    text = (ROOT / ".github" / "workflows" / "book.yml").read_text(encoding="utf-8")
    jobs = yaml.load(text, yaml.BaseLoader)["jobs"]
    assert set(jobs.pop("deploy")["needs"]) == set(jobs)
