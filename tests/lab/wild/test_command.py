"""Other people's networks, and other routings, on the command line."""

import dataclasses
from pathlib import Path

import pytest
from PIL import Image

from capsnet.checkpoint import load_weights
from capsnet_lab import cli, wild
from capsnet_lab.wild.recipes import split_recipe
from helpers.tiny import some_digits


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path, digits = tmp_path_factory.mktemp("digits"), some_digits(60)
    for i, (image, label) in enumerate(zip(digits.images, digits.labels.tolist(), strict=True)):
        (path / str(label % 2)).mkdir(exist_ok=True)
        Image.fromarray(image[0].numpy()).save(path / str(label % 2) / f"{i}.png")
    return path


def train(folder: Path, out: Path, *words: str) -> int:
    dataset = ["--dataset", f"folder:{folder}", "--out", str(out), "--epochs", "1", "--no-compile"]
    return cli.main(["train", *dataset, "--batch-size", "8", "--device", "cpu", *words])


# One has hooks of the recipe; tests/lab/wild has all recipes and networks.
@pytest.mark.parametrize("name", ["timomernick", "sarasra"])
def test_as_another_network_that_is_read_again(
    name: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(folder, tmp_path, "--as", name) == 0
    weights = tmp_path / "weights.safetensors"
    model, metadata = load_weights(weights)
    made = wild.IMPLEMENTATIONS[name]
    assert model.config["deviations"] == [deviation.name for deviation in made.deviations]
    given = {"epochs": 1, "batch_size": 8, "compile": False}
    assert metadata["config"] == metadata["config"] | split_recipe(made.recipe)[0] | given
    capsys.readouterr()
    assert cli.main(["evaluate", str(weights)]) == 0
    assert "accuracy" in capsys.readouterr().out


@pytest.mark.parametrize("routing", ["em", "shared"])
def test_another_routing_and_a_stack_of_layers(routing: str, folder: Path, tmp_path: Path) -> None:
    assert train(folder, tmp_path, "--routing", routing, "--stack", "6") == 0
    weights = tmp_path / "weights.safetensors"
    model, _ = load_weights(weights)
    assert (model.config["routing"], model.config["stack"]) == (routing, [6])
    assert cli.main(["evaluate", str(weights)]) == 0


def test_a_recipe_of_ones_own_undoes_the_deviation_that_says_otherwise(
    folder: Path, tmp_path: Path
) -> None:
    words = "--as", "jindongwang", "--schedule", "exponential", "--shift", "2"
    assert train(folder, tmp_path, *words) == 0
    model, metadata = load_weights(tmp_path / "weights.safetensors")
    its_own = [deviation.name for deviation in wild.IMPLEMENTATIONS["jindongwang"].deviations]
    assert its_own[-2:] == ["no-shift", "constant-rate"]
    assert model.config["deviations"] == its_own[:-2]
    assert (metadata["config"]["schedule"], metadata["config"]["shift"]) == ("exponential", 2)


def test_all_is_what_its_authors_train_on(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = dataclasses.replace(wild.IMPLEMENTATIONS["geron"], images=17)
    monkeypatch.setitem(wild.IMPLEMENTATIONS, "geron", made)
    # Of other images than MNIST's it takes all.
    for dataset, images in ("mnist", 17), (f"folder:{folder}", 52):
        words = "--as", "geron", "--all", "--dataset", dataset
        assert train(folder, tmp_path / str(images), *words) == 0
        assert f" parameters, {images} images, cpu\n1 epoch, batches" in capsys.readouterr().out


def test_the_list_says_what_each_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["train", "--list-implementations"]) == 0
    text = capsys.readouterr().out
    for name, made in wild.IMPLEMENTATIONS.items():
        assert f"{name}: {made.title}" in text and made.link in text
        assert all(deviation.code in text for deviation in made.deviations)
    assert cli.main(["train", "--as", "labml", "--list-implementations"]) == 0
    assert capsys.readouterr().out == f"{wild.IMPLEMENTATIONS['labml']}\n"
