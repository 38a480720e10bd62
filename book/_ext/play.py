"""What a reader can touch: the widgets of ``capsnet_book.play``, and the data that they ask for.

A drawing that carries data leaves them in a file of their own, which is loaded when the widget is.
"""

import re
import shutil
from itertools import count
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

from capsnet.checkpoint import load_weights
from capsnet_book import ledger
from capsnet_book.play import FOLDER, MARK, front, learn
from capsnet_book.play.knobs import save_decoder

TO_PLAY = """<a class="to-play" href="#play-{}">
<i class="fa-solid fa-hand-pointer" aria-hidden="true"></i>Interactive <span>figure</span></a>
"""
DATA = re.compile(re.escape(MARK[0]) + "(.*?)" + re.escape(MARK[1]), re.DOTALL)
PLACE = re.compile(r'class="[^"]*?(?<![\w-])(?:tag_)?play-(\w+)')


class SeparateData(SphinxPostTransform):
    """Move the widgets' data out of the page, and so out of what is searched, into files."""

    default_priority = 6  # after the drawings, which carry data
    builders = ("html", "singlehtml")

    def run(self, **_: Any) -> None:
        folder = Path(self.app.outdir, "_static", "play", "data")
        folder.mkdir(parents=True, exist_ok=True)
        number = count(1)

        def kept(found: re.Match[str]) -> str:
            name = f"{self.env.docname.removeprefix('book/')}-{next(number)}.json"
            (folder / name).write_text(found[1], encoding="utf-8")
            return f'<metadata class="play">{name}</metadata>'

        for raw in list(self.document.findall(nodes.raw)):
            if MARK[0] in raw.astext():
                raw.replace_self(nodes.raw("", DATA.sub(kept, raw.astext()), format="html"))


class Places(SphinxPostTransform):
    """Let a link lead to a cell with a widget, before a script has run."""

    default_priority = 6

    def run(self, **_: Any) -> None:
        for cell in self.document.findall(nodes.container):
            names = [name.removeprefix("tag_") for name in cell["classes"]]
            cell["ids"] += [name for name in names if name.startswith("play-")]


def add_scripts(app: Sphinx, page: str, template: str, context: dict[str, Any], *_: Any) -> None:
    """Load the scripts where a page has something to touch, and lead to the first from its top."""
    body = context.get("body", "")
    named = PLACE.findall(body)
    if named:
        if f'id="play-{named[0]}"' in body:  # not on the first page, which begins with it
            context["body"] = TO_PLAY.format(named[0]) + body
        at = context["pathto"]("_static/play/", 1)
        styles = [n for n in ("play", *sorted({*named})) if (FOLDER / f"{n}.css").exists()]
        links = [f'<link rel="stylesheet" href="{at}{name}.css">' for name in styles]
        links.append(f'<script type="module" src="{at}play.js"></script>')
        context["metatags"] = context.get("metatags", "") + "".join(links)


def place(app: Sphinx, error: Exception | None) -> None:
    if error or app.builder.format != "html":
        return
    folder = Path(app.outdir, "_static", "play")
    folder.mkdir(parents=True, exist_ok=True)
    for file in [*FOLDER.glob("*.js"), *FOLDER.glob("*.css")]:
        shutil.copy(file, folder)
    model, _ = load_weights(ledger.path("mnist/weights.safetensors"))
    assert model.decoder is not None
    save_decoder(model.decoder, folder / "data" / "decoder.safetensors")
    # In 8 bits already, as the page reads it.
    weights = ledger.path("multimnist/weights.safetensors")
    shutil.copy(weights, folder / "data" / "multimnist.safetensors")
    front.save(folder / "data")
    learn.save(folder / "data")


def setup(app: Sphinx) -> None:
    app.add_post_transform(SeparateData)
    app.add_post_transform(Places)
    app.connect("html-page-context", add_scripts, priority=600)
    app.connect("build-finished", place)
