"""``make results``: run what the ledger lacks.

    python -m experiments                    # everything missing, under the machine's budget
    python -m experiments table-1 released   # these experiments only
    python -m experiments --list             # what is done, what remains, how long it will take
    python -m experiments --verify           # each record's first epoch again: the same numbers?

Stop it at any time; the next call goes on from the last checkpoint, a minute or an epoch back.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from capsnet.evaluation import pick_device
from capsnet.figures import columns, summary_table
from capsnet.memory import keep_freed_memory
from capsnet.run import METRICS
from experiments.declared import EXPERIMENTS
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


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m experiments", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("experiments", nargs="*", help=f"of {', '.join(EXPERIMENTS)}; all if none")
    parser.add_argument("--budget", choices=["cpu", "gpu"], help="the machine's if not given")
    parser.add_argument("--minutes", type=float, help="begin no run after so many minutes")
    parser.add_argument("--list", action="store_true", help="only say what is done and remains")
    parser.add_argument("--verify", action="store_true", help="first epochs of recorded runs again")
    options = parser.parse_args(arguments)
    if unknown := set(options.experiments) - EXPERIMENTS.keys():
        parser.error(
            f"unknown experiment {', '.join(sorted(unknown))}; expected of {', '.join(EXPERIMENTS)}"
        )
    chosen = {
        name: experiment
        for name, experiment in EXPERIMENTS.items()
        if not options.experiments or name in options.experiments
    }
    budget = options.budget or ("cpu" if pick_device("auto").type == "cpu" else "gpu")
    runs = plan(chosen, budget)
    missing = [run for run in runs if not is_done(run, EXPERIMENTS[run.experiment])]
    print(progress(runs, missing), flush=True)
    if options.list:
        return 0
    keep_freed_memory()
    if options.verify:
        return check([run for run in runs if run not in missing])
    start = time.monotonic()
    for run in missing:
        if options.minutes is not None and time.monotonic() - start > 60 * options.minutes:
            break
        print(f"\n{run.name}, seed {run.seed}", flush=True)
        record = perform(EXPERIMENTS[run.experiment], run)
        test = record["test"]
        print(f"{test['correct']}/{test['total']} in {record['seconds'] / 60:.1f} minutes")
        write(run.experiment, budget)
    for name in chosen:
        print(f"\n{EXPERIMENTS[name].question}\n{summary_table(write(name, budget))}")
    return 0


def progress(runs: list[Planned], missing: list[Planned]) -> str:
    """A line for each experiment: runs done, runs left, hours left."""
    rows = [("experiment", "budget", "done", "left", "hours left")]
    for name in dict.fromkeys(run.experiment for run in runs):
        mine = [run for run in runs if run.experiment == name]
        left = [run for run in mine if run in missing]
        hours = [hours_of(run) for run in left]
        known = [value for value in hours if value is not None]
        parts = [f"{sum(known):.1f}"] if known or not left else []
        parts += [f"? for {len(hours) - len(known)}"] if len(known) < len(hours) else []
        said = " + ".join(parts)
        rows.append((name, mine[0].budget, f"{len(mine) - len(left)}", f"{len(left)}", said))
    return columns(rows)


def hours_of(run: Planned) -> float | None:
    """What is left of a run, by a recorded run of the same row or by its own epochs so far."""
    epochs = run.folder(WORK) / METRICS
    experiment = EXPERIMENTS[run.experiment]
    total = configuration(experiment, run).epochs
    records = (
        [json.loads(line) for line in epochs.read_text().splitlines()] if epochs.exists() else []
    )
    if records:
        seconds = sum(record["seconds"] for record in records) / len(records)
        return (total - len(records)) * seconds / 3600
    for seed in range(experiment.budgets[run.budget].seeds):
        done = read(run._replace(seed=seed), LEDGER)
        if done is not None:
            matched = is_matched(experiment.budgets[run.budget], done["records"][-1])
            expected = len(done["records"]) if matched else total
            return expected * done["seconds"] / len(done["records"]) / 3600
    return None


def check(runs: list[Planned]) -> int:
    """Verify records; 1 if any first epoch differs."""
    faults = []
    for run in runs:
        with tempfile.TemporaryDirectory() as work:
            fault = verify(EXPERIMENTS[run.experiment], run, Path(work))
        print(fault or f"{run.name}, seed {run.seed}: the first epoch is the same", flush=True)
        faults += [fault] if fault else []
    return 1 if faults else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("\nstopped; the same command goes on from the last checkpoint")
