"""The command line, as a user runs it."""

import contextlib
import dataclasses
import errno
import io
import json
import logging
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import safetensors.torch
import torch
from PIL import Image

from capsnet import CapsNet, data, training
from capsnet.checkpoint import load_weights, save_weights
from capsnet.device import PRECISIONS
from capsnet.fast import ARRANGEMENTS
from capsnet.training import TrainingConfig
from capsnet.training.config import MAX_SEED, SCHEDULES, SUITED
from capsnet.training.evaluation import evaluate
from capsnet.training.run import CHECKPOINT, METRICS, WEIGHTS
from capsnet_lab import predict, routings, wild
from capsnet_lab.cli import given, main, options
from capsnet_lab.cli.outputs import confusion_text, per_class_table
from capsnet_lab.export import export_onnx
from helpers import ROOT
from helpers.tiny import fit, mnist, some_digits, tiny_model

Captured = pytest.CaptureFixture[str]
TWO = {"classes": ["is 3", "is 7"]}


def shown_digits(folder: Path) -> Path:
    """A data set of one's own: two classes, 30 pictures each, of several sizes and modes."""
    digits = some_digits(600)
    for label in (3, 7):
        (folder / f"is {label}").mkdir(parents=True)
        chosen = digits.images[digits.labels == label][:30, 0]
        for i, image in enumerate(chosen):
            picture = Image.fromarray(image.numpy()).resize((28 + i, 40))
            if i % 3 == 0:
                picture = picture.convert("RGB")
            picture.save(folder / f"is {label}" / f"{i}.png")
    return folder


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shown_digits(tmp_path_factory.mktemp("pictures"))


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small network that has seen some digits: right most of the time."""
    out = tmp_path_factory.mktemp("run")
    config = TrainingConfig(
        epochs=3, batch_size=25, learning_rate=6e-3, average=0, precision="fp32"
    )
    fit(tiny_model(), some_digits(1000), None, config, out=out)
    return out / WEIGHTS


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, weights: Path, pictures: Path) -> Path:
    """A folder in which commands are refused."""
    place = tmp_path_factory.mktemp("place")
    model = load_weights(weights)[0]
    shutil.copy(weights, place / "w")
    save_weights(place / "two", tiny_model(num_classes=2), TWO)
    save_weights(place / "colour", tiny_model(image_shape=(3, 28, 28)))
    save_weights(place / "undrawn", tiny_model(reconstruct=False), {"dataset": "mnist"})
    save_weights(place / "nameless", model, {"dataset": 7})
    save_weights(place / "misnamed", model, {"classes": ["a"], "dataset": "mnist"})
    (place / "cut").write_bytes(weights.read_bytes()[:5000])
    tensors = dict(model.state_dict())
    for name, text in {
        "null": "null",
        "negative": json.dumps({"model": {**model.config, "hidden": [-1, 5]}}),
        "endless": json.dumps({"model": {**model.config, "hidden": [10**13, 10]}}),
    }.items():
        safetensors.torch.save_file(tensors, place / name, {"capsnet": text})
    Image.fromarray(mnist(train=False).images[0, 0].numpy()).save(place / "photo.png")
    (place / "file").write_text("")
    os.mkfifo(place / "fifo.json")
    (place / "empty").mkdir()
    shutil.copytree(pictures, place / "pictures")
    for part in ("train", "val"):
        shutil.copytree(pictures, place / "split" / part)
    shutil.copytree(pictures, place / "flawed")
    (place / "flawed" / "is 3" / "bad.png").write_text("no picture")
    shutil.copytree(weights.parent, place / "done")
    (place / "done" / CHECKPOINT).unlink()
    return place


@pytest.fixture(autouse=True)
def kept(request: pytest.FixtureRequest) -> Iterator[None]:
    """A command that is refused leaves its folder as it was."""
    if "place" not in request.fixturenames:
        yield
        return
    folder = request.getfixturevalue("place")

    def content() -> dict[Path, bytes]:
        return {path: path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}

    before = content()
    with contextlib.chdir(folder):
        yield
    assert content() == before


# What is refused before PyTorch is imported: words, and a part of the message.
EARLY = [
    ("", "the following arguments are required: COMMAND"),
    ("fly", "argument COMMAND: invalid choice: 'fly'"),
    ("train --wings", "unrecognized arguments: --wings"),
    ("predict w photo.png --precision fp32", "unrecognized arguments: --precision"),
    ("train --epochs many", "argument --epochs: expected a whole number of at least 1, got many"),
    ("train --learning-rate nan", "--learning-rate: expected a positive number, got nan"),
    ("train --average 1", "expected a number of at least 0 and below 1, got 1"),
    ("train --reconstruction-weight -1", "expected a number of at least 0, got -1"),
    (f"train --seed {2**40}", f"expected a whole number of 0 … 2⁴⁰ - 1, got {2**40}"),
    ("train --stack 8 0", "argument --stack: expected a whole number of at least 1, got 0"),
    ("train --dataset cifar-1", "unknown data set 'cifar-1'; expected one of: mnist, "),
    ("train --dataset folder:", "unknown data set 'folder:'"),
    ("train --dataset folder:nowhere", "no such folder: nowhere"),
    ("train --image-shape 28", "expected a shape like 1x28x28 or 3x32x32, got 28"),
    ("train --init nowhere", "no such file: nowhere"),
    ("train --init w --learn-prior", "--init fixes the network"),
    ("train --as labml --stack 8", "give neither --routing nor --stack"),
    ("train --out file/below", f"cannot write file/below/{WEIGHTS}: Not a directory"),
    ("train --out done", f"done holds {WEIGHTS}, which would be overwritten, but no {CHECKPOINT}"),
    (f"train --out done --init done/{WEIGHTS}", f"done/{WEIGHTS} would be overwritten: it is an"),
    ("evaluate nowhere", "no such file: nowhere"),
    ("export nowhere x.onnx", "no such file: nowhere"),
    ("predict w photo.png nowhere.png --json new/a.json", "no such file: nowhere.png"),
    ("predict w photo.png --threshold 1.5", "expected a number in 0 … 1, got 1.5"),
    ("predict w photo.png photo.png --save f.png", "--save takes one picture, got 2"),
    ("predict w photo.png --csv x --json x", "must be different files"),
    ("evaluate w --figure f.png --reconstructions f.png", "must be different files"),
    ("predict w photo.png --sheet x.csv", "must end in .png, .svg, .pdf, got x.csv"),
    ("evaluate w --figure file/f.png", "cannot write file/f.png"),
    ("evaluate w --json fifo.json", "cannot write fifo.json: it is no ordinary file"),
    ("evaluate w --json w", "w would be overwritten: it is an input"),
    ("export w empty", "cannot write empty: it is a folder"),
    ("predict w photo.png --save photo.png", "photo.png would be overwritten: it is an input"),
    ("check my_module", "expected a name such as my_module:MyCapsNet, got my_module"),
    *[
        (words, "expected a path, got an empty one")
        for words in (
            "train --out ''", "train --init ''", "export w ''", "predict w ''", "predict '' p",
            "evaluate w --figure ''", "evaluate w --reconstructions ''", "evaluate w --json ''",
            "predict w p --json ''", "predict w p --csv ''", "predict w p --sheet ''",
            "predict w p --save ''",
        )
    ],
]  # fmt: skip


def test_what_is_refused_or_answered_without_pytorch(place: Path) -> None:
    """In one process, which PyTorch and everything else that takes long is never imported into."""
    commands = [words for words, _ in EARLY] + ["--help", "--version", "train --help"]
    code = """
import contextlib, io, json, shlex, sys
from capsnet_lab.cli import main
answers = []
for words in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        with contextlib.redirect_stderr(io.StringIO()) as err:
            try: code = main(shlex.split(words))
            except SystemExit as stop: code = stop.code or 0
    answers.append([code, out.getvalue(), err.getvalue()])
heavy = {"torch", "numpy", "PIL", "matplotlib", "scipy", "capsnet"} & sys.modules.keys()
print(json.dumps([sorted(heavy), answers]))
"""
    command = [sys.executable, "-c", code, json.dumps(commands)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    heavy, answers = json.loads(done.stdout)
    assert heavy == []
    *refused, (_, helped, _), (_, version, _), (_, train, _) = answers
    for (words, message), (code, out, err) in zip(EARLY, refused, strict=True):
        assert (code, out) == (2, ""), words
        assert err.startswith("capsnet") and err.endswith("\n") and err.count("\n") == 1, err
        assert message in err, words
    assert all(word in helped for word in ("train", "evaluate", "predict", "export", "check"))
    assert re.fullmatch(r"capsnet \d+\.\d+\.\d+\n", version)
    assert "--reconstruction-weight" in train


def test_the_lists_of_the_options_are_the_modules() -> None:
    assert options.DATASETS == data.NAMES
    assert options.PRECISIONS == PRECISIONS
    assert options.ARRANGEMENTS == ARRANGEMENTS
    assert options.SCHEDULES == SCHEDULES
    assert tuple(routings.ROUTINGS) == options.ROUTINGS
    assert {k: v.dataset for k, v in wild.IMPLEMENTATIONS.items()} == options.IMPLEMENTATIONS
    assert predict.THRESHOLD == options.THRESHOLD
    assert (given.CHECKPOINT, given.WEIGHTS) == (CHECKPOINT, WEIGHTS)
    assert options.SEED(str(MAX_SEED - 1)) == MAX_SEED - 1
    parser = options.make_parser()._subparsers._group_actions[0].choices["train"]
    helps = {action.dest: action.help for action in parser._actions}
    for field in dataclasses.fields(TrainingConfig):
        default = f"({field.default}" + (" for MNIST" if field.name in SUITED else ")")
        assert field.name == "compile" or default in helps[field.name], field.name


# What is refused later: words, and a part of the message.
LATE = [
    ("train --shift 28", "shift must be smaller than the images, 28 × 28, got 28"),
    ("train --image-shape 1x16x28", "at least 17 × 17 pixels"),
    ("train --image-shape 1x32x32", "the images of mnist are (1, 28, 28)"),
    ("train --as geron --routing-iterations 3", "--as geron fixes routing_iterations at 2, got 3"),
    ("train --as sarasra-cifar10 --no-download", "not downloaded, as download=False"),
    ("train --init two", "the network tells is 3, is 7 apart, the classes of mnist are 0, 1, 2"),
    ("train --dataset folder:split --test", "no 'test' images; its splits are: train, validation,"),
    ("train --dataset folder:flawed", "is 3/bad.png is not a picture, or not of a known format; "
     "--skip-unreadable leaves them out"),
    ("train --dataset folder:pictures --out pictures", "inside the data folder"),
    ("train --dataset folder:split --out split/train/run", "split/train, of which it would become"),
    *[
        (words.format(file), message)
        for file, message in (
            ("cut", "not a whole safetensors file"),
            ("empty", "expected a safetensors file, got a folder"),
            ("fifo.json", "expected a safetensors file, got no ordinary file"),
            ("null", "is damaged: its description is no JSON object"),
            ("negative", "negative"),
            ("endless", "endless"),
        )
        for words in ("evaluate {}", "predict {} photo.png", "export {} x.onnx")
    ],
    ("evaluate colour --dataset mnist", "the images of mnist are (1, 28, 28) [channels, height,"),
    ("evaluate nameless", "nameless does not say on what it was trained: give --dataset"),
    ("evaluate misnamed", "misnamed should name 10 classes, it names ['a']"),
    ("evaluate w --dataset folder:pictures", "tells 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 apart, the "),
    ("evaluate undrawn --reconstructions f.png", "the network has no decoder"),
    *[
        (f"evaluate two --dataset folder:pictures --{option} 'pictures/is 7/5.png'",
         "pictures/is 7/5.png would be overwritten: it is an input")
        for option in ("json", "figure", "reconstructions")
    ],
    ("predict w pictures --save f.png", "--save takes one picture, got 60: --sheet takes many"),
    ("predict w file", "file is not a picture: it is empty"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "message"), LATE)
def test_what_is_refused(place: Path, words: str, message: str, capsys: Captured) -> None:
    if words.startswith("train"):
        words += " --no-compile --device cpu" + " --out x" * ("--out" not in words)
    assert main(shlex.split(words)) == 2
    _, err = capsys.readouterr()
    assert err.startswith(f"capsnet {words.split()[0]}: ") and message in err
    assert err.endswith("\n") and err.count("\n") == 1


@pytest.mark.slow
def test_a_folder_of_ones_own_from_training_to_prediction(
    tmp_path: Path, pictures: Path, capsys: Captured
) -> None:
    out, init = tmp_path / "run", tmp_path / "init.safetensors"
    folder = shutil.copytree(pictures, tmp_path / "copy")
    (folder / "is 3" / "bad.png").write_text("no picture")
    save_weights(init, tiny_model(image_shape=(1, 17, 18), num_classes=2), TWO)
    words = ["train", "--dataset", f"folder:{folder}", "--out", out, "--epochs", "30", "--test"]
    words += ["--batch-size", "10", "--no-compile", "--average", "0", "--init", init]
    words += ["--learning-rate", "2e-3"]
    with pytest.raises(ValueError, match=r"1 of 61 pictures cannot be read: is 3/bad\.png; "):
        main([*map(str, words), "--debug"])
    capsys.readouterr()
    command = [Path(sys.executable).with_name("capsnet"), *words, "--skip-unreadable"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"folder:{folder}: 2 classes, split by their names: about a ")
    assert "left out: 1 of 61 pictures" in done.stdout
    assert re.search(r"accuracy [\d.]+% \([89]/9\)", done.stdout)
    assert "images/s" in done.stderr and "epoch 30/30" in done.stderr
    assert len((out / METRICS).read_text().splitlines()) == 30
    assert load_weights(out / WEIGHTS)[1]["classes"] == TWO["classes"]

    assert main(["evaluate", str(out / WEIGHTS), "--skip-unreadable"]) == 0
    again = capsys.readouterr().out
    assert again.endswith(done.stdout[done.stdout.index("accuracy") :])

    seven = str(pictures / "is 7" / "4.png")
    assert main(["predict", str(out / WEIGHTS), seven]) == 0
    assert capsys.readouterr().out.splitlines()[0] == f"{seven}: is 7"


def test_evaluate_prints_counts_and_confusion(
    weights: Path, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = {train: some_digits(1200, train) for train in (True, False)}
    monkeypatch.setattr(data, "load", lambda name, train, download: few[train])
    figure, document = tmp_path / "confusion.png", tmp_path / "evaluation.json"
    words = ["evaluate", str(weights), "--precision", "fp32", "--figure", str(figure)]
    drawn = tmp_path / "decoded.svg"
    assert main([*words, "--json", str(document), "--reconstructions", str(drawn)]) == 0
    out = capsys.readouterr().out
    result = evaluate(load_weights(weights)[0], few[False])
    assert result.accuracy > 0.8
    assert f"({result.correct}/1200)" in out and "squared error an image" in out
    assert f"\n{per_class_table(result.per_class, result.classes)}\n" in out
    assert f"\n{confusion_text(result.confusion, result.classes)}\n" in out
    written = json.loads(document.read_text())
    assert (written["dataset"], written["split"]) == ("mnist", "test")
    assert (written["correct"], written["total"]) == (result.correct, 1200)
    assert written["confusion"] == result.confusion.tolist()
    assert written["errors"] == result.errors.tolist()
    assert drawn.read_text().count("<image") == 20  # ten originals over ten reconstructions
    with Image.open(figure) as picture:
        assert min(picture.size) > 300
    assert main(["evaluate", str(weights), "--split", "validation"]) == 0
    assert "/200)" in capsys.readouterr().out


def test_evaluate_counts_the_pictures_that_are_meant(
    tmp_path: Path, pictures: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy, split, path = tmp_path / "copy", tmp_path / "split", tmp_path / "w.safetensors"
    for folder in (copy, split / "train", split / "val"):
        shutil.copytree(pictures, folder)
    save_weights(path, tiny_model(num_classes=2), {**TWO, "dataset": f"folder:{pictures}"})

    def counted(*words: object) -> int:
        assert main([str(word) for word in ("evaluate", path, *words)]) == 0
        out = capsys.readouterr().out
        (total,) = re.findall(r"^accuracy .*/(\d+)\)$", out, re.M)
        assert re.search(rf"^  [a-z ]+: {total} \(is \d: \d+; is \d: \d+\)$", out, re.M)
        return int(total)

    monkeypatch.chdir(pictures.parent)
    for name in (f"folder:{pictures}", f"folder:{pictures.name}", None):  # trained on it
        assert counted(*(["--dataset", name] if name else [])) == 9
    assert counted("--split", "validation") == 8  # of 51
    assert counted("--split", "all") == 60
    assert counted("--dataset", f"folder:{copy}") == 9  # it may be the same folder, moved
    assert counted("--dataset", f"folder:{copy}", "--split", "all") == 60
    for part, count in (("validation", 60), ("train", 60), ("all", 120)):
        assert counted("--dataset", f"folder:{split}", "--split", part) == count


def test_train_learns_from_what_is_meant(
    tmp_path: Path, pictures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(pictures, tmp_path / "split" / "train")
    shutil.copytree(pictures, tmp_path / "split" / "val")
    (tmp_path / "split" / "val" / "is 7" / "1.png").unlink()
    seen = []
    monkeypatch.setattr(training, "fit", lambda model, *sets, **_: seen.append((model, *sets[:2])))
    words = ["train", "--device", "cpu", "--no-compile", "--out", str(tmp_path / "out")]
    for folder, more, learned, held in (
        (pictures, [], 43, 8),
        (pictures, ["--all"], 51, None),
        (tmp_path / "split", [], 60, 59),
        (tmp_path / "split", ["--all"], 119, None),
    ):
        assert main([*words, "--dataset", f"folder:{folder}", *more]) == 0
        model, images, validation = seen.pop()
        assert (len(images), validation and len(validation)) == (learned, held)
        assert model.config["image_shape"] == [1, 28, 28] and model.config["num_classes"] == 2


def test_every_setting_of_the_training_is_an_option(
    pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = {
        "epochs": 3, "batch_size": 7, "learning_rate": 0.5, "schedule": "exponential",
        "average": 0.25, "reconstruction_weight": 0.125, "shift": 1, "precision": "bf16",
        "arrangement": "plain", "compile": False, "seed": 9,
    }  # fmt: skip
    config = TrainingConfig(**chosen)
    usual = TrainingConfig.suited(CapsNet(num_classes=2), 43, compile=None)
    assert all(getattr(config, name) != getattr(usual, name) for name in chosen)
    assert chosen.keys() == {field.name for field in dataclasses.fields(config)}
    seen = []
    monkeypatch.setattr(training, "fit", lambda *args, **_: seen.append(args[3]))
    words = ["train", "--dataset", f"folder:{pictures}", "--out", str(tmp_path), "--device", "cpu"]
    assert main(words) == 0
    assert seen.pop() == usual
    del chosen["compile"]
    words += ["--no-compile"]
    for name, value in chosen.items():
        words += [f"--{name.replace('_', '-')}", str(value)]
    assert main(words) == 0
    assert seen.pop() == config


def test_the_folder_of_a_run_has_the_data_sets_name(
    pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though there is a link of this name here; and ~ is the home folder in every path."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    shutil.copytree(pictures, tmp_path / "home" / "shapes")
    for name in ("mnist", "fashion-mnist"):
        (tmp_path / name).symlink_to(pictures)
    seen = []
    monkeypatch.setattr(training, "fit", lambda *args, **how: seen.append(how["out"]))
    monkeypatch.setattr(data, "load", lambda name, train, download: some_digits(60, train))
    for words, out in {
        "": Path("runs/mnist"),
        "--dataset fashion-mnist": Path("runs/fashion-mnist"),
        "--as labml": Path("runs/mnist-labml"),
        "--dataset folder:~/shapes": Path("runs/shapes"),
        "--out=~/run": tmp_path / "home" / "run",
        "--out ~nobody-of-this-name/run": Path("~nobody-of-this-name/run"),
    }.items():
        words = f"train --no-compile --device cpu {words}"
        monkeypatch.setattr(data, "CLASSES", dict.fromkeys(data.NAMES, some_digits(1).classes))
        assert main(shlex.split(words)) == 0
        assert seen.pop() == out
    save_weights(tmp_path / "home" / "w", tiny_model(), {"dataset": "mnist"})
    picture = "~/shapes/is 7/4.png"
    assert main(["predict", "~/w", picture, "--json", "~/new/a.json", "--threshold", "0"]) == 0
    assert (tmp_path / "home" / "new" / "a.json").exists()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # the exporter's own
def test_export_gives_the_same_answers_in_onnxruntime(
    weights: Path, tmp_path: Path, capsys: Captured
) -> None:
    import onnxruntime

    path = tmp_path / "network.onnx"
    assert main(["export", str(weights), str(path)]) == 0
    assert "differ by at most" in capsys.readouterr().out
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    assert [output.name for output in session.get_outputs()] == [
        "lengths", "capsules", "reconstruction",
    ]  # fmt: skip
    images = mnist(train=False).images[:7].float() / 255
    model = load_weights(weights)[0]
    with torch.no_grad():
        out = model(images)
    found = session.run(None, {"images": images.numpy()})
    for left, right in zip((out.lengths, out.capsules, out.reconstruction), found, strict=True):
        torch.testing.assert_close(torch.from_numpy(right), left, rtol=1e-4, atol=1e-5)


def test_a_network_in_training_is_exported_and_trains_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exported(network: torch.nn.Module, *_: object, **__: object) -> None:
        assert not any(module.training for module in network.modules())
        raise InterruptedError

    monkeypatch.setattr(torch.onnx, "export", exported)
    model = tiny_model().train()
    model.conv.eval()  # a layer of its own mode
    with pytest.raises(InterruptedError):
        export_onnx(model, tmp_path / "network.onnx")
    assert model.primary.training and not model.conv.training


def test_what_onnxruntime_does_not_take_is_not_written(
    weights: Path, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = SimpleNamespace(model_proto=SimpleNamespace(SerializeToString=lambda: b"no network"))
    monkeypatch.setattr(torch.onnx, "export", lambda *args, **_: program)
    assert main(["export", str(weights), str(tmp_path / "new" / "network.onnx")]) == 2
    said = capsys.readouterr().err
    assert said.startswith("capsnet export: onnxruntime cannot run the network: [ONNXRuntimeError]")
    assert said.count("\n") == 1 and not (tmp_path / "new").exists()


def test_a_network_without_a_decoder_has_no_reconstruction_error(
    pictures: Path, tmp_path: Path, capsys: Captured
) -> None:
    path, document = tmp_path / "w", tmp_path / "e.json"
    model = tiny_model(num_classes=2, reconstruct=False)
    save_weights(path, model, {**TWO, "dataset": f"folder:{pictures}"})
    assert main(["evaluate", str(path), "--json", str(document)]) == 0
    assert "squared error" not in capsys.readouterr().out
    assert json.loads(document.read_text())["reconstruction"] is None


@pytest.mark.parametrize("strict", [True, False])
def test_names_that_are_not_utf_8(
    strict: bool, pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As bytes where the terminal takes them, else escaped; and in figures."""
    folder, classes = tmp_path / "copy", ["$is_{$", "is \udcff"]
    for name, own in zip(classes, ("is 3", "is 7"), strict=True):
        shutil.copytree(pictures / own, folder / name)
    (folder / classes[1] / "bad\udcfe.png").write_text("no picture")
    path, said = tmp_path / "w.safetensors", io.BytesIO()
    save_weights(path, tiny_model(num_classes=2), {"classes": classes})
    errors = "strict" if strict else "surrogateescape"
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(said, "utf-8", errors))
    monkeypatch.setattr(training, "fit", lambda *args, **_: None)
    monkeypatch.setattr("capsnet.fast.allocator.keep_freed_memory", lambda: True)
    drawn = [str(tmp_path / name) for name in ("a.png", "b.svg")]
    for words in (
        ["train", "--no-compile", "--out", str(tmp_path / "out")],
        ["evaluate", str(path), "--figure", drawn[0], "--reconstructions", drawn[1]],
    ):
        words += ["--dataset", f"folder:{folder}", "--skip-unreadable"]
        monkeypatch.setattr(sys, "argv", ["capsnet", *words])
        assert main() == 0
    for name in (b"is \xff", b"bad\xfe.png"):
        escaped = name.decode(errors="surrogateescape").encode(errors="backslashreplace")
        assert (escaped in said.getvalue(), name in said.getvalue()) == (strict, not strict)
    assert all(Path(path).stat().st_size for path in drawn)


def test_main_in_a_kernel_leaves_the_process_as_it_is(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    monkeypatch.setattr(
        "capsnet.fast.allocator.keep_freed_memory", lambda: calls.append("allocator")
    )
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), "utf-8", "strict"))
    level = logging.getLogger("PIL").level

    def changed() -> list[object]:
        return [*calls, sys.stdout.errors, logging.getLogger("PIL").level]

    words = ["predict", "w", "photo.png", "--threshold", "0"]
    try:
        assert main(words) == 0
        assert changed() == ["strict", level]
        monkeypatch.setattr(sys, "argv", ["capsnet", *words])
        assert main() == 0
        assert changed() == ["allocator", "backslashreplace", logging.CRITICAL]
    finally:
        logging.getLogger("PIL").setLevel(level)


def test_text_needs_neither_matplotlib_nor_torchvision_nor_fcntl(
    pictures: Path, tmp_path: Path
) -> None:
    path = tmp_path / WEIGHTS
    save_weights(path, tiny_model(num_classes=2), {**TWO, "dataset": f"folder:{pictures}"})
    code = """
import sys
sys.modules["fcntl"] = None
from capsnet_lab.cli import main
assert main(["evaluate", sys.argv[1]]) == 0
print("matplotlib" in sys.modules, "torchvision" in sys.modules)
"""
    command = [sys.executable, "-c", code, path]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "true \\ predicted" in said and said.endswith("False False\n")


@pytest.mark.slow
def test_the_readmes_torchrun_command(pictures: Path, tmp_path: Path, inductor: None) -> None:
    """On the CPU of any machine; two processes, with torch.compile."""
    command = "torchrun --nproc-per-node 2 -m capsnet train"
    readme = (ROOT / "README.md").read_text()
    assert command in " ".join(readme.split())
    torchrun, *words = command.split()
    words += ["--dataset", f"folder:{pictures}", "--out", str(tmp_path), "--device", "cpu"]
    words += ["--epochs", "1", "--batch-size", "10", "--average", "0", "--compile"]
    init = tmp_path / "init.safetensors"
    small = tiny_model(num_classes=2, conv_channels=8, hidden=(8, 16), routing_iterations=1)
    save_weights(init, small, TWO)
    env = os.environ | {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [Path(sys.executable).with_name(torchrun), *words, "--init", init],
        env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("weights: ") == 1  # the first process alone prints
    metadata = load_weights(tmp_path / WEIGHTS)[1]
    assert metadata["machine"]["processes"] == 2
    assert metadata["config"]["compile"] is True


def test_a_disk_that_is_full_is_found_before_the_work(
    place: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(**_: object) -> contextlib.AbstractContextManager[object]:
        def write(content: bytes) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        return contextlib.nullcontext(SimpleNamespace(write=write))

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    assert main(["evaluate", "w", "--json", "new/e.json"]) == 2
    assert capsys.readouterr().err == (
        "capsnet evaluate: cannot write new/e.json: No space left on device\n"
    )


def test_a_run_goes_on_but_no_other_does_in_its_folder(
    pictures: Path, tmp_path: Path, capsys: Captured
) -> None:
    out, one, other = tmp_path / "out", tmp_path / "one", tmp_path / "other"
    words = ["train", "--dataset", f"folder:{pictures}", "--epochs", "1", "--batch-size", "8"]
    words += ["--no-compile", "--out", str(out), "--init"]
    for seed, path in enumerate((one, other)):
        save_weights(path, tiny_model(seed, num_classes=2), TWO)
    out.mkdir()
    assert main([*words, str(one)]) == 0
    whole = (out / WEIGHTS).read_bytes()
    (out / WEIGHTS).unlink()
    assert main([*words, str(one)]) == 0  # this very run again
    assert (out / WEIGHTS).read_bytes() == whole
    assert main([*words, str(other)]) == 2
    assert "remove it and its weights\n" in capsys.readouterr().err
    (out / WEIGHTS).unlink()
    (out / CHECKPOINT).unlink()
    assert main([*words, str(other)]) == 0  # metrics alone are of a run that was cut off


def test_a_run_outside_of_its_own_pictures(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "fit", lambda *args, **_: None)
    words = ["train", "--no-compile", "--device", "cpu", "--dataset"]
    # What is not looked at: beside the pictures, hidden, or beside parts.
    for name, out in (("pictures", "run"), ("pictures", "pictures/.run"), ("split", "split/run")):
        assert main([*words, f"folder:{name}", "--out", out]) == 0


def test_weights_that_name_no_classes(place: Path, capsys: Captured) -> None:
    """The classes are numbered, and the style is plain."""
    assert main(["predict", "nameless", "photo.png", "--threshold", "0"]) == 0
    assert re.match(r"photo.png: \d\n  0  0\.", capsys.readouterr().out)


def test_compile_where_there_is_no_compiler(
    place: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("capsnet_lab.cli.commands.can_compile", lambda device: False)
    words = "train --compile --out x --device cpu --dataset folder:pictures"
    assert main(words.split()) == 2
    out, err = capsys.readouterr()
    assert out == "" and "--compile: torch.compile does not work here" in err
