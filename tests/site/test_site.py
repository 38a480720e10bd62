"""What is in the built pages: links, weights, buttons, and the notebooks' own outputs."""

import os
import re
import subprocess
import urllib.parse
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest

import make_notebooks as notebooks
from address import address
from helpers import built
from helpers.built import ROOT, STAMP, Site

CHAPTERS = notebooks.chapters()
EACH_CHAPTER = pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)


@pytest.fixture(scope="module")
def site() -> Site:
    return built.site()


class Elements(HTMLParser):
    """The start tags of a page, with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))


def elements(text: str, *tags: str) -> list[tuple[str, dict[str, str]]]:
    return [(tag, attrs) for tag, attrs in Elements(text).found if not tags or tag in tags]


def page_of(chapter: Path) -> Path:
    return chapter.relative_to(ROOT).with_suffix(".html")


def test_every_page_of_the_book_is_built(site: Site) -> None:
    built = {path for path in site.pages if path.parts[0] == "book"}
    assert built == {page_of(page) for page in (ROOT / "book").rglob("*.md")}


@EACH_CHAPTER
def test_what_a_chapter_prints_is_on_its_page(site: Site, chapter: Path) -> None:
    notebook = nbformat.read(notebooks.notebook_path(chapter), as_version=4)
    page = Text(site.pages[page_of(chapter)]).text
    for cell in notebooks.code_cells(notebook):
        if {"remove-cell", "remove-output"} & {*cell.metadata.get("tags", [])}:
            continue
        for output in cell.outputs:
            for line in output.get("text", "").splitlines():
                assert line.strip() in page


class Text(HTMLParser):
    """The text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text = ""
        self.feed(page)

    def handle_data(self, data: str) -> None:
        self.text += data


@EACH_CHAPTER
def test_glued_values_stand_in_the_text_as_in_the_notebook(site: Site, chapter: Path) -> None:
    notebook = nbformat.read(notebooks.notebook_path(chapter), as_version=4)
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


def test_every_link_and_anchor_inside_the_site_leads_somewhere(site: Site) -> None:
    anchors = {
        path: {attrs[key] for _, attrs in elements(text) for key in ("id", "name") if key in attrs}
        for path, text in site.pages.items()
    }
    count = 0
    for page, text in site.pages.items():
        for _, attrs in elements(text):
            for target in (attrs[key] for key in ("href", "src") if attrs.get(key)):
                if re.match(r"[a-z]+:|//", target):
                    continue
                count += 1
                name, _, anchor = target.partition("#")
                name = urllib.parse.unquote(name.split("?")[0])
                file = (site.folder / page).parent / name if name else site.folder / page
                file = file.resolve()
                if file.is_dir():
                    file /= "index.html"
                assert file.is_relative_to(site.folder), f"{page}: {target} leads out"
                assert file.is_file(), f"{page}: {target} is not there"
                if anchor and file.suffix == ".html":
                    known = anchors[file.relative_to(site.folder)]
                    assert urllib.parse.unquote(anchor) in known, f"{page}: no place {target}"
    assert count > 500


def test_links_to_elsewhere_are_encrypted(site: Site) -> None:
    for page, text in site.pages.items():
        for _, attrs in elements(text, "a"):
            assert not attrs.get("href", "").startswith("http:"), f"{page}: {attrs['href']}"


def links(text: str) -> list[str]:
    return [attrs.get("href", "") for _, attrs in elements(text, "a")]


def test_a_chapter_and_nothing_else_opens_its_notebook_in_colab(site: Site) -> None:
    found = {
        page: {link for link in links(text) if "colab" in link} for page, text in site.pages.items()
    }
    wanted = {
        page_of(page): {address().in_colab(f"notebooks/{page.stem}.ipynb")} - {None}
        for page in CHAPTERS
    }
    assert {page: found[page] for page in found if found[page] or page in wanted} == wanted


@EACH_CHAPTER
def test_a_chapter_offers_its_committed_notebook(site: Site, chapter: Path) -> None:
    page = page_of(chapter)
    hrefs = {*links(site.pages[page])}
    (link,) = {href for href in hrefs if href.endswith(".ipynb") and "//" not in href}
    offered = (site.folder / page).parent / link
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


@pytest.mark.parametrize(
    ("remote", "repository", "colab"),
    [
        (
            "git@github.com:me/my.caps.git",
            "https://github.com/me/my.caps",
            "https://colab.research.google.com/github/me/my.caps/blob/main/notebooks/chapter.ipynb",
        ),
        ("/srv/git/caps", "", ""),
    ],
)
def test_the_links_follow_the_remote(
    tmp_path: Path, remote: str, repository: str, colab: str
) -> None:
    for name in built.sources():
        if name == "_config.yml" or name.startswith(("book/_", "book/references", "tools/")):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    for name, text in SMALL.items():
        (tmp_path / name).write_text(text)
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    subprocess.run(["git", "-C", tmp_path, "remote", "add", "origin", remote], check=True)
    (tmp_path / "notebooks").mkdir()
    chapter = notebooks.read_chapter(tmp_path / "book" / "chapter.md", tmp_path)
    nbformat.write(chapter, tmp_path / "notebooks" / "chapter.ipynb")
    small, _ = built.build(tmp_path)
    found = links(small.pages[Path("book/chapter.html")])
    source = f"{repository}/blob/main/book/chapter.md?plain=1" if repository else ""
    assert {link for link in found if re.search("github|gitlab|colab", link)} == {
        link for link in (repository, source, colab) if link
    }
    assert "../_sources/book/chapter.ipynb" in found


def test_a_solution_says_what_it_hides(site: Site) -> None:
    solutions = 0
    for chapter in CHAPTERS:
        notebook = nbformat.read(notebooks.notebook_path(chapter), as_version=4)
        tags = [cell.metadata.get("tags", []) for cell in notebooks.code_cells(notebook)]
        count = sum("hide-cell" in cell for cell in tags)
        solutions += count
        assert site.pages[page_of(chapter)].count(">Show the solution<") == count
        assert site.pages[page_of(chapter)].count(">Hide the solution<") == count
    assert "Show code cell" not in "".join(site.pages.values())


def test_a_page_is_light(site: Site) -> None:
    """Its text and its pictures; what the theme loads is the same for every page, and kept."""
    for page, text in site.pages.items():
        images = {attrs["src"] for _, attrs in elements(text, "img")}
        files = [site.folder / page, *((site.folder / page).parent / name for name in images)]
        weight = sum(file.resolve().stat().st_size for file in files)
        assert weight < 1.2e6, f"{page}: {weight / 1e6:.2f} MB"


def test_every_picture_has_an_alternative_text(site: Site) -> None:
    for page, text in site.pages.items():
        for _, attrs in elements(text, "img"):
            assert "alt" in attrs, f"{page}: {attrs['src']}"
            if "_images/" in attrs["src"]:
                assert len(attrs["alt"]) > 20, f"{page}: {attrs['src']}"
