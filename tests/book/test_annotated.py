"""Source with notes: what is a fault, what the page shows, and that the book's own notes fit."""

import re

import pytest

from helpers import ROOT
from lowering import Prose
from myst import ChapterError, directives
from notes import contracts, lines_and_tests, read_notes

PAGE = ROOT / "book" / "annotated.md"

SOURCE = '''\
"""A module."""

import math


class Square:
    """Says :func:`what` it does."""

    def area(self, side):
        # half of it twice

        return side * side / 2 * 2
'''
NOTES = """\
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
TESTS = '@pytest.mark.equation(1)\n@pytest.mark.equation("a rule")\ndef test_area(): pass\n'
COMPUTED = """\
<a id="equation-1"></a>
- Computed by
  - `Square.area`, square.py, lines [10–12](#square-10)
- Tested by
  - `tests/test_square.py::test_area`

<a id="square-7"></a><sub>square.py 7</sub>
"""
SOURCE_FILE, PAGE_FILE = "capsnet/square.py", "book/page.md"


@pytest.fixture
def project(tmp_path):
    files = {SOURCE_FILE: SOURCE, PAGE_FILE: NOTES, "tests/test_square.py": TESTS}
    for name, text in {**files, "book/references.bib": ""}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def edit(path, old, new):
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        (SOURCE_FILE, "/ 2 * 2", "/ 1", ":28: the note is for '        return side * side / 2 * 2',"
         " but capsnet/square.py:12 has '        return side * side / 1'"),
        (SOURCE_FILE, "math\n", "math\nx = 1\n", ":9: the note is for 'class Square:', but caps"),
        (PAGE_FILE, "* 2\n", "* 2\nx = 1\n", ":29: the note is for 'x = 1', but capsnet/"),
        (PAGE_FILE, "square.py\n```python\ni", "a.py\n```python\ni", ": there is no capsnet/a.py"),
        (SOURCE_FILE, "2 * 2\n", "2 * 2\nx = 1\n", ":end: the note is for '', but capsnet/square"),
        (PAGE_FILE, "Not *needed*.", "", ":2: expected a listing and its note"),
        (PAGE_FILE, "```python\nimport math\n```\n", "", ":3: expected a listing, got ['Not"),
        (PAGE_FILE, "$x^2$.\n:::", "$x^2$.", ": ':::{annotate} capsnet/square.py' is not closed"),
    ],
)  # fmt: skip
def test_a_note_that_does_not_fit_ends_in_one_line(project, file, old, new, message):
    edit(project / file, old, new)
    with pytest.raises(ChapterError, match=re.escape("book/page.md" + message)) as caught:
        read_notes(project / PAGE_FILE, project)
    assert "\n" not in str(caught.value)


def test_a_changed_docstring_is_no_fault(project):
    edit(project / SOURCE_FILE, "it does.", "it does.\n\n\n    In short.\n    ")
    first, second = read_notes(project / PAGE_FILE, project).values()
    shown = [(listing.first, listing.note) for listing in (*first, *second)]
    assert shown[:3] == [(1, None), (3, "Not *needed*."), (6, "No shape is simpler.")]
    assert [first for first, _ in shown[3:]] == [7, 13, 14]


def test_a_docstring_within_the_lines_of_a_note_is_a_part_of_its_own(project):
    edit(
        project / SOURCE_FILE,
        "side):\n",
        'side):\n        """Half, twice.\n\n        x\n        """\n\n',
    )
    old = "(self, side):\n```\n\nIn square metres.\n\n```python\n        # half"
    edit(project / PAGE_FILE, old, "(self, side):\n        # half")
    *_, area = read_notes(project / PAGE_FILE, project).values()
    signature, document, body = area[-1].parts
    assert (signature.first, signature.code) == (9, "def area(self, side):")
    assert (document.first, document.note, document.summary) == (10, None, "Half, twice.")
    assert (body.first, body.last, body.note) == (15, 17, area[-1].note)
    assert [part.code for part in body.parts] == [body.code]


def test_an_equation_without_a_note_or_a_test_is_refused(project):
    edit(project / PAGE_FILE, "[(1)](#equation-1)", "[(2)](#equation-2)")
    notes = read_notes(project / PAGE_FILE, project)
    assert contracts(project).keys() == {"1", "a rule"}
    for message in (
        "equation 1: no note has",
        "equation 2: no test carries @pytest.mark.equation(2)",
    ):
        with pytest.raises(ChapterError, match=re.escape(message)):
            lines_and_tests(notes, project, message[9])


def test_the_notebook_has_listings_and_notes_in_turn(project):
    page = project / PAGE_FILE
    prose = Prose(page, project, {page: project / "page.ipynb"}, {})
    lowered = prose.lower(NOTES[NOTES.index("(equation-1)=") :])
    assert lowered.startswith(COMPUTED)
    assert "\n\n```python\ndef area(self, side):\n```\n\nIn square metres.\n\n" in lowered
    last = "```python\n    # half of it twice\n\n    return side * side / 2 * 2\n```"
    assert lowered.endswith(last + "\n\nEquation [(1)](#equation-1), $x^2$.")


def test_every_statement_of_the_three_files_has_its_note_and_every_equation_its_lines():
    notes = read_notes(PAGE, ROOT)
    files = {f"capsnet/{name}.py" for name in ("functional", "layers", "model")}
    assert {file for file, _ in notes} == files
    asked = [d.argument for d in directives(PAGE.read_text()) if d.name == "computed"]
    assert sorted(asked) == sorted(contracts(ROOT))
    assert all(lines_and_tests(notes, ROOT, equation) for equation in asked)
    book = " ".join(" ".join(page.read_text("utf-8") for page in ROOT.glob("book/*.md")).split())
    numbers = {*re.findall(r"\\tag\{([^}]*)\}", book)}
    named = {equation for equation in asked if not equation.isdigit()}
    assert {"1", "2", "3", "4"} <= numbers == {*asked} - named
    for name in named:
        assert re.search(rf"\b{re.escape(name)}\b", book, re.IGNORECASE), name
