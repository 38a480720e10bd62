"""Tables: columns that a cell printed become one, and each cell of a wide one names its column.

A wide table gets the class ``wide``: on a phone, where each row is a card and the head is not
shown, nothing else says what a cell is. An empty cell of a head gets a name for who hears the
table, and a verdict on a claim its colour; a table of claims is wide whatever its columns.
"""

import re

from docutils import nodes
from sphinx.application import Sphinx

WIDE = 4  # columns, from which on rows are cards
LONG = re.compile(r"^(?=.{47})\S.*\S {2,}\S", re.MULTILINE)  # columns wider than a phone
VALUE = re.compile(r"[\[±+−-]? ?\d|nan")  # what a cell begins with that is no head
# How verdicts begin: for a claim, against it, or neither.
VERDICTS = [
    ("good", re.compile("confirmed")),
    ("bad", re.compile("refuted|reversed here|no difference as large as claimed|no[:,]|no$")),
    ("open", re.compile("open")),
]


def printed_rows(text: str) -> list[list[str]]:
    """The rows of aligned columns under a head, cell by cell; none of other output."""
    lines = text.rstrip("\n").split("\n")
    width = max(map(len, lines))
    lines = [line.ljust(width) for line in lines]
    used = "".join("x" if "".join(column).strip() else " " for column in zip(*lines, strict=True))
    columns = [found.span() for found in re.finditer("x+(?: x+)*", used)]
    rows = [[line[first:last] for first, last in columns] for line in lines]
    if len(rows) < 2 or any(not "".join(row[1:]).strip() for row in rows):
        return []
    if any(cell.strip() and cell.endswith(" ") for row in rows for cell in row[1:]):
        return []  # they are not aligned to the right
    values = [[bool(VALUE.match(cell.strip())) for cell in row[1:]] for row in rows]
    if not any(below and not head for head, below in zip(*values[:2], strict=True)):
        return []
    return [[cell.strip() for cell in row] for row in rows]


def table_of(rows: list[list[str]]) -> nodes.table:
    """Rows of texts, the head first, as a table."""
    group = nodes.tgroup("", cols=len(rows[0]))
    group += [nodes.colspec(colwidth=1) for _ in rows[0]]
    for part, its_rows in ((nodes.thead, rows[:1]), (nodes.tbody, rows[1:])):
        group += part("", *(nodes.row("", *map(entry, row)) for row in its_rows))
    return nodes.table("", group, classes=["colwidths-auto", "printed"])


def entry(text: str) -> nodes.entry:
    return nodes.entry("", nodes.paragraph("", text))


def tabulate(doctree: nodes.document) -> None:
    """Put tables in place of columns that cells printed."""
    for block in list(doctree.findall(nodes.literal_block)):
        if "stream" in block["classes"] and (rows := printed_rows(block.astext())):
            block.replace_self(table_of(rows))
        elif "stream" in block["classes"] and "\n" not in block.astext().strip():
            block["classes"].append("sentence")
        elif "stream" in block["classes"] and LONG.search(block.astext()):
            block["classes"].append("long-lines")


def name_columns(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    tabulate(doctree)
    for table in doctree.findall(nodes.table):
        for group in table.findall(nodes.tgroup):
            heads = [entry.astext() for head in group.findall(nodes.thead) for entry in head[0]]
            for entry in group.findall(nodes.entry):
                if not entry.astext().strip() and isinstance(entry.parent.parent, nodes.thead):
                    hidden = nodes.inline("", "row", classes=["visually-hidden"])
                    entry[:] = [nodes.paragraph("", "", hidden)]
            has_verdicts = heads[-1:] == ["verdict"] or heads[:1] == ["claim"]
            for row in [*group.findall(nodes.row)][1:] if has_verdicts else []:
                said = row[-1].astext().strip()
                kinds = [kind for kind, begins in VERDICTS if begins.match(said)]
                row[-1]["classes"] += ["verdict", *kinds]
            if len(heads) < WIDE and not has_verdicts:
                continue
            table["classes"].append("wide")
            for body in group.findall(nodes.tbody):
                for row in body:
                    for head, entry in zip(heads[1:], row[1:], strict=True):
                        # An empty cell needs no name.
                        if head and entry.astext().strip():
                            entry[0].insert(0, nodes.inline("", f"{head}: ", classes=["column"]))


def setup(app: Sphinx) -> None:
    app.connect("doctree-resolved", name_columns)
