"""The way from book/*.md to notebooks/*.ipynb, and what is committed there."""

import re
import shutil
import sys
from importlib.metadata import version
from pathlib import Path
from textwrap import dedent

import nbformat
import pytest

import notebooks
from lowering import ChapterError, Prose

ROOT = notebooks.ROOT
CHAPTERS = notebooks.chapters()
EACH_CHAPTER = pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)

FRONT = """\
---
file_format: mystnb
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---
"""
CHAPTER = (
    FRONT
    + """
# A chapter

Some prose, and {glue:text}`answer`.

```{code-cell} ipython3
:tags: [nbval-ignore-output]

import os

from capsnet_book import glue
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

print("solved")
```
"""
)


@pytest.fixture
def root(tmp_path):
    """A small project: two pages, one of which is a notebook, a package and a lock."""
    for folder in ("book", "capsnet"):
        (tmp_path / folder).mkdir()
    (tmp_path / "book" / "page.md").write_text("# A page\n\nNo code.\n")
    (tmp_path / "book" / "chapter.md").write_text(CHAPTER)
    (tmp_path / "book" / "picture.png").write_bytes(b"")
    (tmp_path / "capsnet" / "functional.py").write_text("x = 1\n")
    (tmp_path / "requirements.txt").write_text("torch==2.14.1\n")
    shutil.copy(ROOT / "_config.yml", tmp_path)
    shutil.copy(ROOT / "book" / "references.bib", tmp_path / "book")
    return tmp_path


@pytest.fixture
def lower(root):
    chapter, sources = root / "book" / "chapter.md", root / "book" / "references.bib"
    prose = Prose(
        chapter, sources, {chapter: notebooks.notebook_path(chapter, root)}, {"answer": "42,000"}
    )
    return lambda text: prose.lower(dedent(text).strip())


# --- Lowering --------------------------------------------------------------------------------

ORANGE_V = r"{\color{#E77303}{\mathbf{v}}}"


@pytest.mark.parametrize(
    ("myst", "markdown"),
    [
        ("# A title\n\n*Text* with `code`, [a link](https://example.org).", None),
        ("$$\nx \\tag{1}\n$$", None),
        ("| a | b |\n|---|---|\n| 1 | 2 |", None),
        ("```python\nx = 1  # {cite}`nobody` $\\qv$\n% not a comment\n```", None),
        ("- item\n\n  ```sh\n  make book\n  ```\n- item", None),
        ("Code ``{cite}`x` `` stays, `\\qv` too.", None),
        (r"The output $\qv_j$, not \qvx.", rf"The output ${ORANGE_V}_j$, not \qvx."),
        ("before\n% a comment\nafter", "before\nafter"),
        ("(a-place)=\n## There", '<a id="a-place"></a>\n## There'),
        ("See [there](#a-place).", "See [there](#a-place)."),
        ("See [it](chapter.md#there).", "See [it](chapter.ipynb#there)."),
        ("See [it](page.md).", "See [it](../book/page.md)."),
        ("See [it\nthere](page.md).", "See [it\nthere](../book/page.md)."),
        ("See {doc}`that page <page>`.", "See [that page](../book/page.md)."),
        ("A {term}`capsule`, {term}`two <capsule>`.", "A capsule, two."),
        ("{math}`\\qv`", f"${ORANGE_V}$"),
        ("It is {glue:text}`answer`.", "It is 42,000."),
        ("{cite:t}`sabour2017` did.", "Sabour et al. (2017) did."),
        ("So {cite:p}`kingma2015`.", "So (Kingma and Ba, 2015)."),
        ("So {cite}`kingma2015, sabour2017`.", "So (Kingma and Ba, 2015; Sabour et al., 2017)."),
        ("```{note}\nLook.\n```", "> **Note**\n>\n> Look."),
        (":::{tip}\nLook.\n\nTwice.\n:::", "> **Tip**\n>\n> Look.\n>\n> Twice."),
        ("```{seealso} A book\n```", "> **See also**\n>\n> A book"),
        ("```{admonition} A *title*\n:class: tip\nText\n```", "> **A *title***\n>\n> Text"),
        (
            "````{warning}\n```{math}\n\\qv\n```\nand {glue:text}`answer`\n````",
            f"> **Warning**\n>\n> $$\n> {ORANGE_V}\n> $$\n> and 42,000",
        ),
        (":::{dropdown} Why\n```python\nx\n```\n:::", "> **Why**\n>\n> ```python\n> x\n> ```"),
        ("```{math}\nx = \\qv \\tag{1}\n```", f"$$\nx = {ORANGE_V} \\tag{{1}}\n$$"),
        ("```{image} picture.png\n:alt: A dot\n```", "![A dot](../book/picture.png)"),
        (
            "```{figure} picture.png\n:alt: A dot\n:width: 50%\nIt {glue:text}`answer`.\n```",
            "![A dot](../book/picture.png)\n\n*It 42,000.*",
        ),
        ("![A dot](picture.png)", "![A dot](../book/picture.png)"),
    ],
)
def test_lowering(lower, myst, markdown):
    assert lower(myst) == (myst if markdown is None else markdown)


@pytest.mark.parametrize(
    ("myst", "message"),
    [
        ("```{plot} x\n```", "directive {plot}"),
        ("{abbr}`x`", "role {abbr}"),
        ("```{note}\n{abbr}`x`\n```", "role {abbr}"),
        ("```{note}\nno end", "not closed"),
        (":::\ntext\n:::", "must name a directive"),
        ("$$\nx\n$$ (eq-x)", "the paper's number"),
        ("```{math}\n:label: x\ny\n```", "the paper's number"),
        ("A note[^1].", "footnotes"),
        ("[](page.md)", "needs a text"),
        ("{doc}`page`", "needs a text"),
        ("[gone](gone.md)", "there is no gone.md"),
        ("```{figure} picture.png\n```", "alternative text"),
        ("{cite}`nobody2000`", "has no 'nobody2000'"),
        ("{glue:text}`nothing`", "no cell glues 'nothing'"),
    ],
)
def test_what_cannot_be_lowered_is_an_error(lower, myst, message):
    with pytest.raises(ChapterError, match=re.escape(message)):
        lower(myst)


def test_the_bibliography_lists_what_was_cited(lower):
    lower("{cite}`sabour2017` and {cite}`kingma2015` and again {cite}`sabour2017`")
    first, second = lower("```{bibliography}\n```").splitlines()
    assert first.startswith("- Diederik P. Kingma, Jimmy Ba. *Adam: A Method")
    assert second.startswith("- Sara Sabour, Nicholas Frosst, Geoffrey E. Hinton. *Dynamic Rout")


# --- Conversion, execution, staleness --------------------------------------------------------


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A project whose chapter was made once; tests copy it."""
    root = tmp_path_factory.mktemp("made")
    for folder in ("book", "capsnet"):
        (root / folder).mkdir()
    (root / "book" / "chapter.md").write_text(CHAPTER)
    (root / "capsnet" / "functional.py").write_text("x = 1\n")
    (root / "requirements.txt").write_text("torch==2.14.1\n")
    shutil.copy(ROOT / "_config.yml", root)
    shutil.copy(ROOT / "book" / "references.bib", root / "book")
    assert notebooks.make(root / "book" / "chapter.md", root)[1]
    return root


@pytest.fixture
def project(made, tmp_path):
    return Path(shutil.copytree(made, tmp_path / "project"))


def outputs(root):
    notebook = nbformat.read(root / "notebooks" / "chapter.ipynb", as_version=4)
    return [cell.outputs for cell in notebooks.code_cells(notebook)]


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_only_pages_with_a_kernel_are_notebooks(root):
    assert notebooks.chapters(root) == [root / "book" / "chapter.md"]


def test_a_made_notebook_holds_code_outputs_and_plain_prose(made):
    notebook = nbformat.read(made / "notebooks" / "chapter.ipynb", as_version=4)
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
    notebook = nbformat.read(made / "notebooks" / "chapter.ipynb", as_version=4)
    first, *others, last = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for cell in first, last:
        assert cell.metadata.cellView == "form"
        assert cell.metadata.jupyter == {"source_hidden": True, "outputs_hidden": True}
    assert last.metadata.tags == ["hide-cell"]
    assert not any({"jupyter", "cellView"} & cell.metadata.keys() for cell in others)


# --- The first cell --------------------------------------------------------------------------


def run_setup(root, monkeypatch, colab, installed):
    """Run the first cell as IPython would, and say what it gave to pip."""
    from IPython.core.inputtransformer2 import TransformerManager

    commands = []

    class Shell:
        def run_line_magic(self, name, line):
            commands.append((name, eval("f" + repr(line), names)))

    names = {"get_ipython": Shell}
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object() if installed else None)
    if colab:
        monkeypatch.setitem(sys.modules, "google.colab", object())
    exec(TransformerManager().transform_cell(notebooks.setup_cell(root).source), names)
    return commands


def test_in_colab_the_first_cell_installs_capsnet_and_keeps_torch(root, monkeypatch):
    edit(root / "_config.yml", notebooks.repository(root)["url"], "https://github.com/me/caps")
    edit(root / "_config.yml", "branch: main", "branch: v1")
    ((magic, line),) = run_setup(root, monkeypatch, colab=True, installed=False)
    assert magic == "pip"
    assert line == f"install -q torch=={version('torch')} git+https://github.com/me/caps@v1"


@pytest.mark.parametrize(("colab", "installed"), [(True, True), (False, False), (False, True)])
def test_elsewhere_the_first_cell_does_nothing(root, monkeypatch, colab, installed):
    assert run_setup(root, monkeypatch, colab, installed) == []


def test_another_address_is_carried_over_without_executing(project):
    before = outputs(project)
    chapter = project / "book" / "chapter.md"
    edit(project / "_config.yml", notebooks.repository(project)["url"], "https://github.com/me/c")
    assert "other prose" in notebooks.check(chapter, project)
    path, executed = notebooks.make(chapter, project)
    assert not executed
    assert outputs(project) == before
    assert 'repository = \\"https://github.com/me/c\\"' in path.read_text()
    notebooks.stage(project)


# --- Staleness -------------------------------------------------------------------------------


def test_glue_is_stored_as_myst_nb_stores_it(made):
    _, ours, theirs = outputs(made)[0]
    assert ours["metadata"]["scrapbook"]["name"] == "answer"
    assert theirs["metadata"]["scrapbook"]["name"] == "answer too"
    ours["metadata"]["scrapbook"]["name"] = theirs["metadata"]["scrapbook"]["name"]
    assert ours["metadata"] == theirs["metadata"]
    assert ours["data"] == theirs["data"]


def test_what_is_up_to_date_is_not_executed_and_not_touched(project):
    path = project / "notebooks" / "chapter.ipynb"
    before = path.read_bytes(), path.stat().st_mtime_ns
    assert notebooks.check(project / "book" / "chapter.md", project) is None
    assert notebooks.make(project / "book" / "chapter.md", project) == (path, False)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


def test_a_change_of_prose_is_carried_over_without_executing(project):
    before = outputs(project)
    chapter = project / "book" / "chapter.md"
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
        ("book/chapter.md", "1 + 1", "1 + 2"),
        ("book/chapter.md", ":tags: [nbval-ignore-output]", ":tags: [remove-input]"),
        ("capsnet/functional.py", "x = 1", "x = 2"),
        ("requirements.txt", "2.14.1", "2.14.2"),
    ],
)
def test_a_change_of_code_package_or_lock_makes_it_stale(project, file, old, new):
    edit(project / file, old, new)
    assert "stale" in notebooks.check(project / "book" / "chapter.md", project)


def test_a_new_file_of_the_package_makes_it_stale(project):
    (project / "capsnet" / "new.py").write_text("")
    assert "stale" in notebooks.check(project / "book" / "chapter.md", project)


MNIST, ONE, OTHER = "mnist/weights.safetensors", "runs/one/summary.json", "runs/other/seed-0.json"
TABLE, TABLE_10 = (f"experiments/{name}/cpu/row/seed-0.json" for name in ("table-1", "table-10"))
RECORDS = [TABLE, TABLE_10, MNIST, ONE, OTHER]


@pytest.mark.parametrize(
    ("code", "read"),
    [
        ("1 + 1", []),
        ('load("mnist/weights.safetensors")', []),
        ('ledger.path("mnist/weights.safetensors")', [MNIST]),
        ("ledger.read(f'runs/{name}/summary.json')", [ONE, OTHER]),
        ('folder = "runs/one"\nledger.read(f"{folder}/summary.json")', [ONE]),
        ("ledger.read(name)", RECORDS),
        ('ledger.record("table-1", "row")', [TABLE]),
        ("ledger.record(\n    'table-10', row, seed=1\n)", [TABLE_10]),
        ('ledger.record("table-1", row)\nledger.read("runs/one/summary.json")', [TABLE, ONE]),
        ('ledger.record(f"table-{n}", "row")', [TABLE, TABLE_10]),
        ('record = ledger.record\nrecord("table-1", "row")', [TABLE, TABLE_10]),
        ('ledger.records["table-1"]', RECORDS),
    ],
)
def test_a_notebook_depends_on_the_records_that_it_may_read(root, code, read):
    for name in (*RECORDS, "runs/one/notes.txt"):
        (root / "results" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "results" / name).write_text("1")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    found = notebooks.records(notebook, root)
    assert [path.relative_to(root / "results").as_posix() for path in found] == read
    before = notebooks.key(notebook, root)
    for name in RECORDS:
        (root / "results" / name).write_text("2")
        assert (notebooks.key(notebook, root) != before) == (name in read)
        (root / "results" / name).write_text("1")


@pytest.mark.parametrize("new", ["1 + 2", "1 + 1\\n2"])
def test_a_notebook_edited_by_hand_is_stale(project, new):
    edit(project / "notebooks" / "chapter.ipynb", '"1 + 1"', f'"{new}"')
    assert "stale" in notebooks.check(project / "book" / "chapter.md", project)


def test_a_missing_notebook_is_told(project):
    (project / "notebooks" / "chapter.ipynb").unlink()
    assert "missing" in notebooks.check(project / "book" / "chapter.md", project)


def test_a_stale_notebook_is_executed(project):
    before = outputs(project)
    chapter = project / "book" / "chapter.md"
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
def test_a_cell_that_fails_or_warns_leaves_the_old_notebook(project, code, message):
    path = project / "notebooks" / "chapter.ipynb"
    before = path.read_bytes()
    edit(project / "book" / "chapter.md", "1 + 1", code)
    with pytest.raises(ChapterError, match=message):
        notebooks.make(project / "book" / "chapter.md", project)
    assert path.read_bytes() == before


def test_a_notebook_whose_chapter_is_gone_is_an_orphan(project):
    own = project / "notebooks" / "my_own.ipynb"
    nbformat.write(nbformat.v4.new_notebook(), own)
    assert notebooks.orphans(project) == []
    (project / "book" / "chapter.md").unlink()
    assert notebooks.orphans(project) == [project / "notebooks" / "chapter.ipynb"]


def test_staging_refuses_a_notebook_with_other_code(project):
    notebooks.stage(project)
    edit(project / "notebooks" / "chapter.ipynb", "1 + 1", "1 + 2")
    with pytest.raises(ChapterError, match="different code cells"):
        notebooks.stage(project)


# --- What is committed -----------------------------------------------------------------------


def test_there_are_chapters():
    assert [chapter.stem for chapter in CHAPTERS] != []
    assert notebooks.orphans() == []


@EACH_CHAPTER
def test_the_committed_notebook_is_up_to_date(chapter):
    assert notebooks.check(chapter) is None, "run `make notebooks`"


@EACH_CHAPTER
def test_the_committed_notebook_was_executed_in_order_without_errors(chapter):
    notebook = nbformat.read(notebooks.notebook_path(chapter), as_version=4)
    cells = notebooks.code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    for cell in cells:
        for output in cell.outputs:
            assert output.output_type != "error"
            assert output.get("name") != "stderr"


@EACH_CHAPTER
def test_the_committed_notebook_has_nothing_only_myst_understands(chapter):
    notebook = nbformat.read(notebooks.notebook_path(chapter), as_version=4)
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    prose = re.sub(r"^```.*?^```$", "", prose, flags=re.MULTILINE | re.DOTALL)
    assert not re.search(r"\{[\w:.-]+\}`|^ *(```+|:::+)\{|^\([\w-]+\)=|\\q[a-z]+hat", prose, re.M)
    for name in ("qu", "qb", "qc", "qs", "qv"):
        assert not re.search(rf"\\{name}(?![A-Za-z])", prose)


@EACH_CHAPTER
def test_every_figure_has_an_alternative_text(chapter):
    notebook = nbformat.read(notebooks.notebook_path(chapter), as_version=4)
    for cell in notebooks.code_cells(notebook):
        if any("image/png" in output.get("data", {}) for output in cell.outputs):
            assert len(cell.metadata["mystnb"]["image"]["alt"]) > 20


@EACH_CHAPTER
def test_the_committed_notebook_is_small(chapter):
    assert notebooks.notebook_path(chapter).stat().st_size < 1.5e6
