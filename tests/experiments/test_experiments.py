"""The ledger's runner, with real digits and small networks; and what the ledger holds."""

import dataclasses
import json
import math
import operator
from pathlib import Path
from typing import Any

import pytest
import torch

from capsnet import CapsNet
from capsnet.checkpoint import load_weights, read_tensors
from capsnet.data import ImageSet, load, to_float
from capsnet.fast import arrange
from capsnet.functional import squash
from capsnet_book import affnist
from capsnet_book import ledger as ledger_names
from capsnet_lab.wild import WildCapsNet, WildLoss
from experiments import running, tables, tasks
from experiments.__main__ import main
from experiments.declared import EXPERIMENTS, Budget, Experiment, Row
from experiments.networks import KINDS, louder, sharing, without_competition
from experiments.running import Training, perform, plan, recorded, train, training_images, verify

SMALL = {"conv_channels": 8, "capsule_types": 2, "hidden": [16, 16]}
# To compile takes longer than all of this.
QUICK = {"epochs": 2, "batch_size": 100, "precision": "fp32", "compile": False}
TINY = Experiment(
    "Does it run?",
    {"capsules": Row(SMALL, keep_weights="digits"), "few": Row(SMALL, per_class=3)},
    {"cpu": Budget(2, QUICK, images=600)},
)
NOT_KEPT = TINY.rows | {"capsules": Row(SMALL)}
RUN = Training("tiny", "cpu", "capsules", 0, TINY)


def of(experiment: Experiment, **changes: Any) -> Training:
    """The training of the first row, of another experiment."""
    return dataclasses.replace(RUN, declared=experiment, **changes)


@pytest.fixture(autouse=True)
def few_test_images(monkeypatch: pytest.MonkeyPatch) -> None:
    def few(name: str, train: bool = True) -> ImageSet:
        return load(name, train).subset(slice(None if train else 500))

    monkeypatch.setattr(running, "load", few)


@pytest.mark.parametrize(
    ("kind", "side", "named", "error"),
    [
        ("cnn", 28, 35.4e6, 0.002),  # as the paper says
        ("cnn-pairs", 36, 24.56e6, 0.0002),
        ("cnn-small", 28, 6_804_224, 0.05),  # as many as capsules without their decoder
        ("cnn-pooled", 28, 6_804_224, 0.05),
        ("cnn-pooled", 40, sum(p.numel() for p in CapsNet((1, 40, 40)).parameters()), 0.05),
        ("cnn-drawing", 28, 8_215_568, 0.002),  # and with it
    ],
)
def test_a_cnn_has_the_parameters_that_it_should(
    kind: str, side: int, named: float, error: float
) -> None:
    count = sum(p.numel() for p in KINDS[kind].make((1, side, side), 10).parameters())
    assert count == pytest.approx(named, rel=error)


def test_a_cnn_is_read_out_as_capsules_are() -> None:
    cnn = KINDS["cnn-drawing"].make((1, 28, 28), 10).eval()
    images, labels = torch.rand(3, 1, 28, 28), torch.tensor([4, 0, 9])
    out = cnn(images, labels)
    s = cnn.layers(images).view(3, 10, 16)
    size = s.norm(dim=2, keepdim=True)
    torch.testing.assert_close(out.capsules, s * size / (1 + size**2))
    torch.testing.assert_close(out.lengths, out.capsules.norm(dim=2))
    torch.testing.assert_close(out.reconstruction, cnn.decoder(out.capsules, labels))
    torch.testing.assert_close(
        cnn(images).reconstruction, cnn.decoder(out.capsules, out.lengths.argmax(dim=1))
    )


def test_without_competition_a_share_grows_with_its_own_agreement_alone() -> None:
    model = sharing(without_competition, **SMALL)
    u_hat = model.digits.predict(torch.rand(2, 72, 8))
    shares = [torch.full(u_hat.shape[:3], 0.1)]
    v = squash(torch.einsum("nij,nijd->njd", shares[0], u_hat))
    for parent in (0, 1):  # the agreement with one changes nothing of the other's
        alone = torch.zeros_like(v)
        alone[:, parent] = v[:, parent]
        c = without_competition(torch.einsum("nijd,njd->nij", u_hat, alone))
        assert torch.equal(c[:, :, 1 - parent], shares[0][:, :, 1 - parent])
        assert not torch.equal(c[:, :, parent], shares[0][:, :, parent])
    expected = dataclasses.replace(model.parts, share=without_competition)
    assert model.parts == expected != WildCapsNet(**SMALL).parts
    assert not torch.equal(model.route(u_hat), WildCapsNet(**SMALL).route(u_hat))


@pytest.mark.parametrize("same_start", [False, True])
def test_louder_votes_are_those_of_a_larger_matrix(same_start: bool) -> None:
    torch.manual_seed(0)
    model = sharing(louder, **SMALL, routing_iterations=1, same_start=same_start)
    torch.manual_seed(0)
    plain = CapsNet(**SMALL, routing_iterations=1)
    images = torch.rand(3, 1, 28, 28)
    quiet = plain(images).lengths
    plain.digits.weight.data *= 1 if same_start else 4
    for network in (model, arrange(model, "fast")):
        lengths = network(images).lengths
        torch.testing.assert_close(lengths, plain(images).lengths)
        assert torch.allclose(lengths, quiet, rtol=0.1) is same_start


@pytest.mark.parametrize("kind", ["penalised", "decayed"])
def test_a_loss_that_holds_capsules_short_is_ours_and_what_it_says(kind: str) -> None:
    made = KINDS[kind]
    assert made.loss is not None
    model = made.make(**SMALL)
    images, labels = torch.rand(4, 1, 28, 28), torch.arange(4)
    arranged = arrange(model, "fast")
    loss, plain = (of(arranged, 0.5)(images, labels) for of in (made.loss, WildLoss))
    if kind == "penalised":
        lengths = model.children_of(images).norm(dim=2)
        expected = 0.1 * lengths.square().mean()
    else:
        expected = 0.5e-3 * sum(each.square().sum() for each in model.parameters())
    torch.testing.assert_close(loss - plain, expected, rtol=1e-3, atol=1e-6)
    added = torch.autograd.grad(loss - plain, model.primary.conv.weight, retain_graph=True)
    alone = torch.autograd.grad(expected, model.primary.conv.weight)
    torch.testing.assert_close(added, alone, rtol=1e-3, atol=1e-6)


def test_every_declared_run_can_be_made() -> None:
    trainings = plan(EXPERIMENTS, "cpu") + plan(EXPERIMENTS, "gpu")
    assert len({training.name for training in trainings}) == len(trainings)
    assert all(training.config.seed == training.seed for training in trainings)
    for experiment in EXPERIMENTS.values():
        side = experiment.canvas or 28
        assert experiment.task in tasks.TASKS
        for row in experiment.rows.values():
            with torch.device("meta"):
                KINDS[row.kind].make((1, side, side), 10, **row.network)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_gpu_makes_as_many_trainings_or_more_as_long_or_longer(name: str) -> None:
    cpu, gpu = (EXPERIMENTS[name].budgets[budget] for budget in ("cpu", "gpu"))
    seen = (budget.config.get("epochs", 1) * (budget.images or 60_000) for budget in (cpu, gpu))
    assert cpu.seeds <= gpu.seeds and operator.le(*seen)


def test_a_row_has_images_and_seeds_of_its_own_and_may_be_watched(tmp_path: Path) -> None:
    """And may be left to the larger budget. A wild one is counted on images that no run saw."""
    rows = {
        "all": Row(SMALL),
        "fewer": Row(SMALL | {"deviations": ["unsquared-margin"]}, "wild", images=300, seeds=3),
        "too slow here": Row(SMALL, budgets=("gpu",)),
    }
    budgets = {"cpu": Budget(1, QUICK, images=600, unseen=range(59_700, 59_900))}
    declared = Experiment("Who is another?", rows, budgets, watched=True)
    trainings = plan({"tiny": declared}, "cpu")
    assert [(t.row, t.seed, t.images) for t in trainings] == [
        ("all", 0, 600), ("fewer", 0, 300), ("fewer", 1, 300), ("fewer", 2, 300)
    ]  # fmt: skip
    later = {"cpu": dataclasses.replace(budgets["cpu"], first=3)}
    later_seeds = plan({"tiny": dataclasses.replace(declared, budgets=later)}, "cpu")
    assert [training.seed for training in later_seeds] == [3, 3, 4, 5]
    assert [len(training_images(training)[0]) for training in trainings[:2]] == [600, 300]
    record = perform(trainings[1], tmp_path / "ledger", tmp_path / "work")
    assert record["watched"] and record["images"] == 300
    test, unseen = record["test"], record["unseen"]
    assert record["records"][-1]["validation_accuracy"] == test["correct"] / test["total"]
    assert unseen["total"] == 200 >= unseen["correct"] > 0
    moved = record["routing"]["moved"]
    assert moved[0] == 0 < moved[1] < moved[-1]
    found = tables.summarise("tiny", "cpu", declared, tmp_path / "ledger")["rows"]
    assert [(row["n"], row["declared"]) for row in found] == [(0, 1), (1, 3)]


@pytest.mark.parametrize("task", ["digits", "placed"])  # the second has a course
def test_what_is_chosen_never_sees_the_test_set(
    task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def learned_only(name: str, train: bool = True) -> ImageSet:
        assert train
        return load(name)

    monkeypatch.setattr(running, "load", learned_only)
    budget = Budget(1, QUICK, images=600, unseen=range(600, 800))
    declared = dataclasses.replace(TINY, budgets={"cpu": budget}, task=task, tuning=True)
    training = of(dataclasses.replace(declared, rows={"capsules": Row(SMALL)}))
    record = perform(training, tmp_path / "ledger", tmp_path / "work")
    assert record["tuning"] and record["test"]["total"] == 200 and "unseen" not in record


@pytest.mark.parametrize("budget", ["cpu", "gpu"])
def test_what_chooses_is_not_what_is_counted_on(budget: str) -> None:
    unseen: dict[bool, set[int]] = {True: set(), False: set()}
    for experiment in EXPERIMENTS.values():
        declared = experiment.budgets[budget]
        unseen[experiment.tuning] |= set(declared.unseen)
        assert not declared.unseen or declared.unseen.start >= (declared.images or 60_000)
        assert not experiment.tuning or declared.unseen
    assert unseen[True] and not unseen[True] & unseen[False]


def test_few_labels_are_few_and_drawn_by_the_seed() -> None:
    few = dataclasses.replace(RUN, row="few")
    images, _ = training_images(few)
    assert images.labels.bincount().tolist() == [3] * 10
    assert torch.equal(images.images, training_images(few)[0].images)
    other, _ = training_images(dataclasses.replace(few, seed=1))
    assert not torch.equal(images.images, other.images)


def test_a_training_is_cut_off_goes_on_is_recorded_and_not_made_again(tmp_path: Path) -> None:
    ledger, work = tmp_path / "ledger", tmp_path / "work"
    assert recorded(RUN, ledger) is None
    train(RUN, work, stop_after=1)
    record = perform(RUN, ledger, work)
    assert not list(work.rglob("*.safetensors"))  # nothing is left of it
    written = json.loads((ledger / RUN.name).read_text())
    assert written == recorded(RUN, ledger) == json.loads(json.dumps(record))
    assert perform(RUN, ledger, tmp_path / "never") == written
    assert [epoch["epoch"] for epoch in written["records"]] == [1, 2]
    assert written["machine"]["torch"] == torch.__version__
    kept = ledger / "digits"
    assert {path.name for path in kept.iterdir()} == {
        "weights.safetensors", "metrics.jsonl", "evaluation.json"
    }  # fmt: skip
    evaluation = json.loads((kept / "evaluation.json").read_text())
    test = written["test"]
    assert test["total"] == 500 == test["correct"] + len(evaluation["errors"])
    assert evaluation["correct"] == test["correct"]
    assert evaluation["weights"]["config"]["epochs"] == 2

    whole = perform(RUN, tmp_path / "again", work)  # cut off or not: the same
    assert whole["test"] == record["test"]
    assert verify(RUN, tmp_path / "verify", ledger) is None
    longer = dataclasses.replace(TINY, budgets={"cpu": Budget(2, QUICK | {"epochs": 3}, 600)})
    assert recorded(of(longer), ledger) is None
    for declared, unfinished in ((longer, "2 of 3 epochs"), (TINY, "")):
        (row, _) = tables.summarise("tiny", "cpu", declared, ledger)["rows"]
        assert (row["n"], row["unfinished"]) == (1, unfinished)

    def verified(change: float, of: str = "loss") -> str | None:
        changed = [written["records"][0] | {of: (1 + change) * record["records"][0][of]}]
        (ledger / RUN.name).write_text(json.dumps(written | {"records": changed}))
        return verify(RUN, tmp_path / "other", ledger)

    assert verified(1, of="seconds") is None
    assert "first epoch: expected loss" in (verified(1e-6) or "")
    assert "first epoch: expected learning_rate" in (verified(1e-6, of="learning_rate") or "")
    del written["machine"]["processor"]  # it may have been this one
    assert verified(1e-6) is not None
    written["machine"]["processor"] = "another"  # whose last digits may differ
    assert verified(1e-6) is None
    assert verified(1e-2) is not None


def test_a_record_is_small() -> None:
    epochs = [{"epoch": n} for n in range(1, 124)]
    assert [epoch["epoch"] for epoch in running.thinned(epochs)] == [1, *range(10, 121, 10), 123]
    assert running.thinned(epochs[:50]) == epochs[:50]
    watched = [epoch | {"validation_accuracy": 0.9 - abs(epoch["epoch"] - 57)} for epoch in epochs]
    assert [e["epoch"] for e in running.thinned(watched) if e["epoch"] % 10] == [1, 57, 123]
    few, many = ({"total": 20, "errors": list(range(n))} for n in (5, 6))
    assert running.without_many_errors(few, 0.25) == few
    assert running.without_many_errors(many, 0.25) == {"total": 20, "errors": None}
    assert running.without_many_errors({"images": 128}, 0.25) == {"images": 128}
    for path in (running.LEDGER / "experiments").rglob("*.json"):
        assert path.stat().st_size < 30_000, path


def test_nobody_else_touches_a_training_until_its_record_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = of(dataclasses.replace(TINY, rows=NOT_KEPT))

    def testing(*_: object) -> dict[str, Any]:  # fit has let go of its folder by now
        with pytest.raises(BlockingIOError, match="another process makes the training"):
            perform(training, tmp_path / "ledger", tmp_path / "work")
        return {"test": {"correct": 1, "total": 2}}

    monkeypatch.setitem(tasks.TASKS, "digits", tasks.TASKS["digits"]._replace(test=testing))
    record = perform(training, tmp_path / "ledger", tmp_path / "work")
    assert perform(training, tmp_path / "ledger", tmp_path / "work") == record  # it is free again


def test_a_network_with_dropout_goes_on_as_if_it_had_not_been_cut_off(tmp_path: Path) -> None:
    rows = {"capsules": Row({"channels": (8, 8, 4), "hidden": (16, 16)}, kind="cnn-small")}
    cnn = Experiment("Does it drop out?", rows, {"cpu": Budget(1, QUICK, images=200)})
    _, whole = train(of(cnn), tmp_path / "whole")
    train(of(cnn), tmp_path / "cut", stop_after=1)
    torch.rand(3)
    _, resumed = train(of(cnn), tmp_path / "cut")
    assert [record["loss"] for record in resumed] == [record["loss"] for record in whole]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ledger, work = tmp_path / "ledger", tmp_path / "work"
    declared = {"tiny": dataclasses.replace(TINY, budgets={"cpu": Budget(1, QUICK, images=100)})}

    def said(*arguments: str, code: int = 0) -> list[str]:
        assert main([*arguments, "--budget", "cpu"], declared, ledger, work) == code
        return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]

    train(of(declared["tiny"]), work, stop_after=1)
    heads, tiny, everything, begun = said("--list")
    assert heads == "experiment budget done left hours done hours left"
    assert tiny == "tiny cpu 0 2 0.0 0.0 + ? for 1"
    assert everything == "all" + tiny.removeprefix("tiny")
    assert begun == "begun: tiny, cpu, capsules, seed 0, 1 epochs, 2 declared"

    assert said("--minutes", "0")[1].startswith("tiny cpu 0 2")
    assert not list(ledger.rglob("seed-*.json"))  # no time, no run

    assert said("--verify", code=1)[-1].endswith("nothing to verify")

    said("tiny")
    assert all(recorded(training, ledger) for training in plan(declared, "cpu"))
    assert said("--list")[1].startswith("tiny cpu 2 0")
    assert sum("the first epoch is the same" in line for line in said("--verify")) == 2
    path = ledger / RUN.name
    path.write_text(path.read_text().replace('"loss": ', '"loss": 1'))
    assert any("first epoch: expected loss" in line for line in said("--verify", code=1))
    damaged = f"{path} is no record: "
    for words, code, complaint, text in (
        (["other"], 2, "experiments must be of tiny, got other", ""),
        (["--list", "--verify"], 2, "--verify: not allowed with argument --list", ""),
        (["--minutes", "nan"], 2, "--minutes must be a number from 0 on, got nan", ""),
        (["--list"], 1, damaged, "<<<<<<< ours"),
        (["--list"], 1, damaged, "{}"),
    ):
        path.write_text(text)
        with pytest.raises(SystemExit) as stop:
            said(*words)
        told = capsys.readouterr().err.splitlines()
        assert stop.value.code == code and complaint in told[-1]
        assert code == 2 or len(told) == 1


def test_a_training_that_cannot_be_made_is_told_and_the_others_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger, work = tmp_path / "ledger", tmp_path / "work"
    quick = dataclasses.replace(TINY, budgets={"cpu": Budget(1, QUICK, images=100)})
    declared = {
        "lost": dataclasses.replace(quick, dataset=f"folder:{tmp_path}/none"),
        "tiny": quick,
    }
    train(of(TINY), work, stop_after=1)  # with other images: no checkpoint of this declaration
    # No summary can be written where a folder lies in the way.
    (ledger / ledger_names.summary_name("tiny")).mkdir(parents=True)
    assert main(["--budget", "cpu"], declared, ledger, work) == 1
    told = capsys.readouterr().err
    assert told.count(f"{tmp_path}/none") >= 2  # both rows' complaint
    assert "tiny/cpu/capsules/seed-0: " in told
    assert "cannot write" in told and "summary.json" in told
    assert recorded(of(quick, row="few"), ledger)


def test_weights_replace_nothing_before_they_are_tested_and_nothing_of_another_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, work = tmp_path / "ledger", tmp_path / "work"
    budgets = {name: Budget(1, QUICK, images=100) for name in ("cpu", "gpu")}
    training = of(dataclasses.replace(TINY, budgets=budgets), budget="gpu")
    kept = ledger / "digits-gpu"
    kept.mkdir(parents=True)
    (kept / "weights.safetensors").write_text("before")

    def stopped(*_: object) -> dict[str, Any]:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setitem(tasks.TASKS, "digits", tasks.TASKS["digits"]._replace(test=stopped))
        with pytest.raises(KeyboardInterrupt):
            perform(training, ledger, work)
    assert [path.read_text() for path in kept.iterdir()] == ["before"]
    perform(training, ledger, work)
    assert len(list(kept.iterdir())) == 3 and recorded(training, ledger)
    assert not (ledger / "digits").exists()


def test_two_digits(tmp_path: Path) -> None:
    rows = {"capsules": Row(SMALL, keep_weights="two")}
    pairs = dataclasses.replace(TINY, canvas=36, task="pairs", rows=rows)
    record = perform(of(pairs), tmp_path / "ledger", tmp_path / "work")
    assert recorded(of(pairs), tmp_path / "ledger") == json.loads(json.dumps(record))
    assert recorded(RUN, tmp_path / "ledger") is None
    test = record["test"]
    # Two guesses of ten classes: one pair of 45 is right, and a digit is named with 2 in 10.
    assert test["total"] == 500 and 5 < test["correct"] < 250
    assert 2 * test["correct"] <= test["digits"] <= 500 + test["correct"]
    # What is kept gives the record's number, and other pairs another.
    kept = tmp_path / "ledger" / "two" / "weights.safetensors"
    assert read_tensors(kept)[0]["digits.weight"].dtype == torch.int8
    model, _ = load_weights(kept)
    images = running.images_of(pairs, train=False)
    same, other = (tasks.pairs_test(model, images, shift, "auto")["test"] for shift in (2, 4))
    assert record["config"]["shift"] == 2  # of TINY
    assert len(same["errors"]) == 500 - same["correct"]
    assert running.without_many_errors(same, 0.25) == test and same != other


def test_digits_as_a_reader_draws_them_are_bent_in_training_and_kept_in_the_test() -> None:
    (row,) = EXPERIMENTS["page"].rows.values()
    with torch.device("meta"):
        count = sum(p.numel() for p in CapsNet(**row.network).parameters())
    assert 1.2e6 < count < 1.3e6  # what a page can load at once
    digits, index = load("mnist").subset(slice(50)), torch.arange(50)
    bent, labels = tasks.drawn(digits, index, 0, tasks.seeded())
    assert bent.shape == digits.images.shape and torch.equal(labels, digits.labels)
    far = (bent - to_float(digits.images)).abs().mean(dim=(1, 2, 3))
    ink = bent.sum(dim=(1, 2, 3)) / to_float(digits.images).sum(dim=(1, 2, 3))
    assert bool((far > 0.005).all()) and bool(((ink > 0.5) & (ink < 1.6)).all())
    moved, _ = tasks.drawn(digits, index, 2, tasks.seeded())
    assert not torch.equal(moved, bent)
    assert tasks.TASKS["drawn"].test is tasks.TASKS["digits"].test


def test_digits_anywhere_are_counted_plain_and_bent_after_each_epoch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(affnist, "load", lambda: None)
    experiment = dataclasses.replace(
        TINY, canvas=40, task="placed", rows=NOT_KEPT, budgets={"cpu": Budget(1, QUICK, 600)}
    )
    training, ledger = of(experiment), tmp_path / "ledger"
    images, _ = training_images(training)
    batch, labels = tasks.placed(images, torch.arange(100), 0, tasks.seeded())
    assert torch.equal(labels, images.labels[:100])
    before, after = (x.sum(dim=(1, 2, 3)) for x in (to_float(images.images[:100]), batch))
    torch.testing.assert_close(after, before)  # nothing is cut off, and yet ink is at the edges
    assert float((batch[:, :, 1:-1, 1:-1].sum(dim=(1, 2, 3)) < after).float().mean()) > 0.1

    running.train_and_watch(training, tmp_path / "work", stop_after=1)  # cut off, and gone on
    record = perform(training, ledger, tmp_path / "work")
    whole = perform(training, tmp_path / "again", tmp_path / "other")
    named = [[epoch[name] for name in ("placed", "test")] for epoch in record["records"]]
    assert named == [[epoch[name] for name in ("placed", "test")] for epoch in whole["records"]]
    assert named[-1] == [record[name]["correct"] for name in ("placed", "test")]
    assert named[0] != named[1]
    sets = [record[name] for name in ("test", "placed", "bent", "middle")]
    assert {found["total"] for found in sets} == {500}
    assert len({str(found["confusion"]) for found in sets}) == 4
    assert "affnist" not in record
    assert verify(training, tmp_path / "verify", ledger) is None


def test_the_official_affnist_is_counted_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = running.images_of(dataclasses.replace(TINY, canvas=40), train=False)
    test, official = plain.subset(slice(20)), plain.subset(slice(20, 50))
    monkeypatch.setattr(affnist, "load", lambda: official)
    found = tasks.placed_test(CapsNet((1, 40, 40), **SMALL), test, 0, "plain")
    assert {name: of["total"] for name, of in found.items()} == {
        "test": 20, "placed": 20, "bent": 20, "middle": 20, "affnist": 30
    }  # fmt: skip


def test_the_routing_is_looked_into() -> None:
    model = CapsNet(**SMALL, learn_prior=True)
    assert model.digits.prior is not None
    with torch.no_grad():
        model.digits.weight *= 30  # so that it routes
    test = running.images_of(TINY, train=False)
    found = tasks.routing_of(model, test)
    assert model.digits.routing_iterations == 3
    assert (len(found["change"]), len(found["entropy"])) == (9, 10)
    assert found["entropy"][0] == 1 > found["entropy"][-1]  # equal shares at first
    first, second, third = model.routing_trace(to_float(test.images[:128]))
    for change, before, after in zip(
        found["change"], (first, second), (second, third), strict=False
    ):
        expected = (after.b - before.b).abs().mean().item()
        assert change == pytest.approx(expected, abs=1e-6)
    entropy = -(third.c * third.c.log()).sum(2).mean().item() / math.log(10)
    assert found["entropy"][2] == pytest.approx(entropy, abs=1e-5)
    with torch.no_grad():
        model.digits.prior[0, 0] = -2.0
    mean = pytest.approx(2 / model.digits.prior.numel(), abs=1e-6)
    assert tasks.routing_of(model, test)["prior"] == {"mean": mean, "max": 2.0}
    assert "prior" not in tasks.routing_of(CapsNet(**SMALL), test)


def test_the_primary_capsules_are_looked_into() -> None:
    model = CapsNet(**SMALL)
    test = running.images_of(TINY, train=False)
    seen = to_float(test.images[:128])
    lengths, empty = (
        model.primary(model.conv(images).relu()).norm(dim=2) for images in (seen, seen[:1] * 0)
    )
    found = tasks.primary_of(model, test)
    assert found["mean"] == pytest.approx(lengths.mean().item(), rel=1e-4)
    assert found["empty page"] == pytest.approx(empty.mean().item(), rel=1e-4)
    shorter = (lengths < found["shortest thousandth"]).float().mean().item()
    assert shorter == pytest.approx(0.001, abs=1e-4)


def test_the_table_is_counted(tmp_path: Path) -> None:
    rest = {"records": [{"epoch": 1}], "seconds": 120.0, "evaluation_seconds": 1.0, "machine": {}}
    for seed, correct in ((0, 9950), (1, 9970)):
        training = dataclasses.replace(RUN, seed=seed)
        path = tmp_path / training.name
        path.parent.mkdir(parents=True, exist_ok=True)
        test = {"test": {"correct": correct, "total": 10_000}}
        path.write_text(json.dumps(training.declaration | rest | test))
    found = tables.write("tiny", "cpu", TINY, tmp_path)
    assert found == json.loads((tmp_path / ledger_names.summary_name("tiny")).read_text())
    row, without = found["rows"]
    assert row == {
        "row": "capsules", "n": 2, "declared": 2, "seeds": [0, 1], "errors": [0.5, 0.3],
        "mean": pytest.approx(0.4), "deviation": pytest.approx(math.sqrt(2) * 0.1, rel=1e-4),
        "interval": pytest.approx(12.706 * 0.1, rel=1e-4), "minutes": 2.0, "epochs": 1,
        "unfinished": "1 of 2 epochs", "paper": None,
    }  # fmt: skip
    assert (without["row"], without["n"], without["mean"]) == ("few", 0, None)
    _, line, empty = tables.summary_table(found).splitlines()
    assert " ".join(line.split()) == "capsules (1 of 2 epochs) 0.40 ± 0.14 ± 1.27 2 2.0"
    assert empty.split() == ["few", "0", "of", "2"]
    tables.write("other", "cpu", TINY, tmp_path)
    assert not (tmp_path / ledger_names.summary_name("other")).exists()  # nothing to say


@pytest.mark.parametrize("budget", ["cpu", "gpu"])
def test_the_ledgers_records_are_of_declared_trainings(budget: str) -> None:
    trainings = {running.LEDGER / training.name: training for training in plan(EXPERIMENTS, budget)}
    records = set((running.LEDGER / "experiments").glob(f"*/{budget}/*/seed-*.json"))
    assert records <= trainings.keys()
    for path in records:
        training = trainings[path]
        record = recorded(training)
        assert record is not None, path
        where = training.experiment, training.row, training.seed, training.budget
        assert ledger_names.record(*where) == record
        test = record["test"]
        if record["task"] != "pairs":  # lengths of capsules have a margin loss, logits have none
            assert (test["margin"] is None) == record["kind"].startswith("cnn")
        if test["errors"] is not None:
            assert test["correct"] + len(test["errors"]) == test["total"]


def test_the_ledgers_summaries_are_of_its_records() -> None:
    for path in (running.LEDGER / "experiments").rglob("summary.json"):
        found = json.loads(path.read_text())
        name, budget = found["experiment"], found["budget"]
        assert path == running.LEDGER / ledger_names.summary_name(name, budget)
        assert found == json.loads(json.dumps(tables.summarise(name, budget, EXPERIMENTS[name])))
