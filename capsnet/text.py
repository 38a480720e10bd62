"""Aligned text, the reason of an error, and where a bar shows progress."""

import sys
from collections.abc import Sequence


def columns(rows: Sequence[Sequence[str]]) -> str:
    """Rows as text: the first column is aligned to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for name, *cells in rows:
        aligned = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
        lines.append("  ".join([name.ljust(widths[0]), *aligned]).rstrip())
    return "\n".join(lines)


def reason(error: BaseException) -> str:
    """The first line of the message, without errno; the type's name if there is no message."""
    message = getattr(error, "strerror", None) or str(error)
    return next(filter(None, map(str.strip, message.splitlines())), type(error).__name__)


def stderr_is_terminal() -> bool:
    """Whether stderr is a terminal, where a bar can move; not if it is a file, a pipe or closed."""
    return sys.stderr is not None and sys.stderr.isatty()


def bar_interval() -> float:
    """Seconds between two updates of a bar; many where each adds a line to a file or a pipe."""
    return 0.2 if stderr_is_terminal() else 15
