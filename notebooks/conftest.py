"""Notebooks whose images neither the repository nor this machine has are skipped, aloud."""

import json
from pathlib import Path

import pytest

WANTED = "fashion-mnist"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark = None
    for item in items:
        if item.path.suffix != ".ipynb" or not needs_clothes(item.path):
            continue
        if mark is None:
            mark = missing()
        if mark:
            item.add_marker(pytest.mark.skip(reason=mark))


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
