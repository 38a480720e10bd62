"""The pages around the chapters: glossary, notation, bibliography, changelog, contents."""

import importlib
import re
import tomllib
from itertools import chain
from pathlib import Path

import pytest
from pybtex.database import parse_file

import capsnet
from capsnet.figures.style import MACROS
from capsnet.functional import RoutingStep
from capsnet.model import CapsNetOutput
from myst import directives, split_target, walk

ROOT = Path(__file__).resolve().parent.parent.parent
BOOK = ROOT / "book"
PAGES = {page.stem: page.read_text(encoding="utf-8") for page in sorted(BOOK.glob("*.md"))}
EACH_PAGE = pytest.mark.parametrize("page", PAGES)
SOURCES = parse_file(str(BOOK / "references.bib")).entries


def inline(page, kind):
    """The tokens of one kind within a page's paragraphs."""
    tokens = chain(*(token.children or [] for token in walk(PAGES[page], page)))
    return [token for token in tokens if token.type == kind]


def roles(page, *names):
    """What the roles of these names hold on a page."""
    return [token.content for token in inline(page, "myst_role") if token.meta["name"] in names]


def glossary():
    """The glossary's terms and definitions, in the page's order."""
    (body,) = (d.content for d in directives(PAGES["glossary"]) if d.name == "glossary")
    return [block.split("\n", 1) for block in body.strip().split("\n\n")]


def test_the_glossary_is_sorted_and_without_duplicates():
    terms = [term.casefold() for term, *_ in glossary()]
    assert terms == sorted(terms)
    assert len(terms) == len(set(terms))


def test_every_term_has_a_definition_of_whole_sentences():
    for term, *definition in glossary():
        assert definition, f"{term} has no definition"
        assert definition[0].startswith("  ") and definition[0].endswith("."), term


@EACH_PAGE
def test_every_term_that_a_page_names_is_in_the_glossary(page):
    known = {term.casefold() for term, *_ in glossary()}
    named = {split_target(text)[1].casefold() for text in roles(page, "term")}
    assert named <= known


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


@pytest.mark.parametrize("name", list(SOURCES))
def test_every_source_has_author_title_year_and_address(name):
    source = SOURCES[name]
    assert source.persons["author"]
    assert re.fullmatch(r"(19|20)\d\d", source.fields["year"])
    assert source.fields["title"]
    assert source.fields["url"].startswith(("https://", "http://"))


def test_every_source_stands_in_one_section_of_the_bibliography():
    filters = [d.options["filter"] for d in directives(PAGES["bibliography"])]
    words = set(re.findall(r'"(\w+)"', "".join(filters[1:])))
    assert set(re.findall(r'"(\w+)"', filters[0])) == words
    for name, source in SOURCES.items():
        keywords = source.fields.get("keywords", "").replace(",", " ").split()
        assert len(keywords) <= 1, name
        assert set(keywords) <= words, f"{name}: {keywords}"


@EACH_PAGE
def test_what_is_cited_is_in_the_bibliography(page):
    cited = ",".join(roles(page, "cite", "cite:p", "cite:t"))
    assert set(re.findall(r"[^\s,]+", cited)) <= SOURCES.keys()


def test_one_page_alone_lists_the_sources():
    listing = {page for page, text in PAGES.items() if "{bibliography}" in text}
    assert listing == {"bibliography"}


def test_every_page_is_in_the_contents():
    assert set(re.findall(r"book/(\w+)", (ROOT / "_toc.yml").read_text())) == set(PAGES)


@EACH_PAGE
def test_every_link_leads_to_a_page(page):
    links = [token.attrs["href"] for token in inline(page, "link_open")]
    pictures = [token.attrs["src"] for token in inline(page, "image")]
    for target in (link.partition("#")[0] for link in links + pictures):
        assert ":" in target or (BOOK / target).exists(), f"{page}.md links to {target}"


def test_version_and_year_are_the_same_everywhere():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    newest = re.findall(r"^## (\S+),", PAGES["changelog"], re.M)[0]
    assert newest == version


def test_the_cited_paper_is_the_same_in_both_places():
    citation = (ROOT / "CITATION.cff").read_text()
    paper = SOURCES["sabour2017"]
    for person in paper.persons["author"]:
        assert f"family-names: {person.last_names[0]}" in citation
    assert paper.fields["title"] in citation
    assert paper.fields["url"] in citation
