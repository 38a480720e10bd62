"""Sphinx directives for source with a note for each statement, as ``notes.py`` reads it."""

import re
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from myst import ChapterError
from notes import Listing, Listings, lines_and_tests, location, read_notes

IMPORTS = re.compile(r"(?:(?:from|import) [^(\n]*(?:\([^)]*\))?\n*)+")  # a listing of nothing else


class Notes(SphinxDirective):
    """``annotate`` and ``computed``: parts of the page's notes, with the live source."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self) -> list[nodes.Node]:
        self.root = Path(self.env.srcdir).resolve()
        self.page = Path(self.env.doc2path(self.env.docname)).resolve()
        read = self.env.temp_data
        try:
            if "annotated" not in read:  # once a page
                read["annotated"] = read_notes(self.page, self.root)
            show = self.annotate if self.name == "annotate" else self.computed
            return [show(read["annotated"])]
        except ChapterError as error:
            raise self.error(str(error)) from None

    def annotate(self, notes: Listings) -> nodes.Node:
        """The statements of a file and their notes, side by side."""
        self.env.note_dependency(str(self.root / self.arguments[0]))
        listings = notes[self.arguments[0], "\n".join(self.content).strip()]
        return nodes.container("", *map(self.row, listings), classes=["annotated"])

    def row(self, listing: Listing) -> nodes.Node:
        if listing.note is None:
            folded = fold(listing.summary, self.code(listing))
            return nodes.container("", *folded, classes=["annotated-docstring"])
        note = nodes.container(classes=["annotated-note"])
        text = StringList(listing.note.splitlines(), source=str(self.page))
        self.state.nested_parse(text, self.content_offset, note)
        shown: list[nodes.Node] = []
        for part in listing.parts:
            code = self.code(part)
            if part.note is None:
                shown += fold(part.summary, code)
            else:
                shown += fold("imports", code) if IMPORTS.fullmatch(part.code) else [code]
        lines = nodes.container("", *shown, classes=["annotated-lines"])
        return nodes.container("", lines, note, classes=["annotated-row"])

    def code(self, listing: Listing) -> nodes.Node:
        return nodes.literal_block(
            listing.code,
            listing.code,
            language="python",
            linenos=True,
            highlight_args={
                "linenostart": listing.first,
                "linespans": Path(listing.file).stem,  # each line has its id: functional-47
                "anchorlinenos": True,
            },
        )

    def computed(self, notes: Listings) -> nodes.Node:
        """Where an equation is computed, and which tests check that."""
        groups, tests = lines_and_tests(notes, self.root, self.arguments[0])
        where = []
        for group in groups:
            name = nodes.literal("", group[0].within)
            line = nodes.paragraph("", "", name, nodes.Text(f", {location(group)}"))
            for listing in group:
                line += nodes.Text(", ") if listing is not group[0] else nodes.Text("")
                line += nodes.reference("", listing.lines, refid=listing.anchor, internal=True)
            where.append(line)
        chip = f"<details><summary>{len(tests)} test{'s' * (len(tests) > 1)}</summary>"
        opening, closing = (nodes.raw("", tag, format="html") for tag in (chip, "</details>"))
        checks = [nodes.paragraph("", "", nodes.literal("", test)) for test in tests]
        checks = [opening, *checks, closing]
        definitions = nodes.definition_list()
        for term, lines in {"Computed by": where, "Tested by": checks}.items():
            definition = nodes.definition("", *lines)
            definitions += nodes.definition_list_item("", nodes.term("", term), definition)
        return nodes.container("", definitions, classes=["computed"])


def fold(title: str, code: nodes.Node) -> list[nodes.Node]:
    opening = nodes.raw("", f"<details><summary>{escape(title)}</summary>", format="html")
    return [opening, code, nodes.raw("", "</details>", format="html")]


def add_style(app: Sphinx, page: str, template: str, context: dict[str, Any], *_: Any) -> None:
    """Add the style sheet of pages with notes."""
    if 'class="annotated ' in context.get("body", ""):
        app.add_css_file("annotated.css", priority=900)


def setup(app: Sphinx) -> None:
    app.connect("html-page-context", add_style)
    app.add_directive("annotate", Notes)
    app.add_directive("computed", Notes)
