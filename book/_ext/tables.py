"""The name of its column in each cell of a wide table, which gets the class ``wide``: on a phone,
where each row is a card and the head is not shown, nothing else says what the cell is. An empty
cell of a head gets a name for who hears the table, and a verdict on a claim its colour.
"""

from docutils import nodes
from sphinx.application import Sphinx

WIDE = 4  # columns, from which on rows are cards
VERDICTS = {"confirmed": "good", "refuted": "bad"}  # what they begin with; all others are neither


def name_columns(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    for table in doctree.findall(nodes.table):
        for group in table.findall(nodes.tgroup):
            heads = [entry.astext() for head in group.findall(nodes.thead) for entry in head[0]]
            for entry in group.findall(nodes.entry):
                if not entry.astext().strip() and isinstance(entry.parent.parent, nodes.thead):
                    hidden = nodes.inline("", "row", classes=["visually-hidden"])
                    entry[:] = [nodes.paragraph("", "", hidden)]
            for row in [*group.findall(nodes.row)][1:] if heads[-1:] == ["verdict"] else []:
                word = row[-1].astext().split(";")[0]
                row[-1]["classes"] += ["verdict", VERDICTS.get(word, "open")]
            if len(heads) < WIDE:
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
