"""The page's type and palettes: ``_static/typography.css`` and its fonts, made with the book.

STIX Two and JetBrains Mono come from npm (SIL Open Font License), and are cut down to the
characters that the pages use; Temml has the styles of its equations. The colours of the paper's
quantities are those of the figures.
"""

import re
import sys
from html import unescape
from pathlib import Path
from typing import Any

from fontTools import subset
from fontTools.ttLib import TTFont
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from capsnet_book.figures.macros import SHADES

MODULES = Path(sys.prefix, "node_modules")  # where `make` puts it
TEXT = "@fontsource-variable/stix-two-text/files/stix-two-text-latin-wght"
MONO = "@fontsource-variable/jetbrains-mono/files/jetbrains-mono-latin-wght"
MATHS = "@fontsource/stix-two-math/files/stix-two-math-latin-400"
FONTS = {  # name: family, style, weights, where it is from
    "stix-two-text": ("STIX Two Text", "normal", "400 700", f"{TEXT}-normal.woff2"),
    "stix-two-text-italic": ("STIX Two Text", "italic", "400 700", f"{TEXT}-italic.woff2"),
    "jetbrains-mono": ("JetBrains Mono", "normal", "400 700", f"{MONO}-normal.woff2"),
    "stix-two-math": ("STIX Two Math", "normal", "400", f"{MATHS}-normal.woff2"),
}
LIGHT = " ".join(f"--{name}: {colour};" for name, (colour, _) in SHADES.items())
DARK = " ".join(f"--{name}: {colour};" for name, (_, colour) in SHADES.items())
PALETTES = f':root {{ {LIGHT} }}\nhtml[data-theme="dark"] {{ {DARK} }}'
SEARCH = r' *<script src="[^"]*(?:searchtools|language_data|searchindex)\.js"></script>\n'
EVERYWHERE = set(map(chr, range(32, 127)))
# What others write into a page, as patterns, and what stands there instead: one line for the width
# of a screen in place of three; the light colours until a script knows better; and what who cannot
# see a page needs: a landmark around the book's name, and sources that are items of their list.
REPLACED = {
    '<meta name="viewport" content="width=device-width, initial-scale=1" ?/>': "",
    'data-theme="auto"': 'data-theme="light"',
    '<div class="sidebar-primary-items__start': '<div role="navigation" aria-label="Book" '
    'class="sidebar-primary-items__start',
    'role="doc-biblioentry"': 'role="listitem"',
}


def write_styles(app: Sphinx, error: Exception | None) -> None:
    if error or app.builder.format != "html":
        return
    site = Path(app.outdir)
    out = site / "_static"
    pages = "".join(replace_in_pages(site))
    used = set(unescape(pages)) | EVERYWHERE
    rules = [PALETTES]
    for name, (family, style, weights, source) in FONTS.items():
        subset_font(MODULES / source, out / f"{name}.woff2", used)
        rules.append(
            f'@font-face {{ font-family: "{family}"; font-style: {style}; font-weight: {weights}; '
            f'font-display: optional; src: url("{name}.woff2") format("woff2"); }}'
        )
    subset_icons(out, pages)
    equations = (MODULES / "temml/dist/Temml-STIX2.css").read_text(encoding="utf-8")
    equations = re.sub(r"/\*.*?\*/|@font-face \{.*?\}", "", equations, flags=re.DOTALL)
    rules.append(equations.replace("STIX2, math", '"STIX Two Math", math'))
    (out / "typography.css").write_text("\n".join(rules) + "\n", encoding="utf-8")


def subset_icons(out: Path, pages: str) -> None:
    """Keep the icons that the pages show, of Font Awesome's two thousand, as type.

    The theme would have a script of half a megabyte draw them a second time.
    """
    script, fonts = out / "scripts/fontawesome.js", out / "vendor/fontawesome/webfonts"
    if not script.is_file() or not [*fonts.glob("*.woff2")]:
        raise ExtensionError(f"expected the theme's icons in {script} and in {fonts}")
    script.write_text("// The icons are type: see typography.py.\n")
    named = pages + "".join(path.read_text(encoding="utf-8") for path in out.rglob("*.js"))
    used = set(re.findall(r"fa-([a-z0-9-]+)", named))

    def unless_unused(rule: re.Match[str]) -> str:
        return rule[0] if used & set(re.findall(r"\.fa-([a-z0-9-]+)", rule[1])) else ""

    # The rules of icons in use are left, and the signs that the theme itself sets.
    rule = re.compile(r'((?:\.fa-[\w.:,-]+)+)\{content:"[^"]*"\}')
    signs = set()
    for file in out.rglob("*.css"):
        kept = rule.sub(unless_unused, file.read_text(encoding="utf-8"))
        file.write_text(kept, encoding="utf-8")
        signs |= {chr(int(code, 16)) for code in re.findall(r"\\(f[0-9a-f]{3})\b", kept)}
        signs |= set(re.findall("[\ue000-\uf8ff]", kept))
    if not signs:
        raise ExtensionError("expected rules such as .fa-bars{content:…} for the theme's icons")
    for file in fonts.glob("*.woff2"):
        subset_font(file, file, signs)


def replace_in_pages(site: Path) -> list[str]:
    """Replace in every page what :data:`REPLACED` names, and return the pages.

    Load the index of all words, and what we add to it, on the page that searches and on no other.
    Raise ExtensionError if what is replaced stands in no page, since the theme was changed.
    """
    pages = {file: file.read_text(encoding="utf-8") for file in site.rglob("*.html")}
    search = site / "search.html"  # a book on one page has none
    for theirs, ours in {**REPLACED, SEARCH: ""}.items():
        found = 0
        for file, html in pages.items():
            if (theirs, file) != (SEARCH, search):
                pages[file], count = re.subn(theirs, ours, html)
                found += count
        if not found and search in pages:
            raise ExtensionError(f"expected {theirs} in a page, which the theme no longer writes")
    if search in pages:
        ours = '<script src="_static/search.js" defer></script>\n</head>'
        pages[search] = pages[search].replace("</head>", ours, 1)
    for file, html in pages.items():
        file.write_text(html, encoding="utf-8")
    return [*pages.values()]


def subset_font(source: Path, target: Path, used: set[str]) -> None:
    """Write the part of a font that has these characters."""
    features = ["kern", "liga", "mark", "mkmk", "ccmp", "locl", "ssty", "dtls", "flac", "rtlm"]
    options = subset.Options(flavor="woff2", layout_features=features)
    with TTFont(source, recalcTimestamp=False) as font:  # the same bytes again
        cutter = subset.Subsetter(options)
        cutter.populate(text="".join(sorted(used)))
        cutter.subset(font)
        subset.save_font(font, str(target), options)


def preload(app: Sphinx, page: str, template: str, context: dict[str, Any], *_: Any) -> None:
    """Ask for the type of the text at once, so that no line breaks anew when it comes."""
    body = context.get("body", "")
    fonts = ["stix-two-text", "stix-two-text-italic"]
    if "<pre>" in body or "<code" in body:
        fonts.append("jetbrains-mono")
    if "<math" in body:
        fonts.append("stix-two-math")
    links = (
        f'<link rel="preload" as="font" type="font/woff2" crossorigin '
        f'href="{context["pathto"](f"_static/{name}.woff2", 1)}">'
        for name in fonts
    )
    context["metatags"] = context.get("metatags", "") + "".join(links)


def setup(app: Sphinx) -> None:
    app.add_css_file("typography.css", priority=100)
    app.connect("html-page-context", preload)
    app.connect("build-finished", write_styles)
