"""The network in one strip at the head of a chapter: where the chapter stands is lit."""

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

# What of the network a chapter is about, and where each stage is explained.
STAGES = {
    "why": "image",
    "squash": "capsules lengths",
    "routing": "votes",
    "layers": "maps capsules",
    "margin": "lengths",
    "decoder": "mask drawing",
    "training": "",
    "reading": "lengths drawing",
    "inside": "lengths drawing",
    "annotated": "",
    "converging": "votes",
    "routings": "votes",
}
CHAPTER = {
    "image": "why",
    "maps": "layers",
    "capsules": "layers",
    "votes": "routing",
    "lengths": "margin",
    "mask": "decoder",
    "drawing": "decoder",
}
STAGE = re.compile(r'^<g class="stage" data-stage="(\w+)"(.*)$', re.MULTILINE)


def add_strip(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    chapter = pagename.removeprefix("book/")
    if chapter not in STAGES:
        return
    here = STAGES[chapter].split()

    def linked(found: re.Match[str]) -> str:
        name, rest = found.groups()
        place = context["pathto"](f"book/{CHAPTER[name]}")
        lit = " here" if name in here else ""
        return f'<a href="{place}"><g class="stage{lit}"{rest}</a>'

    drawing = Path(app.srcdir, "book", "_static", "strip.svg").read_text(encoding="utf-8")
    drawing = STAGE.sub(linked, drawing)
    strip = f'<nav class="strip" aria-label="The stages of the network">{drawing}</nav>'
    context["body"] = strip + context["body"]


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("html-page-context", add_strip, priority=450)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
