"""The page's widgets in a notebook, by anywidget: the same modules, as one script."""

import base64
import re

import anywidget
import traitlets

from capsnet_book.figures.macros import SHADES, css_name
from capsnet_book.play import FOLDER
from capsnet_lab.figures.style import INK, QUANTITIES

IMPORT = re.compile(r'(from |import\()"\./(\w+)\.js"')
# What the book's theme gives a page.
THEME = f"""
:host, .play {{
  {" ".join(f"--{name}: {light};" for name, (light, _) in SHADES.items())}
  --signs: system-ui, sans-serif;
  --pst-color-background: #fff; --pst-color-surface: #f6f8fa; --pst-color-border: #d0d7de;
  --pst-color-primary: #0b5cad; color: {INK}; background: var(--pst-color-background);
}}
"""
SCRIPT = """
import {{ mount }} from "./{name}.js";
import {{ unpack }} from "./kit.js";
export default {{
  async render({{ model, el }}) {{
    const box = el.appendChild(document.createElement("div"));
    box.className = "play-{name}";
    const stage = box.appendChild(document.createElement("div"));
    stage.className = "play play-of-{name}";
    const tell = (key, value) => {{ model.set(key, value); model.save_changes(); }};
    await mount(stage, {{ ...unpack(JSON.parse(model.get("data"))), tell }});
  }},
}};
"""


class Widget(anywidget.AnyWidget):
    """A widget of the page. ``told`` holds what its reader did, where the widget sends it."""

    data = traitlets.Unicode().tag(sync=True)
    told = traitlets.Dict().tag(sync=True)


def widget(name: str, data: str) -> Widget:
    """The widget ``name`` with its packed data."""
    style = THEME
    for quantity in map(css_name, QUANTITIES):
        style += f".play .q-{quantity} {{ color: var(--q-{quantity}) }}\n"
    style += "".join((FOLDER / f"{sheet}.css").read_text("utf-8") for sheet in ("play", name))
    made = type(name, (Widget,), {"_esm": inlined(SCRIPT.format(name=name)), "_css": style})
    return made(data=data)


def inlined(script: str) -> str:
    """A script whose imports carry the modules themselves: a notebook has no folder to ask."""

    def carried(found: re.Match[str]) -> str:
        module = inlined((FOLDER / f"{found[2]}.js").read_text("utf-8"))
        text = base64.b64encode(module.encode()).decode("ascii")
        return f'{found[1]}"data:text/javascript;base64,{text}"'

    return IMPORT.sub(carried, script)
