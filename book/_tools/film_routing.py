"""Film the widget of routing on its built page: the moving picture of the README (make film)."""

import io

from PIL import Image
from playwright.sync_api import Route, sync_playwright

from address import ROOT
from pdf import chromium

MOVING = ROOT / "book" / "_static" / "routing.gif"
SITE = "http://site/"  # whose files are those of the built book
STEPS = 12  # three iterations of four
MILLISECONDS = 900  # a step
SHOWN = (0, 84, 622, 770)  # votes, coupling coefficients, lengths and equations, in pixels


def answer(route: Route) -> None:
    name = route.request.url.removeprefix(SITE).partition("?")[0]
    route.fulfill(path=ROOT / "_build" / "html" / name)


def main() -> None:
    frames = []
    with sync_playwright() as playwright, chromium(playwright) as browser:
        tab = browser.new_page(viewport={"width": 1280, "height": 1400})
        tab.route(f"{SITE}**", answer)
        tab.goto(f"{SITE}book/routing.html")
        tab.locator("[data-play=routing]").scroll_into_view_if_needed()
        widget = tab.locator("[data-play=routing] div.play")
        widget.wait_for()
        step = widget.get_by_role("slider", name="step")
        step.press("Home")
        for _ in range(STEPS):
            tab.wait_for_timeout(300)  # until it has moved there
            frames.append(Image.open(io.BytesIO(widget.screenshot())).crop(SHOWN).quantize(64))
            step.press("ArrowRight")
    first, *others = frames
    first.save(MOVING, save_all=True, append_images=others, duration=MILLISECONDS, loop=0)


if __name__ == "__main__":
    main()
