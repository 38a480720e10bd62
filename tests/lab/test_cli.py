"""The command line, as a user runs it."""

import contextlib
import dataclasses
import inspect
import io
import json
import logging
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from PIL import Image

from capsnet import data, training
from capsnet.checkpoint import load_weights, save_weights
from capsnet.device import PRECISIONS
from capsnet.fast import ARRANGEMENTS
from capsnet.pretrained import PRETRAINED
from capsnet.training import TrainingConfig
from capsnet.training.config import MAX_SEED, SCHEDULES
from capsnet.training.evaluation import evaluate
from capsnet.training.run import CHECKPOINT, METRICS, WEIGHTS
from capsnet_lab import predict, routings, wild
from capsnet_lab.cli import INTERRUPTED, arguments, main, options
from capsnet_lab.cli.outputs import confusion_text, per_class_table
from capsnet_lab.export import export_onnx
from capsnet_lab.pictures import PREPARATIONS
from helpers import ROOT
from helpers.tiny import MODEL_DEPENDENT, mnist, some_digits, tiny_model

Captured = pytest.CaptureFixture[str]
TWO = {"classes": ["is 3", "is 7"]}


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set of one's own: two classes, 30 pictures each, of several sizes and modes."""
    folder, digits = tmp_path_factory.mktemp("pictures"), some_digits(600)
    for label in (3, 7):
        (folder / f"is {label}").mkdir()
        for i, image in enumerate(digits.images[digits.labels == label][:30, 0]):
            picture = Image.fromarray(image.numpy()).resize((28 + i, 40))
            picture = picture.convert("L" if i % 3 else "RGB")
            picture.save(folder / f"is {label}" / f"{i}.png")
    return folder


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory, pictures: Path) -> Path:
    """A folder in which commands are refused."""
    place, model = tmp_path_factory.mktemp("place"), tiny_model()
    for name, network, metadata in (
        ("w", model, {"dataset": "mnist", "preparation": "figure"}),  # of pictures, not of MNIST
        ("two", tiny_model(num_classes=2), TWO),  # names no data set
        (
            "learned",
            tiny_model(num_classes=2, reconstruct=False),
            {**TWO, "dataset": f"folder:{pictures}"},
        ),
        ("nameless.safetensors", model, {"dataset": 7}),
        ("misnamed", model, {"classes": ["a"], "dataset": "mnist"}),
        (f"done/{WEIGHTS}", model, {"dataset": "mnist"}),  # the folder of a run that has ended
        (f"begun/{CHECKPOINT}", model, {}),  # and of one that has not; the name counts
    ):
        save_weights(place / name, network, metadata)
    Image.fromarray(mnist(train=False).images[0, 0].numpy()).save(place / "photo.png")
    (place / "mnist").mkdir()
    shutil.copy(place / "photo.png", place / "mnist")
    for kind in "ab":
        (place / "few" / kind).mkdir(parents=True)
        shutil.copy(place / "photo.png", place / "few" / kind / "0.png")  # by name for training
    for name in ("pictures", "split/train", "split/val"):
        shutil.copytree(pictures, place / name)
    return place


@pytest.fixture
def place(prepared: Path) -> Iterator[Path]:
    """A command that is refused leaves this folder as it was."""

    def content() -> dict[Path, bytes]:
        return {path: path.read_bytes() if path.is_file() else b"" for path in prepared.rglob("*")}

    before = content()
    with contextlib.chdir(prepared):
        yield prepared
    assert content() == before


# What is refused before PyTorch is imported: words, and a part of the message.
EARLY = [
    ("", "the following arguments are required: train|evaluate|predict|export|check"),
    # No such command, number, shape, data set or file
    ("fly", "check: invalid choice: 'fly'"),
    ("train --epochs many", "argument --epochs: expected a whole number of at least 1, got many"),
    ("train --learning-rate nan", "--learning-rate: expected a positive number, got nan"),
    ("train --reconstruction-weight -1", "expected a number of at least 0, got -1"),
    (f"train --seed {2**40}", f"expected a whole number of 0 … 2⁴⁰ - 1, got {2**40}"),
    (
        "train --dataset few",
        "unknown data set 'few'; expected one of: mnist, fashion-mnist, cifar-10, folder:few",
    ),
    ("train --image-shape 28", "expected a shape like 1x28x28 or 3x32x32, got 28"),
    ("train --init nowhere", "no such file: nowhere"),
    ("predict mnist-small photo.png nowhere.png --json new/a.json", "no such file: nowhere.png"),
    ("predict mine.pth photo.png", "no such file: mine.pth"),
    ("predict photo.png mine.pth", "no such file: mine.pth"),  # no picture, wherever it stands
    ("predict mnist-small photo.png --threshold 1.5", "expected a number in 0 … 1, got 1.5"),
    ("predict '' photo.png", "expected a path, got an empty one"),
    ("predict mnist-small", "expected a picture too, as in: capsnet predict mnist-small photo.png"),
    # Options that contradict each other, or the weights
    ("train --init w --learn-prior", "--init fixes the network"),
    ("train --init two", "give --dataset, because two names no data set"),
    ("train --init learned", "give --dataset, because learned was trained on folder:"),
    ("train --as labml --stack 8", "give neither --routing nor --stack"),
    # The folder of a run in place of its weights
    (f"evaluate begun/{WEIGHTS}", "holds none: repeat the command that began the training"),
    ("predict photo.png done", f"done holds none: give done/{WEIGHTS}"),
    ("evaluate done", f"done holds none: give done/{WEIGHTS}"),
    ("export done network.onnx", f"done holds none: give done/{WEIGHTS}"),
    ("train --init done", f"done holds none: give done/{WEIGHTS}"),
    # Files that are not to be written, or cannot be
    ("train --out done", f"done holds {WEIGHTS}, which would be overwritten, but no {CHECKPOINT}"),
    ("predict mnist-small photo.png --sheet x.csv", "must end in .png, .svg, .pdf, got x.csv"),
    ("train --out w", f"cannot write w/{WEIGHTS}: Not a directory"),
    ("evaluate w --json few", "cannot write few: it is a folder"),
    ("export w few", "cannot write few: it is a folder"),
    ("predict photo.png --sheet w/a.png", "cannot write w/a.png: Not a directory"),
    ("predict photo.png --json a.png --sheet ./a.png", "must be different files"),
]
LIGHT = """
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


def test_what_is_refused_or_answered_without_pytorch(place: Path) -> None:
    """In one process, which PyTorch and everything else that takes long is never imported into."""
    commands = [words for words, _ in EARLY] + ["--help", "--version", "train --help"]
    command = [sys.executable, "-c", LIGHT, json.dumps(commands)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    heavy, answers = json.loads(done.stdout)
    assert heavy == []
    *refused, (_, helped, _), (_, version, _), (_, train, _) = answers
    assert all(word in helped for word in ("train", "evaluate", "predict", "export", "check"))
    assert re.fullmatch(r"capsnet \d+\.\d+\.\d+\n", version)
    assert "--reconstruction-weight" in train
    for (words, message), (code, out, err) in zip(EARLY, refused, strict=True):
        assert (code, out) == (2, ""), words
        assert err.startswith("capsnet") and err.endswith("\n") and err.count("\n") == 1, err
        assert message in err, words


def test_the_lists_of_the_options_are_the_modules() -> None:
    assert options.DATASETS == data.NAMES
    assert options.PRECISIONS == PRECISIONS
    assert options.PREPARATIONS == PREPARATIONS
    assert options.ARRANGEMENTS == ARRANGEMENTS
    assert options.SCHEDULES == SCHEDULES
    assert tuple(routings.ROUTINGS) == options.ROUTINGS
    assert tuple(wild.IMPLEMENTATIONS) == options.IMPLEMENTATIONS
    assert predict.THRESHOLD == options.THRESHOLD
    assert tuple(PRETRAINED) == options.PRETRAINED
    assert (arguments.CHECKPOINT, arguments.WEIGHTS) == (CHECKPOINT, WEIGHTS)
    assert options.SEED(str(MAX_SEED - 1)) == MAX_SEED - 1
    batch_size = inspect.signature(evaluate).parameters["batch_size"].default
    assert options.parse_arguments(["evaluate", "mnist"]).batch_size == batch_size
    parser = options.make_parser()._subparsers._group_actions[0].choices["train"]
    helps = {action.dest: action.help for action in parser._actions}
    for field in dataclasses.fields(TrainingConfig):
        default = f"({field.default}" + (" for MNIST" if field.name in MODEL_DEPENDENT else ")")
        assert field.name == "compile" or default in helps[field.name], field.name


# What is refused later: words, and a part of the message.
LATE = [
    ("train --as geron --routing-iterations 3", "--as geron fixes routing_iterations at 2, got 3"),
    ("train --init two --dataset mnist", "classes are is 3, is 7; those of mnist are 0, 1"),
    ("train --dataset mnist --preparation picture", "mnist are prepared already, as digit"),
    ("evaluate w --preparation picture", "the images of mnist are prepared already, as digit"),
    ("train --dataset folder:few", "too few pictures for a validation set: train on all of them"),
    ("train --dataset folder:split --test", "no 'test' images; its splits are: train, validation,"),
    ("train --dataset folder:split --out split/train/run", "split, of which it would become a"),
    ("evaluate nameless.safetensors", "does not say on what it was trained: give --dataset"),
    ("evaluate misnamed", "misnamed should name 10 classes, it names ['a']"),
    ("evaluate two --dataset folder:pictures --json 'pictures/is 3/0.png'", "it is an input"),
    ("predict mnist --sheet mnist/photo.png", "mnist/photo.png would be overwritten: it is an inp"),
    ("export w w", "w would be overwritten: it is an input"),
]


@pytest.mark.parametrize(("words", "message"), LATE)
def test_what_is_refused(place: Path, words: str, message: str, capsys: Captured) -> None:
    if words.startswith("train"):
        words += " --device cpu" + " --out x" * ("--out" not in words)
    assert main(shlex.split(words)) == 2
    _, err = capsys.readouterr()
    assert err.startswith(f"capsnet {words.split()[0]}: ") and message in err
    assert err.endswith("\n") and err.count("\n") == 1


def test_which_operands_are_weights_and_which_pictures(place: Path) -> None:
    """A name of a network is a folder if nothing else is given."""
    photo, folder = Path("photo.png"), Path("mnist")
    for words, expected in {
        "photo.png": ("mnist-small", [photo]),
        "mnist-small photo.png": ("mnist-small", [photo]),
        "mnist": ("mnist-small", [folder]),
        "mnist mnist": ("mnist", [folder]),
        "nameless.safetensors photo.png": (Path("nameless.safetensors"), [photo]),
    }.items():
        operands = options.parse_arguments(["predict", *words.split()]).operands
        assert arguments.split_operands(operands) == expected


def test_an_interrupted_training_says_what_continues_it(
    place: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*given: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "fit", interrupt)
    words = "train --dataset folder:pictures --no-compile --device cpu --out x"
    assert main(words.split()) == INTERRUPTED
    out, err = capsys.readouterr()
    assert (
        err
        == "capsnet train: interrupted; the same command continues after the last finished epoch\n"
    )
    assert " epochs, as 43 images are few (--epochs sets another number), " in out


def test_a_folder_of_ones_own_from_training_to_prediction(
    tmp_path: Path, pictures: Path, capsys: Captured
) -> None:
    out, init = tmp_path / "run", tmp_path / "init.safetensors"
    save_weights(init, tiny_model(image_shape=(1, 17, 18), num_classes=2), TWO)
    line = f"train --dataset folder:{pictures} --out {out} --epochs 40 --test --batch-size 10"
    line += f" --no-compile --average 0 --init {init} --learning-rate 5e-3 --preparation digit"
    assert main(line.split()) == 0
    said, shown = capsys.readouterr()
    assert said.startswith(f"folder:{pictures}: 2 classes, split by file names\n")
    assert re.search(r"accuracy [\d.]+% \([789]/9\)", said)
    assert "images/s" in shown and "epoch 40/40" in shown
    assert re.search(r"epoch 39/40 .*about 0:00:\d\d left\n", shown)
    assert len((out / METRICS).read_text().splitlines()) == 40
    learned = load_weights(out / WEIGHTS)[1]
    assert learned["classes"] == TWO["classes"] and learned["preparation"] == "digit"
    config = learned["config"]
    assert (config["batch_size"], config["average"], config["compile"]) == (10, 0, False)

    assert main(["evaluate", str(out / WEIGHTS)]) == 0
    assert capsys.readouterr().out.endswith(said[said.index("accuracy") :])
    seven = str(pictures / "is 7" / "4.png")
    assert main(["predict", str(out / WEIGHTS), seven]) == 0
    assert capsys.readouterr().out.splitlines()[0] == f"{seven}: is 7"


def test_evaluate_prints_counts_and_confusion(
    prepared: Path, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = {train: some_digits(120, train) for train in (True, False)}
    monkeypatch.setattr(data, "load", lambda name, train: few[train])
    weights, document = prepared / "w", tmp_path / "evaluation.json"
    assert main(["evaluate", str(weights), "--json", str(document)]) == 0
    out = capsys.readouterr().out
    result = evaluate(load_weights(weights)[0], few[False])
    assert f"({result.correct}/120)" in out and "squared error per image" in out
    assert f"\n{per_class_table(result.per_class, result.classes)}\n" in out
    assert f"\n{confusion_text(result.confusion, result.classes)}\n" in out
    written = json.loads(document.read_text())
    assert (written["dataset"], written["split"]) == ("mnist", "test")
    assert (written["correct"], written["total"]) == (result.correct, 120)
    assert written["confusion"] == result.confusion.tolist()
    assert written["errors"] == result.errors.tolist()
    seen = []
    monkeypatch.setattr(training, "evaluate", lambda *given: seen.append(given) or result)
    words = ["--split", "validation", "--batch-size", "7"]
    assert main(["evaluate", str(weights), *words]) == 0
    ((_, images, batch_size),) = seen
    assert (len(images), batch_size) == (20, 7)


@pytest.mark.parametrize(
    ("words", "count"),
    [
        ("learned", 9),  # of the folder that it learned from
        ("learned --split validation", 8),  # of 51
        ("learned --dataset folder:pictures", 9),  # it may be the same folder, moved
        ("two --dataset folder:pictures", 60),  # it learned from no folder
        ("learned --dataset folder:split --split all", 120),
    ],
)
def test_evaluate_counts_the_pictures_that_are_meant(
    place: Path, words: str, count: int, capsys: Captured
) -> None:
    assert main(["evaluate", *words.split()]) == 0
    out = capsys.readouterr().out
    assert re.findall(r"^accuracy .*/(\d+)\)$", out, re.M) == [str(count)]
    assert ("squared error" in out) == words.startswith("two")  # of a network with a decoder


def test_train_learns_from_what_is_meant(
    prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    monkeypatch.setattr(training, "fit", lambda model, *sets, **_: seen.append((model, *sets[:2])))
    for folder, out, more, learned, held in (
        ("pictures", tmp_path, [], 43, 8),
        ("pictures", tmp_path, ["--all"], 51, None),
        ("split", tmp_path, [], 60, 60),
        ("split", tmp_path, ["--all"], 120, None),
    ):
        words = f"train --device cpu --no-compile --out {out} --dataset folder:{prepared / folder}"
        assert main([*words.split(), *more]) == 0
        model, images, validation = seen.pop()
        assert (len(images), validation and len(validation)) == (learned, held)
        assert model.config["image_shape"] == [1, 28, 28] and model.config["num_classes"] == 2


def test_the_folder_of_a_run_has_the_data_sets_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though there is a link of this name here; and ~ is the home folder in every path."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "mnist").symlink_to(tmp_path)
    for words, out in {
        "train": Path("runs/mnist"),
        "train --as labml": Path("runs/mnist-labml"),
        "train --dataset folder:~/shapes": Path("runs/shapes"),
        "train --out=~/run": tmp_path / "home" / "run",
    }.items():
        args = options.parse_arguments(words.split())
        arguments.check_arguments(args)
        assert args.out == out


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # the exporter's own
@pytest.mark.parametrize("name", ["paper", "sarasra"])
def test_onnxruntime_gives_the_same_answers(name: str, tmp_path: Path) -> None:
    import onnxruntime

    path = tmp_path / "network.onnx"
    small = {"num_classes": 3, "conv_channels": 8, "capsule_types": 2, "hidden": (8, 8)}
    model = wild.IMPLEMENTATIONS[name].make(**small).train()
    model.conv.eval()  # a layer of its own mode
    assert export_onnx(model, path) < 1e-5
    assert model.primary.training and not model.conv.training
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    assert names == ["lengths", "capsules", "reconstruction"]
    found = session.run(None, {"images": torch.rand(7, 1, 28, 28).numpy()})  # another batch size
    assert [each.shape for each in found] == [(7, 3), (7, 3, 16), (7, 1, 28, 28)]


def test_what_onnxruntime_does_not_take_is_not_written(
    prepared: Path, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = SimpleNamespace(model_proto=SimpleNamespace(SerializeToString=lambda: b"no network"))
    monkeypatch.setattr(torch.onnx, "export", lambda *args, **_: program)
    assert main(["export", str(prepared / "w"), str(tmp_path / "new" / "network.onnx")]) == 2
    said = capsys.readouterr().err
    assert said.startswith("capsnet export: onnxruntime cannot run the network: [ONNXRuntimeError]")
    assert said.count("\n") == 1 and not (tmp_path / "new").exists()


def test_main_in_a_kernel_leaves_the_process_as_it_is(
    place: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a network that names no classes has numbers for them."""
    calls: list[str] = []
    keep = "capsnet_lab.cli.allocator.keep_freed_memory"
    monkeypatch.setattr(keep, lambda: calls.append("allocator"))
    words = ["predict", "nameless.safetensors", "photo.png", "--threshold", "0"]
    level = logging.getLogger("PIL").level
    assert main(words) == 0
    assert re.match(r"photo.png: \d\n  0  0\.", capsys.readouterr().out)
    stdout = io.TextIOWrapper(io.BytesIO(), "utf-8", "strict")
    monkeypatch.setattr(sys, "stdout", stdout)

    def changed() -> list[object]:
        return [*calls, stdout.errors, logging.getLogger("PIL").level]

    try:
        assert main(words) == 0
        assert changed() == ["strict", level]
        monkeypatch.setattr(sys, "argv", ["capsnet", *words])
        assert main() == 0
        assert changed() == ["allocator", "backslashreplace", logging.CRITICAL]
    finally:
        logging.getLogger("PIL").setLevel(level)


@pytest.mark.slow
def test_the_torchrun_command_of_the_recipes(pictures: Path, tmp_path: Path) -> None:
    """On the CPU of any machine, in two processes, which import nothing that only figures need."""
    command = "torchrun --nproc-per-node 2 -m capsnet train"
    assert command in " ".join((ROOT / "book" / "howto.md").read_text().split())
    init = tmp_path / "init.safetensors"
    save_weights(init, tiny_model(num_classes=2), TWO)
    torchrun, *words = command.split()
    words += ["--dataset", f"folder:{pictures}", "--out", tmp_path, "--device", "cpu"]
    words += ["--epochs", "1", "--batch-size", "10", "--no-compile", "--init", init]
    done = subprocess.run(
        [Path(sys.executable).with_name(torchrun), *words],
        env=os.environ | {"GLOO_SOCKET_IFNAME": "lo", "PYTHONPROFILEIMPORTTIME": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("weights: ") == 1  # the first process alone prints
    imported = {line.split("|")[-1].strip() for line in done.stderr.splitlines()}
    assert "torch" in imported and not imported & {"matplotlib", "torchvision"}
    assert load_weights(tmp_path / WEIGHTS)[1]["machine"]["processes"] == 2


def test_a_run_goes_on_but_no_other_does_in_its_folder(
    pictures: Path, tmp_path: Path, capsys: Captured
) -> None:
    out, one, other = tmp_path / "out", tmp_path / "one", tmp_path / "other"
    words = f"train --dataset folder:{pictures} --epochs 1 --batch-size 8 --no-compile"
    for seed, path in enumerate((one, other)):
        save_weights(path, tiny_model(seed, num_classes=2), TWO)

    def train(init: Path, *more: str) -> int:
        return main([*words.split(), "--out", str(out), "--init", str(init), *more])

    assert train(one) == 0
    assert train(one) == 0  # this very run again
    assert train(other) == 2
    assert (
        f"to begin a new one, choose another folder, or remove {out}\n" in capsys.readouterr().err
    )
    with pytest.raises(ValueError, match="belongs to another run"):
        train(other, "--debug")  # for a traceback
