"""The links of a page to its repository, its notebook and Colab.

The theme's own lead to the MyST source, which Colab cannot open, and to a notebook of its making.
"""

import shutil
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config

from address import address


def set_address(app: Sphinx, config: Config) -> None:
    """Link to the repository where there is an address, and only there."""
    found = address(Path(app.srcdir))
    config.html_theme_options |= {
        "repository_url": found.url,
        "repository_branch": found.branch,
        "use_repository_button": bool(found.url),
        "use_source_button": bool(found.url),
    }


def offer_notebook(app: Sphinx, page: str, template: str, context: dict[str, Any], *_: Any) -> None:
    """Let a reader download the committed notebook of a chapter."""
    # Thebe runs cells on other people's servers. Its script stands in each page twice, an error.
    context["script_files"] = [
        file
        for file in context["script_files"]
        if "thebe" not in f"{file} {getattr(file, 'attributes', '')}".lower()
    ]
    notebook = Path("notebooks", *Path(page).parts[1:]).with_suffix(".ipynb")
    if (Path(app.srcdir) / notebook).is_file():
        context["ipynb_source"] = f"{page}.ipynb"  # the theme makes the button
        download = Path(app.outdir, "_sources", context["ipynb_source"])
        download.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(Path(app.srcdir) / notebook, download)
        context["colab"] = address(Path(app.srcdir)).in_colab(notebook.as_posix())


def add_colab_button(
    app: Sphinx, page: str, template: str, context: dict[str, Any], *_: Any
) -> None:
    """Let a reader open the notebook of a chapter in Colab."""
    if context.get("colab"):
        button = {
            "type": "link",
            "text": "Colab",
            "tooltip": "Open in Colab",
            "icon": "_static/images/logo_colab.png",
            "url": context["colab"],
            "label": "colab-button",
        }
        context["header_buttons"].insert(0, button)


def setup(app: Sphinx) -> None:
    app.connect("config-inited", set_address)
    # Before and after the theme makes its buttons, at 501.
    app.connect("html-page-context", offer_notebook)
    app.connect("html-page-context", add_colab_button, priority=600)
