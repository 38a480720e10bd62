"""MyST prose as plain Markdown."""

import re
import shutil
from pathlib import Path
from textwrap import dedent

import pytest

from lowering import ChapterError, Prose

ROOT = Path(__file__).parents[2]


@pytest.fixture
def lower(tmp_path):
    """Lower a text of the only chapter of a small book, which has a page and a picture too."""
    book = tmp_path / "book"
    book.mkdir()
    for name in ("chapter.md", "page.md", "picture.png"):
        (book / name).touch()
    sources = Path(shutil.copy(ROOT / "book" / "references.bib", book))
    chapter = book / "chapter.md"
    made = {chapter: tmp_path / "notebooks" / "chapter.ipynb"}
    prose = Prose(chapter, sources, made, {"answer": "42,000"})
    return lambda text: prose.lower(dedent(text).strip())


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
