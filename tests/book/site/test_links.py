"""A small book with the theme and our links: what a page offers, and what a PDF holds."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from sphinx.application import Sphinx

import cards
from helpers import ROOT
from pdf import print_page

CONF = """
extensions = ["myst_parser", "sphinx_thebe", "sphinx_togglebutton", "mathml"]
extensions += ["folding", "cards", "links"]
html_title = "The book"
myst_enable_extensions = ["dollarmath"]
html_theme = "sphinx_book_theme"
root_doc = "book/squash"
include_patterns = ["book/*.md"]
"""
OWN = "https://github.com/me/caps"
FILE = f"{OWN}/blob/v1/notebooks/squash.ipynb"
COLAB = "https://colab.research.google.com/github/me/caps/blob/v1/notebooks/squash.ipynb"
KAGGLE = f"https://www.kaggle.com/kernels/welcome?src={FILE}"
BINDER = "https://mybinder.org/v2/gh/me/caps/v1?urlpath=lab/tree/notebooks/squash.ipynb"
GITHUB = [
    OWN,
    f"{OWN}/blob/v1/book/{{}}.md?plain=1",
    f"{OWN}/edit/v1/book/{{}}.md",
    f"{OWN}/issues/new?title=Issue%20on%20page%20%2Fbook/{{}}.html",
]


def build(root: Path, url: str, builder: str = "html") -> Path:
    """Build a book of two pages, one of which has a notebook."""
    (root / "_config.yml").write_text(f'repository:\n  url: "{url}"\n  branch: v1\n')
    (root / "conf.py").write_text(CONF)
    for folder in ("book", "notebooks"):
        (root / folder).mkdir(exist_ok=True)
    text = "# A chapter\n\n$\\qv$\n\n```python\nv = 1\n```\n\n```{toctree}\ntext\n```\n"
    (root / "book" / "squash.md").write_text(text)
    (root / "book" / "text.md").write_text("# A page\n")
    shutil.copy(ROOT / "notebooks" / "squash.ipynb", root / "notebooks")
    out = root / "_build" / builder
    Sphinx(root, root, out, root / "doctrees", builder, status=None).build()
    return out


def check_what_a_shared_link_shows(site: Path, published: str) -> None:
    """Check that `/` and each page have a title, and a picture where whole addresses are known."""
    for page in ("index", "book/squash", "book/text"):
        html = (site / f"{page}.html").read_text(encoding="utf-8")
        tags = dict(
            re.findall(r'<meta (?:property|name)="((?:og|twitter):\w+)" content="(.*?)"', html)
        )
        assert "The book" in tags["og:title"] and tags["og:description"]
        assert ("og:image" in tags) == ("og:url" in tags) == bool(published)
        if published:
            assert tags["og:url"].startswith(published) and tags["og:image"].startswith(published)
    with_notebook = site / "_static" / "cards" / "squash-shared.png"
    missing, listed = site / "404.html", site / "sitemap.txt"
    assert with_notebook.is_file() == missing.is_file() == listed.is_file() == bool(published)
    if published:
        with Image.open(with_notebook) as picture:
            assert picture.size == cards.SHARED
        assert f'<base href="{published}">' in missing.read_text(encoding="utf-8")
        pages = [f"{published}book/{page}.html" for page in ("squash", "text")]
        assert listed.read_text(encoding="utf-8").split() == pages


@pytest.mark.parametrize(
    ("url", "published", "wanted"),
    [
        (OWN, "https://me.github.io/caps/",
         {"squash": [COLAB, KAGGLE, BINDER, *GITHUB], "text": GITHUB}),  # which has no notebook
        ("", "", {"squash": []}),
    ],
)  # fmt: skip
def test_a_page_offers_what_its_repository_s_address_allows(
    tmp_path: Path, url: str, published: str, wanted: dict[str, list[str]]
) -> None:
    site = build(tmp_path, url)
    theirs = re.compile("colab|kaggle|mybinder|/me/caps")
    for page, expected in wanted.items():
        html = (site / "book" / f"{page}.html").read_text(encoding="utf-8")
        links = (link.partition("&")[0] for link in re.findall(r'href="(https?:[^"]*)"', html))
        assert {*filter(theirs.search, links)} == {link.format(page) for link in expected}
        canonical = re.findall('<link rel="canonical" href="(.*?)"', html)
        assert canonical == [f"{it}book/{page}.html" for it in [published] if it]
        assert not re.search(r"<script[^>]*src=[^>]*thebe|togglebutton\.js|let toggle", html)
    check_what_a_shared_link_shows(site, published)
    offered = site / "_sources" / "book" / "squash.ipynb"
    assert offered.read_bytes() == (ROOT / "notebooks" / "squash.ipynb").read_bytes()


def test_a_pdf_has_a_page_a_chapter_and_an_outline_and_is_offered_once_it_is_made(
    tmp_path: Path, browser: Any
) -> None:
    assert "capsnet-book.pdf" not in (build(tmp_path, OWN) / "book" / "squash.html").read_text()
    file = tmp_path / "_build" / "capsnet-book.pdf"
    page = build(tmp_path, OWN, "singlehtml") / "book" / "squash.html"
    print_page(browser, page, file)
    printed = file.read_bytes()
    assert printed.startswith(b"%PDF") and len(re.findall(rb"/Type /Page\b", printed)) == 2
    titles = re.findall(rb"/Title \((.*?)\)", printed)
    assert {b"A chapter", b"A page"} == {*titles[1:]}  # of the outline, after the document's own
    site = build(tmp_path, OWN)
    assert 'href="../capsnet-book.pdf"' in (site / "book" / "squash.html").read_text()
    assert (site / "capsnet-book.pdf").read_bytes() == printed
