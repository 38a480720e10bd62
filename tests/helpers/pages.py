"""Pages in a real browser: served from a folder, and judged by axe-core."""

import functools
import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address at which this machine serves a folder."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None: ...

    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def check_with_axe(tab: Any, place: str, **options: Any) -> None:
    """Contrast, names and structure of a part of a page (a selector), by axe-core."""
    if not tab.evaluate("'axe' in window"):
        tab.evaluate(files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8"))
    options["resultTypes"] = ["violations"]
    found = tab.evaluate("([place, options]) => axe.run(place, options)", [place, options])
    faults = {  # one for each reason
        f"{rule['id']}: {node['any'][0]['message'] if node['any'] else ''}": node["html"][:160]
        for rule in found["violations"]
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
        # Docutils' list of sources, whose entries have the role of a source, not of an item.
        if (rule["id"], "citation-list" in node["html"]) != ("aria-required-children", True)
    }
    assert not faults, "\n".join(f"{reason}\n    {html}" for reason, html in faults.items())
