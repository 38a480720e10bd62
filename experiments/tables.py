"""What the ledger's runs say together: never typed, always counted."""

import json
import math
import statistics
from pathlib import Path
from typing import Any

from capsnet.checkpoint import write_atomically
from capsnet_book.intervals import T95
from experiments.declared import EXPERIMENTS, Experiment
from experiments.running import LEDGER, Planned, configuration, is_matched, is_of, plan, read

SUMMARY = "summary.json"


def summarise(
    name: str, budget: str, experiment: Experiment | None = None, ledger: Path = LEDGER
) -> dict[str, Any]:
    """All rows of an experiment under one budget, those without a run too.

    Runs that were declared, and made, with fewer epochs than now count, and are shown as such.

    A row has: "row", its name; "n" runs in the ledger, of "declared"; their "seeds", and "errors",
    of each on the test set in percent, with their "mean", sample standard "deviation" and
    "interval", the half-width of the 95 % interval of the mean (None for fewer than two runs);
    "minutes" of training, mean; "epochs" run and "unfinished", how the runs fall short of what is
    declared, or ""; and the "paper"'s error in percent, or None.
    """
    experiment = experiment or EXPERIMENTS[name]
    found: dict[str, list[dict[str, Any]]] = {row: [] for row in experiment.rows}
    for run in plan({name: experiment}, budget):
        record = read(run, ledger)
        if record is not None and is_of(record, experiment, run, shorter=True):
            found[run.row].append(record)
    return {
        "experiment": name,
        "question": experiment.question,
        "budget": budget,
        "images": experiment.budgets[budget].images,
        "rows": [summary(row, records, experiment, budget) for row, records in found.items()],
    }


def summary(
    row: str, records: list[dict[str, Any]], experiment: Experiment, budget: str
) -> dict[str, Any]:
    errors = [100 * (1 - r["test"]["correct"] / r["test"]["total"]) for r in records]
    n, given = len(errors), experiment.budgets[budget]
    deviation = interval = None
    if n > 1:
        deviation = round(statistics.stdev(errors), 6)
        interval = round(T95[n - 1] * deviation / math.sqrt(n), 6)
    epochs = [len(record["records"]) for record in records]
    declared = configuration(experiment, Planned("", budget, row, seed=0)).epochs
    # A run that stopped at a given accuracy is whole.
    short = [
        len(record["records"])
        for record in records
        if len(record["records"]) < declared and not is_matched(given, record["records"][-1])
    ]
    return {
        "row": row,
        "n": n,
        "declared": given.seeds,
        "seeds": [record["seed"] for record in records],
        "errors": [round(error, 4) for error in errors],
        "mean": round(statistics.mean(errors), 6) if n else None,
        "deviation": deviation,
        "interval": interval,
        "minutes": round(statistics.mean(r["seconds"] for r in records) / 60, 2) if n else None,
        "epochs": min(epochs, default=0),
        "unfinished": f"{min(short)} of {declared} epochs" if short else "",
        "paper": experiment.rows[row].paper,
    }


def write(
    name: str, budget: str, experiment: Experiment | None = None, ledger: Path = LEDGER
) -> dict[str, Any]:
    """The summary, which the chapters read, beside the runs it is of."""
    found = summarise(name, budget, experiment, ledger)
    if any(row["n"] for row in found["rows"]):
        text = json.dumps(found, indent=1) + "\n"
        write_atomically(ledger / name / budget / SUMMARY, text.encode())
    return found
