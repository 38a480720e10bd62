"""The book as an EPUB: pages without scripts, and drawings as pictures in colours of their own."""

import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config

from capsnet_book.figures.macros import css_name
from capsnet_lab.figures.style import QUANTITIES

STYLES = {"epub.css", "pygments.css", "quantities.css"}
# What these add to a page of the site needs its scripts, its variables or its address.
OF_THE_SITE = {"cards", "folding", "links", "play", "predict", "strip", "typography"}


def set_title(app: Sphinx, config: Config) -> None:
    config.project = config.html_title
    config.version = version("capsnet")


def leave_out(app: Sphinx) -> None:
    """Let nothing add to a page what only the site has; colour the quantities."""
    if app.builder.name != "epub":
        return
    for event in ("html-page-context", "build-finished"):
        every = app.events.listeners[event]
        own = [each for each in every if each.handler.__module__ not in OF_THE_SITE]
        app.events.listeners[event] = own
    app.connect("html-page-context", without_scripts)
    colours = [f".q-{css_name(name)} {{ color: {it.colour} }}" for name, it in QUANTITIES.items()]
    file = Path(app.outdir, "_static", "quantities.css")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(colours), encoding="utf-8")
    app.add_css_file(file.name)


def without_scripts(
    app: Sphinx, page: str, template: str, context: dict[str, Any], *_: Any
) -> None:
    """Write a page as XML, without scripts: Thebe's too, which Sphinx puts into the text."""
    body = re.sub("<script.*?</script>", "", context.get("body", ""), flags=re.DOTALL)
    context["body"] = body.replace("<br>", "<br/>")  # cells put out HTML
    context["script_files"] = []
    styles = context["css_files"]
    context["css_files"] = [each for each in styles if Path(each.filename).name in STYLES]


def setup(app: Sphinx) -> None:
    app.connect("config-inited", set_title)
    app.connect("builder-inited", leave_out)
