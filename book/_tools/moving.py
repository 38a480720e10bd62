"""Film the widget of the routing on its built page: the moving picture of the README.

make book && .venv/bin/python book/_tools/moving.py
"""

import functools
import io
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

from PIL import Image
from playwright.sync_api import sync_playwright

from address import ROOT
from pdf import chromium

MOVING = ROOT / "book" / "_static" / "routing.gif"
STEPS = 12  # three iterations of four
MILLISECONDS = 900  # a step
SHOWN = (0, 84, 622, 680)  # votes, coupling coefficients and equations, in pixels


def main() -> None:
    handler = functools.partial(SimpleHTTPRequestHandler, directory=ROOT / "_build" / "html")
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    frames = []
    with sync_playwright() as playwright, chromium(playwright) as browser:
        tab = browser.new_page(viewport={"width": 1280, "height": 1400})
        tab.goto(f"http://127.0.0.1:{server.server_port}/book/routing.html")
        tab.locator("[data-play=routing]").scroll_into_view_if_needed()
        widget = tab.locator("[data-play=routing] div.play")
        widget.wait_for()
        step = widget.get_by_role("slider", name="step")
        step.press("Home")
        for _ in range(STEPS):
            tab.wait_for_timeout(300)  # until it has moved there
            frames.append(Image.open(io.BytesIO(widget.screenshot())).crop(SHOWN).quantize(64))
            step.press("ArrowRight")
    server.shutdown()
    first, *others = frames
    first.save(MOVING, save_all=True, append_images=others, duration=MILLISECONDS, loop=0)


if __name__ == "__main__":
    main()
