"""The reading layer: what a page shows of a notebook's cells, and what it folds.

``book/_tools/reading.py`` says what a cell is for. Solutions fold where they stand; set-up
is seen only by who wants *Everything*; the code of a figure or a table folds into the corner below
it; a check becomes a list of sentences, each of which opens its code. ``reading.js`` has the switch
*Read | Read with code | Everything*.
"""

import re
from html import escape
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

from capsnet_book.figures.macros import css_name
from capsnet_lab.figures.style import QUANTITIES
from reading import cell_role, glue_lines, split_check
from strip import STAGES  # the pages about the network

TITLES = {"setup": "set-up", "glue": "values for the text"}  # of all other code: "code"


def fold(kind: str, title: str, code: nodes.Element) -> list[nodes.Element]:
    """Code folded under a title, which is plain text but for `` `names` ``."""
    shown = 'class="own" open=""' if kind == "code" else f'class="fold of-{kind}"'
    title = re.sub(r"`(.+?)`", r"<code>\1</code>", escape(title))
    opening = nodes.raw("", f"<details {shown}><summary>{title}</summary>\n", format="html")
    return [opening, code, nodes.raw("", "</details>\n", format="html")]


class FoldCells(SphinxPostTransform):
    """Fold what a reader need not see; before MyST-NB (199) would fold it its own way."""

    default_priority = 198
    formats = ("html",)

    def run(self, **_: Any) -> None:
        for cell in list(self.document.findall(nodes.container)):
            if cell.get("nb_element") == "cell_code":
                self.fold(cell)

    def fold(self, cell: nodes.container) -> None:
        parts = {part.get("nb_element"): part for part in cell.children}
        code = parts.get("cell_code_source")
        if code is None:
            return
        source = code.astext()
        kind = cell_role(source, cell["cell_metadata"])
        cell["classes"].append(f"is-{kind}")
        if kind == "code":
            for block in code.findall(nodes.literal_block):
                hidden = [number + 1 for number in glue_lines(source)]
                block["highlight_args"] = {"hl_lines": hidden}
        if kind == "solution":
            return
        cell["hide_mode"] = None
        cell.remove(code)
        if kind == "check":
            (block,) = code.findall(nodes.literal_block)
            for sentence, proof in reversed(split_check(source)):
                own = block.copy()
                own.rawsource = proof
                own += nodes.Text(proof)
                cell.insert(0, fold("claim", sentence, own))
        else:
            below = kind in ("figure", "plumbing", "glue")
            cell.insert(len(cell) if below else 0, fold(kind, TITLES.get(kind, "code"), code))


# What a quantity is called in code, and the class that colours it.
NAMES = {name: css_name(name) for name in QUANTITIES}
TOKEN = re.compile(rf'<span class="n">({"|".join(map(re.escape, NAMES))})</span>')

# The beginning of a line that has a number, and by how much it is indented.
LINE = r'(<span id="[\w-]+")(><a [^>]*><span class="linenos">[^<]*</span></a>(?:<span class="w">)?)'
NUMBERED = re.compile(LINE + "( *)")


def colour(html: str, letters: bool) -> str:
    """Give the quantities in a listing their colours, and give the style each line's indentation.

    ``letters`` says whether a single one, such as ``s``, means what it means in the paper.
    """

    def coloured(token: re.Match[str]) -> str:
        name = token[1]
        mark = f" q-{NAMES[name]}" if letters or len(name) > 1 else ""
        return f'<span class="n{mark}">{name}</span>'

    html = TOKEN.sub(coloured, html).replace('class="hll"', 'class="plumbing-line"')
    # A line's number is a link to it, and no stop on the way of who uses the keys.
    html = NUMBERED.sub(lambda m: f'{m[1]} style="--indent: {len(m[3])}"{m[2]}{m[3]}', html)
    return html.replace('><a href="#', '><a tabindex="-1" href="#') if "linenos" in html else html


# Before anything is drawn: what the reader chose last time, and *Read* at first.
CHOICE = """<script>
document.documentElement.dataset.read = localStorage.getItem("read") ?? "read";
</script>"""
SWITCH = """<fieldset class="reading" data-notation="{notation}">
<legend class="visually-hidden">How much of the code to show</legend>
<label><input type="radio" name="read" value="read">Read</label>
<label><input type="radio" name="read" value="code">Read with code</label>
<label><input type="radio" name="read" value="all">Everything</label>
</fieldset>
"""


def offer_choice(app: Sphinx, page: str, template: str, context: dict[str, Any], *_: Any) -> None:
    """Offer the switch on a page that has cells."""
    if 'class="cell ' in context.get("body", ""):
        switch = SWITCH.format(notation=context["pathto"]("book/notation"))
        context["body"] = switch + context["body"]
        context["metatags"] = context.get("metatags", "") + CHOICE


def setup(app: Sphinx) -> None:
    app.connect("html-page-context", offer_choice)
    app.add_post_transform(FoldCells)
    app.connect("builder-inited", listings, priority=900)  # after the theme's translator


def listings(app: Sphinx) -> None:
    """Colour every listing as it is written, and names in the text; thin the listings out."""
    if app.builder.format != "html":
        return
    plain = app.registry.get_translator_class(app.builder)

    class Translator(plain):  # type: ignore[misc, valid-type]
        def visit_literal(self, node: nodes.literal) -> None:
            name = node.astext()
            if name in NAMES and (len(name) > 1 or self.letters()):
                node["classes"].append(f"q-{NAMES[name]}")
            super().visit_literal(node)

        def letters(self) -> bool:
            return self.builder.current_docname.removeprefix("book/") in STAGES

        def visit_literal_block(self, node: nodes.literal_block) -> None:
            first = len(self.body)
            try:
                super().visit_literal_block(node)
            finally:
                for place in range(first, len(self.body)):
                    self.body[place] = colour(self.body[place], self.letters())

    app.set_translator(app.builder.name, Translator, override=True)
