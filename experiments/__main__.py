"""``make results``: run what the ledger lacks.

    python -m experiments                    # everything missing, under the machine's budget
    python -m experiments table-1 released   # these experiments only
    python -m experiments --list             # what is done, what remains, how long it will take
    python -m experiments --verify           # each record's first epoch again: the same numbers?

Stop it at any time; the next call goes on from the last checkpoint, a minute or an epoch back.
"""

import argparse
import json
import math
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from capsnet.cli import INTERRUPTED
from capsnet.device import pick_device
from capsnet.fast.allocator import keep_freed_memory
from capsnet.text import columns
from capsnet.training.run import METRICS
from capsnet_book.figures import summary_table
from experiments.declared import EXPERIMENTS, Experiment
from experiments.running import (
    LEDGER,
    WORK,
    Planned,
    configuration,
    is_done,
    is_matched,
    perform,
    plan,
    read,
    verify,
)
from experiments.tables import write


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
    parser.add_argument("--budget", choices=["cpu", "gpu"], help="the machine's if not given")
    parser.add_argument("--minutes", type=float, help="begin no run after so many minutes")
    parser.add_argument("--list", action="store_true", help="only say what is done and remains")
    parser.add_argument("--verify", action="store_true", help="first epochs of recorded runs again")
    options = parser.parse_args(arguments)
    if options.minutes is not None and not 0 <= options.minutes < math.inf:
        parser.error(f"--minutes must be a number from 0 on, got {options.minutes}")
    if sum([options.list, options.verify, options.minutes is not None]) > 1:
        parser.error("give one of --list, --verify and --minutes")
    if unknown := set(options.experiments) - declared.keys():
        parser.error(
            f"unknown experiment {', '.join(sorted(unknown))}; expected of {', '.join(declared)}"
        )
    chosen = {
        name: experiment
        for name, experiment in declared.items()
        if not options.experiments or name in options.experiments
    }
    budget = options.budget or ("cpu" if pick_device("auto").type == "cpu" else "gpu")
    runs = plan(chosen, budget)
    try:
        missing = [run for run in runs if not is_done(run, declared[run.experiment], ledger)]
        print(progress(declared, runs, missing, ledger, work), flush=True)
    except ValueError as error:  # a record that cannot be read
        parser.exit(1, f"{error}\n")
    if options.list:
        return 0
    keep_freed_memory()
    if options.verify:
        return check(declared, [run for run in runs if run not in missing], ledger, budget)
    start, faults = time.monotonic(), 0
    for run in missing:
        if options.minutes is not None and time.monotonic() - start > 60 * options.minutes:
            break
        if is_done(run, declared[run.experiment], ledger):  # by another process, meanwhile
            continue
        print(f"\n{run.name}, seed {run.seed}", flush=True)
        try:
            record = perform(declared[run.experiment], run, ledger, work)
        # A checkpoint of another declaration, say, or a data set that is not here: others can run.
        except (ValueError, OSError, RuntimeError) as error:
            print(f"{run.folder(work)}: {error}", file=sys.stderr, flush=True)
            faults += 1
            continue
        test = record["test"]
        print(f"{test['correct']}/{test['total']} in {record['seconds'] / 60:.1f} minutes")
        write(run.experiment, budget, declared[run.experiment], ledger)
    for name, experiment in chosen.items():
        found = write(name, budget, experiment, ledger)
        print(f"\n{experiment.question}\n{summary_table(found)}")
    return 1 if faults else 0


def progress(
    declared: dict[str, Experiment],
    runs: list[Planned],
    missing: list[Planned],
    ledger: Path,
    work: Path,
) -> str:
    """A line for each experiment: runs done, runs left, hours; and one for each run begun."""
    rows, begun = [("experiment", "budget", "done", "left", "hours done", "hours left")], []

    def add(name: str, mine: list[Planned]) -> None:
        left = [run for run in mine if run in missing]
        hours = [hours_left(declared[run.experiment], run, ledger, work) for run in left]
        known = [value for value in hours if value is not None]
        parts = [f"{sum(known):.1f}"] if known or not left else []
        parts += [f"? for {len(hours) - len(known)}"] if len(known) < len(hours) else []
        spent = sum(hours_of(run, ledger) for run in mine if run not in missing)
        counts = f"{len(mine) - len(left)}", f"{len(left)}"
        rows.append((name, mine[0].budget, *counts, f"{spent:.1f}", " + ".join(parts)))

    for name in dict.fromkeys(run.experiment for run in runs):
        add(name, [run for run in runs if run.experiment == name])
    add("all", runs)
    for run in missing:
        if epochs := len(epochs_of(run, work)):
            total = configuration(declared[run.experiment], run).epochs
            of = f"of {total}" if epochs <= total else f"and more than the {total}"
            begun.append(f"begun: {run.name}, seed {run.seed}, {epochs} {of} epochs")
    return "\n".join([columns(rows), *begun])


def epochs_of(run: Planned, work: Path) -> list[dict[str, Any]]:
    """The epochs so far of a run that was begun."""
    path = run.folder(work) / METRICS
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def hours_of(run: Planned, ledger: Path) -> float:
    """What a recorded run took, its test included."""
    record = read(run, ledger)
    assert record is not None
    return float(record["seconds"] + record["evaluation_seconds"]) / 3600


def hours_left(experiment: Experiment, run: Planned, ledger: Path, work: Path) -> float | None:
    """What is left of a run, by its own epochs so far or by a recorded run of the same row."""
    total = configuration(experiment, run).epochs
    if records := epochs_of(run, work):
        seconds = sum(record["seconds"] for record in records) / len(records)
        return max(total - len(records), 0) * seconds / 3600
    for seed in range(experiment.budgets[run.budget].seeds):
        done = read(run._replace(seed=seed), ledger)
        if done is not None:
            matched = is_matched(experiment.budgets[run.budget], done["records"][-1])
            share = 1.0 if matched else total / len(done["records"])
            return (share * done["seconds"] + done["evaluation_seconds"]) / 3600
    return None


def check(declared: dict[str, Experiment], runs: list[Planned], ledger: Path, budget: str) -> int:
    """Verify records; 1 if any first epoch differs, or if there is none."""
    if not runs:
        print(f"the ledger has no such run of the budget {budget}: nothing to verify")
        return 1
    faults = []
    for run in runs:
        with tempfile.TemporaryDirectory() as work:
            fault = verify(declared[run.experiment], run, Path(work), ledger)
        print(fault or f"{run.name}, seed {run.seed}: the first epoch is the same", flush=True)
        faults += [fault] if fault else []
    return 1 if faults else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        # Every training but those of --verify has a checkpoint.
        print("\nstopped; make results goes on from the last checkpoint", file=sys.stderr)
        sys.exit(INTERRUPTED)
