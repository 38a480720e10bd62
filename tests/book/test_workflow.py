"""The workflows publish what was tested. (`make lint` checks their form, and what they may do.)"""

import yaml

from helpers import ROOT

WORKFLOWS = ROOT / ".github" / "workflows"


def jobs(name):
    return yaml.load((WORKFLOWS / name).read_text(), yaml.BaseLoader)["jobs"]


def commands(job):
    return " ".join(step.get("run", "") for step in job["steps"])


def test_the_book_is_published_after_everything_was_tested():
    book = jobs("book.yml")
    deploy = book.pop("deploy")
    assert set(deploy["needs"]) == set(book)
    assert len(deploy["steps"]) == 1  # no code of the repository runs where pages may be written
    (upload,) = (s for s in book["site"]["steps"] if "upload-pages" in s.get("uses", ""))
    assert book["site"]["steps"][-1] == upload
    assert upload["with"]["path"] == "_build/html"
    assert upload["if"] == deploy["if"]
    assert "github.event_name != 'pull_request'" in deploy["if"]


def test_the_jobs_together_run_what_ci_runs():
    book = jobs("book.yml")
    said = " ".join(commands(book[name]) for name in ("module", "notebooks", "site"))
    ci = (ROOT / ".ci" / "run").read_text()
    timed = " ".join(line for line in ci.splitlines() if line.startswith("timed make ")).split()
    for target in ("lint", "book", "unit", "fresh"):
        assert target in timed
        assert f"make {target}" in said or target == "unit"  # which is split in two there
    assert "tests --ignore tests/book/site" in commands(book["module"])
    assert " tests/book/site" in commands(book["site"])


def test_versions():
    book, weekly = jobs("book.yml"), jobs("weekly.yml")
    oldest = book["torch"]["strategy"]["matrix"]["versions"][0]
    pyproject = (ROOT / "pyproject.toml").read_text()
    assert 'requires-python = ">=3.11"\n' in pyproject  # no upper bound
    for name, version in (("torch", "2.6"), ("torchvision", "0.21")):
        assert f"{name}=={version}.*" in oldest
        assert f'"{name}>={version}"' in pyproject

    assert "make mutants" in commands(weekly["mutants"])
