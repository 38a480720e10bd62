"""The options of the command line, and what each may be.

PyTorch takes seconds to import, and nothing here imports it: help, and the refusal of a wrong
option, come at once. So a few lists stand here that the module has too; a test compares them.
"""

import argparse
import math
import os
import re
import textwrap
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

DATASETS = ("mnist", "fashion-mnist", "cifar-10")
PREPARATIONS = ("digit", "figure", "picture")
DEVICES = ("auto", "cpu", "cuda", "mps")
PRECISIONS = ("auto", "bf16", "fp32")
ARRANGEMENTS = ("auto", "plain", "fast")
SCHEDULES = ("one-cycle", "exponential")
ROUTINGS = ("dynamic", "em", "self-attention", "attention", "uniform", "shared")
# Other people's networks.
IMPLEMENTATIONS = (
    "paper", "labml", "labml-notebook", "adambielski", "cezannec", "xifengguo", "jindongwang",
    "gram-ai", "sarasra", "naturomics", "timomernick", "geron",
)  # fmt: skip
PRETRAINED = ("mnist", "mnist-small")  # of capsnet.pretrained; `predict` uses the last by default
THRESHOLD = 0.49  # of capsnet_lab.predict
# Endings of files with weights; other formats too, so that none is taken for a picture.
WEIGHTS_SUFFIXES = (".safetensors", ".pt", ".pth", ".bin", ".ckpt", ".h5", ".onnx", ".weights")
FIGURE_SUFFIXES = (".png", ".svg", ".pdf")
SHEET = 100  # pictures on a contact sheet
LONGEST = 1000  # characters of a message


def one_line(message: str, longest: int = LONGEST) -> str:
    """The message on one line, cut off where it is long."""
    return textwrap.shorten(message, longest, placeholder=" …")


def number_type(
    convert: Callable[[str], Any], expected: str, fits: Callable[[Any], bool]
) -> Callable[[str], Any]:
    """Make the argparse type of an option: a number that fits, or an error that says what does."""

    def parse(text: str) -> Any:
        try:
            value = convert(text)
        except ValueError:
            value = None
        if value is None or not fits(value):
            raise argparse.ArgumentTypeError(f"expected {expected}, got {text}")
        return value

    return parse


COUNT = number_type(int, "a whole number of at least 1", lambda n: n >= 1)
RATE = number_type(float, "a positive number", lambda rate: 0 < rate < math.inf)
DECAY = number_type(float, "a number of at least 0 and below 1", lambda decay: 0 <= decay < 1)
WEIGHT = number_type(float, "a number of at least 0", lambda weight: 0 <= weight < math.inf)
LENGTH = number_type(float, "a number in 0 … 1", lambda length: 0 <= length <= 1)
PIXELS = number_type(int, "a whole number of at least 0", lambda pixels: pixels >= 0)
SEED = number_type(int, "a whole number of 0 … 2⁴⁰ - 1", lambda seed: 0 <= seed < 2**40)


def parse_path(text: str) -> Path:
    """A path, with ~ expanded; an empty one, which an unset variable gives, is refused."""
    if not text:
        raise argparse.ArgumentTypeError("expected a path, got an empty one")
    return Path(os.path.expanduser(text))  # ~stranger stays as it is


def parse_weights(text: str) -> Path | str:
    return text if text in PRETRAINED else parse_path(text)


def parse_figure(text: str) -> Path:
    path = parse_path(text)
    if path.suffix.lower() not in FIGURE_SUFFIXES:
        suffixes = ", ".join(FIGURE_SUFFIXES)
        raise argparse.ArgumentTypeError(f"a figure's file must end in {suffixes}, got {path.name}")
    return path


def parse_dataset(text: str) -> str:
    if text not in DATASETS and not re.match("folder:.", text):
        names = ", ".join([*DATASETS, f"folder:{text if os.path.isdir(text) else 'PATH'}"])
        raise argparse.ArgumentTypeError(f"unknown data set {text!r}; expected one of: {names}")
    return text


def parse_shape(text: str) -> tuple[int, int, int]:
    if not re.fullmatch(r"[13](x0*[1-9][0-9]*){2}", text):
        raise argparse.ArgumentTypeError(f"expected a shape like 1x28x28 or 3x32x32, got {text}")
    channels, height, width = map(int, text.split("x"))
    return channels, height, width


class Parser(argparse.ArgumentParser):
    """argparse, but an error is one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {one_line(message)}\n")


OF_NETWORK = f"a weights file that train wrote, or a network's name: {' or '.join(PRETRAINED)}"
SETS = f"{', '.join(DATASETS)}, or folder:PATH with a folder of pictures a class"


def parse_arguments(words: Sequence[str] | None) -> argparse.Namespace:
    """The arguments of a command; options may stand between the operands of `predict`."""
    parser = make_parser()
    args, others = parser.parse_known_args(words)
    if args.command == "predict" and all(word and word[0] != "-" for word in others):
        args.operands += map(parse_weights, others)
    elif others:
        parser.error(f"unrecognized arguments: {' '.join(others)}")
    return args


def make_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="capsnet",
        description="Capsule networks with dynamic routing (Sabour, Frosst and Hinton, 2017).",
    )
    parser.add_argument("--version", action="version", version=f"capsnet {version('capsnet')}")
    commands = parser.add_subparsers(
        dest="command", required=True, metavar="train|evaluate|predict|export|check"
    )

    def add(name: str, text: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, description=text)
        option = command.add_argument
        option("--debug", action="store_true", help="show where an error comes from")
        if name in ("evaluate", "export"):
            option("weights", type=parse_weights, help=OF_NETWORK)
        if name in ("train", "evaluate", "predict"):
            option("--device", default="auto", choices=DEVICES, help="(%(default)s)")
            text = "how pictures become images (as the network learned; to learn: as they look)"
            option("--preparation", choices=PREPARATIONS, help=text)
        return command

    add_train_options(add("train", "Train a network."))
    add_evaluate_options(add("evaluate", "Count a network's right and wrong answers."))
    add_predict_options(add("predict", "Classify pictures of any size and kind."))
    export = add("export", "Write a network as ONNX, checked against PyTorch.")
    export.add_argument("onnx", type=parse_path, help="the file to write")
    text = "List how a network differs from the paper (exit code 1; 3 where a stage of the "
    add_check_options(
        add("check", f"{text}adapter, or a call, fails, or the routing is not reached).")
    )
    return parser


def add_train_options(command: argparse.ArgumentParser) -> None:
    option = command.add_argument
    text = f"{SETS} (mnist; with --as or --init that of the network)"
    option("--dataset", type=parse_dataset, help=text)
    text = "where weights, checkpoint and metrics are (runs/DATASET, with --as runs/DATASET-NAME); "
    text += "a cut-off run there goes on"
    option("--out", type=parse_path, help=text)
    names = ", ".join(IMPLEMENTATIONS)
    text = f"another's network, loss and recipe, as --list-implementations describes them: {names}"
    option("--as", dest="implementation", metavar="NAME", choices=IMPLEMENTATIONS, help=text)
    option("--list-implementations", action="store_true", help="print what others do, and leave")
    # The training's settings; TrainingConfig has the defaults.
    fitted = "for MNIST, fitted to other networks and images"
    option("--epochs", type=COUNT, help=f"passes over the training images (10 {fitted})")
    option("--batch-size", type=COUNT, help=f"images a step (128 {fitted})")
    option("--learning-rate", type=RATE, help=f"Adam's (peak) rate (0.003 {fitted})")
    option("--schedule", choices=SCHEDULES, help="of the learning rate (one-cycle)")
    option("--average", type=DECAY, help=f"decay of the weights' moving average (0.99 {fitted})")
    text = "factor of the summed squared error of an image, section 4.1 (0.0005)"
    option("--reconstruction-weight", type=WEIGHT, help=text)
    option("--shift", type=PIXELS, help="largest random shift in pixels, in each direction (2)")
    text = "fp32, bf16, or auto: bf16 where the hardware has it (auto)"
    option("--precision", choices=PRECISIONS, help=text)
    text = "of the arithmetic: plain as in the book, fast, or auto: fast where it pays (auto)"
    option("--arrangement", choices=ARRANGEMENTS, help=text)
    text = "use torch.compile (if not given, where it works and is worth it, but not on CUDA)"
    option("--compile", action=argparse.BooleanOptionalAction, help=text)
    option("--seed", type=SEED, help="of the weights, the images' order and their shifts (0)")
    option("--routing", choices=ROUTINGS, help="how capsules are routed to (dynamic)")
    text = "capsules of each routed layer below the classes', from the bottom up (none)"
    option("--stack", type=COUNT, nargs="+", metavar="N", help=text)
    option("--routing-iterations", type=COUNT, help="iterations of the routing (3)")
    option("--learn-prior", action="store_true", default=None, help="learn the routing's prior")
    text = "leave the decoder out"
    option("--no-reconstruction", action="store_false", default=None, dest="reconstruct", help=text)
    text = "channels, height, width of the images that pictures of a folder become"
    option("--image-shape", type=parse_shape, metavar="CxHxW", help=text)
    option("--init", type=parse_path, metavar="WEIGHTS", help="start from these weights")
    text = "train on the validation images too (with --as, but for those that its authors hold out)"
    option("--all", action="store_true", help=text)
    option("--test", action="store_true", help="evaluate on the test set at the end")


def add_evaluate_options(command: argparse.ArgumentParser) -> None:
    option = command.add_argument
    option("--dataset", type=parse_dataset, help=f"{SETS} (the one trained on)")
    text = "which images (test; all of an unsplit folder, if the network learned from no folder)"
    option("--split", choices=("train", "validation", "test", "all"), help=text)
    option("--batch-size", type=COUNT, default=500, help="images at a time (%(default)s)")
    option("--json", type=parse_path, help="write counts, losses and errors to this file")


def add_predict_options(command: argparse.ArgumentParser) -> None:
    option = command.add_argument
    text = f"the network, {OF_NETWORK} ({PRETRAINED[-1]}); then picture files, and folders with "
    text += "pictures at any depth"
    option("operands", nargs="+", type=parse_weights, metavar="WEIGHTS|PICTURE|FOLDER", help=text)
    text = "the least length of an answer's capsule; 0: any (%(default)s, measured for digits)"
    option("--threshold", type=LENGTH, default=THRESHOLD, help=text)
    option("--json", type=parse_path, help="write answers and all lengths to this file")
    text = f"draw the first {SHEET} inputs, and their reconstructions, to this file "
    option("--sheet", type=parse_figure, help=f"{text}({', '.join(FIGURE_SUFFIXES)})")


def add_check_options(command: argparse.ArgumentParser) -> None:
    option = command.add_argument
    text = "a torch.nn.Module, or what makes one, that Python can import from here"
    option("network", metavar="MODULE:NAME", help=text)
    text = "how to reach its inside, a capsnet_lab.check.Adapter"
    option("--adapter", metavar="MODULE:NAME", help=text)
    text = "the name of the module in it that maps primary capsules to the classes'"
    option("--routing", metavar="NAME", help=text)
    text = "channels, height, width, where they are not MNIST's or the adapter's"
    option("--image-shape", type=parse_shape, metavar="CxHxW", help=text)
