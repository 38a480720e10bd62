"""``fit``: what it learns, says and writes, and what it refuses."""

import dataclasses
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

from capsnet.checkpoint import load_weights, read_tensors
from capsnet.data import ImageSet, to_float
from capsnet.training import TrainingConfig, TrainingError, evaluate, make_step
from capsnet.training.fit import config_for, describe
from capsnet.training.run import CHECKPOINT, LOCK, METRICS, WEIGHTS
from helpers import Refuses
from helpers.tiny import FP32, fit, parameters, records_in, some_digits, tiny_model

ONE = dataclasses.replace(FP32, epochs=1)


def test_it_learns_and_writes_what_it_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    training, validation = some_digits(400), some_digits(100, train=False)
    config = dataclasses.replace(FP32, batch_size=20, learning_rate=6e-3)
    model = tiny_model(conv_channels=8)
    mine = {"mine": 1, "classes": ["not mine"]}
    records = fit(model, training, validation, config, out=tmp_path, progress=True, metadata=mine)
    assert "hardly better than" not in capsys.readouterr().err

    assert [record["epoch"] for record in records] == [1, 2, 3, 4]
    assert records[-1]["step"] == 4 * 20
    assert records[-1]["loss"] < 0.6 * records[0]["loss"]
    assert records[-1]["validation_accuracy"] > 0.6
    assert records == records_in(tmp_path)
    for record in records:
        assert record["validation_loss"] == pytest.approx(
            record["validation_margin"] + 0.0005 * record["validation_reconstruction"]
        )
        assert 0 < record["learning_rate"] <= config.learning_rate
        rate, seconds = record["images_per_second"], record["seconds"]
        rounded = 0.05 * seconds + 0.0005 * rate  # to a tenth and to a thousandth
        assert rate * seconds == pytest.approx(400, abs=1.01 * rounded)

    # The rate of the last step, at the end of the cosine; one step later it would rise again.
    assert records[-1]["learning_rate"] < 1e-5 * config.learning_rate
    loaded, metadata = load_weights(tmp_path / WEIGHTS)
    assert torch.equal(parameters(loaded), parameters(model))
    assert metadata["classes"] == list(training.classes) and metadata["mine"] == 1
    assert metadata["dataset"] == "mnist"
    # Nothing is left behind but what the documentation names.
    names = {entry.name for entry in tmp_path.iterdir()}
    assert names == {CHECKPOINT, WEIGHTS, METRICS, LOCK, "events"}
    events = EventAccumulator(str(tmp_path / "events"))
    events.Reload()
    assert [event.step for event in events.Scalars("loss")] == list(range(1, 81))
    accuracies = [event.value for event in events.Scalars("validation_accuracy")]
    assert accuracies == pytest.approx([record["validation_accuracy"] for record in records])


def test_the_average_is_the_exponential_moving_average(digits: ImageSet) -> None:
    decay = 0.75
    config = dataclasses.replace(ONE, batch_size=32, average=decay, shift=0, schedule="exponential")
    averaged = tiny_model()
    fit(averaged, digits, None, config)

    model = tiny_model()
    step = make_step(model, config=config)
    order = torch.randperm(128, generator=torch.Generator().manual_seed(0))
    expected = torch.empty(0)
    for i in range(4):
        index = order[32 * i : 32 * (i + 1)]
        step(to_float(digits.images[index]), digits.labels[index])
        now = parameters(model)
        expected = now if i == 0 else decay * expected + (1 - decay) * now
    torch.testing.assert_close(parameters(averaged), expected, rtol=1e-3, atol=1e-5)


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
    fit(tiny_model(), digits, digits, config, **options)
    shown = capsys.readouterr()
    assert "continuing after epoch 2 of 3" in shown.err


def test_without_tensorboard_it_trains(
    tmp_path: Path, digits: ImageSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    for name in [name for name in sys.modules if name.startswith("torch.utils.tensorboard")]:
        monkeypatch.delitem(sys.modules, name)
    records = fit(tiny_model(), digits, digits, ONE, out=tmp_path)
    assert records == records_in(tmp_path)
    assert not (tmp_path / "events").exists() and (tmp_path / WEIGHTS).exists()


def test_it_learns_from_a_dataset_what_it_learns_from_an_image_set(
    tmp_path: Path, digits: ImageSet
) -> None:
    """A wrapped network is trained, saved and evaluated as the network inside."""
    dataset = TensorDataset(to_float(digits.images), digits.labels)
    usual, model = tiny_model(), tiny_model()
    fit(usual, digits, digits, ONE)
    wrapped = nn.DataParallel(torch.compile(model, backend="eager"))
    fit(wrapped, dataset, dataset, ONE, out=tmp_path)
    loaded, _ = load_weights(tmp_path / WEIGHTS)
    assert torch.equal(parameters(loaded), parameters(usual))
    before = torch.get_rng_state()
    for network, images in ((wrapped, dataset), (loaded, dataset.tensors)):
        assert torch.equal(evaluate(network, images).lengths, evaluate(usual, digits).lengths)
    assert torch.equal(torch.get_rng_state(), before)


def test_what_could_not_be_loaded_again_is_not_trained(
    tmp_path: Path, digits: ImageSet, refuses: Refuses
) -> None:
    model = tiny_model()
    model.decoder = None
    with refuses("could not be loaded again", "expected decoder.fc1.bias"):
        fit(model, digits, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_without_a_configuration_it_takes_the_one_that_suits(
    tmp_path: Path, digits: ImageSet
) -> None:
    model, few = tiny_model(), digits.subset(slice(8))
    fit(model, few, out=tmp_path, stop_after=1)
    config = read_tensors(tmp_path / CHECKPOINT)[1]["identity"]["config"]
    suited = dataclasses.asdict(TrainingConfig.for_model(model, 8))
    assert config["epochs"] > TrainingConfig.epochs
    assert config.items() <= suited.items()
    assert config_for(nn.Linear(2, 2), few, None) == TrainingConfig()


def test_images_that_do_not_fit(digits: ImageSet, refuses) -> None:
    """Images to learn from and of validation; what else is refused is in test_evaluation.py."""
    of_three = dataclasses.replace(digits, labels=digits.labels % 3, classes=tuple("abc"))
    with refuses("[3, 28, 28]", "[1, 28, 28]"):
        fit(tiny_model(image_shape=(3, 28, 28)), digits)
    with refuses("10 classes", "3"):
        fit(tiny_model(), digits, of_three)
    with refuses("shift must be smaller", "28"):
        fit(tiny_model(), digits, config=dataclasses.replace(FP32, shift=28))
    with refuses("config must be a TrainingConfig, got dict"):
        fit(tiny_model(), digits, config={"epochs": 1})
    with torch.no_grad(), refuses("no weight has a gradient"):
        fit(tiny_model(), digits)
    with refuses("at least 2 steps", "got 1"):
        fit(tiny_model(), digits, config=dataclasses.replace(ONE, batch_size=128))


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


@pytest.mark.parametrize("name", ["learning_rate", "average", "reconstruction_weight"])
def test_configuration_of_other_than_pythons_numbers(name: str, refuses: Refuses) -> None:
    """A checkpoint's JSON takes no others: NumPy's are converted, all else is refused."""
    config = TrainingConfig(**{name: np.float32(0.5)})
    assert type(getattr(config, name)) is float and getattr(config, name) == 0.5
    for value in ("0.1", None, torch.tensor(0.1)):
        with refuses(f"{name} must be a number, got {value!r}"):
            TrainingConfig(**{name: value})


def test_a_loss_that_is_not_finite_stops_and_keeps_the_checkpoint(
    tmp_path: Path, digits: ImageSet
) -> None:
    config = dataclasses.replace(FP32, epochs=3, batch_size=16)
    model = tiny_model()
    steps = []

    def poison(*_: Any) -> None:
        steps.append(1)
        if len(steps) == 12:  # the fourth step of the second epoch
            with torch.no_grad():
                model.digits.weight.fill_(math.nan)

    model.register_forward_pre_hook(poison)
    with pytest.raises(TrainingError, match="the loss is nan at step 12; try a lower"):
        fit(model, digits, None, config, out=tmp_path)
    tensors, document = read_tensors(tmp_path / CHECKPOINT)
    assert [record["epoch"] for record in document["records"]] == [1]
    assert all(bool(tensor.isfinite().all()) for tensor in tensors.values())
    assert not (tmp_path / WEIGHTS).exists()


def test_weights_that_are_not_finite_are_not_saved(tmp_path: Path, digits: ImageSet) -> None:
    # So large a rate that the first update overflows the weights, after a loss that is finite.
    config = dataclasses.replace(
        FP32, epochs=1, batch_size=128, learning_rate=1e39, schedule="exponential", average=0
    )
    with pytest.raises(TrainingError, match=r"the sum of conv\.weight is .* at step 1;"):
        fit(tiny_model(), digits, None, config, out=tmp_path)
    assert not (tmp_path / CHECKPOINT).exists()


def test_the_time_left_counts_what_follows_the_training_of_an_epoch() -> None:
    record = {"epoch": 2, "loss": 0.5, "images_per_second": 10.0, "seconds": 60.0}
    line = describe(record, 4, seconds=90.0)
    assert line == "epoch 2/4  loss 0.5000  10 images/s  60 s  about 0:03:00 left"


def test_a_run_of_few_images_is_not_compiled(tmp_path: Path, digits: ImageSet) -> None:
    config = dataclasses.replace(FP32, epochs=1, compile=None)
    fit(tiny_model(), digits, None, config, out=tmp_path)
    assert load_weights(tmp_path / WEIGHTS)[1]["config"]["compile"] is False
