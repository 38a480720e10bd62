"""The command line, as a user runs it."""

import dataclasses
import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import safetensors.torch
import torch
from PIL import Image

from capsnet import CapsNet, data, training
from capsnet.checkpoint import load_weights, save_weights
from capsnet.training import TrainingConfig
from capsnet.training.evaluation import evaluate
from capsnet.training.run import CHECKPOINT, METRICS, WEIGHTS
from capsnet_lab.cli import main
from capsnet_lab.export import export_onnx
from helpers import ROOT
from helpers.tiny import fit, mnist, some_digits, tiny_model

Captured = pytest.CaptureFixture[str]


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
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set of one's own: two classes, 30 pictures each, of several sizes and modes."""
    folder = tmp_path_factory.mktemp("pictures")
    digits = some_digits(600)
    for label in (3, 7):
        (folder / f"is {label}").mkdir()
        chosen = digits.images[digits.labels == label][:30, 0]
        for i, image in enumerate(chosen):
            picture = Image.fromarray(image.numpy()).resize((28 + i, 40))
            if i % 3 == 0:
                picture = picture.convert("RGB")
            picture.save(folder / f"is {label}" / f"{i}.png")
    return folder


@pytest.fixture
def few_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """MNIST is its first 1,200 images: the command is the same, and done in a second."""
    few = {train: some_digits(1200, train) for train in (True, False)}
    monkeypatch.setattr(data, "load", lambda name, train, download: few[train])


@pytest.fixture
def fails(capsys: Captured) -> Callable[..., str]:
    """The command line refuses these words: exit code 2, nothing on stdout, one line on stderr."""

    def check(*words: object) -> str:
        try:
            code = main([str(word) for word in words])
        except SystemExit as stop:
            code = int(stop.code or 0)
        out, err = capsys.readouterr()
        assert code == 2
        assert out == ""
        assert err.endswith("\n") and err.count("\n") == 1, err
        assert err.startswith("capsnet")
        assert "Traceback" not in err
        return err

    return check


@pytest.mark.slow
def test_a_folder_of_ones_own_from_training_to_prediction(
    tmp_path: Path, pictures: Path, capsys: Captured
) -> None:
    out, init = tmp_path / "run", tmp_path / "init.safetensors"
    folder = shutil.copytree(pictures, tmp_path / "copy")
    (folder / "is 3" / "bad.png").write_text("no picture")
    small = tiny_model(image_shape=(1, 17, 18), num_classes=2)
    save_weights(init, small, {"classes": ["is 3", "is 7"]})
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
    assert load_weights(out / WEIGHTS)[1]["classes"] == ["is 3", "is 7"]

    assert main(["evaluate", str(out / WEIGHTS), "--skip-unreadable"]) == 0
    again = capsys.readouterr().out
    assert again.endswith(done.stdout[done.stdout.index("accuracy") :])

    seven = str(pictures / "is 7" / "4.png")
    assert main(["predict", str(out / WEIGHTS), seven]) == 0
    assert capsys.readouterr().out.splitlines()[0] == f"{seven}: is 7"


def test_evaluate_prints_counts_and_confusion(
    weights: Path, tmp_path: Path, capsys: Captured, few_digits: None
) -> None:
    figure, document = tmp_path / "confusion.png", tmp_path / "evaluation.json"
    words = ["evaluate", str(weights), "--precision", "fp32", "--figure", str(figure)]
    drawn = tmp_path / "decoded.svg"
    assert main([*words, "--json", str(document), "--reconstructions", str(drawn)]) == 0
    out = capsys.readouterr().out
    result = evaluate(load_weights(weights)[0], some_digits(1200, train=False))
    assert result.accuracy > 0.8
    assert f"({result.correct}/1200)" in out
    for name, (correct, total) in zip(result.classes, result.per_class, strict=True):
        assert re.search(rf"^{name} +{correct}/{total} +{100 * correct / total:.2f} %$", out, re.M)
    rows = [line.split() for line in out.split("predicted")[1].splitlines()[1:11]]
    for row, expected in zip(rows, result.confusion.tolist(), strict=True):
        assert [int(cell.replace("·", "0")) for cell in row[1:]] == expected
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
    fails, tmp_path: Path, pictures: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy, split, path = tmp_path / "copy", tmp_path / "split", tmp_path / "w.safetensors"
    for folder in (copy, split / "train", split / "val"):
        shutil.copytree(pictures, folder)
    model = tiny_model(num_classes=2)
    save_weights(path, model, {"classes": ["is 3", "is 7"], "dataset": f"folder:{pictures}"})

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
    assert "no 'test' images" in fails("evaluate", path, "--dataset", f"folder:{split}")
    said = fails("train", "--dataset", f"folder:{split}", "--test", "--out", tmp_path / "out")
    assert "no 'test' images; its splits are: train, validation, all" in said


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


def test_what_onnxruntime_does_not_take_is_one_line(
    fails, weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = SimpleNamespace(model_proto=SimpleNamespace(SerializeToString=lambda: b"no network"))
    monkeypatch.setattr(torch.onnx, "export", lambda *args, **_: program)
    said = fails("export", weights, tmp_path / "new" / "network.onnx")
    assert said.startswith("capsnet export: onnxruntime cannot run the network: [ONNXRuntimeError]")
    assert not (tmp_path / "new").exists()


def test_a_network_that_draws_nothing_has_no_error_of_its_drawing(
    pictures: Path, tmp_path: Path, capsys: Captured
) -> None:
    path, document = tmp_path / "w.safetensors", tmp_path / "e.json"
    for reconstruct in (False, True):
        model = tiny_model(num_classes=2, reconstruct=reconstruct)
        save_weights(path, model, {"classes": ["is 3", "is 7"], "dataset": f"folder:{pictures}"})
        assert main(["evaluate", str(path), "--json", str(document)]) == 0
        assert ("squared error" in capsys.readouterr().out) == reconstruct
        assert (json.loads(document.read_text())["reconstruction"] is not None) == reconstruct


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
    words = ["--dataset", f"folder:{folder}", "--skip-unreadable"]
    assert main(["train", *words, "--no-compile", "--out", str(tmp_path / "out")]) == 0
    drawn = [str(tmp_path / name) for name in ("a.png", "b.svg")]
    figures = ["--figure", drawn[0], "--reconstructions", drawn[1]]
    assert main(["evaluate", str(path), *words, *figures]) == 0
    for name in (b"is \xff", b"bad\xfe.png"):
        escaped = name.decode(errors="surrogateescape").encode(errors="backslashreplace")
        assert (escaped in said.getvalue(), name in said.getvalue()) == (strict, not strict)
    assert all(Path(path).stat().st_size for path in drawn)


def test_every_setting_of_the_training_is_an_option(
    pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {
        "epochs": 3, "batch_size": 7, "learning_rate": 0.5, "schedule": "exponential",
        "average": 0.25, "reconstruction_weight": 0.125, "shift": 1, "shuffle": False,
        "fresh_adam": True, "precision": "bf16", "arrangement": "plain", "compile": False,
        "seed": 9,
    }  # fmt: skip
    config = TrainingConfig(**given)
    usual = TrainingConfig.suited(CapsNet(num_classes=2), 43, compile=None)
    assert all(getattr(config, name) != getattr(usual, name) for name in given)
    assert given.keys() == {field.name for field in dataclasses.fields(config)}
    seen = []
    monkeypatch.setattr(training, "fit", lambda *args, **_: seen.append(args[3]))
    words = ["train", "--dataset", f"folder:{pictures}", "--out", str(tmp_path), "--device", "cpu"]
    assert main(words) == 0
    assert seen.pop() == usual
    for name, value in given.items():
        option = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{option}" if value else f"--no-{option}")
        else:
            words += [f"--{option}", str(value)]
    assert main(words) == 0
    assert seen.pop() == config


def test_text_needs_neither_matplotlib_nor_torchvision_nor_fcntl(
    pictures: Path, tmp_path: Path
) -> None:
    weights = tmp_path / WEIGHTS
    document = {"classes": ["is 3", "is 7"], "dataset": f"folder:{pictures}"}
    save_weights(weights, tiny_model(num_classes=2), document)
    code = """
import sys
sys.modules["fcntl"] = None
from capsnet_lab.cli import main
for words in (["--help"], ["train", "--help"], ["evaluate", sys.argv[1]]):
    try: main(words)
    except SystemExit: pass
    print("matplotlib" in sys.modules, "torchvision" in sys.modules)
"""
    command = [sys.executable, "-c", code, weights]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said.count("False False\n") == 3
    for word in ("train", "evaluate", "predict", "export", "--reconstruction-weight"):
        assert word in said
    assert "true \\ predicted" in said


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
    save_weights(init, small, {"classes": ["is 3", "is 7"]})
    env = os.environ | {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [Path(sys.executable).with_name(torchrun), *words, "--init", init],
        env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("weights: ") == 1  # the first process alone speaks
    metadata = load_weights(tmp_path / WEIGHTS)[1]
    assert metadata["machine"]["processes"] == 2
    assert metadata["config"]["compile"] is True


def test_a_reader_that_goes_away_is_no_error(
    weights: Path, pictures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, write = os.pipe()
    os.close(read)
    with open(write, "w") as nobody:  # at the block's end it is flushed, as when a process ends
        monkeypatch.setattr(sys, "stdout", nobody)
        assert main(["predict", str(weights), str(pictures / "is 3" / "1.png")]) == 141


def test_no_command_and_unknown_words(fails, weights: Path) -> None:
    assert "COMMAND" in fails()
    assert "fly" in fails("fly")
    assert "--wings" in fails("train", "--wings")
    assert "--epochs" in fails("train", "--epochs", "many")
    assert "half" in fails("evaluate", weights, "--split", "half")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--epochs", 0], "epochs must be a whole number of at least 1, got 0"),
        (["--shift", 28], "shift must be smaller than the images, 28 × 28, got 28"),
        (["--learning-rate", "nan"], "learning_rate must be positive, got nan"),
        (["--precision", "int8"], "precision must be one of auto, bf16, fp32, got int8"),
        (["--device", "abacus"], "device must be auto, cpu, cuda, mps, got abacus"),
        (["--routing-iterations", 0], "routing_iterations must be a whole number of"),
        (["--dataset", "cifar-1"], "unknown data set 'cifar-1'"),
        (["--dataset", ""], "unknown data set ''; expected one of: mnist, "),
        (["--out", ""], "argument --out: expected a path, got an empty one"),
        (["--dataset", "folder:nowhere"], "no such folder"),
        (["--image-shape", "1x16x28"], "at least 17 × 17 pixels"),
        (["--image-shape", "28"], "--image-shape must be like 1x28x28 or 3x32x32, got 28"),
        (["--image-shape", "4x28x28"], "or 3x32x32, got 4x28x28"),
        (["--image-shape", "1x32x32"], "(1, 28, 28)"),
        (["--init", "nowhere.safetensors"], "no such file: nowhere.safetensors"),
        (["--init", "x", "--learn-prior"], "--init fixes the network"),
        (["--as", "geron", "--routing-iterations", 3], "fixes routing_iterations at 2, got 3"),
        (["--as", "labml", "--stack", 8], "give neither --routing nor --stack"),
        (["--as", "sarasra-cifar10", "--no-download"], "cifar-10 not found"),
        (["--image-shape", "1x0x0"], "image_shape"),
        (["--image-shape", "1x9999999999x28"], "capsnet train"),
    ],
)  # fmt: skip
def test_train_refuses(
    fails, tmp_path: Path, words: list[object], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert said in fails("train", "--no-compile", *words, "--out", tmp_path / "run")
    assert not (tmp_path / "run" / "weights.safetensors").exists()


def test_output_that_cannot_be_written(fails, weights: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    below = file / "below"
    assert f"cannot write {below / WEIGHTS}" in fails("train", "--out", below)
    assert "/proc" in fails("train", "--out", "/proc/nobody/run")
    assert f"cannot write {tmp_path}" in fails("export", weights, tmp_path)
    assert str(below) in fails("evaluate", weights, "--figure", below / "f.png")
    assert ".png, .svg, .pdf, got f.docx" in fails("evaluate", weights, "--figure", "f.docx")
    os.mkfifo(tmp_path / "fifo.json")
    assert "no ordinary file" in fails("evaluate", weights, "--json", tmp_path / "fifo.json")
    assert "no ordinary file" in fails("evaluate", tmp_path / "fifo.json")
    assert "--precision" in fails("predict", weights, "x.png", "--precision", "int8")
    assert "auto, bf16, fp32, got int8" in fails("evaluate", weights, "--precision", "int8")
    assert "unknown data set ''" in fails("evaluate", weights, "--dataset", "")
    new = tmp_path / "new" / "newer"
    assert "no such" in fails("predict", tmp_path / "none", file, "--json", new / "a.json")
    assert "unknown data set" in fails("train", "--dataset", "no", "--out", new)
    assert not new.parent.exists()


def test_other_weights_to_start_from_are_another_run(
    pictures: Path, tmp_path: Path, capsys: Captured
) -> None:
    words = ["train", "--dataset", f"folder:{pictures}", "--epochs", "1", "--batch-size", "8"]
    words += ["--no-compile", "--out", str(tmp_path / "out")]
    one, other = tmp_path / "one.safetensors", tmp_path / "other.safetensors"
    for seed, path in enumerate((one, other)):
        torch.manual_seed(seed)
        model = CapsNet(num_classes=2, conv_channels=8, capsule_types=2, hidden=(16, 16))
        save_weights(path, model, {"classes": ["is 3", "is 7"]})
    assert main([*words, "--init", str(one)]) == 0
    assert main([*words, "--init", str(one)]) == 0  # this very run again
    assert main([*words, "--init", str(other)]) == 2
    assert "its task has start = " in capsys.readouterr().err


def test_results_without_a_checkpoint_are_not_overwritten(
    fails, pictures: Path, tmp_path: Path, capsys: Captured
) -> None:
    out, init = tmp_path / "out", tmp_path / "init.safetensors"
    save_weights(init, tiny_model(num_classes=2), {"classes": ["is 3", "is 7"]})
    words = ["train", "--dataset", f"folder:{pictures}", "--epochs", "1", "--batch-size", "8"]
    words += ["--no-compile", "--out", str(out)]
    out.mkdir()
    assert main([*words, "--init", str(init)]) == 0
    assert main([*words, "--init", str(init)]) == 0  # this very run again
    capsys.readouterr()
    (out / CHECKPOINT).unlink()
    before = {file.name: file.read_bytes() for file in out.iterdir() if file.is_file()}
    told = f"{out} holds {WEIGHTS}, which would be overwritten, but no {CHECKPOINT} to go on from: "
    told += "choose another --out, or move them away"
    assert told in fails(*words)
    said = fails(*words, "--init", out / WEIGHTS)
    assert f"{out / WEIGHTS} would be overwritten: it is an input" in said
    assert before == {file.name: file.read_bytes() for file in out.iterdir() if file.is_file()}
    (out / WEIGHTS).unlink()
    assert main(words) == 0  # metrics alone are of a run that was cut off


def test_a_run_inside_its_own_pictures(
    fails, pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, split = shutil.copytree(pictures, tmp_path / "copy"), tmp_path / "split"
    for part in ("train", "test"):
        shutil.copytree(pictures, split / part)
    monkeypatch.setattr(training, "fit", lambda *args, **_: None)
    monkeypatch.chdir(folder)
    words = ["train", "--no-compile", "--dataset"]
    assert f"{folder / 'runs' / 'copy'} is inside the data folder {folder}, of" in fails(
        *words, "folder:."
    )
    said = fails(*words, "folder:.", "--out", folder / "is 3" / "run")
    assert f"{folder / 'is 3' / 'run'} is inside the data folder {folder}, of" in said
    assert "inside" in fails(*words, "folder:.", "--out", ".")
    said = fails(*words, f"folder:{split}", "--out", split / "train" / "run")
    assert f"inside the data folder {split / 'train'}, of" in said
    assert sorted(path.name for path in folder.iterdir()) == ["is 3", "is 7"]
    # What is not looked at: beside the pictures, hidden, or beside parts.
    for name, out in ((folder, "../copy-run"), (folder, ".run"), (split, split / "run")):
        assert main([*words, f"folder:{name}", "--out", str(out)]) == 0


def test_metadata_that_says_too_little_or_nonsense(
    fails, weights: Path, tmp_path: Path, capsys: Captured
) -> None:
    model = load_weights(weights)[0]
    path, digit = tmp_path / "w.safetensors", tmp_path / "d.png"
    Image.fromarray(mnist(train=False).images[0, 0].numpy()).save(digit)
    save_weights(path, model)  # no names: the classes are numbered, the style is plain
    assert main(["predict", str(path), str(digit)]) == 0
    assert f"{digit}: " in capsys.readouterr().out
    assert "give --dataset" in fails("evaluate", path)
    for names in (5, ["a"], [1] * 10):
        save_weights(path, model, {"classes": names, "dataset": 7})
        assert f"should name 10 classes, it names {names}" in fails("predict", path, digit)
        assert "give --dataset" in fails("evaluate", path)
    tensors = dict(model.state_dict())
    for text in ("null", "[1]", "{broken"):
        safetensors.torch.save_file(tensors, path, {"capsnet": text})
        assert "is damaged: its description is no JSON" in fails("evaluate", path)
    for hidden in ([10**13, 10], [-1, 5]):
        document = json.dumps({"model": {**model.config, "hidden": hidden}})
        safetensors.torch.save_file(tensors, path, {"capsnet": document})
        assert str(path) in fails("predict", path, digit)


def test_an_input_is_never_written_to(fails, weights: Path, tmp_path: Path, pictures: Path) -> None:
    photo = tmp_path / "photo.png"
    Image.fromarray(mnist(train=False).images[0, 0].numpy()).save(photo)
    before = weights.read_bytes(), photo.read_bytes()
    assert "would be overwritten" in fails("export", weights, weights)
    assert "would be overwritten" in fails("evaluate", weights, "--json", weights)
    assert "would be overwritten" in fails("predict", weights, photo, "--save", photo)
    other, picture = tmp_path / "w.safetensors", pictures / "is 7" / "5.png"
    save_weights(other, tiny_model(num_classes=2), {"classes": ["is 3", "is 7"]})
    whole = picture.read_bytes()
    for option in ("--json", "--figure", "--reconstructions"):
        said = fails("evaluate", other, "--dataset", f"folder:{pictures}", option, picture)
        assert f"{picture} would be overwritten: it is an input" in said
    assert picture.read_bytes() == whole
    twice = tmp_path / "f.png"
    assert "different files" in fails(
        "evaluate", weights, "--figure", twice, "--reconstructions", twice
    )
    assert (weights.read_bytes(), photo.read_bytes()) == before


def test_compile_where_there_is_no_compiler(pictures: Path, tmp_path: Path) -> None:
    without = os.environ | {"PATH": "", "CXX": "no-such-compiler"}
    without |= {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    words = ["train", "--compile", "--out", tmp_path / "run", "--dataset", f"folder:{pictures}"]
    command = [sys.executable, "-m", "capsnet", *words]
    done = subprocess.run(command, env=without, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--compile: torch.compile does not work here" in done.stderr.splitlines()[-1]


def test_weights_that_are_none(fails, weights: Path, tmp_path: Path, pictures: Path) -> None:
    bad = tmp_path / "bad.safetensors"
    bad.write_bytes(weights.read_bytes()[:5000])
    onnx, picture = tmp_path / "x.onnx", next(pictures.rglob("*.png"))
    for command, *rest in (("evaluate",), ("predict", picture), ("export", onnx)):
        assert "no such file" in fails(command, tmp_path / "nowhere", *rest)
        assert "folder" in fails(command, tmp_path, *rest)
        assert "not a whole safetensors file" in fails(command, bad, *rest)
    assert not onnx.exists()
    # Weights of another canvas, such as the pairs': the message says which takes what.
    save_weights(bad, tiny_model(image_shape=(3, 28, 28)))
    said = fails("evaluate", bad, "--dataset", "mnist")
    assert "the images of mnist are (1, 28, 28)" in said and "not (3, 28, 28)" in said
    assert "batch_size" in fails("evaluate", weights, "--batch-size", 0)
    said = fails("evaluate", weights, "--dataset", f"folder:{pictures}")
    assert "is 3, is 7" in said and "0, 1, 2, 3" in said


@pytest.mark.parametrize(
    "words",
    [
        ("predict", "w", ""), ("predict", "", "p"), ("export", "w", ""), ("train", "--init", ""),
        *[("evaluate", "w", option, "") for option in ("--figure", "--reconstructions", "--json")],
        *[("predict", "w", "p", at, "") for at in ("--json", "--csv", "--sheet", "--save")],
    ],
)  # fmt: skip
def test_an_empty_path_is_no_path(fails, words: tuple[str, ...]) -> None:
    assert "expected a path, got an empty one" in fails(*words)


def test_unreadable_pictures_name_the_option(
    tmp_path: Path, pictures: Path, capsys: Captured
) -> None:
    folder = shutil.copytree(pictures, tmp_path / "copy")
    (folder / "is 3" / "bad.png").write_text("no picture")
    words = ["train", "--dataset", f"folder:{folder}", "--out", f"{tmp_path / 'run'}"]
    assert main([*words, "--no-compile"]) == 2
    assert capsys.readouterr().err.endswith("; --skip-unreadable leaves them out\n")


def test_pictures_that_are_none(fails, weights: Path, tmp_path: Path) -> None:
    whole, huge = tmp_path / "whole.png", tmp_path / "huge.pbm"
    Image.fromarray(mnist(train=False).images[0, 0].numpy()).save(whole)
    assert "nowhere.png" in fails("predict", weights, whole, tmp_path / "nowhere.png")
    assert "--top must be at least 1, got 0" in fails("predict", weights, whole, "--top", 0)
    for wrong in (-0.1, 1.5, "nan"):
        said = fails("predict", weights, whole, "--threshold", wrong)
        assert f"--threshold must be in 0 … 1, got {wrong}" in said
    same = tmp_path / "x.csv"
    assert "different files" in fails("predict", weights, whole, "--csv", same, "--json", same)
    assert "would be overwritten" in fails("predict", weights, tmp_path, "--sheet", whole)
    assert ".png, .svg, .pdf, got x.csv" in fails("predict", weights, whole, "--sheet", same)
    huge.write_bytes(b"P4 40000 40000\n")
    assert "huge.pbm is too large" in fails("predict", weights, huge)
    assert "--save takes one picture, got 2" in fails(
        "predict", weights, whole, whole, "--save", tmp_path / "f.png"
    )
