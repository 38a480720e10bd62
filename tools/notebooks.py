"""Make notebooks/NAME.ipynb from book/NAME.md: convert, execute what is stale, lower, stage.

The chapters (MyST notebooks) are the only source. A notebook has the same code cells, the outputs
of running them, and its prose in plain Markdown, which Colab and Jupyter show as it is meant. Its
outputs are valid for one key, a hash of the code cells, of the package and of the lock; with
another key they are stale and the notebook is executed anew. A change of the prose alone is not.

What a chapter does not have and a notebook needs is added, and left out again where the two are
compared: a first cell, which installs capsnet in Colab, and the folding of solutions.

The book's HTML shows the outputs of these very notebooks: they are staged in the cache that
Jupyter Book reads, so its build executes nothing.

    python tools/notebooks.py           # make what is missing or stale, then stage
    python tools/notebooks.py squash    # these chapters only, and stage nothing
    python tools/notebooks.py --check   # say what is missing or stale; exit code 1 if anything is
"""

import argparse
import ast
import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import jupytext
import nbformat
import yaml
from nbformat import NotebookNode

from lowering import ChapterError, Prose

ROOT = Path(__file__).resolve().parent.parent
TIMEOUT = 900  # seconds a cell may run
GLUE = "application/papermill.record/text/plain"  # how myst_nb.glue stores a value

SETUP = "setup"  # the id of the cell that every notebook starts with
# In Colab a form with the address; elsewhere it does nothing. Naming the version of torch that is
# there keeps pip from changing it.
INSTALL = """\
# @title In Colab: install capsnet
import importlib.util
import sys
from importlib.metadata import version

repository = "{url}"  # @param {{type: "string"}}
if "google.colab" in sys.modules and not importlib.util.find_spec("capsnet"):
    %pip install -q torch=={{version("torch")}} git+{{repository}}@{branch}
"""
# The source and the output of a solution, as Jupyter and Colab fold a cell.
FOLDED = {"jupyter": {"source_hidden": True, "outputs_hidden": True}, "cellView": "form"}
LEDGER = (".json", ".jsonl", ".safetensors")

# --- The whole way ---------------------------------------------------------------------------


def chapters(root: Path = ROOT) -> list[Path]:
    """The pages of the book that are notebooks: those whose front matter names a kernel."""
    return [
        page
        for page in sorted((root / "book").rglob("*.md"))
        if re.match(r"---\n(?:.*\n)*?kernelspec:", page.read_text(encoding="utf-8"))
    ]


def notebook_path(chapter: Path, root: Path = ROOT) -> Path:
    return root / "notebooks" / chapter.relative_to(root / "book").with_suffix(".ipynb")


def make(chapter: Path, root: Path = ROOT) -> tuple[Path, bool]:
    """Write a chapter's notebook, executing it only if its outputs are stale.

    Returns:
        the notebook's path and whether it was executed.
    """
    path = notebook_path(chapter, root)
    notebook, executed = current(chapter, root), False
    if notebook is None:
        notebook, executed = execute(read_chapter(chapter, root)), True
    text = nbformat.writes(lower(notebook, chapter, root)) + "\n"
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    return path, executed


def check(chapter: Path, root: Path = ROOT) -> str | None:
    """What is wrong with a chapter's notebook, or None."""
    path = notebook_path(chapter, root)
    if not path.exists():
        return f"{path.relative_to(root)} is missing"
    notebook = current(chapter, root)
    if notebook is None:
        return f"{path.relative_to(root)} is stale: a code cell, capsnet/ or the lock changed"
    if nbformat.writes(lower(notebook, chapter, root)) + "\n" != path.read_text(encoding="utf-8"):
        return f"{path.relative_to(root)} has other prose than {chapter.relative_to(root)}"
    return None


def orphans(root: Path = ROOT) -> list[Path]:
    """Notebooks that were made from a chapter which is gone."""
    made = []
    for path in sorted((root / "notebooks").rglob("*.ipynb")):
        source = nbformat.read(path, as_version=4).metadata.get("capsnet", {}).get("source")
        if source is not None and not (root / source).exists():
            made.append(path)
    return made


def current(chapter: Path, root: Path = ROOT) -> NotebookNode | None:
    """The chapter with the outputs of its notebook, or None if these are missing or stale."""
    notebook = read_chapter(chapter, root)
    path = notebook_path(chapter, root)
    if not path.exists():
        return None
    old = nbformat.read(path, as_version=4)
    made_with = old.metadata.get("capsnet", {}).get("key")
    if {made_with, key(old, root)} != {notebook.metadata.capsnet.key}:  # or edited by hand
        return None
    for cell, old_cell in zip(code_cells(notebook), code_cells(old), strict=True):
        cell.outputs, cell.execution_count = old_cell.outputs, old_cell.execution_count
    return notebook


# --- Conversion and execution ----------------------------------------------------------------


def read_chapter(chapter: Path, root: Path = ROOT) -> NotebookNode:
    """Convert a chapter to a notebook without outputs, its prose still in MyST."""
    notebook = jupytext.reads(chapter.read_text(encoding="utf-8"), fmt="md:myst")
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    notebook.metadata = nbformat.from_dict(
        {
            "kernelspec": notebook.metadata.kernelspec,
            "language_info": {"name": "python", "pygments_lexer": "ipython3"},
            "capsnet": {
                "source": chapter.relative_to(root).as_posix(),
                "key": key(notebook, root),
            },
        }
    )
    return notebook


def key(notebook: NotebookNode, root: Path = ROOT) -> str:
    """Hash of everything the outputs depend on: code cells, capsnet/, the lock, what is read of
    the ledger.
    """
    cells = [(cell.source, unfolded(cell.metadata)) for cell in code_cells(notebook)]
    digest = hashlib.sha256(json.dumps(cells, sort_keys=True).encode())
    paths = [*sorted((root / "capsnet").rglob("*.py")), root / "requirements.txt"]
    paths += records(notebook, root)
    for path in paths:
        content = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]


def records(notebook: NotebookNode, root: Path = ROOT) -> list[Path]:
    """The ledger's files that a chapter may read: those whose names begin as a string of its code.

    A string counts up to its first placeholder, so "experiments/{name}" means all experiments. All
    files count if the ledger is read and no string begins with one of its folders. What
    ``ledger.record`` reads counts too: its experiment, or, where no plain string names it, all.
    """
    code = "\n".join(cell.source for cell in code_cells(notebook))
    if "ledger" not in code:
        return []
    ledger = root / "results"
    files = sorted(path for path in ledger.rglob("*") if path.suffix in LEDGER)
    folders = "|".join(sorted({path.relative_to(ledger).parts[0] for path in files}))
    names = re.findall(rf"""["']((?:{folders})/[^"'{{]*)""", code)
    for name in re.findall(r"""\bledger\.record\b(?:\(\s*["']([^"']+)["'])?""", code):
        names.append(f"experiments/{name}/" if name else "experiments/")
    begins = tuple(names) or ("",)
    return [path for path in files if path.relative_to(ledger).as_posix().startswith(begins)]


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    """The chapter's code cells: all but the one that every notebook starts with."""
    return [c for c in notebook.cells if c.cell_type == "code" and c.get("id") != SETUP]


def unfolded(metadata: NotebookNode) -> dict[str, Any]:
    """A cell's metadata as the chapter has them."""
    return {name: value for name, value in metadata.items() if name not in FOLDED}


def execute(notebook: NotebookNode) -> NotebookNode:
    """Run every cell in order, in an empty folder, and keep nothing that differs by the minute.

    Raises:
        ChapterError: a cell failed, or wrote to stderr (a warning, say): nothing to show.
    """
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    source = notebook.metadata.capsnet.source
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook,
            timeout=TIMEOUT,
            record_timing=False,
            coalesce_streams=True,
            resources={"metadata": {"path": folder}},
            extra_arguments=["--IPKernelApp.log_level=ERROR"],
        )
        try:
            client.execute(env={**os.environ, "TQDM_DISABLE": "1"})  # a bar is for who waits
        except CellExecutionError as error:
            raise ChapterError(f"{source}: {error}") from None
    notebook.metadata.language_info = {"name": "python", "pygments_lexer": "ipython3"}
    for cell in code_cells(notebook):
        cell.metadata.pop("execution", None)
        for output in cell.outputs:
            if output.get("name") == "stderr":
                raise ChapterError(f"{source}: a cell wrote to stderr:\n{output.text}")
    return notebook


# --- Lowering ---------------------------------------------------------------------------------


def lower(notebook: NotebookNode, chapter: Path, root: Path = ROOT) -> NotebookNode:
    """Replace what only MyST understands by plain Markdown; add what a notebook needs.

    The cells are numbered, solutions folded, and capsnet installed by the first cell.

    Raises:
        ChapterError: the prose uses something that this function does not know.
    """
    notebooks = {page: notebook_path(page, root) for page in chapters(root)}
    prose = Prose(chapter, root / "book" / "references.bib", notebooks, glued_values(notebook))
    cells = [setup_cell(root)]
    for cell in notebook.cells:
        if "hide-cell" in cell.metadata.get("tags", []):
            cell.metadata.update(nbformat.from_dict(FOLDED))
        if cell.cell_type == "markdown":
            cell.source = prose.lower(cell.source)
            cell.metadata = nbformat.from_dict({})
            if not cell.source:
                continue
        cell.id = f"cell-{len(cells):02d}"
        cells.append(cell)
    notebook.cells = cells
    nbformat.validate(notebook)
    return notebook


def setup_cell(root: Path = ROOT) -> NotebookNode:
    """The cell that installs capsnet in Colab, from the address that _config.yml gives."""
    code = INSTALL.format(**repository(root)).strip()
    cell = nbformat.v4.new_code_cell(code, id=SETUP, execution_count=None)
    cell.metadata.update(nbformat.from_dict({"tags": ["nbval-ignore-output"], **FOLDED}))
    return cell


def repository(root: Path = ROOT) -> dict[str, str]:
    """The repository's url and branch, which stand in _config.yml alone."""
    config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    return {"url": config["repository"]["url"], "branch": config["repository"]["branch"]}


def glued_values(notebook: NotebookNode) -> dict[str, str]:
    """The values that the notebook's cells glued (``capsnet_book.figures.glue``), by name."""
    values = {}
    for cell in code_cells(notebook):
        for output in cell.get("outputs", []):
            name = output.get("metadata", {}).get("scrapbook", {}).get("name")
            if name is not None:
                values[name] = str(ast.literal_eval(output["data"][GLUE]))
    return values


# --- Staging for the HTML --------------------------------------------------------------------


def stage(root: Path = ROOT) -> None:
    """Put the notebooks' outputs where Jupyter Book looks before it executes anything.

    Raises:
        ChapterError: Jupyter Book would not recognise a chapter, and execute it.
    """
    from jupyter_cache import get_cache
    from jupyter_cache.base import CacheBundleIn
    from myst_nb.core.read import read_myst_markdown_notebook

    folder = root / "_build" / ".jupyter_cache"
    shutil.rmtree(folder, ignore_errors=True)
    cache = get_cache(folder)
    for chapter in chapters(root):
        notebook = nbformat.read(notebook_path(chapter, root), as_version=4)
        notebook.cells = code_cells(notebook)
        for cell in notebook.cells:
            cell.metadata = nbformat.from_dict(unfolded(cell.metadata))
        bundle = CacheBundleIn(notebook, str(chapter))
        cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
        try:
            cache.match_cache_notebook(
                read_myst_markdown_notebook(chapter.read_text(encoding="utf-8"))
            )
        except KeyError:
            raise ChapterError(
                f"{chapter.relative_to(root)} and its notebook have different code cells"
            ) from None


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("chapters", nargs="*", help="names, such as squash; all if none is given")
    parser.add_argument("--check", action="store_true", help="only say what is stale")
    options = parser.parse_args(arguments)
    if options.check:
        faults = [fault for chapter in chapters() if (fault := check(chapter))]
        faults += [f"{path.relative_to(ROOT)} has no chapter" for path in orphans()]
        print("\n".join(faults), end="\n" if faults else "", file=sys.stderr)
        return 1 if faults else 0
    wanted = [page for page in chapters() if not options.chapters or page.stem in options.chapters]
    if unknown := set(options.chapters) - {page.stem for page in wanted}:
        raise ChapterError(f"there is no chapter {', '.join(sorted(unknown))}")
    for path in [] if options.chapters else orphans():
        path.unlink()
        print(f"{path.relative_to(ROOT)}: removed, it has no chapter")
    for chapter in wanted:
        start = time.perf_counter()
        path, executed = make(chapter)
        done = f"executed in {time.perf_counter() - start:.0f} s" if executed else "up to date"
        print(f"{path.relative_to(ROOT)}: {done}", flush=True)
    if not options.chapters:
        stage()
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ChapterError as error:
        sys.exit(str(error))
