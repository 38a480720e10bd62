"""What a chapter's MyST becomes in plain Markdown, and the errors for its writer."""

import re

import pytest

from capsnet_book.figures.macros import MACROS
from helpers import ROOT
from lowering import Prose
from myst import ChapterError, front_matter

BOOK = ROOT / "book"


def lower(text: str) -> str:
    page = BOOK / "squash.md"
    notebooks = {page: BOOK.parent / "notebooks" / "squash.ipynb"}
    return Prose(page, ROOT, notebooks, {"answer": "42"}).lower(text)


@pytest.mark.parametrize(
    ("myst", "markdown"),
    [
        ("[it](https://a.org/b_(c)) and <https://a.org>",) * 2,
        ("$f[x](y)$ and ``a`{term}`` and `{term}`",) * 2,
        ("> - x\n>   ```python\n>   [y](nowhere.md)\n>\n>\n>   z\n>   ```",) * 2,
        (r"\{glue:text}`answer` $\qvx$",) * 2,
        (":::{tip}\n```{admonition} B\nC\n```\n:::", "> **Tip**\n>\n> > **B**\n> >\n> > C"),
        ("[so {glue:text}`answer`](squash.md 'a title')", "[so 42](squash.ipynb 'a title')"),
        ("![a](_static/book.css) [b](#x)", "![a](../book/_static/book.css) [b](#x)"),
        ("{cite:p}`sabour2017`, {cite:t}`labml`",
         "(Sabour et al., 2017), Jayasiri and Wijerathne (2020)"),
        ("a | b\n--|--\n{term}`x` | {term}`y <z>`", "a | b\n--|--\nx | y"),
        ("(here)=\n## $\\qv$\n\n$$\n\\qv\n$$", "<a id=\"here\"></a>\n## $V$\n\n$$\nV\n$$"),
    ],
)  # fmt: skip
def test_what_a_notebook_shows(myst: str, markdown: str) -> None:
    assert lower(myst).replace(MACROS["qv"], "V") == markdown


@pytest.mark.parametrize(
    ("myst", "message"),
    [
        ("[it][there]\n\n[there]: squash.md", "expected [text](target), got a line [there]: …"),
        (":::{note}\ntext", "':::{note}' is not closed by :::"),
        ("```{tip}\n:class: 'a\n```", "directive {tip} : Invalid options"),
        ("- ```{note}\n  x\n  ```", "a block has no plain Markdown yet; add it here: '- ```{"),
        (":::{figure} x\n:::", "a block has no plain Markdown yet; add it here: ':::{figure} x'"),
        ("$$x$$ (label)", "a block has no plain Markdown yet"),
        ("Term\n: its definition", "a block has no plain Markdown yet"),
        ("{doc}`x`", "role {doc} has no plain Markdown yet; add it here"),
        ("{glue:text}`x`", "no cell glues 'x'"),
        ("{cite:p}`x`", "book/references.bib has no 'x'"),
        ("[](squash.md)", "expected [text](target), got '[](squash.md)'"),
        ("[a](nowhere.md)", "there is no nowhere.md"),
    ],
)
def test_what_cannot_be_shown_ends_in_one_line(myst: str, message: str) -> None:
    with pytest.raises(ChapterError, match="^squash.md: " + re.escape(message)):
        lower(myst)


def test_front_matter_that_is_no_yaml_is_shown_with_its_line() -> None:
    message = "front matter, line 3: mapping values are not allowed here: '0.5: a: b'"
    with pytest.raises(ChapterError, match=f"^{re.escape(message)}$"):
        front_matter("---\ncapsnet:\n  0.5: a: b\n---\n")
