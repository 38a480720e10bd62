"""The ledger's runner, with real digits and small networks."""

import dataclasses
import json
import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from filelock import FileLock

from capsnet.checkpoint import load_weights, read_tensors
from capsnet.data import ImageSet, load
from capsnet_book import ledger as book_ledger
from experiments import running, tasks
from experiments.__main__ import main, results_table
from experiments.declared import EXPERIMENTS, Budget, Experiment, Row, at_each_rate
from experiments.running import (
    Training,
    find_record,
    plan,
    train,
    train_and_record,
    training_images,
    write_record,
)

SMALL = {"conv_channels": 8, "capsule_types": 2, "hidden": [16, 16]}
# To compile takes longer than all of this.
QUICK = {"epochs": 2, "batch_size": 100, "precision": "fp32", "compile": False}
TINY = Experiment(
    "Does it run?",
    {"capsules": Row(SMALL, keep_weights="digits"), "few": Row(SMALL, per_class=3)},
    {"cpu": Budget(2, QUICK, images=300)},
)
NOT_KEPT = TINY.rows | {"capsules": Row(SMALL)}
RUN = Training("tiny", "cpu", "capsules", 0, TINY)
FILE = book_ledger.records_file("tiny")
TESTED = 100  # test images


def of(experiment: Experiment, **changes: Any) -> Training:
    """The training of the first row, of another experiment."""
    return dataclasses.replace(RUN, declared=experiment, **changes)


def a_record(training: Training = RUN, correct: int = 9_950) -> dict[str, Any]:
    rest = {"records": [{"epoch": 2}], "seconds": 120.0, "evaluation_seconds": 1.0, "machine": {}}
    return training.declaration | rest | {"test": {"correct": correct, "total": 10_000}}


@pytest.fixture(autouse=True)
def few_test_images(monkeypatch: pytest.MonkeyPatch) -> None:
    def few(name: str, train: bool = True) -> ImageSet:
        return load(name, train).subset(slice(None if train else TESTED))

    monkeypatch.setattr(running, "load", few)


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return tmp_path / "work"


def test_a_row_has_images_and_seeds_of_its_own(ledger: Path, work: Path) -> None:
    """It may be left to the larger budget, watched, and counted on images that no run saw."""
    rows = {
        "all": Row(SMALL),
        "fewer": Row(SMALL | {"deviations": ["unsquared-margin"]}, "wild", images=200, seeds=3),
        "too slow here": Row(SMALL, budgets=("gpu",)),
    }
    budgets = {"cpu": Budget(1, QUICK, images=600, unseen=range(59_700, 59_900), first_seed=3)}
    declared = Experiment("Who is another?", rows, budgets, watched=True)
    trainings = plan({"tiny": declared}, "cpu")
    assert [(t.row, t.seed, t.images) for t in trainings] == [
        ("all", 3, 600), ("fewer", 3, 200), ("fewer", 4, 200), ("fewer", 5, 200)
    ]  # fmt: skip
    record = train_and_record(trainings[1], ledger, work)
    assert record["watched"] and record["images"] == 200
    test, unseen = record["test"], record["unseen"]
    assert record["records"][-1]["validation_accuracy"] == test["correct"] / test["total"]
    assert unseen["total"] == 200 >= unseen["correct"] > 0
    moved = record["routing"]["moved"]
    assert moved[0] == 0 < moved[1] < moved[-1]


def test_tuning_never_sees_the_test_set(
    ledger: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def learned_only(name: str, train: bool = True) -> ImageSet:
        assert train
        return load(name)

    monkeypatch.setattr(running, "load", learned_only)
    budgets = {"cpu": Budget(1, QUICK, images=200, unseen=range(600, 800))}
    declared = Experiment("?", NOT_KEPT, budgets, task="placed", tuning=True)  # it has a course
    record = train_and_record(of(declared), ledger, work)
    assert record["tuning"] and record["test"]["total"] == 200 and "unseen" not in record


def test_few_labels_are_few_and_drawn_by_the_seed() -> None:
    few = dataclasses.replace(RUN, row="few")
    images, _ = training_images(few)
    assert images.labels.bincount().tolist() == [3] * 10
    assert torch.equal(images.images, training_images(few)[0].images)
    other, _ = training_images(dataclasses.replace(few, seed=1))
    assert not torch.equal(images.images, other.images)


def test_a_training_is_cut_off_goes_on_is_recorded_and_not_made_again(
    tmp_path: Path, ledger: Path, work: Path
) -> None:
    assert find_record(RUN, ledger) is None
    train(RUN, work, stop_after=1)
    record = train_and_record(RUN, ledger, work)
    assert not list(work.rglob("*.safetensors"))  # nothing is left of it
    written = json.loads((ledger / FILE).read_text())
    assert written == find_record(RUN, ledger) == json.loads(json.dumps(record))
    assert train_and_record(RUN, ledger, tmp_path / "never") == written
    assert [epoch["epoch"] for epoch in written["records"]] == [1, 2]
    kept = {path.name for path in (ledger / "digits").iterdir()}
    assert kept == {"weights.safetensors", "metrics.jsonl", "evaluation.json"}
    evaluation = json.loads((ledger / "digits" / "evaluation.json").read_text())
    test = written["test"]
    assert test["total"] == TESTED == test["correct"] + len(evaluation["errors"])
    assert evaluation["weights"]["config"]["epochs"] == 2
    whole = train_and_record(RUN, tmp_path / "again", work)  # cut off or not: the same
    assert whole["test"] == record["test"]
    longer = dataclasses.replace(TINY, budgets={"cpu": Budget(2, QUICK | {"epochs": 3}, 300)})
    assert find_record(of(longer), ledger) is None  # what is declared otherwise is another training


@pytest.mark.parametrize(
    ("name", "value", "same_machine", "found"),
    [
        ("loss", 0.5, True, None),
        ("seconds", 6.0, True, None),
        ("loss", 0.5000005, True, "expected loss 0.5, got 0.5000005"),
        ("learning_rate", 0.001000001, True, "expected learning_rate 0.001, got 0.001000001"),
        ("loss", 0.5000005, False, None),  # another machine's last digits may differ
        ("loss", 0.505, False, "expected loss 0.5, got 0.505"),
        ("loss", None, False, "expected loss 0.5, got None"),
        ("loss", [0.5], False, "expected loss 0.5, got [0.5]"),
        ("errors", [4, 8], False, "expected errors [4, 7], got [4, 8]"),
        ("schedule", "plateau", True, "expected schedule cosine, got plateau"),
    ],
)
def test_a_first_epoch_is_the_recorded_one(
    name: str, value: object, same_machine: bool, found: str | None
) -> None:
    recorded: dict[str, Any] = {"loss": 0.5, "learning_rate": 0.001, "seconds": 3.0}
    recorded |= {"errors": [4, 7], "schedule": "cosine"}
    now = recorded | {name: value}
    assert running.first_difference(recorded, now, same_machine) == found


def test_writers_at_once_lose_no_record_and_replace_an_old_one(ledger: Path) -> None:
    def write_one(seed: int) -> None:
        training = dataclasses.replace(RUN, seed=seed)
        write_record(training, a_record(training), ledger)

    with ThreadPoolExecutor(4) as writers:  # each takes a lock of its own, as processes do
        list(writers.map(write_one, range(30)))
    write_record(RUN, a_record(correct=1), ledger)
    records = [json.loads(line) for line in (ledger / FILE).read_text().splitlines()]
    correct = {record["seed"]: record["test"]["correct"] for record in records}
    assert correct == {0: 1} | dict.fromkeys(range(1, 30), 9_950) and len(records) == 30


def test_a_long_record_keeps_what_matters() -> None:
    epochs = [{"epoch": n} for n in range(1, 124)]
    assert [epoch["epoch"] for epoch in running.thinned(epochs)] == [1, *range(10, 121, 10), 123]
    assert running.thinned(epochs[:50]) == epochs[:50]
    watched = [epoch | {"validation_accuracy": 0.9 - abs(epoch["epoch"] - 57)} for epoch in epochs]
    assert [e["epoch"] for e in running.thinned(watched) if e["epoch"] % 10] == [1, 57, 123]
    few, many = ({"total": 20, "errors": list(range(n))} for n in (5, 6))
    assert running.without_many_errors(few) == few
    assert running.without_many_errors(many) == {"total": 20, "errors": None}


def test_nobody_else_touches_a_training_until_its_record_is_written(
    ledger: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = of(dataclasses.replace(TINY, rows=NOT_KEPT))

    def testing(*_: object) -> dict[str, Any]:  # fit has let go of its folder by now
        with pytest.raises(BlockingIOError, match="another process trains"):
            train_and_record(training, ledger, work)
        return {"test": {"correct": 1, "total": 2}}

    monkeypatch.setitem(tasks.TASKS, "digits", tasks.TASKS["digits"]._replace(test=testing))
    record = train_and_record(training, ledger, work)
    assert train_and_record(training, ledger, work) == record  # it is free again


def test_a_training_of_another_process_is_left_to_it(
    ledger: Path, work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quick = dataclasses.replace(TINY, budgets={"cpu": Budget(1, QUICK, images=100)})
    elsewhere = of(quick)
    lock = work / elsewhere.name
    lock.parent.mkdir(parents=True)
    with FileLock(lock.with_name(f".{lock.name}.lock")):
        assert main(["--budget", "cpu"], {"tiny": quick}, ledger, work) == 0
    output = capsys.readouterr()
    assert "another process trains it" in output.out and not output.err.count("seed-0:")
    assert find_record(elsewhere, ledger) is None and find_record(of(quick, row="few"), ledger)


def test_a_network_with_dropout_goes_on_as_if_it_had_not_been_cut_off(tmp_path: Path) -> None:
    rows = {"capsules": Row({"channels": (8, 8, 4), "hidden": (16, 16)}, kind="cnn-small")}
    cnn = Experiment("Does it drop out?", rows, {"cpu": Budget(1, QUICK, images=200)})
    _, whole = train(of(cnn), tmp_path / "whole")
    train(of(cnn), tmp_path / "cut", stop_after=1)
    torch.rand(3)
    _, resumed = train(of(cnn), tmp_path / "cut")
    assert [record["loss"] for record in resumed] == [record["loss"] for record in whole]


def test_the_command(ledger: Path, work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    declared = {"tiny": dataclasses.replace(TINY, budgets={"cpu": Budget(1, QUICK, images=100)})}

    def said(*arguments: str, code: int = 0) -> list[str]:
        assert main([*arguments, "--budget", "cpu"], declared, ledger, work) == code
        return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]

    train(of(declared["tiny"]), work, stop_after=1)
    heads, tiny, everything, begun = said("--list")
    assert heads == "experiment budget done left hours done hours left"
    assert tiny == "tiny cpu 0 2 0.0 0.0 + ? for 1"
    assert everything == "all" + tiny.removeprefix("tiny")
    assert begun == "unfinished: tiny, cpu, capsules, seed 0, 1 epochs, 2 declared"
    said("--minutes", "0")
    assert not (ledger / FILE).exists()  # no time, no run
    assert said("--verify", code=1)[-1].endswith("nothing to verify")
    said("tiny")
    assert all(find_record(training, ledger) for training in plan(declared, "cpu"))
    assert said("--list")[1].startswith("tiny cpu 2 0")
    assert sum("first epoch: the same numbers" in line for line in said("--verify")) == 2
    file = ledger / FILE
    file.write_text(file.read_text().replace('"loss": ', '"loss": 1'))
    assert any("first epoch: expected loss" in line for line in said("--verify", code=1))


@pytest.mark.parametrize(
    ("words", "line", "code", "complaint"),
    [
        (["other"], "", 2, "experiments must be of tiny, got other"),
        (["--list", "--verify"], "", 2, "--verify: not allowed with argument --list"),
        (["--budget", "gpu"], "", 2, "the budget gpu has no training of tiny"),
        (["--minutes", "nan"], "", 2, "--minutes must be a number from 0 on, got nan"),
        (["--list"], "{}", 1, "tiny.jsonl, line 2: no record: it lacks budget, config, "),
        (["--list"], json.dumps(a_record())[:-9], 1, "tiny.jsonl, line 2: no record: "),  # cut off
    ],
)
def test_bad_arguments_and_damaged_files(
    words: list[str],
    line: str,
    code: int,
    complaint: str,
    ledger: Path,
    work: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_record(RUN, a_record(), ledger)
    with (ledger / FILE).open("a") as file:
        file.write(line)
    with pytest.raises(SystemExit) as stop:
        main(words, {"tiny": TINY}, ledger, work)
    output = capsys.readouterr().err.splitlines()
    assert stop.value.code == code and complaint in output[-1]
    assert code == 2 or len(output) == 1


def test_a_training_that_cannot_be_made_is_reported_and_the_others_go_on(
    tmp_path: Path, ledger: Path, work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quick = dataclasses.replace(TINY, budgets={"cpu": Budget(1, QUICK, images=100)})
    lost = dataclasses.replace(quick, dataset="no-such-images")
    train(of(TINY), work, stop_after=1)  # with other images: no checkpoint of this declaration
    assert main(["--budget", "cpu"], {"lost": lost, "tiny": quick}, ledger, work) == 1
    output = capsys.readouterr().err
    assert output.count("no-such-images") >= 2  # both rows' complaint
    assert "tiny/cpu/capsules/seed-0: " in output
    assert find_record(of(quick, row="few"), ledger)


def test_weights_replace_none_of_another_budget(ledger: Path, work: Path) -> None:
    budgets = {name: Budget(1, QUICK, images=100) for name in ("cpu", "gpu")}
    training = of(dataclasses.replace(TINY, budgets=budgets), budget="gpu")
    train_and_record(training, ledger, work)
    assert len(list((ledger / "digits-gpu").iterdir())) == 3 and find_record(training, ledger)
    assert not (ledger / "digits").exists()


def test_pairs_are_counted_by_the_weights_that_are_kept(ledger: Path, work: Path) -> None:
    rows = {"capsules": Row(SMALL, keep_weights="two")}
    pairs = dataclasses.replace(TINY, canvas=36, task="pairs", rows=rows)
    record = train_and_record(of(pairs), ledger, work)
    test = record["test"]
    assert test["total"] == TESTED > 2 * test["correct"]  # of 45 pairs one is guessed
    assert 2 * test["correct"] <= test["digits"] <= TESTED + test["correct"]
    kept = ledger / "two" / "weights.safetensors"
    assert read_tensors(kept)[0]["digits.weight"].dtype == torch.int8
    model, _ = load_weights(kept)
    images = running.load_images(pairs, train=False)
    same, other = (tasks.pairs_test(model, images, shift, "auto")["test"] for shift in (2, 4))
    assert running.without_many_errors(same) == test and same != other
    assert len(same["errors"]) == TESTED - same["correct"]


def test_digits_anywhere_are_counted_after_each_epoch(
    tmp_path: Path, ledger: Path, work: Path
) -> None:
    training = of(
        Experiment("?", NOT_KEPT, {"cpu": Budget(1, QUICK, images=200)}, canvas=40, task="placed")
    )
    running.train_with_epoch_counts(training, work, stop_after=1)  # cut off, and gone on
    record = train_and_record(training, ledger, work)
    whole = train_and_record(training, tmp_path / "again", tmp_path / "other")
    named = [[epoch[name] for name in ("placed", "test")] for epoch in record["records"]]
    assert named == [[epoch[name] for name in ("placed", "test")] for epoch in whole["records"]]
    assert named[-1] == [record[name]["correct"] for name in ("placed", "test")]
    sets = [record[name] for name in ("test", "placed", "bent", "middle")]
    assert {found["total"] for found in sets} == {TESTED}
    assert len({str(found["confusion"]) for found in sets}) == 4


def test_the_table_is_counted(ledger: Path) -> None:
    for seed, correct in ((0, 9_950), (1, 9_970)):
        training = dataclasses.replace(RUN, seed=seed)
        write_record(training, a_record(training, correct), ledger)
    _, row, empty = results_table("tiny", "cpu", TINY, ledger).splitlines()
    deviation = math.sqrt(2) * 0.1
    half = 12.706 * deviation / math.sqrt(2)
    assert " ".join(row.split()) == f"capsules 0.40 ± {deviation:.2f} ± {half:.2f} 2 2.0"
    assert empty.split() == ["few", "0", "of", "2"]


def test_a_tuning_is_made_first_and_chooses_the_rates(
    ledger: Path, work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One command makes both; what is not tuned yet is no training yet."""
    rows = {
        name: Row(SMALL | {"routing_iterations": iterations}, rates=(3e-3, 1e-3))
        for name, iterations in (("one", 1), ("two", 2))
    }
    config = QUICK | {"batch_size": 50}
    declared = {
        "final": Experiment(
            "?", rows, {"cpu": Budget(1, config, 100, first_seed=5)}, tuned_by="race"
        ),
        "race": Experiment(
            "?",
            at_each_rate(rows),
            {"cpu": Budget(1, config, 100, unseen=range(600, 700))},
            tuning=True,
        ),
    }

    def chosen() -> dict[str, float]:
        found = running.at_chosen_rates(declared, "cpu", ledger, declared)["final"].rows
        return {row: of.config["learning_rate"] for row, of in found.items()}

    race = plan({"race": declared["race"]}, "cpu")
    for training, correct in zip(race[:3], (90, 90, 10), strict=True):
        write_record(training, a_record(training, correct), ledger)
    assert chosen() == {"one": 1e-3}  # the lower of equal ones
    assert main(["final", "--budget", "cpu"], declared, ledger, work) == 0
    assert capsys.readouterr().out.count("minutes\n") >= 3
    assert chosen().keys() == rows.keys()
    record = json.loads((ledger / "experiments/final.jsonl").read_text().splitlines()[0])
    assert record["config"]["learning_rate"] == 1e-3 and record["seed"] == 5


def rehearsed(name: str) -> dict[str, Experiment]:
    """An experiment and its tuning with small networks, few images, one rate a row and one seed."""
    experiment = EXPERIMENTS[name]
    rows = {}
    for row_name, row in experiment.rows.items():
        small = {"channels": [8, 8]} if row.kind.startswith("cnn") else SMALL
        config = row.config | QUICK | {"epochs": 1, "batch_size": 50}
        rows[row_name] = dataclasses.replace(
            row, network=row.network | small, config=config, rates=row.rates[:1]
        )

    def few(experiment: Experiment) -> dict[str, Budget]:
        budget = experiment.budgets["gpu"]
        unseen = budget.unseen[:200]
        return {"gpu": dataclasses.replace(budget, seeds=1, images=200, unseen=unseen)}

    tuning = EXPERIMENTS[experiment.tuned_by]
    return {
        name: dataclasses.replace(experiment, rows=rows, budgets=few(experiment)),
        experiment.tuned_by: dataclasses.replace(
            tuning, rows=at_each_rate(rows), budgets=few(tuning)
        ),
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gain-on-pairs", "dense", "few-dense", "affine", "fast-w"])
def test_what_waits_for_a_gpu_runs_from_its_tuning_to_its_table(
    name: str, ledger: Path, work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    declared = rehearsed(name)
    assert main([name, "--budget", "gpu"], declared, ledger, work) == 0
    final = running.at_chosen_rates(declared, "gpu", ledger, declared)[name]
    assert final.rows.keys() == declared[name].rows.keys()
    assert all(find_record(training, ledger) for training in plan({name: final}, "gpu"))
    assert final.question in capsys.readouterr().out
