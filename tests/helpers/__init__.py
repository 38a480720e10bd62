"""What several tests share."""

from collections.abc import Callable
from contextlib import AbstractContextManager

# ``with refuses("expected", "got")``: the fixture of tests/conftest.py
Refuses = Callable[..., AbstractContextManager[None]]
