"""Print the book as one PDF: ``make pdf``. Sphinx writes it as one page, Chromium prints that."""

import shutil
from pathlib import Path

from playwright.sync_api import Browser, Playwright, sync_playwright

from address import ROOT

ONE_PAGE = ROOT / "_build" / "singlehtml"
PDF = ROOT / "_build" / "capsnet-book.pdf"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# A chapter begins on a page of its own, and shows its code and its solutions.
STYLE = """
@page { margin: 18mm 16mm; }
.toctree-wrapper > section { break-before: page; }
.bd-main .bd-content .bd-article-container { max-width: none; }
details.own { display: block !important; }
.tag_hide-cell summary, .headerlink { display: none; }
"""


def chromium(playwright: Playwright) -> Browser:
    """This machine's Chromium, or the one that Playwright installs."""
    executable = next(filter(None, map(shutil.which, BROWSERS)), None)
    return playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])


def print_page(browser: Browser, page: Path, to: Path) -> None:
    """Print a page of HTML as a PDF, with an outline and with everything unfolded."""
    tab = browser.new_page()
    tab.goto(page.as_uri(), wait_until="networkidle")
    tab.add_style_tag(content=STYLE)
    tab.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    tab.pdf(path=to, format="A4", scale=0.8, outline=True, tagged=True)


def main() -> None:
    # Sphinx writes links as if the page of the whole book lay at the top.
    page = ONE_PAGE / "book.html"
    shutil.copy(ONE_PAGE / "book" / "index.html", page)
    with sync_playwright() as playwright, chromium(playwright) as browser:
        print_page(browser, page, PDF)


if __name__ == "__main__":
    main()
