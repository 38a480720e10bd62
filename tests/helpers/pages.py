"""Pages in a real browser: served from a folder, and judged by axe-core."""

import functools
import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

PATIENCE = 120_000  # milliseconds: what comes at all comes on a busy machine, too


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address at which this machine serves a folder."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None: ...

        def end_headers(self) -> None:
            # Or a file that a test changes twice in a second stays as the browser has it.
            self.send_header("Cache-Control", "no-store")
            super().end_headers()

    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def check_with_axe(tab: Any, place: str, least: str = "serious", **options: Any) -> None:
    """Contrast, names and structure of a part of a page (a selector), by axe-core.

    `least`: the impact from which on a fault counts.
    """
    impacts = ["minor", "moderate", "serious", "critical"]
    if not tab.evaluate("'axe' in window"):
        tab.evaluate(files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8"))
    options["resultTypes"] = ["violations"]
    found = tab.evaluate("([place, options]) => axe.run(place, options)", [place, options])
    faults = {  # one for each reason
        f"{rule['id']}: {node['any'][0]['message'] if node['any'] else ''}": node["html"][:160]
        for rule in found["violations"]
        if rule["impact"] in impacts[impacts.index(least) :]
        for node in rule["nodes"]
    }
    assert not faults, "\n".join(f"{reason}\n    {html}" for reason, html in faults.items())


# The grey of each canvas that is seen, from 0 to 1.
GREYS = """all => all.filter((it) => it.checkVisibility() && it.width < 40).map((it) => {
    const { data } = it.getContext("2d").getImageData(0, 0, it.width, it.height);
    return [...data].filter((_, k) => k % 4 == 1).map((grey) => grey / 255);
})"""


def greys(tab: Any, place: str = "canvas") -> Tensor:
    """The pixels of a widget's canvases that are seen, 0 to 1, [canvases, height · width]."""
    return torch.tensor(tab.locator(f".play {place}").evaluate_all(GREYS))


def numbers(tab: Any, place: str) -> list[float]:
    """What elements of a widget say, a number each."""
    texts = tab.locator(f".play {place}").all_text_contents()
    return [float(text.replace("−", "-")) for text in texts]


def settled(tab: Any) -> Any:
    """The tab, when the network of its widget, if it asks one, has answered."""
    tab.wait_for_selector(".play:not([aria-busy='true'])")
    return tab


def middle(element: Any) -> tuple[float, float]:
    """Of its box on the page, in pixels."""
    box = element.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def drag(tab: Any, *places: tuple[float, float]) -> None:
    """Press the mouse at the first place, release it at the last."""
    tab.mouse.move(*places[0])
    tab.mouse.down()
    for place in places[1:]:
        tab.mouse.move(*place, steps=8)
    tab.mouse.up()


SEVEN = [(0.3, 0.25), (0.7, 0.25), (0.38, 0.8)]  # a stroke, in parts of the pad


def draw_seven(tab: Any) -> None:
    """Draw a seven on the front page's pad."""
    box = tab.locator(".pad").bounding_box()
    drag(tab, *((box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in SEVEN))
