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
    """Replace the theme's group of launch buttons by one, which opens the notebook in Colab."""
    notebook = Path("notebooks", *Path(pagename).parts[1:]).with_suffix(".ipynb")
    buttons = context.get("header_buttons", [])
    for group in [button for button in buttons if button.get("label") == "launch-buttons"]:
        place = buttons.index(group)
        buttons.remove(group)
        if not (Path(app.srcdir) / notebook).exists():
            continue
        (colab,) = group["buttons"]
        source = f"/{pagename}{context['page_source_suffix']}"
        colab["url"] = colab["url"].replace(source, f"/{notebook.as_posix()}")
        colab |= {"tooltip": "Open in Colab", "label": "colab-button"}
        buttons.insert(place, colab)
        download = Path(app.outdir) / "_sources" / context["ipynb_source"]
        shutil.copyfile(Path(app.srcdir) / notebook, download)


def setup(app: Sphinx) -> dict[str, Any]:
    # After the theme, which adds its buttons at 501.
    app.connect("html-page-context", point_at_notebook, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
