"""The chapters as cards (picture, question, minutes), and their descriptions for search engines.

A chapter's front matter has its question (``capsnet: question: …``). The picture is its first
figure, the minutes are its words and lines of code. What a link to the site shows where it is
shared needs whole addresses, and so the address of the repository.
"""

import io
import re
from functools import cache
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
from capsnet_book.figures.macros import SHADES
from capsnet_lab.figures.style import INK, PAPER
from drawings import SIZE
from myst import front_matter

WORDS, CELLS = 150, 3  # that a reader takes in, a minute: of prose, or of code
PLAYS = re.compile(r"^ *:?tags: .*\b(play-\w+)", re.MULTILINE)  # a chapter with a widget
HAND = '<i class="fa-solid fa-hand-pointer" aria-hidden="true"></i>interactive'
PICTURES = "_static/cards"
CARD = 640, 300  # pixels of a card's picture, on a fine screen
SHARED = 1200, 630  # pixels of the picture that a shared link shows
DARK = {INK: "#CED6DD", **dict(SHADES.values())}
# A page that has no words of its own, at an address that is none of the book's pages.
BARE_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
{head}
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="_static/favicon.svg">
<style>body {{ max-width: 40rem; margin: 20vh auto; padding: 0 1rem; font: 1.2rem/1.5 serif }}
:root {{ color-scheme: light dark }}</style>
</head>
<body><main><h1>{title}</h1><p>{says}</p></main></body>
</html>
"""


def front_matter_of(source: Path) -> dict[str, Any]:
    """The book's own part of a page's front matter, ``capsnet``."""
    return front_matter(source.read_text(encoding="utf-8")).get("capsnet") or {}


def reading_minutes(source: Path) -> int:
    text = source.read_text(encoding="utf-8")
    return max(1, round(reading.count_words(text) / WORDS + reading.count_cells(text) / CELLS))


def first_drawing(notebook: Path) -> str | None:
    """The first figure of a notebook."""
    cells = nbformat.read(notebook, as_version=4).cells if notebook.is_file() else []
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    drawings = [output.get("data", {}).get("image/svg+xml") for output in outputs]
    return next(filter(None, drawings), None)


def rasterise(drawing: str, size: tuple[int, int], dark: bool = False) -> Image.Image:
    """A drawing that just fits into a size in pixels, without a ground."""
    found = SIZE.search(drawing)
    assert found, "expected the viewBox of a drawing"
    _, _, wide, high = map(float, found[2].split())
    for colour, other in {PAPER: "none", **(DARK if dark else {})}.items():
        drawing = re.sub(colour, other, drawing, flags=re.IGNORECASE)
    pixels = svg_to_bytes(
        svg_string=drawing,
        width=round(min(size[0], size[1] * wide / high)),
        dpi=96,
        font_dirs=[str(Path(mpl.get_data_path(), "fonts", "ttf"))],
        sans_serif_family="DejaVu Sans",
        skip_system_fonts=True,  # the same picture on every machine
    )
    return Image.open(io.BytesIO(bytes(pixels))).convert("RGBA")


def save(picture: Image.Image, file: Path) -> None:
    """Save a picture as a light PNG."""
    file.parent.mkdir(parents=True, exist_ok=True)
    picture.quantize(32, dither=Image.Dither.NONE).save(file, optimize=True)


class Cards(nodes.General, nodes.Element):
    """Cards of the chapters that ``names`` lists."""


class CardsDirective(SphinxDirective):
    has_content = True

    def run(self) -> list[nodes.Node]:
        return [Cards(names=" ".join(self.content).split())]


def card(app: Sphinx, page: str, top: str) -> str:
    """What the card of a page shows; ``top`` leads from where it stands to the site's folder."""
    name, source = page.rpartition("/")[2], Path(app.srcdir, f"{page}.md")
    picture = ""
    if drawing := first_drawing(Path(app.srcdir, "notebooks", f"{name}.ipynb")):
        for shade in ("light", "dark"):
            file = Path(app.outdir, PICTURES, f"{name}-{shade}.png")
            if not file.is_file():
                save(rasterise(drawing, CARD, dark=shade == "dark"), file)
            address = f"{top}{PICTURES}/{file.name}"
            picture += f'<img class="only-{shade}" src="{address}" alt="" loading="lazy"/>'
        picture = f'<span class="picture">{picture}</span>'
    number = app.env.toc_secnumbers.get(page, {}).get("")
    title = f"{number[0]}. " if number else ""
    title += escape(app.env.titles[page].astext())
    question = escape(front_matter_of(source).get("question", ""))
    return (
        f"{picture}<strong>{title}</strong>"
        f'<span class="question">{question}</span><small>{reading_minutes(source)} min</small>'
    )


def visit_cards(translator: Any, node: Cards) -> None:
    builder = translator.builder
    here = builder.current_docname
    top = "../" * here.count("/")
    translator.body.append('<ul class="cards">')
    for page in (f"book/{name}" for name in node["names"]):
        address = builder.get_relative_uri(here, page)
        shown = f'<a href="{address}">{card(builder.app, page, top)}</a>'
        text = Path(builder.srcdir, f"{page}.md").read_text(encoding="utf-8")
        if widget := PLAYS.search(text):
            shown += f'<a class="plays" href="{address}#{widget[1]}">{HAND}</a>'
        translator.body.append(f"<li>{shown}</li>")
    translator.body.append("</ul>")
    raise nodes.SkipNode


def show_next(app: Sphinx, page: str, template: str, context: dict[str, Any], *_: Any) -> None:
    """Show the next page as a card at the end of this one."""
    _, _, following = app.builder.relations.get(page, (None, None, None))  # type: ignore[attr-defined]
    if following:
        context["next_title"] = card(app, following, context["pathto"]("", 1))


@cache  # the address of the site shows the picture of its first page
def shared_picture(app: Sphinx, name: str) -> str:
    """The picture of a shared link, in the middle of a sheet; of a page without figures our own."""
    drawing = first_drawing(Path(app.srcdir, "notebooks", f"{name}.ipynb"))
    if drawing is None:
        return "_static/reconstructions.png"
    width, height = SHARED
    fitted = rasterise(drawing, (width - 80, height - 80))
    whole = Image.new("RGBA", SHARED, PAPER)
    whole.alpha_composite(fitted, ((width - fitted.width) // 2, (height - fitted.height) // 2))
    picture = f"{PICTURES}/{name}-shared.png"
    save(whole, Path(app.outdir, picture))
    return picture


def head_tags(app: Sphinx, page: str, title: str, says: str) -> str:
    """What the head of a page tells search engines, and whoever shares its link."""
    site = app.config.html_baseurl
    about_it = {
        'name="description"': says,
        'property="og:title"': title,
        'property="og:description"': says,
        'property="og:type"': "article",
        'property="og:site_name"': app.config.html_title,
    }
    if site:
        about_it |= {
            'property="og:url"': f"{site}{page}.html",
            'property="og:image"': f"{site}{shared_picture(app, page.rpartition('/')[2])}",
            'name="twitter:card"': "summary_large_image",
        }
    return "\n".join(f'<meta {name} content="{escape(text)}">' for name, text in about_it.items())


def describe(app: Sphinx, page: str, template: str, context: dict[str, Any], *_: Any) -> None:
    """Give a page its title, its description and its name, which the search asks for."""
    source = Path(app.srcdir, f"{page}.md")
    head = front_matter_of(source) if source.is_file() else {}
    context["title"] = head.get("title", context.get("title"))
    title, book = re.sub(r"<[^>]*>", "", context["title"] or ""), app.config.html_title
    said = head_tags(
        app, page, f"{title} · {book}" if title else book, head.get("question") or title
    )
    name = f'<meta name="page" content="{page}">\n'
    context["metatags"] = context.get("metatags", "") + name + said


def add_plain_pages(app: Sphinx, error: Exception | None) -> None:
    """Lead from the address of the site to its first page, also from an address that is none.

    Where the address is known, list all pages for search engines.
    """
    if error or app.builder.name != "html":
        return
    site, book, first = app.config.html_baseurl, app.config.html_title, app.config.root_doc
    question = front_matter_of(Path(app.srcdir, f"{first}.md")).get("question", book)
    head = f"<title>{escape(book)}</title>\n"
    head += f'<meta http-equiv="refresh" content="0; url={first}.html">\n'
    head += head_tags(app, first, book, question)
    if site:
        head += f'\n<link rel="canonical" href="{site}{first}.html">'
    says = f'<a href="{first}.html">{escape(question)}</a>'
    index = BARE_PAGE.format(head=head, title=escape(book), says=says)
    Path(app.outdir, "index.html").write_text(index, encoding="utf-8")
    if site:  # who asks for a page that is not there may ask in any folder
        head = f'<base href="{site}">\n<title>Not found · {escape(book)}</title>'
        says = f'This page is not in the book. <a href="{first}.html">Its first page</a> lists all.'
        missing = BARE_PAGE.format(head=head, title="Not found", says=says)
        Path(app.outdir, "404.html").write_text(missing, encoding="utf-8")
        pages = [f"{site}{page}.html\n" for page in sorted(app.env.found_docs)]
        Path(app.outdir, "sitemap.txt").write_text("".join(pages), encoding="utf-8")


def setup(app: Sphinx) -> None:
    app.add_node(Cards, html=(visit_cards, None))
    app.add_directive("cards", CardsDirective)
    app.connect("html-page-context", describe)
    app.connect("html-page-context", show_next)
    app.connect("build-finished", add_plain_pages, priority=400)  # before an empty `/` is made
