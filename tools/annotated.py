"""A Sphinx extension: source with a note beside each statement, as ``notes.py`` reads it."""

from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from myst import ChapterError
from notes import Listing, Pieces, annotated, computed, place


class NotesDirective(SphinxDirective):
    """What the two directives share: the page's notes, beside the live source."""

    required_arguments = 1
    final_argument_whitespace = True

    def notes(self) -> Pieces:
        """Those of the whole page, read once; an error of the build where one is false."""
        read = self.env.temp_data
        try:
            if "annotated" not in read:
                read["annotated"] = annotated(self.page(), self.root())
            return read["annotated"]
        except ChapterError as error:
            raise self.error(str(error)) from None

    def root(self) -> Path:
        return Path(self.env.srcdir).resolve()

    def page(self) -> Path:
        return Path(self.env.doc2path(self.env.docname)).resolve()


class Annotate(NotesDirective):
    """The statements of a file and their notes, side by side."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(self.root() / self.arguments[0]))
        listings = self.notes()[self.arguments[0], "\n".join(self.content).strip()]
        return [nodes.container("", *map(self.row, listings), classes=["annotated"])]

    def row(self, listing: Listing) -> nodes.Node:
        code = nodes.literal_block(
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
        if listing.note is None:
            summary = f"<details><summary>{escape(listing.summary)}</summary>"
            opening, closing = (
                nodes.raw("", html, format="html") for html in (summary, "</details>")
            )
            return nodes.container("", opening, code, closing, classes=["annotated-docstring"])
        note = nodes.container(classes=["annotated-note"])
        text = StringList(listing.note.splitlines(), source=str(self.page()))
        self.state.nested_parse(text, self.content_offset, note)
        return nodes.container("", code, note, classes=["annotated-row"])


class Computed(NotesDirective):
    """Where an equation is computed, and which tests check that."""

    def run(self) -> list[nodes.Node]:
        try:
            groups, tests = computed(self.notes(), self.root(), self.arguments[0])
        except ChapterError as error:
            raise self.error(str(error)) from None
        where = []
        for group in groups:
            name = nodes.literal("", group[0].within)
            line = nodes.paragraph("", "", name, nodes.Text(f", {place(group)}"))
            for listing in group:
                line += nodes.Text(", ") if listing is not group[0] else nodes.Text("")
                line += nodes.reference("", listing.lines, refid=listing.anchor, internal=True)
            where.append(line)
        checks = [nodes.paragraph("", "", nodes.literal("", test)) for test in tests]
        found = nodes.definition_list()
        for term, lines in {"Computed by": where, "Tested by": checks}.items():
            definition = nodes.definition("", *lines)
            found += nodes.definition_list_item("", nodes.term("", term), definition)
        return [nodes.container("", found, classes=["computed"])]


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("annotate", Annotate)
    app.add_directive("computed", Computed)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
