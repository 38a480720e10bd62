"""What a reader can touch: the widgets of ``capsnet_book.play``, and the data that they ask for.

A drawing that carries data leaves them in a file of their own, which is loaded when the widget is.
"""

import re
import shutil
from itertools import count
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from capsnet.checkpoint import load_weights
from capsnet_book import ledger
from capsnet_book.play import FOLDER, MARK, front
from capsnet_book.play.knobs import save_decoder

DATA = re.compile(re.escape(MARK[0]) + "(.*?)" + re.escape(MARK[1]), re.DOTALL)
PLACE = re.compile(r'class="[^"]*?(?<![\w-])(?:tag_)?play-(\w+)')


def separate(app: Sphinx, page: str, template: str, context: dict[str, Any], *_: Any) -> None:
    """Move the data out of the page, and load the scripts where a page has something to touch."""
    body = context.get("body", "")
    if not PLACE.search(body):
        return
    number = count(1)

    def kept(found: re.Match[str]) -> str:
        name = f"{page.removeprefix('book/')}-{next(number)}.json"
        folder = Path(app.outdir, "_static", "play", "data")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(found[1], encoding="utf-8")
        return f'<metadata class="play">{name}</metadata>'

    context["body"] = DATA.sub(kept, body)

    def at(name: str) -> str:
        return str(context["pathto"](f"_static/play/{name}", 1))

    names = ["play", *sorted(set(PLACE.findall(body)))]
    names = [name for name in names if (FOLDER / f"{name}.css").exists()]
    links = [f'<link rel="stylesheet" href="{at(name)}.css">' for name in names]
    links.append(f'<script type="module" src="{at("play.js")}"></script>')
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


def setup(app: Sphinx) -> None:
    app.connect("html-page-context", separate, priority=600)
    app.connect("build-finished", place)
