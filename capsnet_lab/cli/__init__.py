"""The command line: ``capsnet train | evaluate | predict | export | check``.

Bad input ends in one line on stderr and exit code 2.
"""

import argparse
import dataclasses
import io
import logging
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from capsnet import data
from capsnet.fast.allocator import keep_freed_memory
from capsnet.text import one_line
from capsnet.training import TrainingConfig
from capsnet.training.config import SUITED
from capsnet_lab import predict as answers
from capsnet_lab import routings, wild
from capsnet_lab.cli.commands import (
    UNREAD,
    check,
    evaluate,
    export,
    predict,
    speak_to_nobody,
    train,
)
from capsnet_lab.cli.given import ESCAPED, FIGURE_SUFFIXES, given_path

INTERRUPTED = 130  # the exit code after Ctrl-C, as a shell's


class Parser(argparse.ArgumentParser):
    """argparse, but an error is one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {one_line(message)}\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    args = make_parser().parse_args(argv)
    keep_freed_memory()  # this process is ours
    logging.getLogger("PIL").setLevel(logging.CRITICAL)  # a damaged picture gets our line alone
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors=ESCAPED)
    if args.debug:
        return args.run(args)
    try:
        code = args.run(args)
        if sys.stdout is not None:  # it is None where it was closed
            sys.stdout.flush()
        return code
    except BrokenPipeError:
        speak_to_nobody()
        return UNREAD
    except (ValueError, OSError, RuntimeError, OverflowError, MemoryError, ImportError) as error:
        # torch says "out of memory" and more in RuntimeErrors of many lines.
        message = one_line(str(error)) or type(error).__name__
        print(f"capsnet {args.command}: {message}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"capsnet {args.command}: interrupted", file=sys.stderr)
        return INTERRUPTED


def make_parser() -> argparse.ArgumentParser:
    settings = {field.name: field for field in dataclasses.fields(TrainingConfig)}
    parser = Parser(
        prog="capsnet",
        description="Capsule networks with dynamic routing (Sabour, Frosst and Hinton, 2017).",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(run: Callable[[argparse.Namespace], int], text: str) -> Callable[..., Any]:
        """A command, and what all or several have; returns what adds an option to it."""
        command = commands.add_parser(run.__name__, help=text, description=text)
        command.set_defaults(run=run)
        option = command.add_argument
        option("--debug", action="store_true", help="show where an error comes from")
        if run in (evaluate, predict, export):
            option("weights", type=given_path, help="a weights file that train wrote")
        if run not in (export, check):
            option("--device", default="auto", help="auto, cpu, cuda or mps (%(default)s)")
        if run in (train, evaluate):
            option("--no-download", action="store_true", help="never download data")
        if run in (train, evaluate, predict):
            text = "go on without pictures that cannot be read"
            option("--skip-unreadable", action="store_true", help=text)
        return option

    def add_setting(option: Callable[..., Any], name: str, **changes: Any) -> None:
        """An option of the training's, with its name, default and help."""
        default, text = settings[name].default, settings[name].metadata["help"]
        given: dict[str, Any] = {"type": type(default), "help": f"{text} (%(default)s)"}
        if isinstance(default, bool):
            given = {"action": argparse.BooleanOptionalAction, "help": text}
        option(f"--{name.replace('_', '-')}", **{"default": default, **given, **changes})

    sets = f"{', '.join(data.NAMES)}, or folder:PATH with a folder of pictures a class"
    figure = f"to this file ({', '.join(FIGURE_SUFFIXES)})"

    option = add(train, "Train a network.")
    option("--dataset", help=f"{sets} (mnist; with --as that of its network)")
    text = "where weights, checkpoint and metrics are (runs/DATASET, with --as runs/DATASET-NAME); "
    text += "a cut-off run there goes on"
    option("--out", type=given_path, help=text)
    names = ", ".join(wild.IMPLEMENTATIONS)
    text = f"another's network, loss and recipe, as --list-implementations describes them: {names}"
    option("--as", dest="like", metavar="NAME", choices=wild.IMPLEMENTATIONS, help=text)
    text = "print what others do otherwise than the paper, and leave"
    option("--list-implementations", action="store_true", help=text)
    for name, field in settings.items():
        text = field.metadata["help"]
        if name in SUITED:
            text += f" ({field.default} for MNIST, fitted to other networks and images)"
        elif not isinstance(field.default, bool):
            text += f" ({field.default})"
        add_setting(option, name, default=None, help=text)
    option("--routing", choices=routings.ROUTINGS, help="how capsules are routed to (dynamic)")
    text = "capsules of each routed layer below the classes', from the bottom up (none)"
    option("--stack", type=int, nargs="+", metavar="N", help=text)
    option("--routing-iterations", type=int, help="iterations of the routing (3)")
    yes, no = {"action": "store_true", "default": None}, {"action": "store_false", "default": None}
    option("--learn-prior", **yes, help="learn the routing's prior")
    option("--no-reconstruction", **no, dest="reconstruct", help="leave the decoder out")
    text = "channels, height, width: of a folder's images, or of the middle of others'"
    option("--image-shape", metavar="CxHxW", help=text)
    option("--init", type=given_path, metavar="WEIGHTS", help="start from these weights")
    text = "train on the validation images too (with --as, but for those that its authors hold out)"
    option("--all", action="store_true", help=text)
    option("--test", action="store_true", help="evaluate on the test set at the end")

    option = add(evaluate, "Count a network's right and wrong answers.")
    option("--dataset", help=f"{sets} (the one trained on)")
    text = "which images (test; all of an unsplit folder, if the network learned from no folder)"
    option("--split", choices=("train", "validation", "test", "all"), help=text)
    option("--batch-size", type=int, default=500, help="images at a time (%(default)s)")
    option("--figure", type=given_path, help=f"draw the confusion matrix {figure}")
    text = f"draw the first image of each class, and what is decoded, {figure}"
    option("--reconstructions", type=given_path, help=text)
    option("--json", type=given_path, help="write counts, losses and errors to this file")
    add_setting(option, "precision", default="fp32")
    add_setting(option, "arrangement")

    option = add(predict, "Classify pictures of any size and kind.")
    text = "picture files, and folders with pictures at any depth"
    option("pictures", nargs="+", type=given_path, metavar="PICTURE|FOLDER", help=text)
    text = "the network's format for pictures; auto: that of the data set trained on (%(default)s)"
    option("--style", choices=("auto", "digit", "garment", "plain"), default="auto", help=text)
    text = "the least length of an answer's capsule; 0: any (%(default)s, measured for digits)"
    option("--threshold", type=float, default=answers.THRESHOLD, help=text)
    text = "print the K longest capsules of each picture, in one line"
    option("--top", type=int, metavar="K", help=text)
    option("--json", type=given_path, help="write answers and all lengths to this file")
    option("--csv", type=given_path, help="write them to this file, a line for a picture")
    text = f"draw the first {answers.SHEET} inputs, and what is decoded, {figure}"
    option("--sheet", type=given_path, help=text)
    text = f"draw one input, what is decoded and the lengths {figure}"
    option("--save", type=given_path, help=text)

    option = add(export, "Write a network as ONNX, checked against PyTorch.")
    option("onnx", type=given_path, help="the file to write")

    text = "Say what a network does otherwise than the paper (exit code 1; 3 where a stage of the "
    option = add(check, f"{text}adapter, or a call, fails, or the routing is not reached).")
    text = "a torch.nn.Module, or what makes one, that Python can import from here"
    option("network", metavar="MODULE:NAME", help=text)
    text = "how to reach its inside, a capsnet_lab.check.checker.Adapter"
    option("--adapter", metavar="MODULE:NAME", help=text)
    text = "the name of the module in it that maps primary capsules to the classes'"
    option("--routing", metavar="NAME", help=text)
    text = "channels, height, width, where they are not MNIST's or the adapter's"
    option("--image-shape", metavar="CxHxW", help=text)
    return parser
