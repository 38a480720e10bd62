"""What the lines around a block are, and what is no markup though it looks like it."""

from pathlib import Path

import pytest

from lowering import ChapterError, Prose

BOOK = Path(__file__).resolve().parent.parent.parent / "book"


def lower(text: str) -> str:
    page = BOOK / "squash.md"
    notebooks = {page: BOOK.parent / "notebooks" / "squash.ipynb"}
    return Prose(page, BOOK / "references.bib", notebooks, {"answer": "42"}).lower(text)


@pytest.mark.parametrize(
    ("myst", "markdown"),
    [
        ("- item\n\n  ```{note}\n  Look.\n  ```", "- item\n\n  > **Note**\n  >\n  > Look."),
        ("> ```{note}\n> Look.\n> ```", "> > **Note**\n> >\n> > Look."),
        ("[so {glue:text}`answer`](squash.md)", "[so 42](squash.ipynb)"),
        ("[*it*](squash.md 'a title')", "[*it*](squash.ipynb 'a title')"),
        ("[it](https://a.org/b_(c))", "[it](https://a.org/b_(c))"),
        ("$f[x](y)$ and <https://a.org>", "$f[x](y)$ and <https://a.org>"),
        ("```python\nx\n\n\ny\n```", "```python\nx\n\n\ny\n```"),
        ("    [it](nowhere.md)", "    [it](nowhere.md)".strip()),  # indented: code
        (r"\{glue:text}`answer`", r"\{glue:text}`answer`"),
    ],
)
def test_blocks_and_text_are_told_apart_as_in_the_book(myst: str, markdown: str) -> None:
    assert lower(myst) == markdown


@pytest.mark.parametrize(
    ("myst", "message"),
    [
        ("[it][there]\n\n[there]: squash.md", r"^squash.md: expected \[text\]\(target\), got"),
        (":::{note}\ntext", r"^squash.md: ':::\{note\}' is not closed by :::$"),
        ("```{figure} x.png\n:alt: 'a\n```", r"^squash.md: directive \{figure\} x.png: Invalid"),
    ],
)
def test_what_cannot_be_read_is_told_in_one_line(myst: str, message: str) -> None:
    with pytest.raises(ChapterError, match=message):
        lower(myst)
