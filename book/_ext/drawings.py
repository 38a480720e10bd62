"""Drawings within the page: their ink, ground and quantities take the colours of the theme."""

import re
from html import escape
from itertools import count
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

from capsnet_book.figures.macros import SHADES
from capsnet_lab.figures.style import INK, PAPER

INKS = {light: f"var(--{name})" for name, (light, _) in SHADES.items()} | {
    INK: "currentColor",
    PAPER: "var(--pst-color-background, white)",
}
COLOUR = re.compile("|".join(INKS), re.IGNORECASE)
SIZE = re.compile(r'<svg [^>]*?width="([\d.]+)pt"[^>]*?viewBox="([^"]+)"')
POINT = 4 / 3  # pixels


def inline(svg: str, alt: str, mark: str) -> str:
    """A drawing's SVG as a part of a page; ``mark`` keeps its ids apart from those of others."""
    size = SIZE.search(svg)
    assert size, "expected the width and viewBox of a drawing, in points"
    body = svg[svg.index(">", size.start()) + 1 :]
    body = body.replace("font-family: sans-serif", "font-family: var(--signs)")
    body = re.sub(r"font-size: ([\d.]+px)", r"font-size: max(\1, var(--least, 0px))", body)
    asked = set(re.findall(r'(?:href="#|url\(#)([^")]+)', body))
    body = re.sub(r' id="([^"]+)"', lambda m: f' id="{mark}{m[1]}"' if m[1] in asked else "", body)
    body = re.sub(r'(href="#|url\(#)', rf"\1{mark}", body)
    body = COLOUR.sub(lambda m: INKS[m[0].upper()], body)
    wide = float(size[1]) * POINT
    return (
        f'<svg class="drawing" role="img" aria-label="{escape(alt)}" viewBox="{size[2]}" '
        f'style="width: {wide:.0f}px" preserveAspectRatio="xMidYMin" '  # at the top of a high box
        f'xmlns:xlink="http://www.w3.org/1999/xlink">{body}'
    )


class DrawInline(SphinxPostTransform):
    """Put each drawing that a cell made into its page, once MyST-NB has chosen what to show (4)."""

    default_priority = 5
    builders = ("html", "singlehtml")

    def run(self, **_: Any) -> None:
        number = count(1)
        for image in list(self.document.findall(nodes.image)):
            source = Path(self.env.srcdir, image["uri"])
            if source.suffix == ".svg" and "jupyter_execute" in source.parts:
                text = source.read_text(encoding="utf-8")
                drawing = inline(text, image.get("alt", ""), f"d{next(number)}-")
                image.replace_self(nodes.raw("", drawing, format="html"))


def setup(app: Sphinx) -> None:
    app.add_post_transform(DrawInline)
