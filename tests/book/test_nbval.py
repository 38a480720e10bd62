"""``pytest --nbval notebooks/``, as it stands: strict about text, indifferent to pixels."""

import base64
import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat import v4

import notebooks

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5E"
    "rkJggg=="
)
PICTURE = (
    f"from IPython.display import Image\nImage(data=__import__('base64').b64decode('{PIXEL}'))"
)
assert base64.b64decode(PIXEL).startswith(b"\x89PNG")


def stream(text, name="stdout"):
    return v4.new_output("stream", name=name, text=text)


def picture(data):
    data = {"image/png": data, "text/plain": "<IPython.core.display.Image object>"}
    return v4.new_output("execute_result", data=data, execution_count=1)


def result(text):
    return v4.new_output("execute_result", data={"text/plain": text}, execution_count=1)


CELLS = {  # name: code, committed output, tags, whether it passes
    "the same text": ("print('a')", stream("a\n"), [], True),
    "another text": ("print('a')", stream("b\n"), [], False),
    "the same result": ("1 + 1", result("2"), [], True),
    "a result edited by hand": ("1 + 1", result("3"), [], False),
    "a text that is not there": ("None", stream("a\n"), [], False),
    "a text that is new": ("print('a')", None, [], False),
    "a text that may differ": ("print('a')", stream("b\n"), ["nbval-ignore-output"], True),
    "a warning": ("import sys; print('a', file=sys.stderr)", None, [], False),
    "an error": ("1 / 0", None, ["nbval-ignore-output"], False),
    "the same picture": (PICTURE, picture(PIXEL), [], True),
    "another picture": (PICTURE, picture(PIXEL[::-1]), [], True),
    "no picture": ("1", picture(PIXEL), [], False),
}


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory):
    """What the literal command says of a notebook with each of these cells, under our settings."""
    root = tmp_path_factory.mktemp("project")
    shutil.copy(notebooks.ROOT / "pyproject.toml", root)
    cells = [
        v4.new_code_cell(code, outputs=[output] if output else [], execution_count=1)
        for code, output, _, _ in CELLS.values()
    ]
    for cell, (_, _, tags, _) in zip(cells, CELLS.values(), strict=True):
        cell.metadata["tags"] = tags
    cells.append(notebooks.setup_cell())
    kernel = {"kernelspec": {"name": "python3", "display_name": "", "language": "python"}}
    (root / "notebooks").mkdir()
    nbformat.write(v4.new_notebook(cells=cells, metadata=kernel), root / "notebooks" / "a.ipynb")
    pytest_itself = Path(sys.executable).with_name("pytest")
    command = [pytest_itself, "--nbval", "notebooks/", "-v"]
    said = subprocess.run(command, cwd=root, capture_output=True, text=True).stdout
    return dict(re.findall(r"::Cell (\d+) (PASSED|FAILED)", said))


@pytest.mark.parametrize("name", CELLS)
def test_a_committed_output_is_compared(verdicts, name):
    passes = CELLS[name][3]
    assert verdicts[str(list(CELLS).index(name))] == ("PASSED" if passes else "FAILED")


def test_the_first_cell_of_every_notebook_does_nothing_here(verdicts):
    assert verdicts[str(len(CELLS))] == "PASSED"
    assert len(verdicts) == len(CELLS) + 1


def test_nothing_is_rewritten_before_it_is_compared():
    # A file of replacements could hide a difference: there is none.
    for path in ("pyproject.toml", "Makefile", ".ci/run"):
        text = (notebooks.ROOT / path).read_text()
        assert "sanitize" not in text
        assert "--nbval-lax" not in text


def test_a_notebook_without_its_images_is_skipped_aloud(monkeypatch):
    path = notebooks.ROOT / "notebooks" / "conftest.py"
    spec = importlib.util.spec_from_file_location("notebooks_conftest", path)
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    needs = [
        page.stem
        for page in (notebooks.ROOT / "notebooks").glob("*.ipynb")
        if hook.needs_clothes(page)
    ]
    assert needs == ["yours"]

    def load(name, train, download):
        assert not download
        raise FileNotFoundError(f"{name} not found")

    monkeypatch.setattr("capsnet.data.load", load)
    assert hook.missing() == "NOT VERIFIED: fashion-mnist not found"
