"""The allocator's setting as an option, since a process cannot take it back."""

import pytest

from capsnet.fast.allocator import keep_freed_memory


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--keep-freed-memory",
        action="store_true",
        help="call fast.allocator.keep_freed_memory",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--keep-freed-memory") and not keep_freed_memory():
        raise pytest.UsageError("--keep-freed-memory: this system's allocator has no such setting")
