"""Make notebooks/NAME.ipynb from book/NAME.md: convert, execute what is stale, lower, stage.

The chapters (MyST notebooks) are the only source. A notebook has the same code cells, the outputs
of running them, and its prose in plain Markdown, which Colab and Jupyter show as it is meant.

A notebook is stale, and executed anew, when something changed that its outputs depend on: its code
cells, the modules that they loaded, a file of the ledger that they asked for, or the version that
the lock names for a package that they imported (``book/_tools/dependencies.py``). A change of the
prose alone, or of the repository's address, is not.

A notebook also has a first cell, which installs capsnet where it is missing, and folded solutions.
The chapter has neither, so a comparison of the two ignores them.

The book's HTML shows the outputs of these very notebooks: they are staged in the cache that
Jupyter Book reads, so its build executes nothing.

    python book/_tools/make_notebooks.py [--stale] [CHAPTER …]
"""

import argparse
import ast
import json
import os
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

import jupytext
import nbformat
from nbformat import NotebookNode

from address import ROOT, address
from capsnet.files import write_atomically
from dependencies import hashes, locked_versions
from lowering import Prose
from myst import ChapterError, front_matter

TIMEOUT = 900  # seconds a cell may run

SETUP = "setup"  # the id of the cell that every notebook starts with
CLONE = "capsnet-book"  # what that cell calls its clone, in Colab
# It acts where the package is missing: in Colab, on Kaggle, or in a clone before its installation.
# Naming the version of torch that is there keeps pip from changing it. The clone holds the ledger,
# so the package is imported from it.
INSTALL = """\
# @title Install capsnet where it is missing
import importlib.util
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

repository = "{url}"  # @param {{type: "string"}}
if not importlib.util.find_spec("capsnet_book"):
    clone = Path("{clone}").resolve()
    if Path("../book/capsnet_book").exists():
        clone = Path("..").resolve()  # the notebook is open in a clone
    if not clone.exists():
        if not repository:
            raise ValueError("type the repository's address above: https://github.com/…")
        command = ["git", "clone", "--quiet", "--depth", "1", "--branch", "{branch}"]
        git = subprocess.run([*command, repository, clone], capture_output=True, text=True)
        if git.returncode:
            raise ValueError(f"cannot clone {{repository}}: {{git.stderr.strip()}}")
    there = importlib.util.find_spec("torch")
    pinned = "torch==" + version("torch") if there else "torch"
    %pip install --quiet {{pinned}} --editable "{{clone}}[play]"
    sys.path[:0] = [str(clone), str(clone / "book")]
    importlib.invalidate_caches()
    import capsnet_book
"""
# A notebook whose code calls one of these trains a network, and asks Colab for a GPU.
TRAINS = re.compile(r"\b(?:fit|make_step|cli\.main|optimizer\.step)\(")
# A kernel begins with this, in no cell: it keeps which modules it loaded for itself, and notes from
# then on whose source is read.
OBSERVE = """\
import inspect, sys
sys.at_start, sys.shown, getsource = {*sys.modules}, set(), inspect.getsource
def noted(thing):
    sys.shown.add(inspect.getsourcefile(thing))
    return getsource(thing)
inspect.getsource = noted
"""
# When all cells have run, a kernel reports what they used: the files of our modules, those whose
# source was read, what was asked of the ledger, and the packages that were imported.
REPORT_USED = """\
import importlib.metadata, json, sys
roots = {name.partition(".")[0] for name in sys.modules.keys() - sys.at_start}
ours = [m for name, m in sys.modules.items() if name.partition(".")[0].startswith("capsnet")]
ledger = sys.modules.get("capsnet_book.ledger")
packages = importlib.metadata.packages_distributions()
print(json.dumps({
    "modules": [m.__file__ for m in ours if getattr(m, "__file__", None)],
    "shown": [*sys.shown],
    "ledger": [*ledger.asked] if ledger else [],
    "packages": sorted({package for root in roots for package in packages.get(root, [])}),
}))
"""
# The source and the output of a solution, as Jupyter and Colab fold a cell.
FOLDED = {"jupyter": {"source_hidden": True, "outputs_hidden": True}, "cellView": "form"}


def chapters(root: Path = ROOT) -> list[Path]:
    """The pages of the book that are notebooks: those whose front matter names a kernel."""
    return [
        page
        for page in sorted((root / "book").rglob("*.md"))
        if "kernelspec" in front_matter(page.read_text(encoding="utf-8"))
    ]


def notebook_path(chapter: Path, root: Path = ROOT) -> Path:
    return root / "notebooks" / chapter.relative_to(root / "book").with_suffix(".ipynb")


def make(chapter: Path, root: Path = ROOT) -> tuple[Path, bool]:
    """Write a chapter's notebook, executing it only if its outputs are stale.

    Returns:
        the notebook's path and whether it was executed.
    """
    path = notebook_path(chapter, root)
    notebook, executed = with_outputs(chapter, root), False
    if notebook is None or is_stale(notebook, root):
        notebook, executed = execute(read_chapter(chapter, root), root), True
    write_atomically(path, lower(notebook, chapter, root).encode())
    return path, executed


def with_outputs(chapter: Path, root: Path = ROOT) -> NotebookNode | None:
    """The chapter with its notebook's outputs; None if there is none or it has different code."""
    path = notebook_path(chapter, root)
    if not path.exists():
        return None
    notebook = read_chapter(chapter, root)
    old = nbformat.read(path, as_version=4)
    cells, old_cells = code_cells(notebook), code_cells(old)
    # How a page shows a cell (its caption, its tags) makes no difference to what it prints.
    if [cell.source for cell in cells] != [cell.source for cell in old_cells]:
        return None
    for cell, old_cell in zip(cells, old_cells, strict=True):
        cell.outputs, cell.execution_count = old_cell.outputs, old_cell.execution_count
    notebook.metadata.capsnet = old.metadata.get("capsnet", {})
    return notebook


def is_stale(notebook: NotebookNode, root: Path = ROOT) -> bool:
    """Whether what the outputs depend on changed since the notebook was executed."""
    about = notebook.metadata.capsnet
    return (
        about.code != hashes(about.code, root, code_alone=True)
        or about.text != hashes(about.text, root, code_alone=False)
        or about.packages != locked_versions(about.packages, root)
    )


def read_chapter(chapter: Path, root: Path = ROOT) -> NotebookNode:
    """Convert a chapter to a notebook without outputs, its prose still in MyST."""
    notebook = jupytext.reads(chapter.read_text(encoding="utf-8"), fmt="md:myst")
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    notebook.metadata = nbformat.from_dict(
        {
            "kernelspec": notebook.metadata.kernelspec,
            "capsnet": {"source": chapter.relative_to(root).as_posix()},
        }
    )
    return notebook


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    """The chapter's code cells: all but the one that every notebook starts with."""
    return [c for c in notebook.cells if c.cell_type == "code" and c.get("id") != SETUP]


def execute(notebook: NotebookNode, root: Path = ROOT) -> NotebookNode:
    """Run every cell in order, in an empty folder; note what they used.

    Refuse a cell that fails, or that writes to stderr (a warning, say): nothing to show.
    """
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    source = notebook.metadata.capsnet.source
    notebook.cells.append(nbformat.v4.new_code_cell(REPORT_USED))
    start = time.perf_counter()
    # The checkout's own code runs, whatever is installed. A progress bar is for who waits.
    path = f"{root}{os.pathsep}{root / 'book'}"
    variables = {**os.environ, "PYTHONPATH": path, "TQDM_DISABLE": "1"}
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook,
            timeout=TIMEOUT,
            record_timing=False,
            coalesce_streams=True,
            resources={"metadata": {"path": folder}},
            extra_arguments=[
                "--IPKernelApp.log_level=ERROR",
                f"--IPKernelApp.exec_lines=exec({OBSERVE!r}, {{}})",
            ],
        )
        try:
            client.execute(env=variables)
        except CellExecutionError as error:
            raise ChapterError(f"{source}: {error}") from None
    used = json.loads(notebook.cells.pop().outputs[0].text)
    modules = {Path(file).relative_to(root).as_posix() for file in used["modules"]}
    asked = {f"results/{name}" for name in used["ledger"]}
    shown = {name for name in modules if str(root / name) in used["shown"]}
    notebook.metadata.capsnet.update(
        code=hashes(modules - shown, root, code_alone=True),
        text=hashes(shown | asked, root, code_alone=False),
        packages=locked_versions(used["packages"], root),
        seconds=round(time.perf_counter() - start),
    )
    for cell in code_cells(notebook):
        for output in cell.outputs:
            if output.get("name") == "stderr":
                raise ChapterError(f"{source}: a cell wrote to stderr:\n{output.text}")
    return notebook


def lower(notebook: NotebookNode, chapter: Path, root: Path = ROOT) -> str:
    """The notebook's file: prose in plain Markdown, solutions folded, the first cell added."""
    notebooks = {page: notebook_path(page, root) for page in chapters(root)}
    prose = Prose(chapter, root, notebooks, glued_values(notebook))
    cells = [setup_cell(root)]
    for cell in notebook.cells:
        if "hide-cell" in cell.metadata.get("tags", []):
            cell.metadata.update(nbformat.from_dict(FOLDED))
        if cell.cell_type == "markdown":
            cell.source = prose.lower(cell.source)
            cell.metadata = nbformat.from_dict({})
            if not cell.source:
                continue
        cells.append(cell)
        figure = cell.metadata.get("mystnb", {}).get("figure", {})
        if figure:
            caption = prose.lower(figure["caption"])
            cells.append(nbformat.v4.new_markdown_cell(f"**Figure.** {caption}"))
    for number, cell in enumerate(cells[1:], start=1):
        cell.id = f"cell-{number:02d}"
    notebook.cells = cells
    # The kernel's own would name the version of its Python.
    notebook.metadata.language_info = {"name": "python", "pygments_lexer": "ipython3"}
    if any(TRAINS.search(cell.source) for cell in code_cells(notebook)):
        notebook.metadata.update(accelerator="GPU", colab={"gpuType": "T4"})
    nbformat.validate(notebook)
    return nbformat.writes(notebook) + "\n"


def setup_cell(root: Path = ROOT) -> NotebookNode:
    """The cell that installs capsnet where it is missing, from the repository's address."""
    code = INSTALL.format(**address(root)._asdict(), clone=CLONE).strip()
    cell = nbformat.v4.new_code_cell(code, id=SETUP, execution_count=None)
    cell.metadata.update(nbformat.from_dict({"tags": ["nbval-ignore-output"], **FOLDED}))
    return cell


def glued_values(notebook: NotebookNode) -> dict[str, str]:
    """The values that the notebook's cells glued (``capsnet_book.glue``), by name."""
    values = {}
    for cell in code_cells(notebook):
        for output in cell.get("outputs", []):
            about = output.get("metadata", {}).get("scrapbook")
            if about is not None:
                stored = output["data"][about["mime_prefix"] + "text/plain"]
                values[about["name"]] = str(ast.literal_eval(stored))
    return values


def stage(root: Path = ROOT) -> None:
    """Put the notebooks' outputs where Jupyter Book looks before it executes anything.

    Refuse a notebook that Jupyter Book would not take for its chapter's: it would execute that.
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
        for cell in notebook.cells:  # as they stand in the chapter
            metadata = {name: value for name, value in cell.metadata.items() if name not in FOLDED}
            cell.metadata = nbformat.from_dict(metadata)
        bundle = CacheBundleIn(notebook, str(chapter))
        cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
        try:
            cache.match_cache_notebook(read_myst_markdown_notebook(chapter.read_text("utf-8")))
        except KeyError:
            name = chapter.relative_to(root)
            raise ChapterError(f"{name} and its notebook have different code cells") from None


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("chapters", nargs="*", help="names, such as squash; all if none is given")
    parser.add_argument("--stale", action="store_true", help="only list the stale notebooks")
    options = parser.parse_args(arguments)
    pages = [page for page in chapters() if not options.chapters or page.stem in options.chapters]
    if unknown := set(options.chapters) - {page.stem for page in pages}:
        raise ChapterError(f"there is no chapter {', '.join(sorted(unknown))}")
    if options.stale:
        notebooks = [(notebook_path(page), with_outputs(page)) for page in pages]
        stale = [path for path, notebook in notebooks if notebook is None or is_stale(notebook)]
        print(*(path.relative_to(ROOT) for path in stale if path.exists()))
        return 0
    for chapter in pages:
        path, executed = make(chapter)
        state = "executed" if executed else "up to date"
        print(f"{path.relative_to(ROOT)}: {state}", flush=True)
    if not options.chapters:
        stage()
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ChapterError as error:
        sys.exit(str(error))
