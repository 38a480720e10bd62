"""The pages around the chapters: glossary, notation, bibliography, changelog, contents."""

import importlib
import re
import tomllib
from pathlib import Path

import pytest
from pybtex.database import parse_file

import capsnet
from capsnet.functional import RoutingStep
from capsnet.model import CapsNetOutput
from capsnet_book.figures import MACROS

ROOT = Path(__file__).resolve().parent.parent.parent
BOOK = ROOT / "book"
PAGES = {page.stem: page.read_text(encoding="utf-8") for page in sorted(BOOK.glob("*.md"))}
EACH_PAGE = pytest.mark.parametrize("page", PAGES)
SOURCES = parse_file(str(BOOK / "references.bib")).entries


def without_code(text):
    """A page's prose: no cells, listings or inline code, but directives and roles."""
    text = re.sub(r"^ *```(?:\{code-cell\}|\w+)\n?.*?^ *```$", "", text, flags=re.M | re.S)
    return re.sub(r"(\{[\w:-]+\}`[^`]*`)|`[^`\n]*`", r"\1", text)


def glossary():
    """The glossary's terms and definitions, in the page's order."""
    (body,) = re.findall(r"```\{glossary\}\n(.*?)```$", PAGES["glossary"], re.M | re.S)
    entries = []
    for block in body.strip().split("\n\n"):
        term, *definition = block.splitlines()
        assert not term.startswith(" "), term
        assert definition, f"{term} has no definition"
        assert all(line.startswith("  ") for line in definition), term
        entries.append((term, " ".join(line.strip() for line in definition)))
    return entries


# --- Glossary ---------------------------------------------------------------------------------


def test_the_glossary_is_sorted_and_without_duplicates():
    terms = [term.casefold() for term, _ in glossary()]
    assert terms == sorted(terms)
    assert len(terms) == len(set(terms))


def test_definitions_are_sentences_and_short():
    for term, definition in glossary():
        assert definition[0].isupper() or definition[0].isdigit(), term
        assert definition.endswith("."), term
        assert len(definition) < 400, f"{term}: {len(definition)} characters"


@EACH_PAGE
def test_every_term_that_a_page_names_is_in_the_glossary(page):
    known = {term.casefold() for term, _ in glossary()}
    named = re.findall(r"\{term\}`(?:[^`<]*<([^>`]+)>|([^`]+))`", without_code(PAGES[page]))
    for target in (" ".join((a or b).split()) for a, b in named):
        assert target.casefold() in known, f"{page}.md: {target}"


# --- Notation ---------------------------------------------------------------------------------


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


# --- What differs -----------------------------------------------------------------------------


def test_the_functions_and_options_that_the_differences_name_exist():
    modules = [
        importlib.import_module(f"capsnet.{name}")
        for name in ("functional", "layers", "model", "training", "data")
    ]
    table = PAGES["differences"].partition("## What the paper leaves open")[2]
    rows = [line.split("|") for line in table.partition("### Measured")[0].splitlines()]
    places = [row[4].strip() for row in rows if len(row) == 6][2:]
    assert len(places) > 10
    for place in places:
        first = re.match(r"`([\w.]+)", place)[1]
        head, *rest = first.split(".")
        if head == "torch":
            continue
        thing = next(getattr(module, head) for module in modules if hasattr(module, head))
        for name in rest:
            assert hasattr(thing, name), place
    assert {"CapsNet(learn_prior=True)", "squash"} <= {place.split("`")[1] for place in places}


# --- Sources ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(SOURCES))
def test_every_source_has_author_title_year_and_address(name):
    source = SOURCES[name]
    assert source.persons["author"]
    assert re.fullmatch(r"(19|20)\d\d", source.fields["year"])
    assert source.fields["title"]
    assert source.fields["url"].startswith(("https://", "http://"))


def test_every_source_stands_in_one_section_of_the_bibliography():
    filters = re.findall(r":filter: (.*)", PAGES["bibliography"])
    words = {word for line in filters[1:] for word in re.findall(r'"(\w+)"', line)}
    assert set(re.findall(r'"(\w+)"', filters[0])) == words
    for name, source in SOURCES.items():
        keywords = source.fields.get("keywords", "").replace(",", " ").split()
        assert len(keywords) <= 1, name
        assert set(keywords) <= words, f"{name}: {keywords}"


@EACH_PAGE
def test_what_is_cited_is_in_the_bibliography(page):
    for names in re.findall(r"\{cite(?::[pt])?\}`([^`]+)`", without_code(PAGES[page])):
        for name in re.split(r"\s*,\s*", names):
            assert name in SOURCES, f"{page}.md cites {name}"


def test_one_page_alone_lists_the_sources():
    assert [page for page, text in PAGES.items() if "{bibliography}" in text] == ["bibliography"]


# --- Contents, changelog, citation ------------------------------------------------------------


def test_every_page_is_in_the_contents_and_every_link_leads_to_a_page():
    contents = (ROOT / "_toc.yml").read_text()
    assert set(re.findall(r"book/(\w+)", contents)) == set(PAGES)
    for page, text in PAGES.items():
        for target in re.findall(r"\]\(([\w/.-]+)(?:#[\w-]+)?\)", without_code(text)):
            assert (BOOK / target).exists(), f"{page}.md links to {target}"


def test_version_and_year_are_the_same_everywhere():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    newest = re.findall(r"^## (\S+),", PAGES["changelog"], re.M)[0]
    assert newest == version
    assert not (ROOT / "CHANGELOG.md").exists()


def test_the_cited_paper_is_the_same_in_both_places():
    citation = (ROOT / "CITATION.cff").read_text()
    paper = SOURCES["sabour2017"]
    for person in paper.persons["author"]:
        assert f"family-names: {person.last_names[0]}" in citation
    assert paper.fields["title"] in citation
    assert paper.fields["url"] in citation
