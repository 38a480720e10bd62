"""Training: the step, the loop, resuming, several processes, and what goes wrong."""

import contextlib
import dataclasses
import functools
import itertools
import json
import math
import random
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from capsnet import CapsNet
from capsnet.checkpoint import load_weights, read_tensors, write_tensors
from capsnet.data import ImageSet, centred, to_float
from capsnet.fast import arrange
from capsnet.functional import margin_loss, reconstruction_loss
from capsnet.multimnist import overlaid
from capsnet.training import TrainingConfig, TrainingError, TrainingLoss, make_optimizer, make_step
from capsnet.training import run as run_module
from capsnet.training.fit import make_schedule
from capsnet.training.run import CHECKPOINT, LOCK, METRICS, WEIGHTS, RunFolder, only_process_in
from capsnet_book.pairs import PairsLoss
from helpers import Refuses, tiny
from helpers.tiny import FP32, fit, some_digits, tiny_model

ONE = dataclasses.replace(FP32, epochs=1)


def parameters(model: CapsNet) -> Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def records_in(out: Path) -> list[dict[str, Any]]:
    """What the metrics of a run say, which may not have begun."""
    metrics = out / METRICS
    lines = metrics.read_text().splitlines() if metrics.exists() else ()
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def digits() -> ImageSet:
    return some_digits(256)


@pytest.fixture
def batch(digits: ImageSet) -> tuple[Tensor, Tensor]:
    return to_float(digits.images[:32]), digits.labels[:32]


def test_loss_is_margin_plus_the_weighted_sum_of_squares(batch: tuple[Tensor, Tensor]) -> None:
    model = tiny_model()
    images, labels = batch
    out = model(images, labels)
    margin = margin_loss(out.lengths, labels)
    assert torch.equal(TrainingLoss(model, 0.0, "fp32")(images, labels), margin)
    # It is the sum over the pixels, not the mean, which is 784 times smaller.
    mean = (out.reconstruction - images).square().mean()
    loss = TrainingLoss(model, 0.0005, "fp32")(images, labels)
    torch.testing.assert_close(loss, margin + 0.0005 * 784 * mean)
    without = tiny_model(reconstruct=False)
    expected = margin_loss(without(images).lengths, labels)
    assert torch.equal(TrainingLoss(without, 0.0005, "fp32")(images, labels), expected)


def test_decoder_is_masked_by_the_label_in_training(batch: tuple[Tensor, Tensor]) -> None:
    model = tiny_model()
    images, _ = batch
    wrong = (model(images).lengths.argmax(1) + 1) % 10
    margin, whole = (TrainingLoss(model, weight, "fp32")(images, wrong) for weight in (0.0, 1.0))
    expected = reconstruction_loss(model(images, wrong).reconstruction, images)
    torch.testing.assert_close(whole - margin, expected)
    assert not torch.equal(model(images, wrong).reconstruction, model(images).reconstruction)


@pytest.mark.parametrize("arrangement", ["plain", "fast"])
def test_several_objects_are_each_drawn_by_themselves(digits: ImageSet, arrangement: str) -> None:
    images, labels, objects = overlaid(
        digits, torch.arange(20), 2, torch.Generator().manual_seed(0)
    )
    model = tiny_model()
    out = model(images)
    margin = torch.stack([
        sum(
            (0.9 - length).clamp(min=0) ** 2 if k in pair else (length - 0.1).clamp(min=0) ** 2 / 2
            for k, length in enumerate(row)
        )
        for row, pair in zip(out.lengths, labels.tolist(), strict=True)
    ]).mean()  # fmt: skip
    drawings = [model(images, label).reconstruction for label in labels.unbind(1)]
    errors = sum(
        (drawing - objects[:, i]).square().sum() / 20 for i, drawing in enumerate(drawings)
    )
    loss = PairsLoss(arrange(model, arrangement), 0.0005, "fp32")(images, labels, objects)
    torch.testing.assert_close(loss, margin + 0.0005 * errors)
    without = tiny_model(reconstruct=False)
    loss = PairsLoss(without, 0.0005, "fp32")(images, labels, objects)
    present = torch.nn.functional.one_hot(labels, 10).sum(dim=1)
    torch.testing.assert_close(loss, margin_loss(without(images).lengths, present))


@pytest.mark.parametrize("arrangement", ["plain", "fast"])
def test_step_is_one_step_of_adam(batch: tuple[Tensor, Tensor], arrangement: str) -> None:
    """In float64: Adam's first step magnifies what rounding does to a gradient that is nearly 0."""
    images, labels = batch[0].double(), batch[1]
    ours, theirs = tiny_model().double(), tiny_model().double()
    step = make_step(ours, config=dataclasses.replace(FP32, arrangement=arrangement))
    loss = step(images, labels)
    optimizer = torch.optim.Adam(theirs.parameters(), lr=FP32.learning_rate)
    out = theirs(images, labels)
    expected = margin_loss(out.lengths, labels)
    expected = expected + 0.0005 * reconstruction_loss(out.reconstruction, images)
    expected.backward()
    optimizer.step()
    torch.testing.assert_close(loss, expected.detach())
    assert not loss.requires_grad
    torch.testing.assert_close(parameters(ours), parameters(theirs), rtol=1e-6, atol=1e-9)


def test_bfloat16_step_is_close_to_float32(batch: tuple[Tensor, Tensor]) -> None:
    losses = {}
    for precision in ("fp32", "bf16"):
        config = dataclasses.replace(FP32, precision=precision)
        losses[precision] = make_step(tiny_model(), config=config)(*batch).item()
    assert losses["bf16"] == pytest.approx(losses["fp32"], rel=0.02)
    assert losses["bf16"] != losses["fp32"]


@pytest.mark.slow
def test_compiled_step_is_the_plain_step(batch: tuple[Tensor, Tensor], inductor: None) -> None:
    # Compilation takes a second a kernel: as few of them as a network can have.
    small = {"conv_channels": 8, "capsule_types": 2, "hidden": (8, 8), "routing_iterations": 1}
    exact = dataclasses.replace(FP32, arrangement="plain")
    plain = make_step(tiny_model(**small), config=exact)
    config = dataclasses.replace(exact, compile=True)
    compiled = make_step(tiny_model(**small), config=config)
    assert compiled.compiled and not plain.compiled
    for _ in range(2):
        torch.testing.assert_close(compiled(*batch), plain(*batch), rtol=1e-4, atol=1e-5)


def test_the_fast_arrangement_compiles_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    # That these give the same losses and gradients is tests/fast/test_arrangement.py's.
    model, compiled = tiny_model(), []
    monkeypatch.setattr(type(arrange(model, "fast")), "compile", lambda fast: compiled.append(fast))
    step = make_step(model, config=dataclasses.replace(FP32, arrangement="fast", compile=True))
    assert [*map(id, compiled)] == [id(step.loss.model)]


def test_exponential_schedule_loses_4_percent_in_2000_steps() -> None:
    config = dataclasses.replace(FP32, schedule="exponential", learning_rate=1e-3)
    optimizer = make_optimizer(tiny_model(), config)
    schedule = make_schedule(optimizer, config, steps=10)
    for _ in range(2000):
        optimizer.step()
        schedule.step()
    assert schedule.get_last_lr()[0] == pytest.approx(0.96e-3)


def test_one_cycle_rises_to_the_rate_and_falls_to_nothing() -> None:
    optimizer = make_optimizer(tiny_model(), FP32)
    schedule = make_schedule(optimizer, FP32, steps=100)
    rates = []
    for _ in range(100):
        rates.append(schedule.get_last_lr()[0])
        optimizer.step()
        if len(rates) < 100:
            schedule.step()
    assert max(rates) == pytest.approx(FP32.learning_rate)
    assert 25 < rates.index(max(rates)) < 35
    assert rates[-1] < 1e-5 * FP32.learning_rate
    assert optimizer.param_groups[0]["betas"] == (0.9, 0.999)  # the schedule leaves momentum alone


def test_it_learns_and_writes_what_it_says(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    training, validation = some_digits(500), some_digits(200, train=False)
    config = dataclasses.replace(FP32, epochs=6, batch_size=20, learning_rate=6e-3)
    model = tiny_model()
    records = fit(model, training, validation, config, out=tmp_path)

    assert [record["epoch"] for record in records] == list(range(1, 7))
    assert records[-1]["step"] == 6 * 25
    assert records[-1]["loss"] < 0.5 * records[0]["loss"]
    assert records[-1]["validation_accuracy"] > 0.8
    assert records == records_in(tmp_path)
    for record in records:
        assert record["validation_loss"] == pytest.approx(
            record["validation_margin"] + 0.0005 * record["validation_reconstruction"]
        )
        assert 0 < record["learning_rate"] <= config.learning_rate
        assert record["images_per_second"] == pytest.approx(500 / record["seconds"], rel=0.01)

    # The rate of the last step, at the end of the cosine; one step later it would rise again.
    assert records[-1]["learning_rate"] < 1e-5 * config.learning_rate
    loaded, metadata = load_weights(tmp_path / WEIGHTS)
    assert torch.equal(parameters(loaded), parameters(model))
    assert metadata["classes"] == list(training.classes)
    assert metadata["dataset"] == "mnist"
    # Nothing is left behind but what the documentation names.
    names = {entry.name for entry in tmp_path.iterdir()}
    assert names == {CHECKPOINT, WEIGHTS, METRICS, LOCK, "events"}
    events = EventAccumulator(str(tmp_path / "events"))
    events.Reload()
    assert [event.step for event in events.Scalars("loss")] == list(range(1, 6 * 25 + 1))
    accuracies = [event.value for event in events.Scalars("validation_accuracy")]
    assert accuracies == pytest.approx([record["validation_accuracy"] for record in records])


def test_the_average_is_the_exponential_moving_average(digits: ImageSet) -> None:
    decay = 0.75
    config = dataclasses.replace(FP32, epochs=1, average=decay, shift=0, schedule="exponential")
    averaged = tiny_model()
    fit(averaged, digits, None, config)

    model = tiny_model()
    step = make_step(model, config=config)
    order = torch.randperm(256, generator=torch.Generator().manual_seed(0))
    expected = torch.empty(0)
    for i in range(4):
        index = order[64 * i : 64 * (i + 1)]
        step(to_float(digits.images[index]), digits.labels[index])
        now = parameters(model)
        expected = now if i == 0 else decay * expected + (1 - decay) * now
    torch.testing.assert_close(parameters(averaged), expected, rtol=1e-3, atol=1e-5)


def test_same_seed_same_weights_other_seed_other_weights(digits: ImageSet) -> None:
    def run(seed: int) -> Tensor:
        model = tiny_model()
        config = dataclasses.replace(FP32, epochs=1, seed=seed)
        fit(model, digits, None, config)
        return parameters(model)

    assert torch.equal(run(1), run(1))
    assert not torch.equal(run(1), run(2))


def test_fewer_images_than_a_batch_make_one_batch(digits: ImageSet) -> None:
    config = dataclasses.replace(FP32, epochs=2, batch_size=1000)
    records = fit(tiny_model(), digits.subset(slice(0, 20)), None, config)
    assert records[-1]["step"] == 2


def test_progress_shows_rate_and_time_left(
    tmp_path: Path, digits: ImageSet, capsys: pytest.CaptureFixture[str]
) -> None:
    options = {"out": tmp_path, "progress": True}
    config = dataclasses.replace(FP32, epochs=3)
    fit(tiny_model(), digits, digits, config, stop_after=2, **options)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "images/s" in shown.err
    assert "epoch 1/3  loss" in shown.err and "epoch 2/3  loss" in shown.err
    assert "validation" in shown.err
    assert shown.err.count("first batch: loss") == 1  # of a run, not of every epoch
    fit(tiny_model(), digits, digits, config, **options)
    shown = capsys.readouterr()
    assert "continuing after epoch 2 of 3" in shown.err
    assert "first batch" not in shown.err


def test_without_tensorboard_it_trains_and_says_how_to_get_curves(
    tmp_path: Path,
    digits: ImageSet,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    for name in [name for name in sys.modules if name.startswith("torch.utils.tensorboard")]:
        monkeypatch.delitem(sys.modules, name)
    config = dataclasses.replace(FP32, epochs=2)
    records = fit(tiny_model(), digits, digits, config, out=tmp_path, progress=True)
    assert capsys.readouterr().err.count("pip install tensorboard") == 1
    assert records == records_in(tmp_path)
    assert not (tmp_path / "events").exists() and (tmp_path / WEIGHTS).exists()


def test_objects_must_fit_the_labels(digits: ImageSet, refuses: Refuses) -> None:
    images, labels, objects = overlaid(digits, torch.arange(4), 2, torch.Generator())
    loss = PairsLoss(tiny_model(), 0.0005, "fp32")
    for wrong in ((labels[:, 0], objects), (labels, objects[:, :1]), (labels, objects[..., 1:])):
        with refuses("[batch, m, channels, height, width]", str(list(wrong[1].shape))):
            loss(images, *wrong)
    labels[2, 1] = 10
    for model in (tiny_model(), tiny_model(reconstruct=False)):
        with refuses("0 … 9", "got 10"):
            PairsLoss(model, 0.0005, "fp32")(images, labels, objects)


def test_a_config_with_tuples_is_known_again(tmp_path: Path, digits: ImageSet) -> None:
    def described() -> CapsNet:
        model = tiny_model()
        model.config["hidden"] = tuple(model.config["hidden"])
        return model

    config = dataclasses.replace(FP32, epochs=2)
    fit(described(), digits, None, config, out=tmp_path, stop_after=1)
    assert len(fit(described(), digits, None, config, out=tmp_path)) == 2


def test_pairs_are_learned(digits: ImageSet) -> None:
    config = dataclasses.replace(FP32, epochs=3, batch_size=16, shift=4)
    model = tiny_model(image_shape=(1, 36, 36))
    records = fit(model, centred(digits, 36), None, config, draw=overlaid, loss=PairsLoss)
    assert records[-1]["loss"] < 0.9 * records[0]["loss"]


def test_frozen_layers_have_no_state_and_the_run_goes_on(tmp_path: Path, digits: ImageSet) -> None:
    def frozen() -> CapsNet:
        model = tiny_model()
        model.conv.requires_grad_(False)
        return model

    two = dataclasses.replace(FP32, epochs=2)
    whole, broken = frozen(), frozen()
    fit(whole, digits, None, two)
    fit(broken, digits, None, two, out=tmp_path, stop_after=1)
    again = frozen()
    fit(again, digits, None, two, out=tmp_path)
    assert torch.equal(parameters(again), parameters(whole))


def test_killed_at_any_moment_it_ends_bit_identical(tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    tiny.run(whole, "pairs")

    dice = random.Random(0)
    for kill in (True, True, False):
        before = len(records_in(broken))
        process = tiny.start(broken, "pairs")
        if kill:
            while len(records_in(broken)) == before:  # until it has done an epoch
                assert process.is_alive()
                time.sleep(0.01)
            # A moment of the next one, which may fall into a step or into a write.
            time.sleep(dice.uniform(0, 1.2) * records_in(broken)[-1]["seconds"])
            process.kill()
        process.join()
        assert process.exitcode == (-signal.SIGKILL if kill else 0)
    assert (broken / WEIGHTS).read_bytes() == (whole / WEIGHTS).read_bytes()
    assert {e.name for e in broken.iterdir()} == {e.name for e in whole.iterdir()}  # no partials

    def without_times(out: Path) -> list[dict[str, Any]]:
        times = ("seconds", "images_per_second")
        return [{k: v for k, v in r.items() if k not in times} for r in records_in(out)]

    assert without_times(broken) == without_times(whole)


def test_checkpoints_are_as_far_apart_as_asked(
    tmp_path: Path, digits: ImageSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Watched(RunFolder):
        def end_epoch(self, last: bool) -> None:
            super().end_epoch(last)
            file = self.path / CHECKPOINT
            written.append(len(read_tensors(file)[1]["records"]) if file.exists() else 0)

    monkeypatch.setattr(run_module, "RunFolder", Watched)
    clock = itertools.count(step=400)  # 400 seconds between one look at it and the next
    monkeypatch.setattr(run_module.time, "monotonic", lambda: next(clock))
    for seconds, last, expected in (
        (0, 2, [1, 2]),
        (1000, 2, [0, 2]),  # the last is always written
        (1000, 4, [0, 0, 3, 4]),
    ):
        written: list[int] = []
        out = tmp_path / f"{seconds} {last}"
        options = {"stop_after": last, "checkpoint_seconds": seconds}
        fit(tiny_model(), digits, None, FP32, out=out, **options)
        assert written == expected
        assert len(records_in(out)) == last


@pytest.mark.parametrize(("schedule", "average"), [("one-cycle", 0.0), ("exponential", 0.9)])
def test_interrupted_between_epochs_it_ends_bit_identical(
    tmp_path: Path, digits: ImageSet, schedule: str, average: float
) -> None:
    config = dataclasses.replace(FP32, epochs=3, schedule=schedule, average=average)
    expected = tiny_model()
    fit(expected, digits, None, config)

    class Stop(Exception):
        pass

    def stop_after(model: CapsNet, epochs: int) -> None:
        def count(*_: Any) -> None:
            calls.append(1)
            if len(calls) > 4 * epochs:
                raise Stop

        calls: list[int] = []
        assert model.decoder is not None  # a layer that every arrangement calls
        handle = model.decoder.register_forward_pre_hook(count)
        with pytest.raises(Stop):
            fit(model, digits, None, config, out=tmp_path)
        handle.remove()

    stop_after(tiny_model(), 1)
    stop_after(tiny_model(seed=5), 1)  # whatever weights it starts from, the checkpoint's count
    last = tiny_model(seed=7)
    fit(last, digits, None, config, out=tmp_path)
    assert torch.equal(parameters(last), parameters(expected))


def test_a_finished_run_is_not_run_again(tmp_path: Path, digits: ImageSet) -> None:
    first = fit(tiny_model(), digits, None, ONE, out=tmp_path)
    model = tiny_model(seed=3)
    assert fit(model, digits, None, ONE, out=tmp_path) == first
    assert torch.equal(parameters(model), parameters(load_weights(tmp_path / WEIGHTS)[0]))


def test_another_run_does_not_go_on(tmp_path: Path, digits: ImageSet, refuses: Refuses) -> None:
    def go_on(**changes: Any) -> list[dict[str, Any]]:
        usual = {"model": tiny_model(), "images": digits, "config": FP32, "tag": "one"}
        return fit(**{**usual, **changes}, out=tmp_path)

    go_on(stop_after=1)
    before = (tmp_path / CHECKPOINT).read_bytes()
    changed = functools.partial(dataclasses.replace, digits)
    for changes, *told in (
        ({"config": dataclasses.replace(FP32, batch_size=32)}, "batch_size = 64", "32"),
        ({"model": tiny_model(capsule_dim=4)}, "capsule_dim = 8", "4"),
        ({"images": digits.subset(slice(0, 130))}, "images = 256", "130"),
        ({"images": changed(images=255 - digits.images)}, "data"),
        ({"images": changed(labels=digits.labels.flip(0))}, "data"),
        ({"images": changed(classes=digits.classes[::-1])}, "data"),
        ({"tag": "two"}, "its task has tag = one", "this one has two"),
        (
            {"draw": overlaid, "loss": PairsLoss},
            "draw = capsnet.data.shifted",
            "this one has capsnet.multimnist.overlaid",
        ),
        (
            {"loss": PairsLoss},
            "loss = capsnet.training.loss.TrainingLoss",
            "capsnet_book.pairs.PairsLoss",
        ),
    ):
        with refuses(tmp_path / CHECKPOINT, "another run", *told):
            go_on(**changes)
    assert (tmp_path / CHECKPOINT).read_bytes() == before
    assert len(go_on()) == FP32.epochs


def test_a_damaged_checkpoint_changes_nothing(tmp_path: Path, digits: ImageSet, refuses) -> None:
    fit(tiny_model(), digits, None, ONE, out=tmp_path)
    path = tmp_path / CHECKPOINT
    tensors, document = read_tensors(path)
    tensors = {name: tensor.clone() for name, tensor in tensors.items()}

    def without(name: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
        return (
            {k: v for k, v in tensors.items() if k != name},
            {k: v for k, v in document.items() if k != name},
        )

    one = torch.zeros(1)
    for bad in (
        ({k: v for k, v in tensors.items() if not k.startswith("optimizer.0.")}, document),
        without("optimizer.0.exp_avg"),
        without("optimizer.3.step"),
        without("averaged.conv.weight"),
        without("model.conv.weight"),
        without("random.cpu"),
        without("records"),
        without("stepped"),
        without("identity"),
        ({**tensors, "optimizer.1.exp_avg": one}, document),
        ({**tensors, "stranger": one}, document),
        ({**tensors, "random.cpu": one}, document),
        (tensors, {**document, "identity": "me"}),
        (tensors, {**document, "optimizer": []}),
    ):
        write_tensors(path, *bad)
        model = tiny_model(seed=4)
        before = parameters(model)
        with refuses(path):
            fit(model, digits, None, ONE, out=tmp_path)
        assert torch.equal(parameters(model), before)
    write_tensors(path, tensors, document)
    assert len(fit(tiny_model(), digits, None, ONE, out=tmp_path)) == 1
    cut = path.read_bytes()[:-100]
    path.write_bytes(cut)
    with refuses(path, "not a whole safetensors file"):
        fit(tiny_model(), digits, None, ONE, out=tmp_path)
    assert path.read_bytes() == cut


def test_a_folder_is_one_process_at_a_time(tmp_path: Path, digits: ImageSet, refuses) -> None:
    with only_process_in(tmp_path), refuses("another process is training in", tmp_path):
        fit(tiny_model(), digits, None, ONE, out=tmp_path)
    for _ in range(2):
        fit(tiny_model(), digits, None, ONE, out=tmp_path)
    # Only a lock that is held means another process.
    (tmp_path / LOCK).unlink()
    (tmp_path / LOCK).mkdir()
    with pytest.raises(OSError, match=rf"^cannot lock {tmp_path / LOCK}: (?!another)"):
        fit(tiny_model(), digits, None, ONE, out=tmp_path)


def test_killed_processes_leave_no_lock_and_no_rubbish(tmp_path: Path, refuses) -> None:
    code = (
        "import sys, time, filelock\n"
        "with filelock.FileLock(sys.argv[1]):\n    print(flush=True); time.sleep(60)"
    )
    words = [sys.executable, "-c", code, str(tmp_path / LOCK)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline()
        with refuses("another process is training"), only_process_in(tmp_path):
            pass
        process.kill()
    (tmp_path / f".{CHECKPOINT}.123-ab.partial").write_bytes(b"half")
    with only_process_in(tmp_path):
        assert [entry.name for entry in tmp_path.iterdir()] == [LOCK]


def test_a_loss_that_is_not_finite_stops_and_keeps_the_checkpoint(
    tmp_path: Path, digits: ImageSet
) -> None:
    config = dataclasses.replace(FP32, epochs=3, batch_size=16)
    model = tiny_model()
    steps = []

    def poison(*_: Any) -> None:
        steps.append(1)
        if len(steps) == 20:  # the fourth step of the second epoch
            with torch.no_grad():
                model.digits.weight.fill_(math.nan)

    model.register_forward_pre_hook(poison)
    with pytest.raises(TrainingError, match="the loss is nan at step 20; try a lower"):
        fit(model, digits, None, config, out=tmp_path)
    tensors, document = read_tensors(tmp_path / CHECKPOINT)
    assert [record["epoch"] for record in document["records"]] == [1]
    assert all(bool(tensor.isfinite().all()) for tensor in tensors.values())
    assert not (tmp_path / WEIGHTS).exists()


def test_weights_that_are_not_finite_are_not_saved(tmp_path: Path, digits: ImageSet) -> None:
    # So large a rate that the first update overflows the weights, after a loss that is finite.
    config = dataclasses.replace(
        FP32, epochs=1, batch_size=256, learning_rate=1e39, schedule="exponential", average=0
    )
    with pytest.raises(TrainingError, match=r"the sum of conv\.weight is .* at step 1;"):
        fit(tiny_model(), digits, None, config, out=tmp_path)
    assert not (tmp_path / CHECKPOINT).exists()


@contextlib.contextmanager
def small_disk() -> Iterator[Callable[[int], None]]:
    """What it yields makes the system refuse files of so many bytes, until the block's end."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_told_and_keeps_the_checkpoint(tmp_path: Path, digits: ImageSet) -> None:
    config = dataclasses.replace(FP32, epochs=3)
    kept = {}
    model = tiny_model()
    steps = []

    def fill(*_: Any) -> None:
        steps.append(1)
        if len(steps) == 5:  # in the second epoch: from now on, the system refuses large files
            kept["checkpoint"] = (tmp_path / CHECKPOINT).read_bytes()
            limit(100_000)

    model.register_forward_pre_hook(fill)
    told = f"cannot write {tmp_path / CHECKPOINT}: File too large"
    with small_disk() as limit, pytest.raises(OSError, match=told):
        fit(model, digits, None, config, out=tmp_path)
    assert (tmp_path / CHECKPOINT).read_bytes() == kept["checkpoint"]
    assert not list(tmp_path.glob(".*partial"))
    records = fit(tiny_model(), digits, None, config, out=tmp_path)
    assert [record["epoch"] for record in records] == [1, 2, 3]


def test_metrics_that_cannot_be_written_leave_no_events(tmp_path: Path, digits: ImageSet) -> None:
    (tmp_path / METRICS).mkdir()
    with pytest.raises(OSError, match=METRICS):
        fit(tiny_model(), digits, None, ONE, out=tmp_path)
    assert not (tmp_path / "events").exists()


# TensorBoard's own thread says so as well.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_disk_too_full_for_events_is_told_and_lets_go_of_the_folder(
    tmp_path: Path, digits: ImageSet
) -> None:
    model = tiny_model()
    model.register_forward_pre_hook(lambda *_: limit(300))
    told = f"cannot write {tmp_path}/events: File too large"
    with small_disk() as limit, pytest.raises(OSError, match=told):
        fit(model, digits, None, FP32, out=tmp_path)
    assert fit(tiny_model(), digits, None, FP32, out=tmp_path)


def test_images_that_do_not_fit_the_model(digits: ImageSet, refuses) -> None:
    with refuses("[3, 28, 28]", "[1, 28, 28]"):
        fit(tiny_model(image_shape=(3, 28, 28)), digits)
    with refuses("12 classes", "10"):
        fit(tiny_model(num_classes=12), digits)
    with refuses("no images"):
        fit(tiny_model(), digits.subset(slice(0, 0)))
    with refuses("shift must be smaller", "28"):
        fit(tiny_model(), digits, config=dataclasses.replace(FP32, shift=28))
    with refuses("at least 2 steps", "got 1"):
        fit(tiny_model(), digits, config=dataclasses.replace(ONE, batch_size=256))
    with refuses("the network must be float32", "torch.float64"):
        fit(tiny_model().double(), digits)


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("epochs", [0, 2.5], "a whole number of at least 1"),
        ("batch_size", [0], "a whole number of at least 1"),
        ("shift", [-1], "a whole number of at least 0"),
        ("seed", [-1], "a whole number of at least 0"),
        ("seed", [2**40], f"below {2**40}"),
        ("learning_rate", [0.0, -1.0, math.nan, math.inf], "positive"),
        ("average", [1.0, -0.1], "at least 0 and below 1"),
        ("reconstruction_weight", [-1.0, math.nan], "at least 0"),
        ("compile", ["maybe"], "one of True, False, None"),
        ("schedule", ["linear"], "one of one-cycle, exponential"),
        ("precision", ["fp8"], "one of auto, bf16, fp32"),
    ],
)
def test_configuration_out_of_range(
    name: str, values: list[Any], expected: str, refuses: Refuses
) -> None:
    for value in values:
        with refuses(f"{name} must be {expected}, got {value}"):
            TrainingConfig(**{name: value})


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def losses(out: Path) -> list[float]:
    return [record["loss"] for record in records_in(out)]


def two_processes(task: str, *outs: Path) -> list[int | None]:
    """What torchrun starts: on one machine, or one on each of two, with an ``out`` for each."""
    machines = len(outs)
    local = 2 // machines
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port(), "WORLD_SIZE": 2}
    # gloo looks the host's own name up; on a machine without a network only the loopback answers.
    common |= {"LOCAL_WORLD_SIZE": local, "TORCHELASTIC_RUN_ID": "", "GLOO_SOCKET_IFNAME": "lo"}
    processes = []
    for rank in range(2):
        own = {"RANK": rank, "LOCAL_RANK": rank % local, "GROUP_RANK": rank // local}
        environment = {name: str(value) for name, value in (common | own).items()}
        processes.append(tiny.start(outs[rank // local], task, **environment))
    for process in processes:
        process.join(120)
    return [process.exitcode for process in processes]


@pytest.mark.slow
@pytest.mark.parametrize(("machines", "task"), [(1, "pairs"), (2, "digits")])
def test_two_processes_learn_what_one_does(tmp_path: Path, machines: int, task: str) -> None:
    one, two, other = (tmp_path / name for name in ("one", "two", "another disk"))
    tiny.run(one, task)
    # Machines need no common folder: the first one writes, and reads when a run goes on.
    if machines == 2:
        tiny.run(two, task, stop_after=2)
    assert two_processes(task, *[two, other][:machines]) == [0, 0]
    assert not other.exists()
    assert len(losses(one)) == (4 if task == "digits" else 8)
    assert losses(two) == pytest.approx(losses(one), abs=1e-5, rel=0)
    models = [load_weights(out / WEIGHTS)[0] for out in (one, two)]
    torch.testing.assert_close(parameters(models[0]), parameters(models[1]), rtol=0, atol=1e-3)
