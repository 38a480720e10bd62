"""What a chapter shows besides pictures: live source, and values for its prose."""

import ast
import inspect
import re
import textwrap
from typing import Any


def source(thing: Any, start: str = "") -> Any:
    """The live source of a function, method or class, without its docstring, for a notebook.

    A page that shows code this way cannot differ from what runs: a changed line is a changed
    output, and the check of the notebooks fails until the page is made again. ``start`` leaves out
    what stands above the first line that holds this text; raise ValueError if no line does.
    """
    from IPython.display import Markdown

    text = textwrap.dedent(inspect.getsource(thing))
    definition = ast.parse(text).body[0]
    lines = text.splitlines()
    if (
        isinstance(definition, ast.FunctionDef | ast.ClassDef)
        and ast.get_docstring(definition) is not None
    ):
        docstring = definition.body[0]
        del lines[docstring.lineno - 1 : docstring.end_lineno]
    while not any(start in line for line in lines[:1]):
        if not lines:
            raise ValueError(f"no line of {thing.__qualname__} holds {start!r}")
        del lines[0]
    code = textwrap.dedent("\n".join(lines)).strip()
    return Markdown(f"```python\n{code}\n```")


def glue(name: str, value: str) -> None:
    """Name a computed value, so that the book's prose can say it: {glue:text}`name`.

    It is stored in the notebook as ``myst_nb.glue`` would, which Colab does not have. A percent
    sign is set off from its number by a space that does not break.
    """
    from IPython.display import display

    value = re.sub(r"(?<=\d) ?%", "\N{NO-BREAK SPACE}%", value)
    # The book shows what stands between the quotes as it is.
    stored = repr(value).replace(r"\xa0", "\N{NO-BREAK SPACE}")
    display(
        {"application/papermill.record/text/plain": stored},
        metadata={"scrapbook": {"name": name, "mime_prefix": "application/papermill.record/"}},
        raw=True,
    )
