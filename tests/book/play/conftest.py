"""A widget alone on a page, in a real browser: no build of the site is needed."""

import base64
import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
import torch

import dress
from address import ROOT
from capsnet.checkpoint import load_weights
from capsnet_book import ledger
from capsnet_book.play import FOLDER, MARK, front
from capsnet_book.play.knobs import save_decoder
from helpers.pages import served

# As on a page of the book: its style, and a figure as wide as there (621 px, on a phone 340).
PAGE = """<!doctype html><html lang="en" data-theme="light"><head><title>{name}</title>
<meta name="viewport" content="width=device-width">
<link rel="stylesheet" href="book.css"><link rel="stylesheet" href="play.css">
<link rel="stylesheet" href="{name}.css">
<style>{palette}
* {{ box-sizing: border-box; }} button {{ font: inherit; }} figure {{ margin: 0 17px; }}
html {{ --pst-color-border: #d0d7de; --pst-color-surface: #f6f8fa; --pst-color-primary: #0b5cad;
  --pst-color-background: #fff; background: var(--pst-color-background); color: #1f2328; }}
html[data-theme=dark] {{ --pst-color-border: #48566b; --pst-color-surface: #29313d;
  --pst-color-background: #14181e; color: #ced6dd; }}</style></head>
<body><main style="max-width: 655px; margin: auto"><h1>{name}</h1>
<figure class="play-{name} is-playing"><img class="poster" alt="">
<div class="play play-of-{name}"></div></figure>
</main><script type="module">
import {{ mount }} from "./{name}.js";
import {{ unpack }} from "./kit.js";
const data = unpack(await (await fetch("data.json")).json());
await mount(document.querySelector(".play"), data);
document.body.dataset.ready = "";
</script></body></html>"""
SIZES = {False: {"width": 1440, "height": 900}, True: {"width": 390, "height": 844}}  # a phone


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripts, styles and weights, as a page of the built site finds them."""
    place = tmp_path_factory.mktemp("play")
    for file in [*FOLDER.glob("*.js"), *FOLDER.glob("*.css"), ROOT / "book/_static/book.css"]:
        shutil.copy(file, place)
    (place / "data").mkdir()
    for name in ("page", "multimnist"):
        weights = ledger.path(f"{name}/weights.safetensors")
        shutil.copy(weights, place / "data" / f"{name}.safetensors")
    model, _ = load_weights(ledger.path("mnist/weights.safetensors"))
    save_decoder(model.decoder, place / "data" / "decoder.safetensors")
    return place


@pytest.fixture(scope="session")
def address(folder: Path) -> Iterator[str]:
    with served(folder) as place:
        yield place


@pytest.fixture(scope="session")
def packed() -> dict[str, str]:
    """What the chapters give each widget, as JSON, from the committed notebooks."""
    found = {}
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            for name in re.findall(r"play-(\w+)", " ".join(cell.metadata.get("tags", []))):
                drawing = cell.outputs[-1]["data"].get("image/svg+xml", "")
                _, _, data = drawing.partition(MARK[0])
                found[name] = data.partition(MARK[1])[0] or "{}"
    return found


def tensor(value: dict[str, Any]) -> Any:
    """A tensor of what ``capsnet_book.play.pack`` wrote; anything else stays as it is."""
    if "base64" not in value:
        return value
    raw = bytearray(base64.b64decode(value["base64"]))
    return torch.frombuffer(raw, dtype=getattr(torch, value["dtype"])).view(value["shape"])


@pytest.fixture(scope="session")
def data_of(packed: dict[str, str]) -> Callable[[str], dict[str, Any]]:
    """``data_of(name)``: what a chapter gives a widget."""
    return lambda name: json.loads(packed[name], object_hook=tensor)


@pytest.fixture(scope="session")
def front_files(folder: Path) -> None:
    """The files of the front page; that of the paper's network, which is large, is broken."""
    front.save(folder / "data", ["page"])
    path = folder / "data" / front.FILE
    data = json.loads(path.read_text())
    data["networks"]["mnist"] = data["networks"]["page"]
    path.write_text(json.dumps(data))
    (folder / "data" / "mnist.safetensors").write_bytes(b"not there")


@pytest.fixture
def page_of(
    browser: Any,
    folder: Path,
    address: str,
    packed: dict[str, str],
    request: pytest.FixtureRequest,
) -> Iterator[Callable[..., Any]]:
    """``page_of(name, phone=…, state="key=value&…")``: a tab with the widget, mounted."""
    opened = []
    palette = dress.palette(":root", "colour") + dress.palette('html[data-theme="dark"]', "dark")

    def open_page(name: str, phone: bool = False, state: str = "") -> Any:
        (folder / "page.html").write_text(PAGE.format(name=name, palette=palette))
        (folder / "data.json").write_text(packed.get(name, "{}"))
        if name == "front":
            request.getfixturevalue("front_files")
        context = browser.new_context(
            viewport=SIZES[phone], has_touch=phone, reduced_motion="reduce"
        )
        opened.append(context)
        tab = context.new_page()
        tab.complaints = []
        tab.on("pageerror", lambda error: tab.complaints.append(str(error)))
        tab.on("console", lambda it: it.type == "error" and tab.complaints.append(it.text))
        tab.goto(f"{address}/page.html" + (f"#play-{name}?{state}" if state else ""))
        tab.wait_for_selector("body[data-ready]", state="attached", timeout=20_000)
        return tab

    yield open_page
    for context in opened:
        complaints = [text for tab in context.pages for text in tab.complaints]
        context.close()
        # A test may take a file away; the widget's own words about it are tested there.
        assert [text for text in complaints if "Failed to load resource" not in text] == []
