"""Leave out what the theme loads and no page of this book uses.

Of its icons the pages show some twenty of two thousand, and the script of all of them is by far the
largest file of a page. Thebe runs cells on other people's servers; its script is also put into each
page twice, which is an error.
"""

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

SCRIPT = "_static/scripts/fontawesome.js"
# name: [width, height, [aliases], "code point", "path" or ["path", "path"]]
ICON = re.compile(
    r'("?)(?P<name>[a-z0-9-]+)\1:\[\d+,\d+,\[(?P<aliases>[^\]]*)\],"[0-9a-f]+",'
    r'(?:"[^"]*"|\["[^"]*","[^"]*"\])\],?'
)


def keep_used_icons(app: Sphinx, exception: Exception | None) -> None:
    site = Path(app.outdir)
    script = site / SCRIPT
    if exception is not None or app.builder.name != "html":
        return
    used: set[str] = set()
    for path in [*site.rglob("*.html"), *site.rglob("*.js")]:
        if path != script:
            used |= {*re.findall(r"\bfa-([a-z0-9-]+)", path.read_text(encoding="utf-8"))}

    def keep(match: re.Match[str]) -> str:
        names = {match["name"], *re.findall(r'"([a-z0-9-]+)"', match["aliases"])}
        return match[0] if names & used else ""

    text, count = ICON.subn(keep, script.read_text(encoding="utf-8"))
    if count < 1000:
        raise ExtensionError(f"{SCRIPT} has another form: only {count} icons were found in it")
    script.write_text(text, encoding="utf-8")


def drop_thebe(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    for files in ("script_files", "css_files"):
        context[files] = [
            file
            for file in context.get(files, [])
            if "thebe" not in f"{file} {getattr(file, 'attributes', '')}".lower()
        ]


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("html-page-context", drop_thebe, priority=900)
    app.connect("build-finished", keep_used_icons)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
