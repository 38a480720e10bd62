"""What several tests share."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# ``with refuses("expected", "got")``: the fixture of tests/conftest.py
Refuses = Callable[..., AbstractContextManager[None]]
