"""What nbval must know: drawings are pictures, as PNGs are, and are not compared byte by byte."""

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for notebook in {item.parent for item in items if item.path.suffix == ".ipynb"}:
        notebook.skip_compare += ("image/svg+xml",)
