"""The page of the module's names: Sphinx's autodoc, with what a comment says of a field.

In the code a comment beside or above a field says what the field is; autodoc reads such comments
only where they begin with ``#:``. An equation that a docstring names becomes a link.
"""

import re
from typing import Any

from docutils import nodes
from sphinx import pycode
from sphinx.application import Sphinx
from sphinx.ext.napoleon.docstring import GoogleDocstring
from sphinx.pycode.parser import Parser as PlainParser
from sphinx.util.nodes import make_refnode

FIELD = re.compile(r"^(    (?:\w+: .*  )?#) ", re.MULTILINE)
EQUATION = re.compile(r"\b[Ee]q\. (\d)|\bProcedure 1\b")


class Parser(PlainParser):
    """Reads a module's source as if each comment on a field were one for autodoc."""

    def __init__(self, code: str, encoding: str = "utf-8") -> None:
        super().__init__(FIELD.sub(r"\1: ", code), encoding)


def read_returns(docstring: GoogleDocstring, preprocess_types: bool = False) -> list[Any]:
    """All that stands under *Returns*: in these docstrings no type stands before a colon."""
    return [("", "", docstring._dedent(docstring._consume_to_next_section()))]


def read_attribute(docstring: GoogleDocstring) -> list[str]:
    """A field's whole comment: in these comments, too, no type stands before a colon."""
    return docstring._consume_to_end()


def link_equations(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    def link(found: re.Match[str]) -> str:
        return f":ref:`{found[0]} <equation-{found[1] or 'procedure-1'}>`"

    lines[:] = [EQUATION.sub(link, line) for line in lines]


def link_unique_name(
    app: Sphinx, env: Any, node: Any, inside: nodes.TextElement
) -> nodes.Element | None:
    """Link a name to the one entry of the page whose name ends like it.

    Without this, names of other packages, and of modules that the page leaves out, are warnings.
    """
    if node.get("refdomain") != "py":
        return None
    last = node["reftarget"].rpartition(".")[2]
    known = env.domains["py"].objects
    places = [
        place
        for name, place in known.items()
        if name.rpartition(".")[2] == last and not place.aliased
    ]
    if len(places) != 1:
        return inside
    (place,) = places
    return make_refnode(app.builder, node["refdoc"], place.docname, place.node_id, inside)


def setup(app: Sphinx) -> None:
    app.setup_extension("sphinx.ext.autodoc")
    app.setup_extension("sphinx.ext.napoleon")
    pycode.Parser = Parser  # type: ignore[attr-defined]
    GoogleDocstring._consume_returns_section = read_returns  # type: ignore[method-assign, assignment]
    GoogleDocstring._parse_attribute_docstring = read_attribute  # type: ignore[method-assign, assignment]
    app.connect("autodoc-process-docstring", link_equations)
    app.connect("missing-reference", link_unique_name)
