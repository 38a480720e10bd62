"""A plugin of pytest: ``pytest_plugins = "capsnet.wild.plugin"`` in your ``conftest.py``."""

from typing import Any

import pytest

from capsnet.wild import check


@pytest.fixture
def assert_paper() -> Any:
    """:func:`capsnet.wild.check.assert_paper`, as an argument of a test of yours."""
    return check.assert_paper
