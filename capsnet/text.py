"""Results as aligned text, what an error says, and where a bar shows progress."""

import sys
from collections.abc import Sequence

from torch import Tensor

LONGEST = 1000  # characters of a message; a longer one loses its middle


def per_class_table(per_class: Sequence[tuple[int, int]], classes: Sequence[str]) -> str:
    """Counts as ``977/980`` and percentages of each class, and of all together, as text."""
    correct = sum(right for right, _ in per_class)
    total = sum(count for _, count in per_class)
    rows = [("class", "correct", "accuracy")]
    for name, (right, count) in zip([*classes, "all"], [*per_class, (correct, total)], strict=True):
        share = f"{right / count:.2%}".replace("%", " %") if count else "–"
        rows.append((name, f"{right}/{count}", share))
    return columns(rows)


def confusion_text(confusion: Tensor, classes: Sequence[str]) -> str:
    """The confusion matrix as text: a row for each true class, a column for each predicted one."""
    rows = [("true \\ predicted", *classes)]
    rows += [
        (name, *(str(count) if count else "·" for count in row))
        for name, row in zip(classes, confusion.tolist(), strict=True)
    ]
    return columns(rows)


def columns(rows: Sequence[Sequence[str]]) -> str:
    """Align: first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for name, *cells in rows:
        aligned = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
        lines.append("  ".join([name.ljust(widths[0]), *aligned]).rstrip())
    return "\n".join(lines)


def one_line(message: str) -> str:
    """A message with each run of blanks a single one, and without its middle if it is long."""
    words = " ".join(message.split())
    return words if len(words) <= LONGEST else f"{words[: LONGEST // 2]} … {words[-LONGEST // 2 :]}"


def reason(error: BaseException) -> str:
    """What an error says, in a line, an OSError without its number; its type if it says nothing."""
    said = getattr(error, "strerror", None) or str(error)
    return next(filter(None, map(str.strip, said.splitlines())), type(error).__name__)


def bar_moves() -> bool:
    """Whether stderr is a terminal: not a file, a pipe, or closed, when there is none."""
    return sys.stderr is not None and sys.stderr.isatty()


def bar_interval() -> float:
    """Seconds between two looks of a bar: a file or a pipe gets a line now and then."""
    return 0.2 if bar_moves() else 15
