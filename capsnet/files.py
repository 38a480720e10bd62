"""Files that are written whole or not at all."""

import contextlib
import json
import os
import secrets
from pathlib import Path
from typing import Any

from capsnet.text import reason

PARTIAL = ".*.partial"  # temporary files left by a killed writer


def write_atomically(path: str | Path, data: bytes) -> None:
    """Write a file so that at every moment ``path`` is the old file or the whole new one.

    Several processes may write the same file; the last one wins. An OSError names the file.
    """
    target = Path(os.path.realpath(path))  # the file that a link names, not the link
    # Every write has its own temporary name, so that two writers never share a file.
    partial = target.with_name(f".{secrets.token_hex(8)}.partial")
    try:
        if target.is_dir():
            raise OSError("it is a folder")
        if target.exists() and not target.is_file():
            raise OSError("it is a device or a pipe")
        target.parent.mkdir(parents=True, exist_ok=True)
        with open(partial, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, target)
    except BaseException as error:
        with contextlib.suppress(OSError):  # the first error is the one to report
            partial.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise OSError(f"cannot write {path}: {reason(error)}") from error
        raise


def write_json(path: str | Path, document: Any, indent: int | None = 1) -> None:
    """Write a document as JSON, atomically; with ``indent`` None in a single line."""
    write_atomically(path, (json.dumps(document, indent=indent) + "\n").encode())
