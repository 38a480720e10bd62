"""Leave out what the theme loads and no page of this book uses.

- Of the icons the pages show some twenty of two thousand.
- Thebe runs cells on other people's servers; its script is also put into each page twice, which is
  an error. Cards and tabs of sphinx-design stand on no page.
- The search index is needed where one searches: on the page of the results.
"""

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

SCRIPT = "_static/scripts/fontawesome.js"
STYLE = "_static/styles/pydata-sphinx-theme.css"
# In the script, name: [width, height, [aliases], "code point", "path" or ["path", "path"]]
ICON = re.compile(
    r'("?)(?P<name>[a-z0-9-]+)\1:\[\d+,\d+,\[(?P<aliases>[^\]]*)\],"[0-9a-f]+",'
    r'(?:"[^"]*"|\["[^"]*","[^"]*"\])\],?'
)
# In the style sheet, the same icons as letters of a font; the script replaces them by pictures.
LETTER = re.compile(r'(?:\.fa-[a-z0-9-]+:before,?)+\{content:"[^"]*"\}')
SEARCH = re.compile(
    r' *<script src="[./]*(?:_static/)?(?:searchtools|language_data|searchindex)\.js"></script>\n'
)


def drop_scripts(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    unused = ["thebe"]
    if ' class="sd-' not in context.get("body", ""):
        unused += ["sphinx-design", "design-tabs"]
    for files in ("script_files", "css_files"):
        context[files] = [
            file
            for file in context.get(files, [])
            if not any(
                name in f"{file} {getattr(file, 'attributes', '')}".lower() for name in unused
            )
        ]


def slim(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.name != "html":
        return
    site = Path(app.outdir)
    for page in site.rglob("*.html"):
        if page != site / "search.html":
            text = page.read_text(encoding="utf-8")
            page.write_text(SEARCH.sub("", text), encoding="utf-8")
    keep_used_icons(site)


def keep_used_icons(site: Path) -> None:
    script, style = site / SCRIPT, site / STYLE
    used: set[str] = set()
    for path in [*site.rglob("*.html"), *site.rglob("*.js")]:
        if path != script:
            used |= {*re.findall(r"\bfa-([a-z0-9-]+)", path.read_text(encoding="utf-8"))}

    def keep(match: re.Match[str]) -> str:
        names = {match["name"], *re.findall(r'"([a-z0-9-]+)"', match["aliases"])}
        return match[0] if names & used else ""

    for path, pattern, kept in [(script, ICON, keep), (style, LETTER, "")]:
        text, count = pattern.subn(kept, path.read_text(encoding="utf-8"))
        if count < 1000:
            raise ExtensionError(f"{path} has another form: only {count} icons were found in it")
        path.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("html-page-context", drop_scripts, priority=900)
    app.connect("build-finished", slim)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
