"""``make results``: train what the ledger lacks.

    python -m experiments                      # everything missing, under the machine's budget
    python -m experiments table-1 labels       # these experiments only
    python -m experiments attacks --minutes 8  # learning rates first, then training at the best
    python -m experiments --list               # what is recorded, what is missing, and hours
    python -m experiments --verify             # train each record's first epoch again and compare

Stop it at any time; the next call goes on from the last checkpoint, a minute or an epoch back.
"""

import argparse
import json
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from capsnet.device import pick_device
from capsnet.text import columns
from capsnet.training.run import METRICS
from capsnet_book.ledger import missed
from capsnet_book.statistics import half_width
from capsnet_lab.cli import INTERRUPTED
from capsnet_lab.cli.allocator import keep_freed_memory
from experiments.declared import BUDGETS, EXPERIMENTS, Experiment
from experiments.running import (
    LEDGER,
    WORK,
    Training,
    at_chosen_rates,
    find_records,
    plan,
    train_and_record,
    verify,
)

Records = dict[Training, dict[str, Any] | None]


def main(
    arguments: list[str] | None = None,
    declared: dict[str, Experiment] = EXPERIMENTS,
    ledger: Path = LEDGER,
    work: Path = WORK,
) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m experiments", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("experiments", nargs="*", help=f"of {', '.join(declared)}; all if none")
    parser.add_argument("--budget", choices=BUDGETS, help="the one for this machine if not given")
    either = parser.add_mutually_exclusive_group()
    either.add_argument(
        "--minutes", type=float, default=math.inf, help="begin no training that may end later"
    )
    either.add_argument(
        "--list", action="store_true", help="list what is recorded and what is missing"
    )
    either.add_argument(
        "--verify",
        action="store_true",
        help="train the first epoch of each record again, and compare",
    )
    options = parser.parse_args(arguments)
    if not options.minutes >= 0:
        parser.error(f"--minutes must be a number from 0 on, got {options.minutes}")
    if unknown := set(options.experiments) - declared.keys():
        parser.error(f"experiments must be of {', '.join(declared)}, got {', '.join(unknown)}")
    names = options.experiments or [*declared]
    tunings = [tuning for name in names if (tuning := declared[name].tuned_by)]
    chosen = {name: declared[name] for name in [*tunings, *names]}
    budget = options.budget or ("cpu" if pick_device("auto").type == "cpu" else "gpu")

    def planned() -> dict[str, Experiment]:
        return at_chosen_rates(chosen, budget, ledger, declared)

    try:
        records = find_records(plan(planned(), budget), ledger)
    except ValueError as error:  # a line that is no record
        parser.exit(1, f"{error}\n")
    if not records:
        parser.error(f"the budget {budget} has no training of {', '.join(names)}")
    print(progress(records, work), flush=True)
    if options.list:
        return 0
    keep_freed_memory()
    if options.verify:
        return verify_all(records, budget)
    failed = train_missing(lambda: plan(planned(), budget), options.minutes, ledger, work)
    for name, experiment in planned().items():
        print(f"\n{experiment.question}\n{results_table(name, budget, experiment, ledger)}")
    return 1 if failed else 0


def train_missing(
    plan: Callable[[], list[Training]], minutes: float, ledger: Path, work: Path
) -> int:
    """Make the trainings of a plan that have no record; return how many failed.

    The plan is made anew after each training, because a tuning that ends adds the trainings whose
    rates it chose. No training begins that would end after so many minutes if it took as long as
    the longest before it.
    """
    failed, longest, start, started = 0, 0.0, time.monotonic(), set[Training]()
    while missing := [
        training
        for training, record in find_records(plan(), ledger).items()
        if record is None and training not in started
    ]:
        training, begin = missing[0], time.monotonic()
        if begin - start + longest >= 60 * minutes:
            break
        started.add(training)
        print(f"\n{training}", flush=True)
        # Each network is compiled anew: after eight, torch.compile would compile no more.
        torch.compiler.reset()
        try:
            record = train_and_record(training, ledger, work)
        except BlockingIOError:
            print("another process trains it: left to that process", flush=True)
            continue
        # A checkpoint of another declaration, say, or a data set that is not here: others can run.
        except (ValueError, OSError, RuntimeError) as error:
            print(f"{work / training.name}: {error}", file=sys.stderr, flush=True)
            failed += 1
            continue
        longest = max(longest, time.monotonic() - begin)
        test = record["test"]
        print(f"{test['correct']}/{test['total']} in {record['seconds'] / 60:.1f} minutes")
    return failed


def progress(records: Records, work: Path) -> str:
    """A line for each experiment: done, left, hours; and one for each unfinished training."""
    rows, unfinished = [("experiment", "budget", "done", "left", "hours done", "hours left")], []
    for name in [*dict.fromkeys(training.experiment for training in records), "all"]:
        trainings = [training for training in records if name in (training.experiment, "all")]
        done = [record for training in trainings if (record := records[training])]
        pending = [training for training in trainings if not records[training]]
        hours = [hours_left(training, records, work) for training in pending]
        missing = f"{sum(filter(None, hours)):.1f}"
        if unknown := hours.count(None):
            missing += f" + ? for {unknown}"
        spent = sum(map(seconds_of, done)) / 3600
        counts = f"{len(done)}", f"{len(hours)}"
        rows.append((name, trainings[0].budget, *counts, f"{spent:.1f}", missing))
    for training in records:
        if not records[training] and (epochs := len(epochs_of(training, work))):
            unfinished.append(
                f"unfinished: {training}, {epochs} epochs, {training.config.epochs} declared"
            )
    return "\n".join([columns(rows), *unfinished])


def epochs_of(training: Training, work: Path) -> list[dict[str, Any]]:
    """The epochs of an unfinished training, as far as it has come."""
    path = work / training.name / METRICS
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def seconds_of(record: dict[str, Any]) -> float:
    """What a recorded training took, its test included."""
    return float(record["seconds"] + record["evaluation_seconds"])


def hours_left(training: Training, records: Records, work: Path) -> float | None:
    """The hours that a training still takes, by its own epochs or by a record of the same row."""
    if epochs := epochs_of(training, work):
        seconds = sum(epoch["seconds"] for epoch in epochs) / len(epochs)
        return max(training.config.epochs - len(epochs), 0) * seconds / 3600
    for seed in training.declared.seeds(training.row, training.budget):
        if record := records[replace(training, seed=seed)]:
            return seconds_of(record) / 3600
    return None


def results_table(name: str, budget: str, experiment: Experiment, ledger: Path) -> str:
    """A line for each row that a budget trains, those without a record too.

    Error on the test set in percent, the mean ± the standard deviation over n trainings; half the
    width of the 95 % interval of this mean; minutes of training, the mean.
    """
    rows: dict[str, list[dict[str, Any] | None]] = {}
    for training, record in find_records(plan({name: experiment}, budget), ledger).items():
        rows.setdefault(training.row, []).append(record)
    lines = [("", "error, %", "95 %", "n", "minutes")]
    for row, records_or_none in rows.items():
        records = [record for record in records_or_none if record is not None]
        n = len(records)
        count, error, interval, minutes = str(n), "", "", ""
        if n < len(records_or_none):
            count += f" of {len(records_or_none)}"
        if n:
            errors = [missed({"test": record["test"]}) for record in records]
            error = f"{statistics.mean(errors):.2f}"
            minutes = f"{statistics.mean(record['seconds'] for record in records) / 60:.1f}"
        if n > 1:
            deviation = statistics.stdev(errors)
            error += f" ± {deviation:.2f}"
            interval = f"± {half_width(deviation, n):.2f}"
        lines.append((row, error, interval, count, minutes))
    return columns(lines)


def verify_all(records: Records, budget: str) -> int:
    """Verify all records; 1 if any first epoch differs, or if there is no record."""
    differences = []
    for training, record in records.items():
        if record is not None:
            with tempfile.TemporaryDirectory() as work:
                differences.append(verify(training, record, Path(work)))
            result = differences[-1] or "the same numbers"
            print(f"{training}: first epoch: {result}", flush=True)
    if not differences:
        print(f"the ledger has no such training of the budget {budget}: nothing to verify")
    return 1 if any(differences) or not differences else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        # Every training but those of --verify has a checkpoint.
        print("\nstopped; make results goes on from the last checkpoint", file=sys.stderr)
        sys.exit(INTERRUPTED)
