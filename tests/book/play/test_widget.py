"""The page's widgets in a notebook: the script that anywidget runs, and what Python hears of it."""

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import torch

from capsnet import Decoder
from capsnet_book.directions import reconstruct
from capsnet_book.play import Playable
from capsnet_book.play.knobs import Knobs
from capsnet_book.play.widget import Widget, widget
from capsnet_lab.figures.style import Figure
from helpers.pages import greys

# What anywidget does with a script: render it with the widget's traits, and hear of changes.
HOST = """<!doctype html><html lang="en"><title>notebook</title><main class="play"></main>
<script type="module">
const traits = await (await fetch("traits.json")).json();
const script = await (await fetch("script.js")).text();
const address = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
const { default: plugin } = await import(address);
document.head.append(Object.assign(document.createElement("style"), { textContent: traits._css }));
const model = {
  get: (key) => traits[key],
  set: (key, to) => { traits[key] = to; },
  save_changes: () => { document.body.dataset.saved = JSON.stringify(traits.told); },
};
await plugin.render({ model, el: document.querySelector("main") });
document.body.dataset.ready = "";
</script></html>"""
FILES = {"notebook.html", "traits.json", "script.js"}


@pytest.fixture
def notebook(page_of: Any, folder: Path) -> Any:
    """A widget as a notebook shows it: its script and traits alone."""

    def open_widget(made: Widget) -> Any:
        (folder / "notebook.html").write_text(HOST)
        (folder / "script.js").write_text(made._esm)
        (folder / "traits.json").write_text(json.dumps({"data": made.data, "_css": made._css}))
        return page_of("notebook")

    return open_widget


def heard(tab: Any) -> dict[str, Any]:
    """What Python hears of the widget, which asks for no other file."""
    asked = {url.rpartition("/")[2] for url in tab.asked if url.startswith("http")}
    assert asked - {"favicon.ico"} == FILES
    found: dict[str, Any] = json.loads(tab.evaluate("document.body.dataset.saved"))
    return found


def test_the_playground_runs_in_a_notebook_and_tells_python(
    notebook: Any, packed: dict[str, str]
) -> None:
    made = widget("routing", packed["routing"])
    assert not re.search(r'(from|import\() ?"\./', made._esm)
    tab = notebook(made)
    tab.get_by_role("button", name="Opposites").click()
    votes = torch.tensor(heard(tab)["votes"]).view(6, 2, 2)
    assert votes.sum().abs() < 1e-4 < votes.abs().sum()
    assert tab.evaluate("document.querySelector('.play-of-routing').clientHeight") > 500


def test_the_knobs_bring_their_weights(notebook: Any, data_of: Any) -> None:
    decoder, data = Decoder(10, 16, (1, 28, 28)), data_of("knobs")
    tab = notebook(Knobs(Figure(1), decoder, **data).widget())
    tab.locator(".knob input").nth(2).fill("0.5")
    tab.wait_for_function("document.querySelector('.said').textContent === ''")
    digit = data["digit"]
    v = data["capsules"][digit, 0].clone()
    v[2] = 0.5
    told = heard(tab)
    assert told["digit"] == digit
    torch.testing.assert_close(torch.tensor(told["v"]), v, atol=1e-5, rtol=0)
    expected = reconstruct(decoder, v[None], digit).flatten()
    in_8_bits = 2 / 255  # and a canvas rounds
    torch.testing.assert_close(greys(tab)[0], expected, atol=in_8_bits, rtol=0)


def test_a_figure_stays_a_figure_where_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda what, **how: shown.append(what))
    figure, axes = Figure.single(1)
    axes.plot([0, 1])
    playable = Playable(figure, widget="routing", votes=torch.zeros(6), line="a < b & c")
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    playable._ipython_display_()
    data = ET.fromstring(shown[0]["image/svg+xml"])[-1].text
    assert json.loads(data)["line"] == "a < b & c"
    monkeypatch.setenv("JPY_SESSION_NAME", "routing.ipynb")
    playable._ipython_display_()
    assert shown[1]["application/vnd.jupyter.widget-view+json"]["model_id"]
    assert shown[0]["text/plain"] == shown[1]["text/plain"] == repr(playable)
    board = playable.widget()
    board.set_state({"told": {"votes": [0.5]}})  # as the message of the page does
    assert board.told["votes"] == [0.5]
