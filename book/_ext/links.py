"""The links of a page to its repository, its notebook, and to Colab, Kaggle and Binder.

The theme's own buttons for these would open the MyST source, or a notebook of the theme's making.
"""

import shutil
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config

from address import address

BUTTONS = [f"use_{it}_button" for it in ("repository", "source", "edit_page", "issues")]
ICONS = {
    "Colab": "_static/images/logo_colab.png",
    "Kaggle": "fab fa-kaggle",
    "Binder": "_static/images/logo_binder.svg",
}
# Scripts that the theme loads on every page, by what stands in a page that needs them. Thebe, which
# no page needs, would run cells on other people's servers.
SCRIPTS = {"thebe": "thebe-launch-button", "toggle": "dropdown"}


def set_address(app: Sphinx, config: Config) -> None:
    """Link to the repository where there is an address, and only there."""
    found = address(Path(app.srcdir))
    config.html_baseurl = config.html_baseurl or found.site()  # for canonical links, og:image
    config.html_theme_options |= {
        "repository_url": found.url,
        "repository_branch": found.branch,
        **dict.fromkeys(BUTTONS, bool(found.url)),
    }


def offer_notebook(app: Sphinx, page: str, template: str, context: dict[str, Any], *_: Any) -> None:
    """Let a reader download the committed notebook of a chapter."""
    for script, needed_by in SCRIPTS.items():
        if needed_by not in context.get("body", ""):
            context["script_files"] = [
                file
                for file in context["script_files"]
                if script not in f"{file} {getattr(file, 'attributes', '')}".lower()
            ]
    notebook = Path("notebooks", *Path(page).parts[1:]).with_suffix(".ipynb")
    if (Path(app.srcdir) / notebook).is_file():
        context["ipynb_source"] = f"{page}.ipynb"  # the theme makes the button
        download = Path(app.outdir, "_sources", context["ipynb_source"])
        download.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(Path(app.srcdir) / notebook, download)
        context["hosts"] = address(Path(app.srcdir)).hosts(notebook.as_posix())


def offer_hosts(app: Sphinx, page: str, template: str, context: dict[str, Any], *_: Any) -> None:
    """Let a reader run the notebook of a chapter without installing anything."""
    if hosts := context.get("hosts"):
        links = [
            {"type": "link", "text": name, "icon": ICONS[name], "url": url}
            for name, url in hosts.items()
        ]
        group = {"type": "group", "tooltip": "Run this page", "icon": "fas fa-rocket"}
        context["header_buttons"].insert(0, {**group, "buttons": links, "label": "launch-buttons"})


def offer_pdf(app: Sphinx, page: str, template: str, context: dict[str, Any], *_: Any) -> None:
    """Let a reader download the whole book, where `make pdf` has made it."""
    file = Path(app.srcdir, "_build", "capsnet-book.pdf")
    if not file.is_file():
        return
    shutil.copy(file, app.outdir)
    url = context["pathto"](file.name, 1)
    for group in context["header_buttons"]:
        if group.get("label") == "download-buttons":
            link = {"type": "link", "text": "book as PDF", "icon": "fas fa-book", "url": url}
            group["buttons"].append(link)


def setup(app: Sphinx) -> None:
    app.connect("config-inited", set_address)
    # Before and after the theme makes its buttons, at 501.
    app.connect("html-page-context", offer_notebook)
    app.connect("html-page-context", offer_hosts, priority=600)
    app.connect("html-page-context", offer_pdf, priority=600)
