"""One run of the ledger: train, go on, count on the test set, write the record."""

import dataclasses
import json
import shutil
import time
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch

from capsnet import CapsNet, cli
from capsnet.checkpoint import load_weights, save_weights, write_atomically
from capsnet.data import ImageSet, centred, hold_out, load
from capsnet.device import describe_machine, make_fabric
from capsnet.training import TrainingConfig, fit
from capsnet.training.run import METRICS, WEIGHTS
from capsnet_book.ledger import run_name
from experiments.declared import Budget, Experiment
from experiments.networks import KINDS
from experiments.tasks import TASKS, moved

ROOT = Path(__file__).parent.parent
LEDGER = ROOT / "results" / "experiments"
WORK = ROOT / "runs" / "experiments"  # checkpoints; not in git
EVALUATION = "evaluation.json"  # beside weights that are kept
CHECKPOINT_SECONDS = 60.0
CLOCKED = ("seconds", "images_per_second")  # of an epoch; never the same twice
WHOLE = {"config", "records", "test", "seconds", "evaluation_seconds", "machine"}  # of a record
# What a record says only where it is not this.
USUAL = {"canvas": Experiment.canvas, "task": Experiment.task, "match": Budget.match}


class Planned(NamedTuple):
    """One run that is declared."""

    experiment: str
    budget: str
    row: str
    seed: int

    @property
    def name(self) -> Path:
        return Path(self.experiment, self.budget, run_name(self.row))

    def folder(self, work: Path) -> Path:
        """Where it trains."""
        return work / self.name / f"seed-{self.seed}"

    def record(self, ledger: Path) -> Path:
        return self.folder(ledger).with_suffix(".json")


def plan(experiments: dict[str, Experiment], budget: str) -> list[Planned]:
    """Every declared run, the first seed of every row before the second of any."""
    return [
        Planned(name, budget, row, seed)
        for name, experiment in experiments.items()
        for seed in range(experiment.budgets[budget].seeds)
        for row in experiment.rows
    ]


def is_done(run: Planned, experiment: Experiment, ledger: Path = LEDGER) -> bool:
    """Whether the ledger has the run, as it is declared now."""
    found = read(run, ledger)
    return found is not None and is_of(found, experiment, run)


def is_of(
    found: dict[str, Any], experiment: Experiment, run: Planned, shorter: bool = False
) -> bool:
    """Whether a record is of the run as it is declared now, or of one with fewer epochs."""
    expected = json.loads(json.dumps(declaration(experiment, run)))
    if shorter and found["config"]["epochs"] < expected["config"]["epochs"]:
        expected["config"]["epochs"] = found["config"]["epochs"]
    return all(found.get(key) == expected.get(key) for key in expected.keys() | USUAL.keys())


def read(run: Planned, ledger: Path = LEDGER) -> dict[str, Any] | None:
    """A run's record, or None.

    Raises:
        ValueError: its file holds none.
    """
    path = run.record(ledger)
    if not path.exists():
        return None
    try:
        found = json.loads(path.read_text())
        if not found.keys() >= WHOLE:
            raise ValueError(f"it lacks {', '.join(sorted(WHOLE - found.keys()))}")
    except (ValueError, AttributeError) as error:
        raise ValueError(f"{path} is no record: {error}") from error
    return cast(dict[str, Any], found)


def declaration(experiment: Experiment, run: Planned) -> dict[str, Any]:
    """What a run is made from: with it, it can be made again."""
    row, budget = experiment.rows[run.row], experiment.budgets[run.budget]
    config = configuration(experiment, run)
    setup = {"canvas": experiment.canvas, "task": experiment.task, "match": budget.match}
    return {
        "experiment": run.experiment,
        "budget": run.budget,
        "row": run.row,
        "seed": run.seed,
        "dataset": experiment.dataset,
        "images": budget.images,
        "per_class": row.per_class,
        "kind": row.kind,
        "network": row.network,
        "config": {
            name: value for name, value in dataclasses.asdict(config).items() if name != "compile"
        },
    } | {key: value for key, value in setup.items() if value != USUAL[key]}


def configuration(experiment: Experiment, run: Planned) -> TrainingConfig:
    """The budget's options, where the row has no others."""
    row, budget = experiment.rows[run.row], experiment.budgets[run.budget]
    given = {"arrangement": KINDS[row.kind].arrangement, "compile": None, "seed": run.seed}
    return TrainingConfig(**(given | budget.config | row.config))


def images_of(experiment: Experiment, train: bool) -> ImageSet:
    """The data set, on the experiment's canvas."""
    images = load(experiment.dataset, train)
    return images if experiment.canvas is None else centred(images, experiment.canvas)


def training_images(experiment: Experiment, run: Planned) -> tuple[ImageSet, ImageSet | None]:
    """The images a run learns from, and those that tell it when to stop, if any do."""
    images, validation = images_of(experiment, train=True), None
    if experiment.budgets[run.budget].match is not None:
        images, validation = hold_out(images)
        validation = moved(validation, configuration(experiment, run).shift)
    count = experiment.budgets[run.budget].images
    if count is not None:
        images = images.subset(slice(0, count))
    per_class = experiment.rows[run.row].per_class
    if per_class is not None:
        order = torch.randperm(len(images), generator=torch.Generator().manual_seed(run.seed))
        classes = range(len(images.classes))
        of_class = [order[images.labels[order] == k][:per_class] for k in classes]
        images = images.subset(torch.cat(of_class))
    return images, validation


def train(
    experiment: Experiment, run: Planned, work: Path = WORK, stop_after: int | None = None
) -> tuple[CapsNet, list[dict[str, Any]]]:
    """Train, or go on with a training that was cut off; the network and a record an epoch."""
    row = experiment.rows[run.row]
    kind = KINDS[row.kind]
    images, validation = training_images(experiment, run)
    torch.manual_seed(run.seed)
    channels, height, width = images.images.shape[1:]
    model = cast(CapsNet, kind.make((channels, height, width), len(images.classes), **row.network))
    records = fit(
        model,
        images,
        validation,
        configuration(experiment, run),
        out=run.folder(work),
        criterion=kind.criterion,
        draw=TASKS[experiment.task].draw,
        stop_after=stop_after,
        until=lambda record: is_matched(experiment.budgets[run.budget], record),
        checkpoint_seconds=CHECKPOINT_SECONDS,
    )
    return model, records


def is_matched(budget: Budget, record: dict[str, Any]) -> bool:
    """Whether an epoch brought the accuracy at which the training stops, if it stops at one."""
    return budget.match is not None and record.get("validation_accuracy", 0.0) >= budget.match


def perform(
    experiment: Experiment, run: Planned, ledger: Path = LEDGER, work: Path = WORK
) -> dict[str, Any]:
    """Train, count on the test set, and write the record; the checkpoint is then removed."""
    model, records = train(experiment, run, work)
    device = next(model.parameters()).device
    made = run.folder(work)
    first = next(iter(experiment.rows)), 0
    if experiment.keep_weights and (run.row, run.seed) == first:
        # The record is of these.
        name = experiment.keep_weights + ("" if run.budget == "cpu" else f"-{run.budget}")
        kept = keep(made, ledger.parent / name, experiment.task)
        model = kept.to(device)
    start = time.perf_counter()
    arrangement = KINDS[experiment.rows[run.row].kind].arrangement
    shift = configuration(experiment, run).shift
    tested = TASKS[experiment.task].test(
        model, images_of(experiment, train=False), shift, arrangement
    )
    seconds = time.perf_counter() - start
    record = declaration(experiment, run) | {
        "records": records,
        **tested,
        "seconds": round(sum(record["seconds"] for record in records), 1),
        "evaluation_seconds": round(seconds, 1),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "machine": describe_machine(device),
    }
    write_atomically(run.record(ledger), (json.dumps(record, indent=1) + "\n").encode())
    shutil.rmtree(made, ignore_errors=True)
    return record


def keep(made: Path, folder: Path, task: str) -> CapsNet:
    """Put a run's weights and metrics into a folder; of single digits, also what ``capsnet
    evaluate`` says of the weights.
    """
    model, metadata = load_weights(made / WEIGHTS)
    metadata.pop("model")
    kept, names = made / "kept", [WEIGHTS, METRICS]  # whole before the first is replaced
    save_weights(kept / WEIGHTS, model, metadata, torch.float16)
    shutil.copyfile(made / METRICS, kept / METRICS)
    if task == "digits":
        command = ["evaluate", str(kept / WEIGHTS), "--json", str(kept / EVALUATION)]
        code = cli.main([*command, "--no-download"])
        if code == cli.INTERRUPTED:
            raise KeyboardInterrupt
        if code:
            raise RuntimeError(f"capsnet {' '.join(command)} failed")
        names.append(EVALUATION)
    for name in names:
        write_atomically(folder / name, (kept / name).read_bytes())
    return load_weights(folder / WEIGHTS)[0]


def verify(experiment: Experiment, run: Planned, work: Path, ledger: Path = LEDGER) -> str | None:
    """Run a recorded run's first epoch again; what differs from the record, or None.

    The last digits differ between machines and versions, so a thousandth is forgiven where they do;
    a record that does not say which processor it had is held to every digit.
    """
    recorded = read(run, ledger)
    assert recorded is not None
    _, records = train(experiment, run, work, stop_after=1)
    same_machine = recorded["machine"].items() <= describe_machine(make_fabric().device).items()
    for name, before in recorded["records"][0].items():
        now = records[0].get(name)
        if name in CLOCKED or now == before:
            continue
        if same_machine or now is None or abs(now - before) > 1e-3 * abs(before):
            return f"{run.record(ledger)}: the first epoch's {name} was {before}, now it is {now}"
    return None
