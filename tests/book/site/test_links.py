"""A small site with the theme and our links: what a page offers where its address is known."""

import re
import shutil
from pathlib import Path

import pytest
from sphinx.application import Sphinx

from helpers import ROOT

CONF = """
extensions = ["myst_parser", "sphinx_thebe", "links"]
html_theme = "sphinx_book_theme"
root_doc = "book/squash"
include_patterns = ["book/*.md"]
"""
OWN = "https://github.com/me/caps"
FILE = f"{OWN}/blob/v1/notebooks/squash.ipynb"
COLAB = "https://colab.research.google.com/github/me/caps/blob/v1/notebooks/squash.ipynb"
KAGGLE = f"https://www.kaggle.com/kernels/welcome?src={FILE}"
BINDER = "https://mybinder.org/v2/gh/me/caps/v1?urlpath=lab/tree/notebooks/squash.ipynb"
ISSUE = "issues/new?title=Issue%20on%20page%20%2Fbook/{}.html"
GITHUB = [
    OWN,
    f"{OWN}/blob/v1/book/{{}}.md?plain=1",
    f"{OWN}/edit/v1/book/{{}}.md",
    f"{OWN}/{ISSUE}",
]
LAB = "https://gitlab.com/me/caps"
LAB_ISSUE = f"{LAB}/-/{ISSUE}".replace("title", "issue[title]")
GITLAB = [LAB, f"{LAB}/-/blob/v1/book/{{}}.md?plain=1", f"{LAB}/-/edit/v1/book/{{}}.md", LAB_ISSUE]


@pytest.mark.parametrize(
    ("url", "page", "wanted"),
    [
        (OWN, "squash", [COLAB, KAGGLE, BINDER, *GITHUB]),
        (OWN, "text", GITHUB),  # no notebook
        (LAB, "squash", GITLAB),
        ("", "squash", []),
    ],
)
def test_a_page_offers_what_its_repository_s_address_allows(
    tmp_path: Path, url: str, page: str, wanted: list[str]
) -> None:
    (tmp_path / "_config.yml").write_text(f'repository:\n  url: "{url}"\n  branch: v1\n')
    (tmp_path / "conf.py").write_text(CONF)
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "squash.md").write_text("# A chapter\n\n```{toctree}\ntext\n```\n")
    (tmp_path / "book" / "text.md").write_text("# A page\n")
    (tmp_path / "notebooks").mkdir()
    shutil.copy(ROOT / "notebooks" / "squash.ipynb", tmp_path / "notebooks")
    site = tmp_path / "site"
    Sphinx(tmp_path, tmp_path, site, tmp_path / "doctrees", "html", status=None).build()
    html = (site / "book" / f"{page}.html").read_text(encoding="utf-8")
    links = (link.partition("&")[0] for link in re.findall(r'href="(https?:[^"]*)"', html))
    theirs = re.compile("colab|kaggle|mybinder|/me/caps")
    assert {*filter(theirs.search, links)} == {link.format(page) for link in wanted}
    offered = site / "_sources" / "book" / "squash.ipynb"
    assert offered.read_bytes() == (ROOT / "notebooks" / "squash.ipynb").read_bytes()
    assert not re.search("<script[^>]*src=[^>]*thebe", html)
