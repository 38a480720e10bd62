"""The buttons of a chapter lead to its committed notebook: in Colab, and for download.

The theme's lead to the MyST source, which Colab cannot open, and to a notebook of its own making.
"""

import shutil
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx


def point_at_notebook(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    notebook = (
        Path("notebooks") / Path(pagename).relative_to("book").with_suffix(".ipynb")
        if pagename.startswith("book/")
        else None
    )
    buttons = context.get("header_buttons", [])
    launch = [button for button in buttons if button.get("label") == "launch-buttons"]
    for group in launch:
        place = buttons.index(group)
        buttons.remove(group)
        if notebook is None or not (Path(app.srcdir) / notebook).exists():
            continue
        (colab,) = group["buttons"]
        source = context["page_source_suffix"]
        colab["url"] = colab["url"].replace(f"/{pagename}{source}", f"/{notebook.as_posix()}")
        buttons.insert(place, {**colab, "tooltip": "Open in Colab", "label": "colab-button"})
        download = Path(app.outdir) / "_sources" / context["ipynb_source"]
        shutil.copyfile(Path(app.srcdir) / notebook, download)


def setup(app: Sphinx) -> dict[str, Any]:
    # After the theme, which adds its buttons at 501.
    app.connect("html-page-context", point_at_notebook, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
