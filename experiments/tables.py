"""An experiment's records as a table of text."""

import statistics
from pathlib import Path
from typing import Any

from capsnet.text import columns
from capsnet_book.ledger import missed
from capsnet_book.statistics import half_width
from experiments.declared import Experiment
from experiments.running import plan, recorded


def results_table(name: str, budget: str, experiment: Experiment, ledger: Path) -> str:
    """A line for each row that a budget trains, those without a record too.

    Error on the test set in percent, the mean ± the standard deviation over n trainings; half the
    width of the 95 % interval of this mean; minutes of training, the mean.
    """
    rows: dict[str, list[dict[str, Any] | None]] = {}
    for training in plan({name: experiment}, budget):
        rows.setdefault(training.row, []).append(recorded(training, ledger))
    head = ("", "error, %", "95 %", "n", "minutes")
    return columns([head, *((row, *cells(found)) for row, found in rows.items())])


def cells(found: list[dict[str, Any] | None]) -> tuple[str, str, str, str]:
    """A row's error, its interval, its count and its minutes; None stands for a missing record."""
    records = [record for record in found if record is not None]
    n = len(records)
    count = f"{n}" if n == len(found) else f"{n} of {len(found)}"
    if n == 0:
        return "", "", count, ""
    errors = [missed({"test": record["test"]}) for record in records]
    minutes = statistics.mean(record["seconds"] for record in records) / 60
    error, interval = f"{statistics.mean(errors):.2f}", ""
    if n > 1:
        deviation = statistics.stdev(errors)
        error += f" ± {deviation:.2f}"
        interval = f"± {half_width(deviation, n):.2f}"
    return error, interval, count, f"{minutes:.1f}"
