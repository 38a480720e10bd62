"""The ledger of measured results: the folder ``results/`` of a clone of the repository."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

REQUIRED = {"experiment", "budget", "row", "seed", "config", "records", "test"}  # of a record
REQUIRED |= {"seconds", "evaluation_seconds", "machine"}

# Every file that was asked for in this process. book/_tools/make_notebooks.py keeps the list with a
# notebook's outputs: they are stale when one of these files changes.
asked: set[str] = set()


def path(name: str) -> Path:
    """A file of the ledger, such as ``path("mnist/weights.safetensors")``.

    Raise FileNotFoundError if there is none of that name; so does whatever reads one here.
    """
    asked.add(name)
    checkout, here = Path(__file__).resolve().parents[2], Path.cwd()
    for folder in (checkout, here, *here.parents):
        if (folder / "results" / name).is_file():
            return folder / "results" / name
    raise FileNotFoundError(
        f"the ledger has no {name}: looked in results/ of {checkout}, of {here} and the folders "
        "above it; git clone the repository and work inside the clone"
    )


def read(name: str) -> Any:
    """A JSON document of the ledger, such as ``read("bench/speed-cpu.json")``, or the lines of a
    ``.jsonl`` file, one mapping a line.
    """
    text = path(name).read_text(encoding="utf-8")
    if name.endswith(".jsonl"):
        return [json.loads(line) for line in text.splitlines()]
    return json.loads(text)


def records_file(experiment: str) -> str:
    """The ledger's file of an experiment's records, a line each."""
    return f"experiments/{experiment}.jsonl"


def record_name(experiment: str, row: str, seed: int, budget: str) -> str:
    """The name of one run's record; of the row "Baseline CNN, 10 %" it has "baseline-cnn-10"."""
    words = re.findall(r"[^\W_]+", row.lower())
    return f"experiments/{experiment}/{budget}/{'-'.join(words)}/seed-{seed}"


def record_lines(file: Path) -> dict[str, str]:
    """The lines of an experiment's file by :func:`record_name`; none if there is no such file.

    Raise ValueError if a line is no record.
    """
    lines: dict[str, str] = {}
    if not file.exists():
        return lines
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        try:
            record = json.loads(line)
            if missing := REQUIRED - record.keys():
                raise ValueError(f"it lacks {', '.join(sorted(missing))}")
        except (ValueError, AttributeError) as error:
            raise ValueError(f"{file}, line {number}: no record: {error}") from error
        name = record_name(record["experiment"], record["row"], record["seed"], record["budget"])
        lines[name] = line
    return lines


def record(experiment: str, row: str, seed: int = 0, budget: str = "cpu") -> dict[str, Any]:
    """The record of one run, such as ``record("table-1", "baseline CNN")``.

    `experiment` is its file in ``results/experiments``, `budget` "cpu" or "gpu".
    """
    try:
        return trainings(experiment, budget)[row][seed]
    except KeyError:
        raise FileNotFoundError(
            f"the ledger has no record of {experiment}, budget {budget}, row {row!r}, seed {seed}"
        ) from None


def trainings(experiment: str, budget: str = "cpu") -> dict[str, dict[int, dict[str, Any]]]:
    """Every record of an experiment under a budget, by its row and its seed."""
    prefix = f"experiments/{experiment}/{budget}/"
    lines = record_lines(path(records_file(experiment)))
    records = [json.loads(line) for name, line in lines.items() if name.startswith(prefix)]
    if not records:
        raise FileNotFoundError(f"the ledger has no record of {experiment}, budget {budget}")
    rows: dict[str, dict[int, dict[str, Any]]] = {record["row"]: {} for record in records}
    for record in sorted(records, key=lambda record: record["seed"]):
        rows[record["row"]][record["seed"]] = record
    return rows


def missed(record: Mapping[str, Any], *sets: str) -> float:
    """Percent of wrong answers on these sets of a record's images.

    Without `sets`, on all images that the run did not learn from: the test set, and others.
    """
    names = sets or [name for name in ("test", "unseen") if name in record]
    right, total = (sum(record[name][key] for name in names) for key in ("correct", "total"))
    return 100 * (1 - right / total)
