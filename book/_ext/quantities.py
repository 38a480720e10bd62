"""Give MathJax the book's macros: each quantity in its colour, from ``capsnet.figures.style``."""

from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config

from capsnet.figures.style import MACROS


def add_macros(app: Sphinx, config: Config) -> None:
    config.mathjax3_config = {"tex": {"macros": MACROS}}


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("config-inited", add_macros)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
