"""What the built pages are made of: equations, drawings, type, cards."""

import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
import yaml
from docutils import nodes
from fontTools.ttLib import TTFont
from sphinx.errors import ExtensionError

import cards
import drawings
import mathml
import tables
import typography
from capsnet_book import figures
from capsnet_lab.figures import style
from helpers import ROOT
from myst import directives


def test_an_equation_is_set_with_its_quantities_marked() -> None:
    made = mathml.mathml(r"\qs_j = \sum_i \qc_{ij} \quhat_{j|i}", True)
    assert re.findall(r'class="(q-\w+)"', made) == ["q-s", "q-c", "q-uhat"]
    assert made.startswith("<math") and 'display="block"' in made
    assert "display" not in mathml.mathml(r"\qv", False)


def test_what_is_no_equation_is_an_error_and_the_next_one_is_set() -> None:
    with pytest.raises(ValueError, match="nonsense"):
        mathml.mathml(r"\nonsense{x}", False)
    assert "<mi>x</mi>" in mathml.mathml("x", False)


def test_a_drawing_takes_the_page_s_colours_and_keeps_its_ids_to_itself() -> None:
    with mpl.rc_context(style.STYLE):
        figure, axes = style.Figure.single(2)
        axes.plot([0, 1], color=style.QUANTITIES["u_hat"].colour)
        axes.plot([1, 0], color="#123456")
    one, other = (drawings.inline(figure._repr_svg_(), "a <b>", mark) for mark in ("d1-", "d2-"))
    assert 'aria-label="a &lt;b&gt;"' in one and "<metadata" not in one
    assert "var(--q-uhat)" in one and "#123456" in one and "currentColor" in one
    for colour in drawings.INKS:
        assert colour.lower() not in one.lower()
    ids = [set(re.findall(r' id="([^"]+)"', drawing)) for drawing in (one, other)]
    asked = [set(re.findall(r'(?:href="#|url\(#)([^")]+)', drawing)) for drawing in (one, other)]
    assert ids == asked and ids[0] and not ids[0] & ids[1]


def test_type_is_cut_down_to_what_is_used(tmp_path: Path) -> None:
    source = typography.MODULES / typography.FONTS["stix-two-math"][3]
    typography.subset_font(source, tmp_path / "cut.woff2", {"x", "∑", "𝐯"})
    with TTFont(tmp_path / "cut.woff2") as font:
        assert {*map(ord, "x∑𝐯")} <= font.getBestCmap().keys()
        assert ord("y") not in font.getBestCmap()
        assert "MATH" in font
    assert (tmp_path / "cut.woff2").stat().st_size < source.stat().st_size / 20


def test_a_theme_that_writes_other_pages_stops_the_build(tmp_path: Path) -> None:
    html = '<div class="sidebar-primary-items__start"><p role="doc-biblioentry"></p></div>'
    html += '<i data-theme="auto"></i>'
    html += '<meta name="viewport" content="width=device-width, initial-scale=1"/>'
    (tmp_path / "search.html").write_text(f"<head></head>{html}")
    script = '<script src="searchtools.js"></script>\n'
    for missing in (script, "doc-biblioentry"):
        (tmp_path / "page.html").write_text(html + script)
        for file in tmp_path.glob("*.html"):
            file.write_text(file.read_text().replace(missing, ""))
        with pytest.raises(ExtensionError, match="which the theme no longer writes"):
            typography.replace_in_pages(tmp_path)
    with pytest.raises(ExtensionError, match="expected the theme's icons"):
        typography.subset_icons(tmp_path, "")


def test_what_a_card_says(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("---\ncapsnet:\n  question: Why?\n---\n\n# A page\n\n" + "word " * 448)
    assert cards.front_matter_of(page) == {"question": "Why?"}
    assert cards.reading_minutes(page) == 3
    page.write_text("# A page\n")
    assert cards.front_matter_of(page) == {} and cards.reading_minutes(page) == 1
    assert cards.first_drawing(tmp_path / "none.ipynb") is None


@pytest.mark.parametrize("dark", [False, True])
def test_a_card_s_picture_fits_and_has_no_ground_of_its_own(dark: bool) -> None:
    drawing = figures.palette()._repr_svg_()
    picture = cards.rasterise(drawing, cards.CARD, dark)
    assert picture.width <= cards.CARD[0] and picture.height <= cards.CARD[1] + 1
    corners = [(x, y) for x in (0, picture.width - 1) for y in (0, picture.height - 1)]
    assert [picture.getpixel(corner)[3] for corner in corners] == [0, 0, 0, 0]
    inks = {colour[:3] for _, colour in picture.getcolors(1 << 20) if colour[3] == 255}
    assert ((0xCE, 0xD6, 0xDD) in inks) == dark


def test_the_front_page_has_a_card_of_every_numbered_chapter() -> None:
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    parts = [part for part in toc["parts"] if "numbered" in part]
    chapters = [Path(each["file"]).name for part in parts for each in part["chapters"]]
    index = (ROOT / "book" / "index.md").read_text(encoding="utf-8")
    shown = [found.content.split() for found in directives(index) if found.name == "cards"]
    assert [name for names in shown for name in names] == chapters


def test_a_table_of_claims_is_wide_and_colours_how_its_verdicts_begin() -> None:
    said = ["confirmed in one network", "no: it is lower", "open", "depends", "not reached"]
    table = tables.table_of([["claim", "here"], *(["so", each] for each in said)])
    tables.name_columns(None, nodes.section("", table), "")
    body = table[0][-1]
    classes = [row[-1]["classes"] for row in body]
    neither = ["words", "verdict"]
    assert classes == [[*neither, "good"], [*neither, "bad"], [*neither, "open"], neither, neither]
    assert "wide" in table["classes"]
    assert body[0].astext().endswith("here: confirmed in one network")


def test_columns_that_are_wider_than_a_phone_are_marked() -> None:
    for text, marked in (
        (f"digit{' ' * 40}0   1   2\nof the slant{' ' * 33}8   6  12\n", True),
        (f"a sentence {'that goes on ' * 5}\nand another\n", False),
        ("a   1\nb   2\n", False),
    ):
        block = nodes.literal_block(text, text, classes=["stream"])
        tables.tabulate(nodes.section("", block, classes=["tag_wrap"]))  # a program's, left so
        assert ("long-lines" in block["classes"]) == marked


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("net     error, %  runs\nfirst       0.66    10\nsecond              12\n",
         [["net", "error, %", "runs", "first", "0.66", "10", "second", "", "12"]]),
        ("            with a digit\nuntrained           −0.1\n",
         [["", "with a digit", "untrained", "−0.1"]]),
        ("net  runs\nwith two threads 10\n", ["net runs", "with two threads 10"]),
        ("step 1: loss  0.5\nstep 10: loss 0.4\n", ["step 1: loss 0.5", "step 10: loss 0.4"]),
        ("one   line\n", ["one line"]),
        ("results:    True\ngradients:  two or three words\n",
         [["results", "True", "gradients", "two or three words"]]),
        ("length 1   becomes 0.50\nlength 2   becomes 0.80, at most\n\nthe end\n",
         [["length 1", "becomes 0.50", "length 2", "becomes 0.80, at most"], "the end"]),
        ("it is: so\nand   not so\n", ["it is: so", "and not so"]),
        ("$ capsnet\n  an answer\n", ["$ capsnet\n  an answer"]),
    ],
)  # fmt: skip
def test_what_a_cell_printed_becomes_tables_and_sentences(text: str, parts: list[Any]) -> None:
    block = nodes.literal_block(text, text, classes=["stream"])
    cell = nodes.section("", block)
    tables.tabulate(cell)
    found = [
        [each.astext() for each in part.findall(nodes.entry)]
        if isinstance(part, nodes.table)
        else part.astext().strip()
        for part in cell
    ]
    assert found == parts
