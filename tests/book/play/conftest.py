"""A widget alone on a page, in a real browser: no build of the site is needed."""

import base64
import itertools
import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
import torch

import typography
from address import ROOT
from capsnet.checkpoint import load_weights
from capsnet_book import ledger
from capsnet_book.play import FOLDER, MARK, front, learn
from capsnet_book.play.knobs import save_decoder
from helpers.pages import PATIENCE, served

# As on a page of the book: its style, and a figure as wide as there (621 px, on a phone 340).
PAGE = """<!doctype html><html lang="en" data-theme="light"><head><title>{name}</title>
<meta name="viewport" content="width=device-width">
<link rel="stylesheet" href="book.css"><link rel="stylesheet" href="play.css">
<link rel="stylesheet" href="{name}.css">
<style>{palette}
[hidden] {{ display: none !important; }} /* as the theme has it */
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
const data = unpack(await (await fetch("{name}.json")).json());
await mount(document.querySelector(".play"), data);
document.body.dataset.ready = "";
</script></body></html>"""
SIZES = {False: {"width": 1440, "height": 900}, True: {"width": 390, "height": 844}}  # a phone
NUMBERS = itertools.count()


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


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory, packed: dict[str, str]) -> Path:
    """A page for each widget, with scripts, styles and weights where the built site has them."""
    place = tmp_path_factory.mktemp("play")
    own = ROOT / "book/_static/book.css", Path(__file__).with_name("compare.js")
    for file in [*FOLDER.glob("*.js"), *FOLDER.glob("*.css"), *own]:
        shutil.copy(file, place)
    for style in FOLDER.glob("*.css"):
        name = style.stem
        (place / f"{name}.html").write_text(PAGE.format(name=name, palette=typography.PALETTES))
        (place / f"{name}.json").write_text(packed.get(name, "{}"))
    data = place / "data"
    data.mkdir()
    shutil.copy(ledger.path("multimnist/weights.safetensors"), data / "multimnist.safetensors")
    model, _ = load_weights(ledger.path("mnist/weights.safetensors"))
    save_decoder(model.decoder, data / "decoder.safetensors")
    front.save(data)
    learn.save(data)
    return place


@pytest.fixture(scope="session")
def address(folder: Path) -> Iterator[str]:
    with served(folder) as place:
        yield place


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


@pytest.fixture(scope="module")
def tabs(browser: Any) -> dict[bool, Any]:
    """A tab on a desk and one on a phone, in which a module's tests open their pages."""
    found = {}
    for phone, size in SIZES.items():
        context = browser.new_context(viewport=size, has_touch=phone, reduced_motion="reduce")
        found[phone] = tab = context.new_page()
        tab.set_default_timeout(PATIENCE)
        tab.complaints, tab.asked = [], []
        tab.on("pageerror", lambda error, tab=tab: tab.complaints.append(str(error)))
        tab.on("console", lambda it, tab=tab: it.type == "error" and tab.complaints.append(it.text))
        tab.on("request", lambda it, tab=tab: tab.asked.append(it.url.partition("?")[0]))
    return found


@pytest.fixture
def page_of(tabs: dict[bool, Any], address: str) -> Iterator[Callable[..., Any]]:
    """``page_of(name, phone=…, state="key=value&…")``: a tab with the widget, mounted."""

    def open_page(name: str, phone: bool = False, state: str = "") -> Any:
        tab = tabs[phone]
        tab.mouse.move(0, 0)
        tab.asked.clear()
        place = f"{address}/{name}.html?{next(NUMBERS)}"  # another address, so it is loaded anew
        tab.goto(place + (f"#play-{name}?{state}" if state else ""))
        tab.wait_for_selector("body[data-ready]", state="attached")
        return tab

    yield open_page
    for tab in tabs.values():
        complaints, tab.complaints[:] = [*tab.complaints], []
        # A test may take a file away; the widget's own words about it are tested there.
        assert [text for text in complaints if "Failed to load resource" not in text] == []
