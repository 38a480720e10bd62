"""What is in the built pages: links, weights, buttons, and the notebooks' own outputs."""

import os
import re
import subprocess
import urllib.parse
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

import make_notebooks as notebooks
from address import ROOT, address
from helpers import built
from helpers.built import STAMP, Site

CHAPTERS = notebooks.chapters()
NAMES = {"id", "name"}  # the attributes that a link can lead to
EACH_CHAPTER = pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)


@pytest.fixture(scope="module")
def site() -> Site:
    return built.site()


class Page(HTMLParser):
    """The start tags of a page with their attributes, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, tag: str, attribute: str) -> list[str]:
        """The attribute of each tag of this name, empty where it has none."""
        return [attrs.get(attribute, "") for name, attrs in self.tags if name == tag]


@pytest.fixture(scope="module")
def pages(site: Site) -> dict[Path, Page]:
    return {path: Page(html) for path, html in site.pages.items()}


@pytest.fixture
def notebook(chapter: Path) -> NotebookNode:
    return nbformat.read(notebooks.notebook_path(chapter), as_version=4)


def page_of(chapter: Path) -> Path:
    return chapter.relative_to(ROOT).with_suffix(".html")


def test_every_page_of_the_book_is_built(site: Site) -> None:
    built = {path for path in site.pages if path.parts[0] == "book"}
    assert built == {page_of(page) for page in (ROOT / "book").rglob("*.md")}


@EACH_CHAPTER
def test_what_a_chapter_prints_is_on_its_page(
    pages: dict[Path, Page], chapter: Path, notebook: NotebookNode
) -> None:
    page = pages[page_of(chapter)].text
    for cell in notebooks.code_cells(notebook):
        if {"remove-cell", "remove-output"} & {*cell.metadata.get("tags", [])}:
            continue
        for output in cell.outputs:
            for line in output.get("text", "").splitlines():
                assert line.strip() in page


@EACH_CHAPTER
def test_glued_values_stand_in_the_text_as_in_the_notebook(
    site: Site, chapter: Path, notebook: NotebookNode
) -> None:
    shown = re.findall(r'class="pasted-text">([^<]*)<', site.pages[page_of(chapter)])
    assert set(shown) == set(notebooks.glued_values(notebook).values())


@pytest.mark.skipif(not os.environ.get("CI"), reason="in CI the book is built a second time")
def test_a_build_executes_nothing_and_gives_the_same_bytes(site: Site, tmp_path: Path) -> None:
    again, log = built.build(built.copy(tmp_path / "another" / "place"))
    assert log.count("Using cached notebook") == len(CHAPTERS)
    assert "Executing notebook" not in log

    def files(folder: Path) -> dict[str, bytes]:
        paths = (path for path in folder.rglob("*") if path.is_file() and path.name != STAMP)
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}

    one, other = files(site.folder), files(again.folder)
    assert one.keys() == other.keys()
    assert [name for name in one if one[name] != other[name]] == []


def test_every_link_and_anchor_inside_the_site_leads_somewhere(
    site: Site, pages: dict[Path, Page]
) -> None:
    anchors = {
        site.folder / path: {attrs[key] for _, attrs in page.tags for key in attrs.keys() & NAMES}
        for path, page in pages.items()
    }
    count = 0
    for path, page in pages.items():
        targets = {attrs[key] for _, attrs in page.tags for key in attrs.keys() & {"href", "src"}}
        for target in targets - {""}:
            if re.match(r"[a-z]+:|//", target):
                assert not target.startswith("http:"), f"{path}: {target} is not encrypted"
                continue
            count += 1
            name, _, anchor = urllib.parse.unquote(target).partition("#")
            name = name.split("?")[0]
            file = (site.folder / path.parent / name if name else site.folder / path).resolve()
            if file.is_dir():
                file /= "index.html"
            assert file.is_relative_to(site.folder), f"{path}: {target} leads out"
            assert file.is_file(), f"{path}: {target} is not there"
            if anchor and file.suffix == ".html":
                assert anchor in anchors[file], f"{path}: no place {target}"
    assert count > 500


def test_a_chapter_and_nothing_else_opens_its_notebook_in_colab(pages: dict[Path, Page]) -> None:
    found = {(path, link) for path in pages for link in pages[path].all("a", "href")}
    chapters = {page_of(c): address().in_colab(f"notebooks/{c.stem}.ipynb") for c in CHAPTERS}
    wanted = {(path, link) for path, link in chapters.items() if link}
    assert {(path, link) for path, link in found if "colab" in link} == wanted


@EACH_CHAPTER
def test_a_chapter_offers_its_committed_notebook(
    site: Site, pages: dict[Path, Page], chapter: Path
) -> None:
    hrefs = {*pages[page_of(chapter)].all("a", "href")}
    (link,) = {href for href in hrefs if href.endswith(".ipynb") and "//" not in href}
    offered = (site.folder / page_of(chapter)).parent / link
    assert offered.read_bytes() == notebooks.notebook_path(chapter).read_bytes()


SMALL = {
    "_toc.yml": "format: jb-book\nroot: book/index\nchapters: [{file: book/chapter}]\n",
    "book/index.md": "# A book\n",
    "book/chapter.md": """\
---
file_format: mystnb
kernelspec:
  display_name: Python 3
  name: python3
---

# A chapter

```{code-cell} ipython3
1 + 1
```
""",
}


def test_the_links_follow_the_remote(tmp_path: Path) -> None:
    repository = "https://github.com/me/my.caps"
    colab = repository.replace("github.com", "colab.research.google.com/github")
    for name in built.sources():
        if name == "_config.yml" or name.startswith(("book/_", "book/references", "book/_tools/")):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    for name, text in SMALL.items():
        (tmp_path / name).write_text(text)
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    remote = ["remote", "add", "origin", "git@github.com:me/my.caps.git"]
    subprocess.run(["git", "-C", tmp_path, *remote], check=True)
    (tmp_path / "notebooks").mkdir()
    chapter = tmp_path / "book" / "chapter.md"
    notebook = notebooks.lower(notebooks.read_chapter(chapter, tmp_path), chapter, tmp_path)
    (tmp_path / "notebooks" / "chapter.ipynb").write_text(notebook)
    small, _ = built.build(tmp_path)
    found = Page(small.pages[Path("book/chapter.html")]).all("a", "href")
    assert {link for link in found if re.search("github|colab", link)} == {
        repository,
        f"{repository}/blob/main/book/chapter.md?plain=1",
        f"{colab}/blob/main/notebooks/chapter.ipynb",
    }
    assert "../_sources/book/chapter.ipynb" in found


@EACH_CHAPTER
def test_a_solution_says_what_it_hides(site: Site, chapter: Path, notebook: NotebookNode) -> None:
    html = site.pages[page_of(chapter)]
    cells = notebooks.code_cells(notebook)
    count = sum("hide-cell" in cell.metadata.get("tags", []) for cell in cells)
    assert html.count(">Show the solution<") == html.count(">Hide the solution<") == count
    assert "Show code cell" not in html


def test_a_page_is_light(site: Site, pages: dict[Path, Page]) -> None:
    """Its text and its pictures; what the theme loads is the same for every page, and kept."""
    for path, page in pages.items():
        files = [path.name, *{*page.all("img", "src")}]
        weight = sum((site.folder / path.parent / name).stat().st_size for name in files)
        assert weight < 1.2e6, f"{path}: {weight / 1e6:.2f} MB"


def test_every_picture_has_an_alternative_text(pages: dict[Path, Page]) -> None:
    for path, page in pages.items():
        for tag, attrs in page.tags:
            if tag == "img":
                assert "alt" in attrs, f"{path}: {attrs['src']}"
                if "_images/" in attrs["src"]:
                    assert len(attrs["alt"]) > 20, f"{path}: {attrs['src']}"


def test_every_drawing_has_a_number_a_caption_and_an_alternative_text(site: Site) -> None:
    figure = re.compile(
        r'<figure\b(?:(?!</figure>).)*?<svg class="drawing" role="img" aria-label="([^"]{20,})"'
        r'(?:(?!</figure>).)*?class="caption-number"',
        re.DOTALL,
    )
    drawings = 0
    for path, html in site.pages.items():
        found = html.count('<svg class="drawing"')
        assert len(figure.findall(html)) == found, path
        drawings += found
    assert drawings > 70
