"""A benchmark's document as text, for the terminal; the chapter on speed makes its own tables."""

from typing import Any

from capsnet.text import columns


def text(
    document: dict[str, Any], title: str = "seconds and bytes, unless a name says else"
) -> str:
    """All that a document holds: what is single line by line, and a table for rows of a kind."""
    single, parts = [], []
    for key, value in document.items():
        if isinstance(value, list):
            parts.append(table(key, {str(n): row for n, row in enumerate(value, 1)}))
        elif not isinstance(value, dict):
            single.append((key, cell(value)))
        elif all(isinstance(row, dict) and is_flat(row) for row in value.values()):
            parts.append(table(f"{title}: {key}", value))
        else:
            parts.append(text(value, key))
    return "\n\n".join([f"{title}\n{columns(single)}"] * bool(single) + parts)


def table(title: str, rows: dict[str, dict[str, Any]]) -> str:
    """A row for each thing that was measured; a median is compared with the least of the table."""
    shown = {}
    for name, row in rows.items():
        shown[name] = {key: value for key, value in row.items() if is_flat({key: value})}
        if "median" in row:
            shown[name]["× least"] = row["median"] / min(row["median"] for row in rows.values())
    header = list(next(iter(shown.values())))
    lines = [[name, *(cell(row[key]) for key in header)] for name, row in shown.items()]
    return f"{title}\n{columns([['', *header], *lines])}"


def is_flat(row: dict[str, Any]) -> bool:
    return not any(isinstance(value, dict | list) for value in row.values())


def cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if type(value) is int else str(value)
