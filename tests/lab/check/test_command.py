"""Others' networks, and other routings, on the command line."""

import dataclasses
from pathlib import Path

import pytest
from PIL import Image

from capsnet.checkpoint import load_weights
from capsnet_lab import cli, wild
from capsnet_lab.cli.commands import make_network
from capsnet_lab.export import export_onnx
from helpers.tiny import some_digits


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path, digits = tmp_path_factory.mktemp("digits"), some_digits(60)
    for i, (image, label) in enumerate(zip(digits.images, digits.labels.tolist(), strict=True)):
        (path / str(label % 2)).mkdir(exist_ok=True)
        Image.fromarray(image[0].numpy()).save(path / str(label % 2) / f"{i}.png")
    return path


def train(folder: Path, out: Path, *words: str) -> int:
    dataset = ["--dataset", f"folder:{folder}", "--out", str(out), "--epochs", "1"]
    return cli.main(["train", *dataset, "--batch-size", "8", "--device", "cpu", *words])


@pytest.mark.parametrize("name", wild.IMPLEMENTATIONS)
def test_as_another_network_that_is_read_again(
    name: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(folder, tmp_path, "--as", name, "--no-compile") == 0
    weights = tmp_path / "weights.safetensors"
    model, metadata = load_weights(weights, make_network)
    made = wild.IMPLEMENTATIONS[name]
    assert model.config["deviations"] == [deviation.name for deviation in made.deviations]
    assert model.config["image_shape"] == list(made.options.get("image_shape", (1, 28, 28)))
    given = {"epochs": 1, "batch_size": 8, "compile": False}
    assert metadata["config"] == metadata["config"] | made.recipe | given
    capsys.readouterr()
    assert cli.main(["evaluate", str(weights)]) == 0
    assert "accuracy" in capsys.readouterr().out
    (some, *_) = sorted(folder.rglob("*.png"))
    assert cli.main(["predict", str(weights), str(some)]) == 0
    assert str(some) in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # the exporter's own
@pytest.mark.parametrize("name", ["labml", "xifengguo", "sarasra"])
def test_another_network_gives_the_same_answers_in_onnxruntime(name: str, tmp_path: Path) -> None:
    small = {"num_classes": 3, "conv_channels": 8, "capsule_types": 2, "hidden": (8, 8)}
    model = wild.IMPLEMENTATIONS[name].make(**small)
    assert export_onnx(model, tmp_path / "network.onnx") < 1e-5  # in batches of 1 and 3
    assert (tmp_path / "network.onnx").exists()


@pytest.mark.parametrize("routing", ["em", "shared"])
def test_another_routing_and_a_stack_of_layers(
    routing: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(folder, tmp_path, "--routing", routing, "--stack", "6", "--no-compile") == 0
    weights = tmp_path / "weights.safetensors"
    model, _ = load_weights(weights, make_network)
    assert (model.config["routing"], model.config["stack"]) == (routing, [6])
    assert cli.main(["evaluate", str(weights)]) == 0
    capsys.readouterr()
    refused = routing == "em"
    assert cli.main(["evaluate", str(weights), "--arrangement", "fast"]) == (2 if refused else 0)
    assert ("arrangement fast is of CapsNet, got a R" in capsys.readouterr().err) == refused


def test_as_trains_that_network_in_that_way(folder: Path, tmp_path: Path) -> None:
    train(folder, tmp_path / "ours", "--as", "paper", "--no-compile")
    train(folder, tmp_path / "theirs", "--as", "cezannec", "--no-compile")
    ours, theirs = (
        load_weights(tmp_path / run / "weights.safetensors", make_network)[0]
        for run in ("ours", "theirs")
    )
    # W starts ten times as wide, and a step of Adam's changes it by a thousandth.
    assert theirs.digits.weight.std() > 8 * ours.digits.weight.std()


def test_a_recipe_of_ones_own_undoes_the_deviation_that_says_otherwise(
    folder: Path, tmp_path: Path
) -> None:
    words = "--as", "jindongwang", "--no-compile", "--schedule", "plateau", "--shift", "2"
    assert train(folder, tmp_path, *words) == 0
    model, metadata = load_weights(tmp_path / "weights.safetensors", make_network)
    its_own = [deviation.name for deviation in wild.IMPLEMENTATIONS["jindongwang"].deviations]
    assert its_own[-2:] == ["no-shift", "constant-rate"]
    assert model.config["deviations"] == its_own[:-2]
    assert (metadata["config"]["schedule"], metadata["config"]["shift"]) == ("plateau", 2)


def test_all_is_what_its_authors_train_on(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert wild.IMPLEMENTATIONS["geron"].images == 55_000
    its = {"images": 17, "dataset": f"folder:{folder}"}
    for name, change in ("geron", its), ("naturomics", {"images": 17}):
        made = dataclasses.replace(wild.IMPLEMENTATIONS[name], **change)
        monkeypatch.setitem(wild.IMPLEMENTATIONS, name, made)
    for name, images in ("geron", 17), ("naturomics", 52):  # of other images it takes all
        assert train(folder, tmp_path / name, "--as", name, "--all", "--no-compile") == 0
        assert f" parameters, {images} images, cpu" in capsys.readouterr().out


def test_the_list_says_what_each_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["train", "--list-implementations"]) == 0
    said = capsys.readouterr().out
    for name, made in wild.IMPLEMENTATIONS.items():
        assert f"{name}: {made.title}" in said and made.link in said
        assert all(deviation.code in said for deviation in made.deviations)
    assert cli.main(["train", "--as", "labml", "--list-implementations"]) == 0
    assert capsys.readouterr().out == f"{wild.IMPLEMENTATIONS['labml']}\n"


def test_one_line_for_what_does_not_go(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        train(folder, tmp_path, "--as", "nobody")
    assert "nobody" in capsys.readouterr().err
    weights = str(tmp_path / "none.safetensors")
    assert train(folder, tmp_path, "--as", "labml", "--init", weights) == 2
    assert "--init fixes the network" in capsys.readouterr().err
    assert train(folder, tmp_path, "--as", "labml", "--stack", "6") == 2
    assert "--as fixes the routing" in capsys.readouterr().err
    assert train(folder, tmp_path, "--routing", "uniform", "--routing-iterations", "7") == 2
    assert "routing_iterations is of routing dynamic, em," in capsys.readouterr().err


def test_check_says_what_a_network_does_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    small = "conv_channels=8, capsule_types=2"
    (tmp_path / "somebodys.py").write_text(
        f"""import torch
from capsnet import CapsNet
from capsnet_lab.wild import WildCapsNet
from capsnet_lab.check.checker import Adapter
def ours(): return CapsNet({small})
def theirs(): return WildCapsNet(deviations=["softmax-over-children"], {small})
class Plain(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.last = torch.nn.Linear(784, 10)
    def forward(self, x):
        return self.last(x.flatten(1)).sigmoid()
def larger():
    return Mine((1, 24, 24), routing_iterations=5, {small})
class Mine(CapsNet): pass
adapter = Adapter(primary=lambda net, images: net.nothing(images))
"""
    )
    assert cli.main(["check", "somebodys:ours"]) == 0
    capsys.readouterr()
    assert cli.main(["check", "somebodys:theirs"]) == 1
    said = capsys.readouterr().out
    assert "\nsoftmax-over-children\n" in said and "1 of " in said
    for network in "ours", "theirs":
        assert cli.main(["check", f"somebodys:{network}", "--adapter", "somebodys:adapter"]) == 3
        assert "\nprimary fails: AttributeError: " in capsys.readouterr().out
    assert cli.main(["check", "somebodys:ours", "--image-shape", "1x24x24"]) == 2
    assert "with images [8, 1, 24, 24]: " in capsys.readouterr().err
    assert cli.main(["check", "somebodys:larger", "--image-shape", "1x24x24"]) == 1
    assert "\notherwise than in the paper, without a name: 5 iter" in capsys.readouterr().out
    assert cli.main(["check", "somebodys:Plain"]) == 3
    assert "\nthe routing was not examined: needs an Adapter" in capsys.readouterr().out
    assert (
        cli.main(["check", "somebodys:larger", "--image-shape", "1x24x24", "--routing", "x"]) == 2
    )
    assert "has no module x, but conv, primary, primary.conv, digits, " in capsys.readouterr().err
    words = ["check", "somebodys:larger", "--image-shape", "1x24x24", "--routing", "digits"]
    assert cli.main(words) == 1
    assert "without a name: 5 iter" in capsys.readouterr().out
    assert cli.main(["check", "somebodys:nobodys"]) == 2
    assert capsys.readouterr().err == "capsnet check: somebodys has no nobodys\n"
    with pytest.raises(SystemExit):
        cli.main(["check", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "exit code 1; 3 where a stage of the adapter, or a call, fails, or the routing" in said
