"""What the ledger holds: records of declared trainings, and of studies that ran once."""

import pytest
import torch

from capsnet import CapsNet
from capsnet.training import TrainingConfig
from capsnet_book import ledger
from capsnet_lab.wild import DEVIATIONS, IMPLEMENTATIONS
from experiments import running
from experiments.declared import BUDGETS, EXPERIMENTS
from experiments.running import at_chosen_rates, find_records, plan
from helpers.tiny import MODEL_DEPENDENT


def test_every_record_is_of_a_declared_training() -> None:
    records = 0
    for budget in BUDGETS:
        trainings = plan(at_chosen_rates(EXPERIMENTS, budget), budget)
        for record in filter(None, find_records(trainings).values()):
            records += 1
            test = record["test"]
            if record["task"] != "pairs":  # lengths of capsules have a margin loss, logits none
                assert (test["margin"] is None) == record["kind"].startswith("cnn")
            if test["errors"] is not None:
                assert test["correct"] + len(test["errors"]) == test["total"]
    lines = [
        line
        for file in (running.LEDGER / "experiments").iterdir()
        for line in ledger.record_lines(file)
    ]
    assert records == len(lines) > 600


@pytest.mark.parametrize("budget", BUDGETS)
def test_the_rows_of_a_table_have_one_precision(budget: str) -> None:
    """Where a machine chose it, all machines chose the same; what has no record yet names it."""
    for name, experiment in EXPERIMENTS.items():
        trainings = plan(at_chosen_rates({name: experiment}, budget), budget)
        chosen = [training for training in trainings if training.config.precision == "auto"]
        records = find_records(chosen)
        machines = {record["machine"]["bfloat16"] for record in records.values() if record}
        # One rate of one arm of this tuning was tried on a CPU without bfloat16.
        mixed = (name, budget) == ("places-tuning", "gpu")
        assert len(machines) == (2 if mixed else 1) or not chosen, name


@pytest.mark.parametrize("budget", BUDGETS)
def test_what_chooses_is_not_what_is_counted_on(budget: str) -> None:
    unseen: dict[bool, set[int]] = {True: set(), False: set()}
    # Those of a pair are counted on the test set alone, and choose on images that others count on.
    apart = {"all-images", "all-images-tuning", "gain-on-pairs", "gain-on-pairs-tuning"}
    for name, experiment in EXPERIMENTS.items():
        if budget not in experiment.budgets:
            continue
        declared = experiment.budgets[budget]
        if name in apart:
            assert bool(declared.unseen) == experiment.tuning
        else:
            unseen[experiment.tuning] |= set(declared.unseen)
        assert not declared.unseen or declared.unseen.start >= (declared.images or 60_000)
        assert not experiment.tuning or declared.unseen
        if experiment.tuned_by:  # from the same seed, what was best by chance would come out again
            tuning = EXPERIMENTS[experiment.tuned_by].budgets[budget]
            assert declared.first_seed >= tuning.first_seed + tuning.seeds
    assert unseen[True] and not unseen[True] & unseen[False]


def test_the_checker_finds_in_others_code_what_was_read_in_it() -> None:
    networks = ledger.read("checked.json")["networks"]
    ours = {made.link for made in IMPLEMENTATIONS.values()}
    for name, network in networks.items():
        assert network["found"] == network["read"] and DEVIATIONS.keys() >= {*network["found"]}
        assert not any(link.endswith(name) for link in ours)


def test_the_defaults_in_the_ledger_are_those_of_today() -> None:
    shapes = {"CIFAR-10's pictures": (3, 32, 32), "MNIST on 40 × 40": (1, 40, 40)}
    rows = [row for row in ledger.read("defaults.json") if row["arm"] == "default"]
    assert len({row["set"] for row in rows}) == 7
    for row in rows:
        classes = 3 if "3 classes" in row["set"] else 10
        with torch.device("meta"):
            model = CapsNet(shapes.get(row["set"], (1, 28, 28)), classes)
        short = row["budget"] == "short" and not row["set"].startswith("folder")
        given = {"epochs": 2} if short else {}
        suited = TrainingConfig.for_model(model, row["images"], **given)
        assert row == row | {name: getattr(suited, name) for name in MODEL_DEPENDENT}
