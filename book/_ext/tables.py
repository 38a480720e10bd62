"""Tables: what a cell printed becomes one, or sentences; each cell of a wide one names its column.

A cell may print columns, with a head or without; an empty line keeps them apart from what else it
prints. A few other lines are sentences. What a program printed (tagged ``wrap`` or ``values``)
stays as it is.

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
FEW = 6  # lines, up to which they are sentences
PROGRAMS = {"tag_wrap", "tag_values"}  # of cells that show what a program prints
# How verdicts begin: for a claim, against it, or neither.
VERDICTS = [
    ("good", re.compile("confirmed")),
    ("bad", re.compile("refuted|reversed here|no difference as large as claimed|no[:,]|no$")),
    ("open", re.compile("open")),
]


def columns_of(lines: list[str]) -> list[list[str]]:
    """Lines cut where at least two spaces stand in all of them."""
    width = max(map(len, lines))
    lines = [line.ljust(width) for line in lines]
    used = "".join("x" if "".join(column).strip() else " " for column in zip(*lines, strict=True))
    columns = [found.span() for found in re.finditer("x+(?: x+)*", used)]
    return [[line[first:last] for first, last in columns] for line in lines]


def printed_rows(lines: list[str]) -> list[list[str]]:
    """The rows of aligned columns under a head, cell by cell; none of other output."""
    rows = columns_of(lines)
    if any(not "".join(row[1:]).strip() for row in rows):
        return []
    if any(cell.strip() and cell.endswith(" ") for row in rows for cell in row[1:]):
        return []  # they are not aligned to the right
    values = [[bool(VALUE.match(cell.strip())) for cell in row[1:]] for row in rows]
    named = any(below and not head for head, below in zip(values[0], values[1], strict=True))
    if rows[0][0].strip() and not named:
        return []
    return [[cell.strip() for cell in row] for row in rows]


def rows_without_head(lines: list[str]) -> list[list[str]]:
    """The cells of aligned columns, of which the first names its row; none of other lines."""
    rows = [[" ".join(cell.split()) for cell in row] for row in columns_of(lines)]
    names = {row[0].removesuffix(":") for row in rows}
    whole = all(all(row[:2]) and sum(not cell for cell in row) <= 1 for row in rows)
    if len(rows[0]) < 2 or not whole or len(names) < len(rows):
        return []
    if any(":" in name or VALUE.match(name) for name in names):
        return []
    return [[row[0].removesuffix(":"), *row[1:]] for row in rows]


def table_of(rows: list[list[str]], heads: int = 1) -> nodes.table:
    """Rows of texts, the head first if there is one, as a table."""
    group = nodes.tgroup("", cols=len(rows[0]))
    group += [nodes.colspec(colwidth=1) for _ in rows[0]]
    if heads:
        group += nodes.thead("", *(nodes.row("", *map(entry, row)) for row in rows[:heads]))
    group += nodes.tbody("", *(nodes.row("", *map(entry, row)) for row in rows[heads:]))
    for column in range(1, len(rows[0])):
        if any(len(row[column].split()) > 2 for row in rows[heads:]):
            for row in group[-1]:
                row[column]["classes"].append("words")
    return nodes.table("", group, classes=["colwidths-auto", "printed"])


def entry(text: str) -> nodes.entry:
    return nodes.entry("", nodes.paragraph("", text))


def stream(text: str, *kinds: str) -> nodes.literal_block:
    classes = ["output", "stream", *kinds]
    return nodes.literal_block(text, text, language="myst-ansi", classes=classes)


def legible(text: str) -> list[nodes.Element]:
    """Lines as a table, or as sentences; none if they are neither."""
    lines = text.split("\n")
    if len(lines) > 1:
        headed = printed_rows(lines)
        rows = headed or rows_without_head(lines)
        if rows:
            return [table_of(rows, bool(headed))]
    if len(lines) <= FEW and not any(line.startswith(("  ", "$")) for line in lines):
        return [stream(" ".join(line.split()), "sentence") for line in lines]
    return []


def tabulate(doctree: nodes.document) -> None:
    """Put tables or sentences in place of what cells printed."""
    for block in list(doctree.findall(nodes.literal_block)):
        if "stream" not in block["classes"]:
            continue
        within, at = set[str](), block.parent
        while at is not None:
            within |= {*at.get("classes", [])}
            at = at.parent
        parts = re.split(r"\n\s*\n", block.astext().strip("\n"))
        made = [[] if within & PROGRAMS else legible(part) for part in parts]
        if any(made):
            place = block.parent.index(block)
            found = zip(parts, made, strict=True)
            block.parent[place : place + 1] = [
                each for part, new in found for each in new or [stream(part)]
            ]
        elif len(parts) == 1 and "\n" not in parts[0]:
            block["classes"].append("sentence")
        elif LONG.search(block.astext()):
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
