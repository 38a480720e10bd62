"""Source with notes: what is a fault, what the page shows, and that the book's own notes fit."""

import os
import re
import subprocess
import sys
from itertools import chain
from pathlib import Path
from textwrap import dedent

import pytest

from lowering import ChapterError, Prose
from myst import directives
from notes import Source, annotated, checked_by, computed, contracts

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "book" / "annotated.md"

SOURCE = '''\
"""A module."""

import math


class Square:
    """Says :func:`what` it does.

    At length.
    """

    def area(self, side):
        """One line."""
        # half of it twice

        return side * side / 2 * 2
'''
NOTES = """\
# A page

:::{annotate} capsnet/square.py
```python
import math
```

Not *needed*.

```python
class Square:
```

No shape is simpler.
:::

Text between.

(equation-1)=
:::{computed} 1
:::

:::{annotate} capsnet/square.py
```python
    def area(self, side):
```

In square metres.

```python
        # half of it twice
        return side * side / 2 * 2
```

Equation [(1)](#equation-1), $x^2$.
:::
"""
TESTS = """\
import pytest

@pytest.mark.equation(1)
@pytest.mark.equation("a rule")
@pytest.mark.parametrize("x", [1])
def test_area(x): pass

def test_nothing(): pass
"""
SOURCE_FILE, PAGE_FILE = "capsnet/square.py", "book/page.md"


@pytest.fixture
def project(tmp_path):
    for folder in ("book", "capsnet", "tests"):
        (tmp_path / folder).mkdir()
    (tmp_path / SOURCE_FILE).write_text(SOURCE)
    (tmp_path / PAGE_FILE).write_text(NOTES)
    (tmp_path / "tests" / "test_square.py").write_text(TESTS)
    (tmp_path / "book" / "references.bib").write_text("")
    return tmp_path


def read(project):
    return annotated(project / PAGE_FILE, project)


def edit(path, old, new):
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


def faults(project):
    with pytest.raises(ChapterError) as caught:
        read(project)
    return str(caught.value)


def test_notes_stand_beside_the_live_lines_and_docstrings_are_filled_in(project):
    first, second = read(project).values()
    shown = [(listing.first, listing.last, listing.note) for listing in first + second]
    assert shown == [
        (1, 1, None),
        (3, 3, "Not *needed*."),
        (6, 6, "No shape is simpler."),
        (7, 10, None),
        (12, 12, "In square metres."),
        (13, 13, None),
        (14, 16, "Equation [(1)](#equation-1), $x^2$."),
    ]
    assert second[-1].code == "    # half of it twice\n\n    return side * side / 2 * 2"
    assert (second[-1].within, second[-1].anchor) == ("Square.area", "square-14")
    assert second[0].summary == "Says what it does."  # roles are for Sphinx


def test_a_docstring_at_the_end_is_shown(project):
    (project / SOURCE_FILE).write_text(SOURCE + '\n\nclass Cube:\n    """Last."""\n')
    edit(project / PAGE_FILE, "$x^2$.\n", "$x^2$.\n\n```python\nclass Cube:\n```\n\nNo.\n")
    _, second = read(project).values()
    assert [(listing.first, listing.note) for listing in second][-2:] == [(19, "No."), (20, None)]


def test_a_changed_docstring_or_blank_line_is_no_fault(project):
    edit(project / SOURCE_FILE, "    At length.\n", "\n\n    In short.\n")
    _, second = read(project).values()
    assert second[-1].first == 16


CHANGED = """\
book/page.md:32: a note's statement has changed at capsnet/square.py:16; the note is for (-), \
there is now (+)
  -         return side * side / 2 * 2
  +         return side**2"""


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        (SOURCE_FILE, "side * side / 2 * 2", "side**2", CHANGED),
        (SOURCE_FILE, "# half of it twice", "# twice its half", "book/page.md:31: a note's"),
        (SOURCE_FILE, "# half of it twice", "    # half of it twice", "book/page.md:31: a note's"),
        (
            SOURCE_FILE,
            "import math\n",
            "import math\nimport sys\n",
            "capsnet/square.py:4: no note for this; it belongs at book/page.md:11\n  + import sys",
        ),
        (SOURCE_FILE, "/ 2 * 2\n", "/ 2 * 2\n\nprint()\n", "capsnet/square.py:18: no note"),
        (
            SOURCE_FILE,
            "import math\n",
            "",
            "book/page.md:5: a note for what capsnet/square.py no longer has\n  - import math",
        ),
        (PAGE_FILE, "import math", "class Square:\n    pass", "book/page.md:5: "),  # the order
        (PAGE_FILE, "Not *needed*.", "", "book/page.md:5: there is no note under this listing"),
        (
            PAGE_FILE,
            "```\n\nIn square metres.\n\n```python\n        # half",
            "        # half",
            "book/page.md:25: end it before the docstring, capsnet/square.py:13",
        ),
        (PAGE_FILE, "```python\nimport math\n```\n", "", "book/page.md:5: a note comes after"),
        (PAGE_FILE, "import math\n", "\n", "book/page.md:4: an empty listing"),
        (PAGE_FILE, "$x^2$.\n:::", "$x^2$.", "square.py' is not closed by :::"),
    ],
)
def test_a_note_that_does_not_fit_is_told(project, file, old, new, told):
    edit(project / file, old, new)
    assert told in faults(project)


def test_every_fault_is_told_at_once(project):
    edit(project / SOURCE_FILE, "import math", "import sys")
    edit(project / SOURCE_FILE, "(self, side)", "(self)")
    told = faults(project)
    assert "book/page.md:5:" in told and "book/page.md:25:" in told


def test_directives_that_are_alike_are_not_mistaken_for_each_other(project):
    once = ":::{annotate} capsnet/square.py\n```python\nx = 1\n```\n\nOne.\n:::\n"
    (project / SOURCE_FILE).write_text("x = 1\nx = 1\n")
    (project / PAGE_FILE).write_text(once + once)
    assert "no note for this" in faults(project)


def test_a_file_that_is_gone_is_told(project):
    (project / SOURCE_FILE).unlink()
    assert faults(project) == "book/page.md: there is no capsnet/square.py"


def test_an_equation_leads_to_its_lines_and_its_tests(project):
    [[listing]] = computed(read(project), "1")
    assert (listing.lines, listing.within) == ("14–16", "Square.area")
    test = "tests/test_square.py::test_area"
    assert contracts(project) == {"1": [test], "a rule": [test]}
    assert checked_by(project, "a rule") == [test]
    with pytest.raises(ChapterError, match="no note links to #equation-a-rule"):
        computed(read(project), "a rule")
    with pytest.raises(ChapterError, match=re.escape("carries @pytest.mark.equation(2)")):
        checked_by(project, "2")


def prose(project):
    page = project / PAGE_FILE
    return Prose(page, page.with_name("references.bib"), {page: project / "page.ipynb"}, {})


def test_the_notebook_has_listings_and_notes_in_turn(project):
    lowered = prose(project).lower(NOTES[NOTES.index("(equation-1)=") :])
    assert lowered == dedent(
        '''\
        <a id="equation-1"></a>
        - Computed by
          - `Square.area`, square.py, lines [14–16](#square-14)
        - Tested by
          - `tests/test_square.py::test_area`

        <a id="square-7"></a><sub>square.py 7–10</sub>

        ```python
        """Says :func:`what` it does.

        At length.
        """
        ```

        <a id="square-12"></a><sub>square.py 12</sub>

        ```python
        def area(self, side):
        ```

        In square metres.

        <a id="square-13"></a><sub>square.py 13</sub>

        ```python
            """One line."""
        ```

        <a id="square-14"></a><sub>square.py 14–16</sub>

        ```python
            # half of it twice

            return side * side / 2 * 2
        ```

        Equation [(1)](#equation-1), $x^2$.'''
    )


def test_the_notebook_is_not_made_with_a_false_note(project):
    edit(project / SOURCE_FILE, "import math", "import sys")
    with pytest.raises(ChapterError, match=r"^book/page.md:5: a note's statement"):
        prose(project).lower(NOTES)


def build(project):
    (project / "conf.py").write_text(
        f"import sys\nsys.path.insert(0, {str(ROOT / 'tools')!r})\n"
        "extensions = ['myst_parser', 'annotated']\n"
        "myst_enable_extensions = ['colon_fence', 'dollarmath']\n"
        "root_doc = 'book/page'\ninclude_patterns = ['book/page.md']\n"
    )
    return subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "-n", "-q", ".", "html"],
        cwd=project,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def test_the_page_shows_lines_with_anchors_beside_their_notes(project):
    result = build(project)
    assert result.returncode == 0, result.stderr
    html = (project / "html" / "book" / "page.html").read_text()
    for number in (3, 6, 12, 14, 15, 16):
        assert html.count(f'id="square-{number}"') == 1
    assert 'href="#square-14">14–16</a>' in html
    assert "<summary>Says what it does.</summary>" in html
    assert re.search(r'class="annotated-note[^>]*>\s*<p>Not <em>needed</em>', html)
    assert re.search(r'<a [^>]*href="#equation-1"', html)
    assert "tests/test_square.py::test_area" in html


def test_the_build_fails_at_a_false_note(project):
    edit(project / SOURCE_FILE, "import math", "import sys")
    result = build(project)
    assert result.returncode != 0
    assert "book/page.md:5: a note's statement has changed at capsnet/square.py:3" in result.stderr
    assert "- import math" in result.stderr and "+ import sys" in result.stderr


def test_every_statement_of_the_three_files_has_its_note():
    covered = {}
    for listing in chain(*annotated(PAGE, ROOT).values()):
        lines = range(listing.first, listing.last + 1)
        covered.setdefault(listing.file, set()).update(lines)
    assert sorted(covered) == [f"capsnet/{name}.py" for name in ("functional", "layers", "model")]
    for file, lines in covered.items():
        assert {number for number, _ in Source(file, (ROOT / file).read_text()).code} <= lines


def test_every_marked_equation_is_on_the_page():
    asked = [d.argument for d in directives(PAGE.read_text()) if d.name == "computed"]
    assert sorted(asked) == sorted(contracts(ROOT))
    pieces = annotated(PAGE, ROOT)
    assert all(computed(pieces, equation) for equation in asked)
