"""The chapters as cards (picture, question, minutes), and their descriptions for search engines.

A chapter's front matter has its question (``capsnet: question: …``). The picture is its first
figure, the minutes are its words and lines of code.
"""

import io
import re
from html import escape
from pathlib import Path
from typing import Any

import matplotlib as mpl
import nbformat
from docutils import nodes
from PIL import Image
from resvg_py import svg_to_bytes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import reading
from capsnet_lab.figures.style import PAPER
from myst import front_matter

WORDS, LINES = 200, 20  # that a reader takes in, a minute
PICTURES = "_static/cards"


def about(source: Path) -> dict[str, Any]:
    """The book's own part of a page's front matter, ``capsnet``."""
    return front_matter(source.read_text(encoding="utf-8")).get("capsnet") or {}


def minutes(source: Path) -> int:
    text = source.read_text(encoding="utf-8")
    return max(1, round(reading.words(text) / WORDS + reading.lines(text) / LINES))


def first_drawing(notebook: Path) -> str | None:
    """The first figure of a notebook."""
    cells = nbformat.read(notebook, as_version=4).cells if notebook.is_file() else []
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    drawings = [output.get("data", {}).get("image/svg+xml") for output in outputs]
    return next(filter(None, drawings), None)


def small(drawing: str) -> bytes:
    """A drawing as a light PNG of a card's size, for a screen of two pixels a point."""
    pixels = svg_to_bytes(
        svg_string=drawing,
        width=360,
        dpi=96,
        background=PAPER,
        font_dirs=[str(Path(mpl.get_data_path(), "fonts", "ttf"))],
        sans_serif_family="DejaVu Sans",
        skip_system_fonts=True,  # the same picture on every machine
    )
    made = io.BytesIO()
    with Image.open(io.BytesIO(bytes(pixels))) as whole:
        picture = whole.crop((0, 0, whole.width, min(whole.height, 200)))  # what a card shows
        picture.convert("RGB").quantize(24, dither=Image.Dither.NONE).save(
            made, "PNG", optimize=True
        )
    return made.getvalue()


class Cards(nodes.General, nodes.Element):
    """Cards of the chapters that ``names`` lists."""


class CardsDirective(SphinxDirective):
    has_content = True

    def run(self) -> list[nodes.Node]:
        return [Cards(names=" ".join(self.content).split())]


def visit_cards(translator: Any, node: Cards) -> None:
    builder = translator.builder
    root = Path(builder.env.srcdir)
    top = "../" * builder.current_docname.count("/")
    shown = []
    for name in node["names"]:
        page, source = f"book/{name}", root / "book" / f"{name}.md"
        number = builder.env.toc_secnumbers.get(page, {}).get("")
        title = escape(builder.env.titles[page].astext())
        picture = ""
        if drawing := first_drawing(root / "notebooks" / f"{name}.ipynb"):
            file = Path(builder.outdir, PICTURES, f"{name}.png")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(small(drawing))
            picture = f'<img src="{top}{PICTURES}/{name}.png" alt="" loading="lazy"/>'
        shown.append(
            f'<li><a href="{builder.get_relative_uri(builder.current_docname, page)}">'
            f'<span class="picture">{picture}</span>'
            f"<strong>{f'{number[0]}. ' if number else ''}{title}</strong>"
            f"<span>{escape(about(source).get('question', ''))}</span>"
            f"<small>{minutes(source)} min</small></a></li>"
        )
    translator.body.append(f'<ul class="cards">{"".join(shown)}</ul>')
    raise nodes.SkipNode


def describe(app: Sphinx, page: str, template: str, context: dict[str, Any], *_: Any) -> None:
    """Describe the page for search engines and for whoever shares its link."""
    source = Path(app.srcdir, f"{page}.md")
    head = about(source) if source.is_file() else {}
    context["title"] = head.get("title", context.get("title"))
    context["metatags"] = f'{context.get("metatags", "")}<meta name="page" content="{page}">\n'
    if said := head.get("question"):
        base = app.config.html_baseurl or context["content_root"]
        tags = {
            'name="description"': said,
            'property="og:title"': re.sub(r"<[^>]*>", "", context["title"]),
            'property="og:description"': said,
            'property="og:type"': "article",
            'property="og:image"': f"{base}_static/reconstructions.png",
        }
        lines = (f'<meta {name} content="{escape(text)}">' for name, text in tags.items())
        context["metatags"] += "\n".join(lines)


def setup(app: Sphinx) -> None:
    app.add_node(Cards, html=(visit_cards, None))
    app.add_directive("cards", CardsDirective)
    app.connect("html-page-context", describe)
