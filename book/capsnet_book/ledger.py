"""The ledger of measured results: the folder ``results/`` of a clone of the repository."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

CLONE = "capsnet-book"  # what the first cell of a notebook calls its clone, in Colab

# Every name that was asked for in this process. book/_tools/make_notebooks.py keeps the list with a
# notebook's outputs: they are stale when one of these records changes.
asked: set[str] = set()


def path(name: str) -> Path:
    """A file of the ledger, such as ``path("mnist/weights.safetensors")``.

    Raises:
        FileNotFoundError: there is none of that name.
    """
    asked.add(name)
    checkout, here = Path(__file__).resolve().parents[2], Path.cwd()
    for folder in (checkout, here, *here.parents, here / CLONE):
        if (folder / "results" / name).is_file():
            return folder / "results" / name
    raise FileNotFoundError(
        f"the ledger has no {name}: looked in results/ of {checkout}, of {here} and the folders "
        f"above it, and of {here / CLONE}; git clone the repository and work inside the clone"
    )


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


def record_name(experiment: str, row: str, seed: int = 0, budget: str = "cpu") -> str:
    """The ledger's file of one run; the only place that knows where records lie."""
    return f"experiments/{experiment}/{budget}/{run_name(row)}/seed-{seed}.json"


def summary_name(experiment: str, budget: str = "cpu") -> str:
    """The ledger's file of what an experiment's runs come to together."""
    return f"experiments/{experiment}/{budget}/summary.json"


def record(experiment: str, row: str, seed: int = 0, budget: str = "cpu") -> dict[str, Any]:
    """The record of one run, such as ``record("table-1", "baseline CNN")``.

    Args:
        experiment: a folder of ``results/experiments``.
        row: a row's name, as the experiment's summary says it.
        seed: one of the row's seeds.
        budget: "cpu" or "gpu".

    Raises:
        FileNotFoundError: the ledger has no such run.
    """
    found: dict[str, Any] = read(record_name(experiment, row, seed, budget))
    return found


def summary(experiment: str, budget: str = "cpu") -> dict[str, Any]:
    """An experiment's table, such as ``summary("table-1")``: all rows, with errors and intervals.

    Raises:
        FileNotFoundError: the ledger has no run of it.
    """
    found: dict[str, Any] = read(summary_name(experiment, budget))
    return found


def trainings(experiment: str, budget: str = "cpu") -> dict[str, dict[int, dict[str, Any]]]:
    """Every record of an experiment, by its row and its seed."""
    return {
        row["row"]: {seed: record(experiment, row["row"], seed, budget) for seed in row["seeds"]}
        for row in summary(experiment, budget)["rows"]
    }


def in_tuning(experiment: str, row: str) -> dict[int, dict[str, Any]]:
    """A row's trainings in the experiment's tuning, at the rate that was chosen for it, by seed:
    other seeds than the row's own.
    """
    rates = {record["config"]["learning_rate"] for record in trainings(experiment)[row].values()}
    (rate,) = rates
    return trainings(f"{experiment}-tuning")[f"{row}, rate {rate}"]


def counted(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The sets of images that a run did not learn from: the test set, and others."""
    return [record[part] for part in ("test", "unseen") if part in record]


def missed(record: Mapping[str, Any]) -> float:
    """Percent of wrong answers on all images that are :func:`counted`."""
    right, total = (sum(s[key] for s in counted(record)) for key in ("correct", "total"))
    return 100 * (1 - right / total)


def table_1(budget: str, experiment: str = "table-1") -> dict[str, list[list[float]]]:
    """Percent of mistakes of each training of the four, of one iteration and of three."""
    found = trainings(experiment, budget)
    return {
        f"{name} reconstruction": [
            [missed(record) for record in found[f"{end}{suffix}"].values()]
            for end in ("1 iteration", "3 iterations")
        ]
        for name, suffix in (("with", ", reconstruction"), ("without", ""))
    }
