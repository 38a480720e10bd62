"""The way from book/*.md to notebooks/*.ipynb, and what is committed there."""

import importlib.util
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import nbformat
import pytest

import make_notebooks as notebooks
from address import address, public
from lowering import ChapterError

ROOT = notebooks.ROOT
CHAPTERS = notebooks.chapters()
EACH_CHAPTER = pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)

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

from capsnet_book import glue, ledger, plots
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

print("solved", plots.line(), ledger.read("one.json"))
try:
    ledger.read("later.json")
except FileNotFoundError:
    print("not yet")
```
"""
FILES = {
    "_config.yml": 'repository:\n  url: ""\n  branch: main\n',
    "requirements.txt": "torch==2.14.1\n",
    "book/chapter.md": CHAPTER,
    "book/page.md": "# A page\n\nNo code.\n",
    "capsnet/cli.py": "x = 1\n",
    "capsnet_book/__init__.py": "from capsnet_book.notebook import glue, source\n",
    "capsnet_book/plots/__init__.py": '''\
"""Every plot."""

from capsnet_book.plots.bars import bar
from capsnet_book.plots.lines import line

__all__ = ["bar", "line"]
''',
    "capsnet_book/plots/bars.py": "def bar():\n    pass\n",
    "capsnet_book/plots/lines.py": '''\
def line():
    """Draw a line."""
    from capsnet_book.plots import lazy  # costs a second

    return lazy.COLOUR
''',
    "capsnet_book/plots/lazy.py": 'COLOUR = "red"\n',
    "results/one.json": "1",
    "results/other.json": "1",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A small project whose chapter was made once; tests copy it."""
    root = tmp_path_factory.mktemp("made")
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    shutil.copy(ROOT / "book" / "references.bib", root / "book")
    for name in ("notebook.py", "ledger.py"):
        shutil.copy(ROOT / "capsnet_book" / name, root / "capsnet_book")
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


def test_only_pages_with_a_kernel_are_notebooks(made):
    assert notebooks.chapters(made) == [made / "book" / "chapter.md"]


def test_a_made_notebook_holds_code_outputs_and_plain_prose(made):
    notebook = read(made)
    kinds = "code", "markdown", "code", "markdown", "code", "code"
    assert tuple(cell.cell_type for cell in notebook.cells) == kinds
    assert notebook.cells[1].source == "# A chapter\n\nSome prose, and 42,000."
    assert [cell.execution_count for cell in notebooks.code_cells(notebook)] == [1, 2, 3]
    assert notebook.cells[4].outputs[0]["data"] == {"text/plain": "2"}
    ids = ["setup", *(f"cell-0{i}" for i in (1, 2, 3, 4, 5))]
    assert [cell.id for cell in notebook.cells] == ids
    assert notebook.metadata.language_info == {"name": "python", "pygments_lexer": "ipython3"}
    assert notebook.metadata.capsnet.source == "book/chapter.md"
    assert "execution" not in notebook.cells[2].metadata


def test_solutions_are_folded_in_the_notebook_and_nothing_else_is(made):
    first, *others, last = [cell for cell in read(made).cells if cell.cell_type == "code"]
    for cell in first, last:
        assert cell.metadata.cellView == "form"
        assert cell.metadata.jupyter == {"source_hidden": True, "outputs_hidden": True}
    assert last.metadata.tags == ["hide-cell"]
    assert not any({"jupyter", "cellView"} & cell.metadata.keys() for cell in others)


def test_glue_is_stored_as_myst_nb_stores_it(made):
    _, ours, theirs = outputs(made)[0]
    assert ours["metadata"]["scrapbook"]["name"] == "answer"
    assert theirs["metadata"]["scrapbook"]["name"] == "answer too"
    ours["metadata"]["scrapbook"]["name"] = theirs["metadata"]["scrapbook"]["name"]
    assert ours["metadata"] == theirs["metadata"]
    assert ours["data"] == theirs["data"]


def run_setup(root, monkeypatch, colab, installed):
    """Run the first cell as IPython would, and say what it gave to git and to pip."""
    from IPython.core.inputtransformer2 import TransformerManager

    commands = []

    class Shell:
        def run_line_magic(self, name, line):
            commands.append(f"{name} " + eval("f" + repr(line), names))

        def system(self, line):
            commands.append(eval("f" + repr(line), names))

    names = {"get_ipython": Shell}
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object() if installed else None)
    monkeypatch.setattr(sys, "path", sys.path[:])
    if colab:
        monkeypatch.setitem(sys.modules, "google.colab", object())
    exec(TransformerManager().transform_cell(notebooks.setup_cell(root).source), names)
    return commands


def test_in_colab_the_first_cell_clones_and_installs_and_keeps_torch(project, monkeypatch):
    edit(project / "_config.yml", 'url: ""', "url: https://github.com/me/caps")
    edit(project / "_config.yml", "branch: main", "branch: v1")
    assert run_setup(project, monkeypatch, colab=True, installed=False) == [
        "git clone --quiet --depth 1 --branch v1 https://github.com/me/caps capsnet-book",
        f"pip install --quiet torch=={version('torch')} --editable ./capsnet-book",
    ]


def test_in_colab_the_first_cell_asks_for_the_address_that_it_lacks(project, monkeypatch):
    with pytest.raises(ValueError, match="type the repository's address"):
        run_setup(project, monkeypatch, colab=True, installed=False)


@pytest.mark.parametrize(("colab", "installed"), [(True, True), (False, False), (False, True)])
def test_elsewhere_the_first_cell_does_nothing(project, monkeypatch, colab, installed):
    assert run_setup(project, monkeypatch, colab, installed) == []


@pytest.mark.parametrize(
    ("remote", "url"),
    [
        ("https://github.com/me/my.caps.git", "https://github.com/me/my.caps"),
        ("https://github.com/me/caps/", "https://github.com/me/caps"),
        ("https://me:token@github.com/me/caps", "https://github.com/me/caps"),
        ("git@github.com:me/caps.git", "https://github.com/me/caps"),
        ("ssh://git@github.com/me/caps", "https://github.com/me/caps"),
        ("git@gitlab.com:group/sub/caps.git", "https://gitlab.com/group/sub/caps"),
        ("https://example.org/me/caps", ""),
        ("https://example.org/github.com/me/caps", ""),
        ("git@server:me/caps.git", ""),
        ("/srv/git/caps", ""),
        ("", ""),
    ],
)
def test_the_address_of_a_remote(project, remote, url):
    assert public(remote) == url
    subprocess.run(["git", "init", "--quiet", project], check=True)
    if remote:
        subprocess.run(["git", "-C", project, "remote", "add", "origin", remote], check=True)
    assert address(project) == (url, "main")
    edit(project / "_config.yml", 'url: ""', "url: https://github.com/our/caps")
    assert address(project).url == "https://github.com/our/caps"


def test_another_address_is_filled_in_without_executing(project, chapter):
    before = outputs(project)
    edit(project / "_config.yml", 'url: ""', "url: https://github.com/me/c")
    assert notebooks.check(chapter, project) is None  # a clone elsewhere is no fault
    path, executed = notebooks.make(chapter, project)
    assert not executed
    assert outputs(project) == before
    assert 'repository = \\"https://github.com/me/c\\"' in path.read_text()
    notebooks.stage(project)


def test_a_change_of_prose_is_carried_over_without_executing(project, chapter):
    before = outputs(project)
    edit(chapter, "More prose.", "Other prose.")
    assert "other prose" in notebooks.check(chapter, project)
    path, executed = notebooks.make(chapter, project)
    assert not executed
    assert outputs(project) == before
    assert "Other prose." in path.read_text()
    assert notebooks.check(chapter, project) is None


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("capsnet_book/plots/lines.py", "return lazy.COLOUR", "return 2 * lazy.COLOUR"),
        ("capsnet_book/plots/lazy.py", "red", "blue"),
        ("capsnet_book/notebook.py", "def glue(", "X = 1\n\n\ndef glue("),
        ("results/one.json", "1", "2"),
        ("results/later.json", "", "1"),
        ("requirements.txt", "2.14.1", "2.14.2"),
    ],
)
def test_a_change_of_what_it_imports_or_reads_makes_it_stale(project, chapter, file, old, new):
    (project / file).touch()
    edit(project / file, old, new)
    assert "stale" in notebooks.check(chapter, project)


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("capsnet/cli.py", "x = 1", "x = 2"),
        ("capsnet_book/plots/bars.py", "pass", "return 1"),
        ("capsnet_book/plots/lines.py", "# costs a second", "# costs two"),
        ("capsnet_book/plots/lines.py", "Draw a line.", "Draw one line."),
        ("capsnet_book/plots/__init__.py", "Every plot.", "All plots."),
        ("results/other.json", "1", "2"),
    ],
)
def test_a_change_that_no_cell_can_see_leaves_it_as_it_is(project, chapter, file, old, new):
    edit(project / file, old, new)
    assert notebooks.check(chapter, project) is None


@pytest.mark.parametrize(
    ("code", "modules"),
    [
        ("import math", []),
        ("import capsnet.a", ["capsnet.a", "capsnet.b"]),
        ("from capsnet import a", ["capsnet.a", "capsnet.b"]),
        ("from capsnet import one", ["capsnet.a", "capsnet.b"]),
        ("from capsnet import two", ["capsnet.b"]),
        ("import capsnet as c\nc.two", ["capsnet.b"]),
        ("import capsnet as c\nprint(c)", ["capsnet", "capsnet.a", "capsnet.b"]),
        ("run('python', '-m', 'capsnet')", ["capsnet.__main__", "capsnet.b"]),
        ("def f():\n    from capsnet.b import two", ["capsnet.b"]),
        ("from capsnet import two\nsource(two)", ["capsnet.b # text"]),
        ("import inspect\nfrom capsnet import one\ninspect.getsource(one)",
         ["capsnet.a # text", "capsnet.b"]),
        ("from capsnet import one\nfor x in (one,):\n    source(x)",
         ["capsnet.a # text", "capsnet.b"]),
    ],
)  # fmt: skip
def test_what_code_depends_on(tmp_path, code, modules):
    files = {
        "__init__": "from capsnet.a import one\nfrom capsnet.b import two",
        "a": "# text\nfrom capsnet.b import two\n\ndef one(): return two",
        "b": "# text\ntwo = 2",
        "__main__": "# text\nfrom capsnet import two",
    }
    (tmp_path / "capsnet").mkdir()
    for name, text in files.items():
        (tmp_path / "capsnet" / f"{name}.py").write_text(text)
    found = notebooks.dependencies(code, tmp_path)
    assert sorted(name + " # text" * ("# text" in text) for name, text in found.items()) == modules


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("book/chapter.md", "1 + 1", "1 + 2"),
        ("book/chapter.md", ":tags: [nbval-ignore-output]", ":tags: [remove-input]"),
        ("notebooks/chapter.ipynb", '"1 + 1"', '"1 + 2"'),
        ("notebooks/chapter.ipynb", '"1 + 1"', r'"1 + 1\n2"'),
    ],
)
def test_other_code_than_the_chapter_s_is_a_fault(project, chapter, file, old, new):
    edit(project / file, old, new)
    assert "other code" in notebooks.check(chapter, project)


def test_a_stale_notebook_is_executed(project, chapter):
    before = outputs(project)
    edit(chapter, "1 + 1", "1 + 2")
    assert notebooks.make(chapter, project)[1]
    after = outputs(project)
    assert after[1][0]["data"] == {"text/plain": "3"}
    assert after[2] == before[2]
    assert after[0][0] != before[0][0]  # random bytes: drawn anew
    assert notebooks.check(chapter, project) is None


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


def test_a_notebook_whose_chapter_is_gone_is_an_orphan(project, chapter):
    own = project / "notebooks" / "my_own.ipynb"
    nbformat.write(nbformat.v4.new_notebook(), own)
    assert notebooks.orphans(project) == []
    chapter.unlink()
    assert notebooks.orphans(project) == [project / "notebooks" / "chapter.ipynb"]


def test_staging_refuses_a_notebook_with_other_code(project):
    notebooks.stage(project)
    edit(project / "notebooks" / "chapter.ipynb", "1 + 1", "1 + 2")
    with pytest.raises(ChapterError, match="different code cells"):
        notebooks.stage(project)


def test_no_committed_notebook_is_an_orphan():
    assert CHAPTERS
    assert notebooks.orphans() == []


@EACH_CHAPTER
def test_the_committed_notebook_is_its_chapter(chapter):
    fault = notebooks.check(chapter)
    # `make test` and CI run stale notebooks and compare their outputs.
    assert fault is None or fault.endswith(notebooks.STALE), "run `make notebooks`"


@EACH_CHAPTER
def test_the_committed_notebook_was_executed_in_order_without_errors(chapter):
    notebook = nbformat.read(notebooks.notebook_path(chapter), as_version=4)
    cells = notebooks.code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    for cell in cells:
        for output in cell.outputs:
            assert output.output_type != "error"
            assert output.get("name") != "stderr"


def test_a_notebook_without_its_images_is_skipped_aloud(monkeypatch):
    path = ROOT / "notebooks" / "conftest.py"
    spec = importlib.util.spec_from_file_location("notebooks_conftest", path)
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    needs = [page.stem for page in (ROOT / "notebooks").glob("*.ipynb") if hook.needs_clothes(page)]
    assert needs == ["yours"]

    def load(name, train, download):
        assert not download
        raise FileNotFoundError(f"{name} not found")

    monkeypatch.setattr("capsnet.data.load", load)
    assert hook.missing() == "NOT VERIFIED: fashion-mnist not found"
