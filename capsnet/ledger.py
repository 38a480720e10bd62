"""The ledger of measured results: ``results/`` in a clone, and in the installed package."""

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PLACES = (HERE / "results", HERE.parent / "results")  # installed, then in a clone


def path(name: str) -> Path:
    """A file of the ledger, such as ``path("mnist/weights.safetensors")``.

    Raises:
        FileNotFoundError: there is none of that name.
    """
    for place in PLACES:
        if (place / name).is_file():
            return place / name
    looked = " and ".join(map(str, PLACES))
    raise FileNotFoundError(f"the ledger has no {name}: looked in {looked}")


def read(name: str) -> Any:
    """A JSON document of the ledger, such as ``read("bench/speed-cpu.json")``, or the records of
    a ``.jsonl`` file, one mapping a line.

    Raises:
        FileNotFoundError: there is none of that name.
    """
    text = path(name).read_text(encoding="utf-8")
    if name.endswith(".jsonl"):
        return [json.loads(line) for line in text.splitlines()]
    return json.loads(text)
