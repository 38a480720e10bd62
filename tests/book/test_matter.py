"""The pages around the chapters: glossary, notation, bibliography, contents.

That terms, sources and links lead somewhere is the build's own check: its warnings are errors.
"""

import re

import pytest
from pybtex.database import parse_file

import capsnet
from capsnet.functional import RoutingStep
from capsnet.model import CapsNetOutput
from capsnet_book.figures.macros import MACROS
from helpers import ROOT
from myst import directives

BOOK = ROOT / "book"
PAGES = {page.stem: page.read_text(encoding="utf-8") for page in sorted(BOOK.glob("*.md"))}
SOURCES = parse_file(str(BOOK / "references.bib")).entries


def test_the_glossary_is_sorted_and_defines_each_term_once_in_whole_sentences():
    (body,) = (d.content for d in directives(PAGES["glossary"]) if d.name == "glossary")
    entries = dict(block.split("\n", 1) for block in body.strip().split("\n\n"))
    assert list(entries) == sorted(entries, key=str.casefold)
    assert len({term.casefold() for term in entries}) == len(body.strip().split("\n\n"))
    for term, definition in entries.items():
        assert definition.startswith("  ") and definition.endswith("."), term
        assert len(re.findall(r"[.?](?= [A-Z]|\n  [A-Z]|$)", definition)) <= 2, term
        assert len(re.findall(r"\{term\}|\]\(", definition)) <= 1, term


def test_every_quantity_with_a_colour_stands_in_the_notation_and_no_colour_is_typed():
    for macro in MACROS:
        assert re.search(rf"\\{macro}(?![A-Za-z])", PAGES["notation"])
    for page, text in PAGES.items():
        assert not re.search(r"#[0-9A-Fa-f]{6}\b|\\color", text), page


def test_the_names_of_the_notation_exist():
    where = {"RoutingStep": RoutingStep, "out": CapsNetOutput, "CapsNet": capsnet.CapsNet}
    for owner, name in re.findall(r"`(RoutingStep|out|CapsNet)\.(\w+)`", PAGES["notation"]):
        assert hasattr(where[owner], name), f"{owner}.{name}"
    assert "weight" in dict(capsnet.CapsuleLayer(2, 2, 2, 2).named_parameters())


@pytest.mark.parametrize("name", SOURCES)
def test_every_source_is_whole_and_in_one_section_of_the_bibliography(name):
    every, *sections = (d.options["filter"] for d in directives(PAGES["bibliography"]))
    words = set(re.findall(r'"(\w+)"', "".join(sections)))
    assert set(re.findall(r'"(\w+)"', every)) == words
    source = SOURCES[name]
    keywords = source.fields.get("keywords", "").replace(",", " ").split()
    assert len(keywords) <= 1 and set(keywords) <= words
    assert source.persons["author"] and source.fields["title"]
    assert re.fullmatch(r"(19|20)\d\d", source.fields["year"])
    assert re.match("https?://", source.fields["url"])


@pytest.mark.parametrize("page", PAGES)
def test_a_table_has_its_head_and_no_gap(page):
    """Rows after an empty line are shown as text, and no build complains."""
    prose = re.sub(r"^```.*?^```$", "", PAGES[page], flags=re.S | re.M)
    for table in re.findall(r"(?:^\|.*\n)+", prose, flags=re.M):
        assert re.match(r"\|.*\n\|[-:| ]+\|\n", table), table


def test_version_and_paper_are_the_same_everywhere():
    citation, paper = (ROOT / "CITATION.cff").read_text(), SOURCES["sabour2017"]
    assert f"\nversion: {capsnet.__version__}\n" in citation
    assert (
        re.search(r"^## (\S+),", (ROOT / "CHANGELOG.md").read_text(), re.M)[1]
        == capsnet.__version__
    )
    people = [f"family-names: {person.last_names[0]}" for person in paper.persons["author"]]
    assert all(said in citation for said in (*people, paper.fields["title"], paper.fields["url"]))
