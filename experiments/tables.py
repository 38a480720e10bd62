"""What the ledger's runs say together, as rows of a table: never typed, always counted."""

import math
import statistics
from pathlib import Path
from typing import Any, NamedTuple

from capsnet.figures import columns
from experiments.declared import EXPERIMENTS, Experiment
from experiments.running import LEDGER, Planned, configuration, plan, read

# Student's t for a 95 % interval, by the number of runs less one.
STUDENT = {
    1: 12.706,
    2: 4.303,
    3: 3.182,
    4: 2.776,
    5: 2.571,
    6: 2.447,
    7: 2.365,
    8: 2.306,
    9: 2.262,
}


class Summary(NamedTuple):
    """The runs of one row under one budget."""

    row: str
    n: int  # runs in the ledger
    declared: int  # runs declared
    mean: float  # test error, %
    deviation: float | None  # sample standard deviation; None for one run
    interval: float | None  # half-width of the 95 % interval of the mean; None for one run
    minutes: float  # of training, mean
    unfinished: str  # "" or how the runs fall short of what is declared
    paper: float | None  # the paper's error, %


def summarise(
    name: str, budget: str, experiment: Experiment | None = None, ledger: Path = LEDGER
) -> list[Summary]:
    """One summary for each row that has a run in the ledger."""
    experiment = experiment or EXPERIMENTS[name]
    found: dict[str, list[dict[str, Any]]] = {}
    for run in plan({name: experiment}, budget):
        record = read(run, ledger)
        if record is not None:
            found.setdefault(run.row, []).append(record)
    return [summary(row, found[row], experiment, budget) for row in experiment.rows if row in found]


def summary(
    row: str, records: list[dict[str, Any]], experiment: Experiment, budget: str
) -> Summary:
    errors = [100 * (1 - r["test"]["correct"] / r["test"]["total"]) for r in records]
    n = len(errors)
    deviation = statistics.stdev(errors) if n > 1 else None
    epochs = min(len(record["records"]) for record in records)
    now = configuration(experiment, Planned("", budget, row, seed=0)).epochs
    # A run that stopped at a given accuracy is whole.
    matched = experiment.match is not None and all(
        record["records"][-1]["validation_accuracy"] >= experiment.match for record in records
    )
    declared = max(now, *(record["config"]["epochs"] for record in records))
    return Summary(
        row,
        n,
        experiment.budgets[budget].seeds,
        statistics.mean(errors),
        deviation,
        None if deviation is None else STUDENT[n - 1] * deviation / math.sqrt(n),
        statistics.mean(record["seconds"] for record in records) / 60,
        f"{epochs} of {declared} epochs" if epochs < declared and not matched else "",
        experiment.rows[row].paper,
    )


def table(name: str, budget: str, ledger: Path = LEDGER) -> str:
    """The experiment's table, as text."""
    rows = [("", "error, %", "95 %", "n", "minutes", "paper, %")]
    for s in summarise(name, budget, ledger=ledger):
        error = f"{s.mean:.2f}" if s.deviation is None else f"{s.mean:.2f} ± {s.deviation:.2f}"
        interval = "" if s.interval is None else f"± {s.interval:.2f}"
        count = f"{s.n}/{s.declared}" if s.n < s.declared else f"{s.n}"
        label = f"{s.row} ({s.unfinished})" if s.unfinished else s.row
        paper = "" if s.paper is None else f"{s.paper:.2f}"
        rows.append((label, error, interval, count, f"{s.minutes:.0f}", paper))
    return columns(rows) if len(rows) > 1 else "no run yet"
