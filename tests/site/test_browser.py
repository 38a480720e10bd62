"""What a reader's browser makes of every page: requests, errors, width, contrast, search."""

import functools
import http.server
import os
import re
import shutil
import threading
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest

from helpers import built
from helpers.built import ROOT, Site

PAGES = [
    *(p.relative_to(ROOT).with_suffix(".html").as_posix() for p in sorted(ROOT.glob("book/*.md"))),
    "search.html",
    "genindex.html",
]
PHONE = {"width": 390, "height": 844}
DESK = {"width": 1280, "height": 900}
# Of the thousands of tokens of code one of each kind is left: axe would look at every one.
THIN = """() => {
    const kinds = new Set();
    for (const token of document.querySelectorAll("main .highlight pre span:not(:has(*))")) {
        const place = token.closest("[class*=cell_], [class*=admonition], details, main");
        const kind = [token.className, token.parentNode.className, place.className].join();
        if (kinds.has(kind)) (token.closest("a") ?? token).replaceWith(token.textContent);
        kinds.add(kind);
    }
}"""

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="module")
def site() -> Site:
    return built.site()


@pytest.fixture(scope="module")
def address(site: Site) -> Iterator[str]:
    """Where the site is served on this machine, as it would be under a repository's name."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None: ...

    handler = functools.partial(Quiet, directory=str(site.folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium: this machine's, or the one that Playwright installs."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
        found = next(filter(None, map(shutil.which, (*BROWSERS, own))), None)
        if found is None:
            missing = f"no Chromium: the pages are NOT tested (tried {BROWSERS}, {own})"
            assert not os.environ.get("CI"), missing
            pytest.skip(missing)
        flags = ["--no-sandbox", "--disable-gpu"]
        chromium = playwright.chromium.launch(executable_path=found, args=flags)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def visit(browser: Any, address: str) -> Any:
    """Open a page as a reader would; note what it asks for and complains of."""

    def open_page(page: str) -> Any:
        tab = browser.new_context(viewport=DESK, color_scheme="light").new_page()
        tab.asked, tab.complaints = [], []
        tab.on("request", lambda request: tab.asked.append(request.url))
        tab.on("console", lambda message: tab.complaints.append(f"{message.type}: {message.text}"))
        tab.on("pageerror", lambda error: tab.complaints.append(f"error: {error}"))
        tab.goto(f"{address}/{page}", wait_until="networkidle")
        tab.evaluate("async () => { await window.MathJax?.startup?.promise }")
        return tab

    return open_page


@pytest.mark.parametrize("page", PAGES)
def test_a_page(page: str, visit: Any, address: str, subtests: pytest.Subtests) -> None:
    tab = visit(page)
    with subtests.test("asks no other host and has no errors"):
        assert [u for u in tab.asked if not u.startswith((address, "data:", "blob:"))] == []
        assert [said for said in tab.complaints if said.startswith(("error", "warning"))] == []
        assert tab.locator("mjx-merror, .MathJax_Error").count() == 0
        assert tab.locator("svg.svg-inline--fa path").count() > 0
        assert tab.locator("svg.svg-inline--fa:not(:has(path)), i[class*=fa-]").count() == 0
    with subtests.test("fits a phone"):
        check_width(tab)
    tab.evaluate(THIN)
    tab.evaluate(files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8"))
    with subtests.test("is legible and accessible"):
        check_with_axe(tab)
    with subtests.test("is legible in the dark"):
        tab.emulate_media(color_scheme="dark")
        # The page hears of it a moment later.
        tab.wait_for_function("document.documentElement.dataset.theme == 'dark'")
        tab.evaluate("document.getAnimations().forEach(change => change.finish())")
        check_with_axe(tab, runOnly=["color-contrast"])
    tab.context.close()


def check_with_axe(tab: Any, **options: Any) -> None:
    """Contrast, names and structure, by axe-core."""
    options["resultTypes"] = ["violations"]
    found = tab.evaluate("options => axe.run('main, .bd-sidebar-primary', options)", options)
    faults = {  # one for each reason
        f"{rule['id']}: {node['any'][0]['message'] if node['any'] else ''}": node["html"][:160]
        for rule in found["violations"]
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
        # Docutils' list of sources, whose entries have the role of a source, not of an item.
        if (rule["id"], "citation-list" in node["html"]) != ("aria-required-children", True)
    }
    assert not faults, "\n".join(f"{reason}\n    {html}" for reason, html in faults.items())


def check_width(tab: Any) -> None:
    tab.set_viewport_size(PHONE)
    width = tab.evaluate("document.documentElement.scrollWidth")
    wide = tab.evaluate(
        """width => [...document.querySelectorAll("main *")]
            .filter(e => e.getBoundingClientRect().right > width + 1).slice(0, 5)
            .map(e => e.outerHTML.slice(0, 120))""",
        PHONE["width"],
    )
    buttons = tab.locator(".bd-header-article button, .bd-header-article a.btn")
    heights = buttons.evaluate_all("all => all.map(e => e.scrollHeight)")
    tab.set_viewport_size(DESK)
    assert width <= PHONE["width"], f"{width} px wide: {wide}"
    assert heights and max(heights) < 50, f"the buttons above the page are {heights} px high"


def test_search_finds_words_of_the_chapters(visit: Any, address: str) -> None:
    tab = visit("book/index.html")
    tab.locator(".search-button__button:visible").first.click()
    field = tab.locator("input[type=search]:visible").first
    field.fill("squash")
    field.press("Enter")
    tab.wait_for_url(re.compile("search.html"))
    results = tab.locator("#search-results ul.search li a")
    finished = "document.querySelector('.search-summary')?.innerText.includes('finished')"
    tab.wait_for_function(finished)
    tab.wait_for_function("document.querySelectorAll('#search-results .context').length > 0")
    links = results.evaluate_all("links => links.map(link => link.href)")
    assert any("book/squash.html" in link for link in links)
    assert len({link.partition("#")[0] for link in links}) > 1
    assert all(url.startswith((address, "data:")) for url in tab.asked)


def test_a_solution_unfolds(visit: Any, site: Site) -> None:
    page = next((p for p, text in site.pages.items() if "Show the solution" in text), None)
    if page is None:
        pytest.skip("no chapter has a solution yet")
    tab = visit(page.as_posix())
    solution = tab.locator("details.hide").first
    assert not solution.locator("pre").first.is_visible()
    solution.locator("summary").click()
    assert solution.locator("pre").first.is_visible()
    assert solution.locator("summary").inner_text().strip() == "Hide the solution"
