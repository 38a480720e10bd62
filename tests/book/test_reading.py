"""What a page folds of its cells, and how long a chapter may be."""

import ast
import re
from pathlib import Path

import pytest
from docutils import nodes
from sphinx.errors import ExtensionError

import reading
from folding import FoldCells, colour
from helpers import ROOT
from make_notebooks import chapters
from predict import answer_of, check_answer


@pytest.mark.parametrize(
    ("source", "metadata", "role"),
    [
        ("import torch\nfrom a import (\n    b,\n)", {}, "setup"),
        ("import torch\nx = 1", {}, "code"),
        ("import torch", {"tags": ["hide-cell"]}, "solution"),
        ("glue('a', 1)\nglue(\n    'b', 2)", {"tags": ["hide-input"]}, "glue"),
        ("x = 1\nglue('a', x)", {}, "code"),
        ("print(1)", {"tags": ["hide-input", "nbval-ignore-output"]}, "plumbing"),
        ("draw()", {"mystnb": {"figure": {"caption": "A is long."}}}, "figure"),
        ("draw()", {"mystnb": {"image": {"alt": "words"}}}, "code"),
        ("# One is one.\nassert 1 == 1", {"tags": ["check"]}, "check"),
        ("%pip install x\n!ls\ny = 2", {}, "code"),
    ],
)
def test_what_a_cell_is_for(source, metadata, role) -> None:
    assert reading.cell_role(source, metadata) == role


def test_lines_that_name_a_value_for_the_text() -> None:
    source = 'x = 1\nglue("x", x)\ny = f(\n    glue,\n)\nglue(\n    "y",\n    y,\n)\nprint(x)'
    assert reading.glue_lines(source) == {1, 5, 6, 7, 8}


def test_a_check_is_sentences_with_their_proofs() -> None:
    source = (
        "# A is\n# long.\nassert a\n\nfor b in c:\n    # a remark\n    assert b\n# D.\nassert d\n"
    )
    assert reading.split_check(source) == [
        ("A is long.", "assert a\n\nfor b in c:\n    # a remark\n    assert b"),
        ("D.", "assert d"),
    ]


@pytest.mark.parametrize("source", ["assert a\n# A.\nassert a", "# A.\nassert a\n# B.\n"])
def test_a_sentence_without_a_proof_is_refused_and_a_proof_without_one(source, refuses) -> None:
    with refuses("expected comments", repr(source)[1:-3]):
        reading.split_check(source)


@pytest.mark.parametrize(("letters", "mark"), [(True, " q-s"), (False, "")])
def test_a_letter_is_a_quantity_where_the_page_is_about_the_network(letters, mark) -> None:
    shown = colour('<span class="n">u_hat</span> <span class="n">s</span>', letters)
    assert shown == f'<span class="n q-uhat">u_hat</span> <span class="n{mark}">s</span>'


def cell(source: str, **metadata: object) -> nodes.container:
    code = nodes.container(nb_element="cell_code_source")
    code += nodes.literal_block(source, source)
    shown = nodes.container("", nodes.paragraph(text="shown"), nb_element="cell_code_output")
    return nodes.container("", code, shown, nb_element="cell_code", cell_metadata=metadata)


@pytest.mark.parametrize(
    ("made", "order"),
    [
        (cell("x = 1"), ["code: x = 1", "shown"]),
        (cell("import x"), ["set-up: import x", "shown"]),
        (cell("draw()", mystnb={"figure": {}}), ["shown", "code: draw()"]),
        (cell("table()", tags=["hide-input"]), ["shown", "code: table()"]),
        (cell("# A.\nassert a\n# B.\nassert b", tags=["check"]),
         ["A.: assert a", "B.: assert b", "shown"]),
        (cell("answer()", tags=["hide-cell"]), ["answer()", "shown"]),
    ],
)  # fmt: skip
def test_where_the_code_of_a_cell_goes(made, order) -> None:
    FoldCells.fold(FoldCells.__new__(FoldCells), made)
    said = "\n".join(part.astext() for part in made.children)
    parts = re.sub(r"<details.*<summary>(.*)</summary>\n+", r"\1: ", said).split("\n")
    assert [part for part in parts if part and part != "</details>"] == order


@pytest.mark.parametrize("classes", [["answer-4"], ["answer-1", "answer-2"], []])
def test_a_prediction_names_the_right_one_of_its_choices(classes) -> None:
    with pytest.raises(ExtensionError, match=r"expected one of .*answer-3"):
        check_answer(nodes.admonition(classes=["predict", *classes]), 3)


def test_the_answer_to_a_prediction_ends_with_the_paragraph_after_its_cell() -> None:
    box = nodes.admonition(classes=["predict"])
    first, end, rest = (nodes.paragraph(text=text) for text in ("Here:", "So it is.", "Next."))
    parts = [first, cell("x = 1"), cell("y = 2"), end]
    nodes.section("", nodes.paragraph(), box, *parts, rest)
    assert answer_of(box) == parts


REFERENCE = {"annotated"}  # a listing with its notes, to look things up in
CHAPTERS = [path for path in chapters() if path.stem not in REFERENCE]


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_is_no_longer_than_a_reader_s_patience(chapter: Path) -> None:
    text = chapter.read_text(encoding="utf-8")
    assert reading.count_words(text) <= reading.MOST_WORDS
    assert reading.count_lines(text) <= reading.MOST_LINES
    assert text.count(":class: predict") <= 2
    cells = [f for _, f in reading.blocks(text) if f and f.name == "code-cell"]
    by_role: dict[str, list[str]] = {"check": [], "solution": []}
    for cell in cells:
        by_role.setdefault(reading.cell_role(cell.content, cell.options), []).append(cell.content)
    assert sum(len(reading.split_check(check)) for check in by_role["check"]) <= 10
    for solution in by_role["solution"]:
        # A typed conclusion is no answer: a reader has nothing to compare their own with.
        calls = [node for node in ast.walk(ast.parse(solution)) if isinstance(node, ast.Call)]
        printed = [call.args for call in calls if ast.unparse(call.func) == "print"]
        assert any(not isinstance(each, ast.Constant) for args in printed for each in args)


LIKE_A_LIST = re.compile(r"^[A-Za-z].*\n(?:\d+\.|[-+*>]) .*", re.MULTILINE)


@pytest.mark.parametrize("page", sorted((ROOT / "book").glob("*.md")), ids=lambda path: path.stem)
def test_no_line_of_a_paragraph_begins_like_a_list(page) -> None:
    """Markdown would end the paragraph there: "between 0 and", and below it "1. Let"."""
    prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    assert LIKE_A_LIST.findall(prose) == []
