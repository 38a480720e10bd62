"""A widget alone on a page, in a real browser: no build of the site is needed."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import dress
from address import ROOT
from capsnet_book.play import FOLDER, pack
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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripts and styles, as a page finds them."""
    place = tmp_path_factory.mktemp("play")
    for file in [*FOLDER.glob("*.js"), *FOLDER.glob("*.css"), ROOT / "book/_static/book.css"]:
        shutil.copy(file, place)
    return place


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    with served(folder) as place:
        yield place


@pytest.fixture
def page_of(browser: Any, folder: Path, address: str) -> Iterator[Callable[..., Any]]:
    """``page_of(name, data, phone=…, state="key=value&…")``: a tab with the widget, mounted."""
    opened = []

    def open_page(
        name: str,
        data: dict[str, Any] | None = None,
        phone: bool = False,
        state: str = "",
    ) -> Any:
        palette = dress.palette(":root", "colour")
        palette += dress.palette('html[data-theme="dark"]', "dark")
        (folder / "page.html").write_text(PAGE.format(name=name, palette=palette))
        (folder / "data.json").write_text(pack(data or {}))
        size = {"width": 390, "height": 844} if phone else {"width": 1280, "height": 900}
        context = browser.new_context(viewport=size, has_touch=phone, reduced_motion="reduce")
        opened.append(context)
        tab = context.new_page()
        tab.complaints = []
        tab.on("pageerror", lambda error: tab.complaints.append(str(error)))
        tab.goto(f"{address}/page.html" + (f"#play-{name}?{state}" if state else ""))
        tab.wait_for_selector("body[data-ready]", state="attached", timeout=20_000)
        return tab

    yield open_page
    for context in opened:
        complaints = [said for tab in context.pages for said in tab.complaints]
        context.close()
        assert complaints == []
