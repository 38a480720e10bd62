"""The way from book/*.md to notebooks/*.ipynb, and what is committed there."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from importlib.metadata import version
from pathlib import Path

import nbformat
import pytest

import make_notebooks as notebooks
from address import ROOT, Address, address
from myst import ChapterError

CHAPTER = """\
---
file_format: mystnb
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

# A chapter

Some prose, and {glue:text}`answer`.

```{code-cell} ipython3
:tags: [nbval-ignore-output]

import os

from capsnet_book import glue, ledger, source
from myst_nb import glue as reference

print(os.urandom(8).hex())
glue("answer", "42,000")
reference("answer too", "42,000", display=False)
```

More prose.

```{code-cell} ipython3
1 + 1
```

```{code-cell} ipython3
:tags: [hide-cell]

def solve():
    from capsnet_book import shown
    from capsnet_book.once import x
    return source(shown.f), x

print("solved", solve(), ledger.read("one.json"))
try:
    ledger.read("later.json")
except FileNotFoundError:
    print("not yet")
```
"""
FILES = {
    "_config.yml": 'repository:\n  url: ""\n  branch: main\n',
    "requirements.txt": "docutils==1.0\nmyst-nb==1.2\nnumpy==2.4\nruff==0.9\n",
    "book/chapter.md": CHAPTER,
    "book/page.md": "---\ntitle: no code\n---\n# A page\n\nkernelspec: is a word of its text.\n",
    "capsnet_lab/cli.py": "x = 1\n",
    "book/capsnet_book/once.py": "x = 1\n",
    "book/capsnet_book/shown.py": "def f():  # no use\n    pass\n",
    "book/capsnet_book/__init__.py": "from capsnet_book.notebook import glue, source\n",
    "results/one.json": "1",
    "results/other.json": "1",
}


def mismatch(chapter, root=ROOT):
    """What a chapter's notebook has that is not the chapter's, or None."""
    made = notebooks.with_outputs(chapter, root)
    if made is None:
        return "missing or other code"
    text = notebooks.lower(made, chapter, root)
    return None if text == notebooks.notebook_path(chapter, root).read_text() else "other prose"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A small project whose chapter was made once; tests copy it."""
    root = tmp_path_factory.mktemp("made")
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    shutil.copy(ROOT / "book" / "references.bib", root / "book")
    for name in ("notebook.py", "ledger.py"):
        shutil.copy(ROOT / "book/capsnet_book" / name, root / "book/capsnet_book")
    assert notebooks.make(root / "book" / "chapter.md", root)[1]
    return root


@pytest.fixture
def project(made, tmp_path):
    return Path(shutil.copytree(made, tmp_path / "project"))


@pytest.fixture
def chapter(project):
    return project / "book" / "chapter.md"


def read(root):
    return nbformat.read(root / "notebooks" / "chapter.ipynb", as_version=4)


def outputs(root):
    return [cell.outputs for cell in notebooks.code_cells(read(root))]


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_made_notebook_holds_code_outputs_and_plain_prose_and_folds_solutions(made):
    assert notebooks.chapters(made) == [made / "book" / "chapter.md"]
    notebook = read(made)
    assert [cell.id for cell in notebook.cells] == ["setup", *(f"cell-0{n}" for n in range(1, 6))]
    assert notebook.cells[1].source == "# A chapter\n\nSome prose, and 42,000."
    cells = notebooks.code_cells(notebook)
    assert [cell.execution_count for cell in cells] == [1, 2, 3]
    assert cells[1].outputs[0]["data"] == {"text/plain": "2"}
    folded = {"cellView": "form", "jupyter": {"source_hidden": True, "outputs_hidden": True}}
    ignored, hidden = {"tags": ["nbval-ignore-output"]}, {"tags": ["hide-cell"]}
    assert notebook.cells[0].metadata == {**ignored, **folded}
    assert [cell.metadata for cell in cells] == [ignored, {}, {**hidden, **folded}]
    # Nothing that another machine, Python or hour would write differently.
    assert notebook.metadata.language_info == {"name": "python", "pygments_lexer": "ipython3"}


def test_glue_is_stored_as_myst_nb_stores_it(made):
    _, ours, theirs = outputs(made)[0]
    assert theirs["metadata"]["scrapbook"].pop("name") == "answer too"
    assert ours["metadata"]["scrapbook"].pop("name") == "answer"
    assert ours == theirs


@pytest.fixture
def first_cell(tmp_path):
    """Run the first cell in a folder, without the packages that are installed as links to here.

    All is real but pip, which says what it would install: `make fresh` lets it.
    """
    (tmp_path / "pip").mkdir()
    (tmp_path / "pip" / "__init__.py").touch()
    (tmp_path / "pip" / "__main__.py").write_text("import sys\nprint('pip', *sys.argv[1:])\n")
    path = os.pathsep.join([str(tmp_path), sysconfig.get_path("purelib")])

    def run(root, folder, also=""):
        code = notebooks.setup_cell(root).source + "\nprint(capsnet_book.__file__)"
        return subprocess.run(
            [sys.executable, "-S", "-m", "IPython", "--colors=NoColor", "-c", code],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": f"{path}{os.pathsep}{also}"},
            start_new_session=True,  # as a kernel: git cannot ask for a name and a password
            capture_output=True,
            text=True,
        )

    return run


def test_the_first_cell_clones_and_installs_where_it_must_and_keeps_torch(
    project, first_cell, tmp_path
):
    git = ["git", "-C", str(project), "-c", "user.name=me", "-c", "user.email=me@example.org"]
    for command in ("init --quiet --initial-branch v1", "add .", "commit --quiet -m First"):
        subprocess.run([*git, *command.split()], check=True)
    edit(project / "_config.yml", 'url: ""', f"url: file://{project}")
    edit(project / "_config.yml", "branch: main", "branch: v1")
    empty = tmp_path / "empty"
    empty.mkdir()
    pip = f"pip install --quiet torch=={version('torch')} --editable"
    clone = empty / notebooks.CLONE
    for folder, used in ((empty, clone), (empty, clone), (project / "notebooks", project)):
        said = first_cell(project, folder).stdout  # the second time the clone is there
        assert f"{pip} {used}[play]" in said and str(used / "book" / "capsnet_book") in said
    said = first_cell(project, tmp_path, also=project / "book").stdout  # where it is installed
    assert "pip" not in said and not (tmp_path / notebooks.CLONE).exists()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("", "type the repository's address above"),
        ("file:///no/such", "cannot clone file:///no/such: fatal: '/no/such' does not appear"),
    ],
)
def test_a_missing_or_wrong_address_is_said_in_one_line(
    project, first_cell, tmp_path, url, message
):
    edit(project / "_config.yml", 'url: ""', f'url: "{url}"')
    said = first_cell(project, tmp_path)
    assert f"ValueError: {message}" in said.stdout + said.stderr


def test_a_notebook_that_trains_asks_for_a_gpu(project, chapter):
    assert "accelerator" not in read(project).metadata
    notebook = notebooks.with_outputs(chapter, project)
    notebook.cells[-1].source = "step = make_step(model)"
    made = nbformat.reads(notebooks.lower(notebook, chapter, project), as_version=4)
    assert (made.metadata.accelerator, made.metadata.colab.gpuType) == ("GPU", "T4")


def test_the_site_is_where_the_forge_of_the_address_publishes_it(project):
    assert address(project) == ("", "main") and address(project).site() == ""
    for url, site in (
        ("https://github.com/our/caps", "https://our.github.io/caps/"),
        ("https://github.com/our/our.github.io", "https://our.github.io/"),
        ("https://gitlab.com/our/caps", "https://our.gitlab.io/caps/"),
    ):
        assert Address(url, "main").site() == site


@pytest.mark.parametrize(
    ("file", "old", "new", "fault"),
    [
        # What no cell loaded or asked for is no fault.
        ("_config.yml", '""', "https://github.com/me/c", "other prose"),
        ("capsnet_lab/cli.py", "x = 1", "x = 2", "fine"),
        ("book/capsnet_book/once.py", "x = 1", "x = 2", "stale"),  # which a function imports
        ("book/capsnet_book/notebook.py", "# The book shows", "# It shows", "fine"),
        ("book/capsnet_book/notebook.py", "Name a computed", "Name one computed", "fine"),
        ("results/other.json", "1", "2", "fine"),
        ("book/capsnet_book/notebook.py", "raw=True", "raw=bool(1)", "stale"),
        ("results/one.json", "1", "2", "stale"),
        ("results/later.json", "", "1", "stale"),
        ("book/capsnet_book/shown.py", "no use", "of no use", "stale"),
        ("requirements.txt", "myst-nb==1.2", "myst-nb==1.3", "stale"),
        ("requirements.txt", "ruff==0.9", "ruff==0.10", "fine"),
        ("requirements.txt", "numpy==2.4", "numpy==2.5", "fine"),
        ("book/chapter.md", "1 + 1", "1 + 2", "other code"),
        ("book/chapter.md", "[nbval-ignore-output]", "[remove-input]", "other prose"),
        ("notebooks/chapter.ipynb", '"1 + 1"', r'"1 + 1\n2"', "other code"),
    ],
)
def test_what_makes_a_notebook_stale_or_wrong(project, chapter, file, old, new, fault):
    (project / file).touch()
    edit(project / file, old, new)
    made = notebooks.with_outputs(chapter, project)
    stale = made is not None and notebooks.is_stale(made, project)
    assert fault in (mismatch(chapter, project) or ("stale" if stale else "fine"))


def test_prose_and_address_are_carried_over_without_executing(project, chapter):
    before = outputs(project)
    edit(project / "_config.yml", 'url: ""', "url: https://github.com/me/c")
    edit(chapter, "More prose.", "Other prose.")
    path, executed = notebooks.make(chapter, project)
    assert not executed
    assert outputs(project) == before
    text = path.read_text()
    assert "Other prose." in text and r"repository = \"https://github.com/me/c\"" in text


def test_a_stale_notebook_is_executed(project, chapter):
    before = outputs(project)
    edit(chapter, "1 + 1", "1 + 2")
    assert notebooks.make(chapter, project)[1]
    after = outputs(project)
    assert after[1][0]["data"] == {"text/plain": "3"} and after[2] == before[2]
    assert after[0][0] != before[0][0]  # random bytes: drawn anew
    assert mismatch(chapter, project) is None


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("import sys; print('beware', file=sys.stderr)", "wrote to stderr:\nbeware"),
    ],
)
def test_a_cell_that_fails_or_warns_leaves_the_old_notebook(project, chapter, code, message):
    path = project / "notebooks" / "chapter.ipynb"
    before = path.read_bytes()
    edit(chapter, "1 + 1", code)
    with pytest.raises(ChapterError, match=message):
        notebooks.make(chapter, project)
    assert path.read_bytes() == before


def test_staging_refuses_a_notebook_with_other_code(project):
    notebooks.stage(project)
    edit(project / "notebooks" / "chapter.ipynb", "1 + 1", "1 + 2")
    with pytest.raises(ChapterError, match="different code cells"):
        notebooks.stage(project)


def test_every_notebook_is_of_a_chapter():
    made = {notebooks.notebook_path(chapter) for chapter in notebooks.chapters()}
    assert {*(ROOT / "notebooks").rglob("*.ipynb")} == made


@pytest.mark.parametrize("chapter", notebooks.chapters(), ids=lambda path: path.stem)
def test_the_committed_notebook_is_its_chapter_executed_in_order(chapter):
    assert mismatch(chapter) is None, "run `make notebooks`"
    cells = notebooks.code_cells(nbformat.read(notebooks.notebook_path(chapter), as_version=4))
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    kinds = {output.get("name", output.output_type) for cell in cells for output in cell.outputs}
    assert not kinds & {"error", "stderr"}


@pytest.mark.parametrize("chapter", notebooks.chapters(), ids=lambda path: path.stem)
def test_every_value_that_a_chapter_names_stands_in_its_text(chapter):
    """The reverse, a value that no cell names, is an error when the notebook is made."""
    named = notebooks.glued_values(nbformat.read(notebooks.notebook_path(chapter), as_version=4))
    roles = re.findall(r"\{glue:text\}`([^`]*)`", chapter.read_text(encoding="utf-8"))
    assert not named.keys() - {" ".join(role.split()) for role in roles}
