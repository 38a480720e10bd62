"""One training of the ledger: train, go on, count on the test set, write the record."""

import dataclasses
import json
import shutil
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

import torch
from filelock import FileLock, Timeout

from capsnet import CapsNet
from capsnet.checkpoint import load_weights, save_weights
from capsnet.data import ImageSet, centred, load
from capsnet.device import describe_machine, make_fabric, resolve_compile
from capsnet.files import write_atomically, write_json
from capsnet.training import TrainingConfig, evaluate, fit
from capsnet.training.run import METRICS, WEIGHTS
from capsnet_book.ledger import record_lines, record_name, records_file
from capsnet_lab.wild.recipes import split_recipe
from experiments.declared import EXPERIMENTS, Budget, Experiment, Row
from experiments.networks import KINDS, Kind
from experiments.tasks import TASKS

ROOT = Path(__file__).parent.parent
LEDGER = ROOT / "results"
WORK = ROOT / "runs"  # checkpoints; not in git
EVALUATION = "evaluation.json"  # in a folder of weights that are kept
EPOCH_COUNTS = "epoch-counts.json"  # in a checkpoint's folder: what a task counts after each epoch
TIMES = ("seconds", "images_per_second")  # of an epoch; never the same twice


@dataclasses.dataclass(frozen=True)
class Training:
    """One declared training: a row of an experiment under a budget, with a seed."""

    experiment: str  # the names of the experiment, its budget and its row
    budget: str
    row: str
    seed: int
    declared: Experiment = dataclasses.field(compare=False, repr=False)

    @property
    def row_options(self) -> Row:
        return self.declared.rows[self.row]

    @property
    def budget_options(self) -> Budget:
        return self.declared.budgets[self.budget]

    @property
    def kind(self) -> Kind:
        return KINDS[self.row_options.kind]

    @property
    def recipe(self) -> dict[str, Any]:
        """The options of the training: the row's, else the budget's."""
        defaults = {"arrangement": self.kind.arrangement, "compile": None, "seed": self.seed}
        return defaults | self.budget_options.config | self.row_options.config

    @property
    def config(self) -> TrainingConfig:
        """The recipe's options of TrainingConfig; the others name functions."""
        return TrainingConfig(**split_recipe(self.recipe)[0])

    @property
    def images(self) -> int | None:
        """How many training images are used, from the first on; all if None."""
        return self.row_options.images or self.budget_options.images

    @property
    def declaration(self) -> dict[str, Any]:
        """All that the training is made from, as its record has it."""
        row = self.row_options
        config = dataclasses.asdict(self.config) | self.recipe
        del config["compile"]  # the machine decides
        return {
            "experiment": self.experiment,
            "budget": self.budget,
            "row": self.row,
            "seed": self.seed,
            "dataset": self.declared.dataset,
            "images": self.images,
            "per_class": row.per_class,
            "kind": row.kind,
            "network": row.network,
            "config": config,
            "canvas": self.declared.canvas,
            "task": self.declared.task,
            "watched": self.declared.watched or None,
            "tuning": self.declared.tuning or None,
        }

    @property
    def name(self) -> str:
        """The name of its record in the ledger."""
        return record_name(self.experiment, self.row, self.seed, self.budget)

    def __str__(self) -> str:
        return f"{self.experiment}, {self.budget}, {self.row}, seed {self.seed}"


def plan(experiments: dict[str, Experiment], budget: str) -> list[Training]:
    """Every declared training, the first seed of every row before the second of any."""
    trainings = []
    for name, experiment in experiments.items():
        of_experiment = [
            Training(name, budget, row, seed, experiment)
            for row in experiment.rows
            for seed in experiment.seeds(row, budget)
        ]
        trainings += sorted(of_experiment, key=lambda training: training.seed)
    return trainings


def at_chosen_rates(
    experiments: Mapping[str, Experiment],
    budget: str,
    ledger: Path = LEDGER,
    declared: Mapping[str, Experiment] = EXPERIMENTS,
) -> dict[str, Experiment]:
    """The experiments, with the learning rates that their tunings (``tuned_by``) chose.

    A row whose tuning is not complete is left out.
    """
    chosen = {}
    for name, experiment in experiments.items():
        rows = dict(experiment.rows)
        if experiment.tuned_by:
            tuning = plan({experiment.tuned_by: declared[experiment.tuned_by]}, budget)
            for row, options in experiment.rows.items():
                best = best_rate([t for t in tuning if t.row.startswith(f"{row}, rate ")], ledger)
                if best is None:
                    del rows[row]
                else:
                    config = options.config | {"learning_rate": best}
                    rows[row] = dataclasses.replace(options, config=config)
        chosen[name] = dataclasses.replace(experiment, rows=rows)
    return chosen


def best_rate(tuning: list[Training], ledger: Path) -> float | None:
    """The learning rate with the fewest mistakes over all seeds; None where a record is missing."""
    mistakes: dict[float, int] = {}
    for training, record in find_records(tuning, ledger).items():
        if record is None:
            return None
        images = record.get("placed", record["test"])  # plain digits, where there are others
        rate = training.config.learning_rate
        mistakes[rate] = mistakes.get(rate, 0) + images["total"] - images["correct"]
    if not mistakes:
        return None
    return min(mistakes, key=lambda rate: (mistakes[rate], rate))


def find_record(training: Training, ledger: Path) -> dict[str, Any] | None:
    """The record of a training as it is declared now, or None.

    Raises:
        ValueError: the experiment's file has a line that is no record.
    """
    return find_records([training], ledger)[training]


def find_records(
    trainings: Iterable[Training], ledger: Path = LEDGER
) -> dict[Training, dict[str, Any] | None]:
    """The ledger's record of each training, None where it has none; each file is read once."""
    lines: dict[str, dict[str, str]] = {}
    records: dict[Training, dict[str, Any] | None] = {}
    for training in trainings:
        name = training.experiment
        if name not in lines:
            lines[name] = record_lines(ledger / records_file(name))
        record: dict[str, Any] = json.loads(lines[name].get(training.name, "{}"))
        expected = json.loads(json.dumps(training.declaration))
        same = all(record.get(key) == value for key, value in expected.items())
        records[training] = record if same else None
    return records


def write_record(training: Training, record: dict[str, Any], ledger: Path) -> None:
    """Put a record into its experiment's file, in place of an older one of the same training.

    Several processes may write at once: each waits for a lock, and replaces the whole file.
    """
    file = ledger / records_file(training.experiment)
    file.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(file.with_name(f".{file.name}.lock")):
        lines = record_lines(file) | {training.name: json.dumps(record)}
        write_atomically(file, "".join(f"{line}\n" for line in lines.values()).encode())


def load_images(experiment: Experiment, train: bool, span: slice = slice(None)) -> ImageSet:
    """Images of the data set, on the experiment's canvas."""
    images = load(experiment.dataset, train).subset(span)
    return images if experiment.canvas is None else centred(images, experiment.canvas)


def unseen_images(training: Training) -> ImageSet:
    """The training images that no training of this budget learns from."""
    span = training.budget_options.unseen
    return load_images(training.declared, train=True, span=slice(span.start, span.stop))


def training_images(training: Training) -> tuple[ImageSet, ImageSet | None]:
    """The images a network learns from, and, if it is watched, those of its evaluations."""
    images, validation = load_images(training.declared, True, slice(training.images)), None
    if training.declared.watched:
        validation = load_images(training.declared, train=False)
    if (per_class := training.row_options.per_class) is not None:
        generator = torch.Generator().manual_seed(training.seed)
        order = torch.randperm(len(images), generator=generator)
        of_class = [order[images.labels[order] == k] for k in range(len(images.classes))]
        images = images.subset(torch.cat([indices[:per_class] for indices in of_class]))
    return images, validation


def train(
    training: Training, work: Path, stop_after: int | None = None
) -> tuple[CapsNet, list[dict[str, Any]]]:
    """Train, or go on with a training that was cut off; the network and a record of each epoch."""
    kind, task = training.kind, TASKS[training.declared.task]
    images, validation = training_images(training)
    torch.manual_seed(training.seed)
    shape, options = tuple(images.images.shape[1:]), training.row_options.network
    model = cast(CapsNet, kind.make(shape, len(images.classes), **options))
    records = fit(
        model,
        images,
        validation,
        training.config,
        out=work / training.name,
        criterion=kind.criterion,
        make_loss=kind.make_loss or task.make_loss,
        stop_after=stop_after,
        **({"make_batch": task.make_batch} | split_recipe(training.recipe)[1]),
    )
    return model, records


def train_with_epoch_counts(
    training: Training, work: Path, stop_after: int | None = None
) -> tuple[CapsNet, list[dict[str, Any]]]:
    """:func:`train`, with what the task counts after each epoch added to the epoch's record.

    The counts are of the test set, which tuning never sees.
    """
    count_epoch = TASKS[training.declared.task].count_epoch
    if count_epoch is None or training.declared.tuning:
        return train(training, work, stop_after)
    file = work / training.name / EPOCH_COUNTS
    counts: list[dict[str, Any]] = json.loads(file.read_text()) if file.exists() else []
    test = load_images(training.declared, train=False)
    for epoch in range(len(counts) + 1, (stop_after or training.config.epochs) + 1):
        model, _ = train(training, work, epoch)
        counts.append(count_epoch(model, test, training.kind.arrangement))
        write_json(file, counts)
    model, records = train(training, work, stop_after)
    return model, [epoch | count for epoch, count in zip(records, counts, strict=True)]


def train_and_record(training: Training, ledger: Path, work: Path) -> dict[str, Any]:
    """Train, count on the test set, and write the record; the checkpoint is then removed.

    A lock keeps other processes from training in the folder, or removing it, before the record is
    written. If another process wrote the record meanwhile, that record is returned.

    Raises:
        BlockingIOError: another process trains it.
    """
    folder = work / training.name
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder.with_name(f".{folder.name}.lock"), timeout=0):
            return find_record(training, ledger) or train_and_record_alone(training, ledger, work)
    except Timeout:
        raise BlockingIOError(f"another process trains {folder}") from None


def train_and_record_alone(training: Training, ledger: Path, work: Path) -> dict[str, Any]:
    """:func:`train_and_record` under its lock."""
    model, records = train_with_epoch_counts(training, work)
    device, run = next(model.parameters()).device, work / training.name
    keep = training.row_options.keep_weights if training.seed == 0 else ""
    metadata: dict[str, Any] = {}
    if keep:  # What is counted is what is kept.
        trained, metadata = load_weights(run / WEIGHTS)
        save_weights(run / keep, trained, metadata, torch.int8)
        model = load_weights(run / keep)[0].to(device)
    start = time.perf_counter()
    tested = count_errors(training, model)
    record = training.declaration | {
        "records": thinned(records),
        **{name: without_many_errors(part) for name, part in tested.items()},
        "seconds": round(sum(epoch["seconds"] for epoch in records), 1),
        "evaluation_seconds": round(time.perf_counter() - start, 1),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "machine": describe_machine(device),
    }
    if keep:
        folder = ledger / (keep if training.budget == "cpu" else f"{keep}-{training.budget}")
        write_atomically(folder / WEIGHTS, (run / keep).read_bytes())
        write_atomically(folder / METRICS, (run / METRICS).read_bytes())
        # What ``capsnet evaluate`` says of the weights.
        if training.declared.task in ("digits", "drawn"):
            facts = {"dataset": training.declared.dataset, "split": "test", "weights": metadata}
            write_json(folder / EVALUATION, facts | tested["test"], indent=None)
    write_record(training, record, ledger)
    shutil.rmtree(run, ignore_errors=True)
    return record


def count_errors(training: Training, model: CapsNet) -> dict[str, Any]:
    """The counts of each set of images, as the record has them. Tuning never sees the test set."""
    tuning, arrangement = training.declared.tuning, training.kind.arrangement
    images = unseen_images(training) if tuning else load_images(training.declared, train=False)
    test = TASKS[training.declared.task].test
    tested = test(model, images, training.config.shift, arrangement)
    if training.budget_options.unseen and not tuning:
        compiled = resolve_compile(training.config.compile, next(model.parameters()).device)
        result = evaluate(model, unseen_images(training), arrangement=arrangement, compile=compiled)
        tested["unseen"] = {"correct": result.correct, "total": result.total}
    return tested


def thinned(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The epochs that a record keeps: all of up to 50; else the first, every tenth, the best (where
    each was evaluated) and the last.
    """
    last = len(records)
    best = max(records, key=lambda epoch: epoch.get("validation_accuracy", 0.0))["epoch"]
    numbers = range(1, last + 1) if last <= 50 else {1, *range(10, last, 10), best, last}
    return [epoch for n, epoch in enumerate(records, 1) if n in numbers]


def without_many_errors(tested: dict[str, Any]) -> dict[str, Any]:
    """A test's counts, without the list of errors if these are more than a quarter of all."""
    errors = tested.get("errors", [])
    return tested | {"errors": None} if len(errors) > tested.get("total", 0) / 4 else tested


def verify(training: Training, record: dict[str, Any], work: Path) -> str | None:
    """Train the first epoch of a record again; return what differs from the record, or None.

    On another machine or with other versions, a number may differ by a thousandth, because the last
    digits do. On the machine that the record describes, every digit must be the same.
    """
    _, records = train_with_epoch_counts(training, work, stop_after=1)
    same_machine = record["machine"].items() <= describe_machine(make_fabric().device).items()
    return first_difference(record["records"][0], records[0], same_machine)


def first_difference(old: dict[str, Any], new: dict[str, Any], same_machine: bool) -> str | None:
    """The first value of an epoch that is not as it was; None if there is none."""
    for name, expected in old.items():
        value = new.get(name)
        if name in TIMES or value == expected:
            continue
        numbers = isinstance(expected, int | float) and isinstance(value, int | float)
        if same_machine or not numbers or abs(value - expected) > 1e-3 * abs(expected):
            return f"expected {name} {expected}, got {value}"
    return None
