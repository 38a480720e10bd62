"""The ledger of measured results: ``results/`` in a clone, and in the installed package."""

import json
from pathlib import Path
from typing import Any

PLACES = (Path(__file__).parent.parent / "results",)


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


def run_name(row: str) -> str:
    """The folder of a row's runs: "Baseline CNN, 10 %" becomes "baseline-cnn-10"."""
    return "-".join("".join(x if x.isalnum() else " " for x in row.lower()).split())


def record(experiment: str, row: str, seed: int = 0, budget: str = "cpu") -> dict[str, Any]:
    """The record of one run, such as ``record("table-1", "baseline CNN")``.

    Args:
        experiment: a folder of ``results/experiments``.
        row: a row's name, as the experiment's summary says it.
        seed: one of the row's seeds.
        budget: "cpu" or "gpu", whose runs never mix.

    Raises:
        FileNotFoundError: the ledger has no such run.
    """
    name = f"experiments/{experiment}/{budget}/{run_name(row)}/seed-{seed}.json"
    found: dict[str, Any] = read(name)
    return found
