"""What nbval must know: drawings are pictures, as PNGs are, and are not compared byte by byte.

A notebook whose images are not to be had is skipped, aloud; in CI that is an error.
"""

import json
import os
from pathlib import Path

import pytest

WANTED = "fashion-mnist"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    notebooks = {item.path: item.parent for item in items if item.path.suffix == ".ipynb"}
    for notebook in notebooks.values():
        notebook.skip_compare += ("image/svg+xml",)
    wanting = {notebook for notebook in notebooks if needs_clothes(notebook)}
    reason = missing() if wanting else ""
    if reason and os.environ.get("CI"):
        raise pytest.UsageError(reason)
    for item in items:
        if reason and item.path in wanting:
            item.add_marker(pytest.mark.skip(reason=reason))


def needs_clothes(notebook: Path) -> bool:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return any(
        f'"{WANTED}"' in "".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"
    )


def missing() -> str:
    """Why the images are not to be had; empty if they are."""
    from capsnet.data import load

    try:
        load(WANTED, train=False, download=False)
    except FileNotFoundError as error:
        return f"NOT VERIFIED: {error}"
    return ""
