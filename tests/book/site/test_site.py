"""What is in the built pages: links, weights, buttons, and the notebooks' own outputs."""

import importlib
import re
import urllib.parse
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest

import make_notebooks as notebooks
from address import ROOT
from helpers import built
from helpers.built import Site

CHAPTERS = notebooks.chapters()
# Those that say what is public, and the equations.
PACKAGES = ["capsnet.functional"] + [
    ".".join(file.relative_to(ROOT).parent.parts)
    for file in sorted(ROOT.glob("capsnet*/**/__init__.py"))
    if "\n__all__ = " in file.read_text(encoding="utf-8")
]
NAMES = {"id", "name"}  # the attributes that a link can lead to


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


def page_of(chapter: Path) -> Path:
    return chapter.relative_to(ROOT).with_suffix(".html")


def test_every_page_of_the_book_is_built(site: Site) -> None:
    built = {path for path in site.pages if path.parts[0] == "book"}
    assert built == {page_of(page) for page in (ROOT / "book").rglob("*.md")}


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_a_page_shows_and_offers_its_committed_notebook(
    site: Site, pages: dict[Path, Page], chapter: Path
) -> None:
    path = notebooks.notebook_path(chapter)
    html, page = site.pages[page_of(chapter)], pages[page_of(chapter)]
    (link,) = {it for it in page.all("a", "href") if it.endswith(".ipynb") and "//" not in it}
    assert ((site.folder / page_of(chapter)).parent / link).read_bytes() == path.read_bytes()
    notebook = nbformat.read(path, as_version=4)
    cells = notebooks.code_cells(notebook)
    tags = [{*cell.metadata.get("tags", [])} for cell in cells]
    for cell, its in zip(cells, tags, strict=True):
        if not its & {"remove-cell", "remove-output"}:
            for output in cell.outputs:
                for word in output.get("text", "").split():  # perhaps in a table, or its head
                    assert word.rstrip(":,=") in page.text
    shown = re.findall(r'class="pasted-text">([^<]*)<', html)
    assert set(shown) == set(notebooks.glued_values(notebook).values())
    solutions = sum("hide-cell" in its for its in tags)
    assert html.count(">Show the solution<") == html.count(">Hide the solution<") == solutions
    assert "Show code cell" not in html


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


@pytest.mark.parametrize("package", PACKAGES)
def test_the_reference_has_every_public_name(site: Site, package: str) -> None:
    module = importlib.import_module(package)
    own = {name for name, it in vars(module).items() if getattr(it, "__module__", "") == package}
    page = site.pages[Path("book/api.html")]
    documented = set(re.findall(rf'id="{re.escape(package)}\.(\w+)"', page))
    assert documented >= set(getattr(module, "__all__", own))


def test_the_reference_says_of_a_field_what_its_comment_says(site: Site) -> None:
    """Before a colon stands no type."""
    page = site.pages[Path("book/api.html")]
    assert "fp32, bf16, or auto: bf16 where the hardware has it" in page


def test_pictures_are_light_and_have_an_alternative_text(
    site: Site, pages: dict[Path, Page]
) -> None:
    """What the theme loads is the same for every page, and kept."""
    for path, page in pages.items():
        pictures = [attrs for tag, attrs in page.tags if tag == "img"]
        for attrs in pictures:
            long_enough = 20 if "_images/" in attrs["src"] else -1
            assert len(attrs["alt"]) > long_enough, f"{path}: {attrs['src']}"
        files = {path.name, *(attrs["src"] for attrs in pictures)}
        weight = sum((site.folder / path.parent / name).stat().st_size for name in files)
        assert weight < 1.2e6, f"{path}: {weight / 1e6:.2f} MB"


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
