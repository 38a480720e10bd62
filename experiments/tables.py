"""What the ledger's trainings say together: never typed, always counted."""

import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from capsnet.files import write_json
from capsnet.text import columns
from capsnet_book.intervals import half_width
from capsnet_book.ledger import summary_name
from experiments.declared import Experiment
from experiments.running import LEDGER, Training, plan, recorded


def summarise(
    name: str, budget: str, experiment: Experiment, ledger: Path = LEDGER
) -> dict[str, Any]:
    """All rows of an experiment that one budget trains, those without a training too.

    Trainings that were declared, and made, with fewer epochs than now count, and are shown as such.

    A row has: "row", its name; "n" trainings in the ledger, of "declared"; their "seeds", and
    "errors", of each on the test set in percent, with their "mean", sample standard "deviation" and
    "interval", the half-width of the 95 % interval of the mean (None for fewer than two);
    "minutes" of training, mean; "epochs" made and "unfinished", how the trainings fall short of
    what is declared, or ""; and the "paper"'s error in percent, or None.
    """
    trainings, rows = plan({name: experiment}, budget), []
    for row in dict.fromkeys(training.row for training in trainings):
        mine = [training for training in trainings if training.row == row]
        records = [recorded(training, ledger, shorter=True) for training in mine]
        rows.append(summary(mine, [record for record in records if record]))
    return {
        "experiment": name,
        "question": experiment.question,
        "budget": budget,
        "images": experiment.budgets[budget].images,
        "rows": rows,
    }


def summary(declared: list[Training], records: list[dict[str, Any]]) -> dict[str, Any]:
    """A row of :func:`summarise`, from its trainings and the records of those that were made."""
    training = declared[0]
    errors = [100 * (1 - r["test"]["correct"] / r["test"]["total"]) for r in records]
    n, epochs = len(errors), training.config.epochs
    deviation = round(statistics.stdev(errors), 6) if n > 1 else None
    last = [record["records"][-1] for record in records]
    short = [epoch["epoch"] for epoch in last if epoch["epoch"] < epochs]
    return {
        "row": training.row,
        "n": n,
        "declared": len(declared),
        "seeds": [record["seed"] for record in records],
        "errors": [round(error, 4) for error in errors],
        "mean": round(statistics.mean(errors), 6) if n else None,
        "deviation": deviation,
        "interval": None if deviation is None else round(half_width(deviation, n), 6),
        "minutes": round(statistics.mean(r["seconds"] for r in records) / 60, 2) if n else None,
        "epochs": min((epoch["epoch"] for epoch in last), default=0),
        "unfinished": f"{min(short)} of {epochs} epochs" if short else "",
        "paper": training.row_options.paper,
    }


def write(name: str, budget: str, experiment: Experiment, ledger: Path = LEDGER) -> dict[str, Any]:
    """The summary, which the chapters read, beside the records it is of."""
    found = summarise(name, budget, experiment, ledger)
    if any(row["n"] for row in found["rows"]):
        write_json(ledger / summary_name(name, budget), found, indent=None)
    return found


def summary_table(summary: Mapping[str, Any]) -> str:
    """A summary of the ledger (``experiments/NAME/BUDGET/summary.json``) as text.

    Error in percent: mean ± standard deviation over n trainings; half-width of the 95 % interval of
    the mean; the paper's. Columns without an entry are left out.
    """
    table = [("", "error, %", "95 %", "n", "minutes", "paper, %")]
    for row in summary["rows"]:
        n, unfinished = row["n"], row["unfinished"]
        label = f"{row['row']} ({unfinished})" if n and unfinished else row["row"]
        paper = "" if row["paper"] is None else f"{row['paper']:.2f}"
        count = f"{n} of {row['declared']}" if n < row["declared"] else f"{n}"
        error = interval = minutes = ""
        if n:
            error, minutes = f"{row['mean']:.2f}", f"{row['minutes']:.1f}"
        if n > 1:
            error, interval = f"{error} ± {row['deviation']:.2f}", f"± {row['interval']:.2f}"
        table.append((label, error, interval, count, minutes, paper))
    said = [column for column in zip(*table, strict=True) if any(column[1:])]
    return columns(list(zip(*said, strict=True)))
