"""The command line: ``capsnet train | evaluate | predict | export | bench | check``.

Bad input ends in one line on stderr and exit code 2.
"""

import argparse
import dataclasses
import io
import logging
import os
import re
import sys
import tempfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import torch

from capsnet import CapsNet, data, routings, training, wild
from capsnet import predict as answers
from capsnet.checkpoint import load_weights
from capsnet.data import ImageSet, Source, to_float
from capsnet.device import can_compile, make_fabric, pick_device
from capsnet.fast import arrange
from capsnet.fast.allocator import keep_freed_memory
from capsnet.files import write_atomically, write_json
from capsnet.text import confusion_text, per_class_table, reason
from capsnet.training import Evaluation, TrainingConfig
from capsnet.training.config import SUITED
from capsnet.training.run import CHECKPOINT, WEIGHTS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# What only one command needs is imported in its function: --help needs no matplotlib.

FIGURE_SUFFIXES = (".png", ".svg", ".pdf")
INTERRUPTED = 130  # the exit code after Ctrl-C, as a shell's
UNREAD = 141  # likewise where the reader of our output has gone, as with `| head`
LONGEST = 1000  # characters of a message; a longer one loses its middle
ESCAPED = "backslashreplace"  # how what is not UTF-8 in a name is told, as on stderr


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


def speak_to_nobody() -> None:
    """Let what is printed go nowhere, once its reader has gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def one_line(message: str) -> str:
    words = " ".join(message.split())
    return words if len(words) <= LONGEST else f"{words[: LONGEST // 2]} … {words[-LONGEST // 2 :]}"


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
            option("weights", type=Path, help="a weights file that train wrote")
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
    text = "where weights, checkpoint and metrics are (runs/DATASET); a cut-off run there goes on"
    option("--out", type=Path, help=text)
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
    option("--init", type=Path, metavar="WEIGHTS", help="start from these weights")
    text = "train on the validation images too (with --as, but for those that its authors hold out)"
    option("--all", action="store_true", help=text)
    option("--test", action="store_true", help="evaluate on the test set at the end")

    option = add(evaluate, "Count a network's right and wrong answers.")
    option("--dataset", help=f"{sets} (the one trained on)")
    text = "which images (test; all of an unsplit folder, if the network learned from no folder)"
    option("--split", choices=("train", "validation", "test", "all"), help=text)
    option("--batch-size", type=int, default=500, help="images at a time (%(default)s)")
    option("--figure", type=Path, help=f"draw the confusion matrix {figure}")
    text = f"draw the first image of each class, and what is decoded, {figure}"
    option("--reconstructions", type=Path, help=text)
    option("--json", type=Path, help="write counts, losses and errors to this file")
    add_setting(option, "precision", default="fp32")
    add_setting(option, "arrangement")

    option = add(predict, "Classify pictures of any size and kind.")
    text = "picture files, and folders with pictures at any depth"
    option("pictures", nargs="+", type=Path, metavar="PICTURE|FOLDER", help=text)
    text = "the network's format for pictures; auto: that of the data set trained on (%(default)s)"
    option("--style", choices=("auto", "digit", "garment", "plain"), default="auto", help=text)
    text = "the least length of an answer's capsule; 0: any (%(default)s, measured for digits)"
    option("--threshold", type=float, default=answers.THRESHOLD, help=text)
    text = "print the K longest capsules of each picture, in one line"
    option("--top", type=int, metavar="K", help=text)
    option("--json", type=Path, help="write answers and all lengths to this file")
    option("--csv", type=Path, help="write them to this file, a line for a picture")
    text = f"draw the first {answers.SHEET} inputs, and what is decoded, {figure}"
    option("--sheet", type=Path, help=text)
    option("--save", type=Path, help=f"draw one input, what is decoded and the lengths {figure}")

    option = add(export, "Write a network as ONNX, checked against PyTorch.")
    option("onnx", type=Path, help="the file to write")

    option = add(bench, "Time the training step and the evaluation on this machine.")
    add_setting(option, "batch_size")
    option("--steps", type=int, default=7, help="timed steps of each kind (%(default)s)")
    option("--json", type=Path, help="write the figures to this file too")

    text = "Say what a network does otherwise than the paper (exit code 1; 3 where a stage of the "
    option = add(check, f"{text}adapter, or a call, fails).")
    text = "a torch.nn.Module, or what makes one, that Python can import from here"
    option("network", metavar="MODULE:NAME", help=text)
    text = "how to reach its inside, a capsnet.wild.check.Adapter"
    option("--adapter", metavar="MODULE:NAME", help=text)
    text = "channels, height, width, where they are not MNIST's or the adapter's"
    option("--image-shape", metavar="CxHxW", help=text)
    return parser


def train(args: argparse.Namespace) -> int:
    if args.list_implementations:
        names = [args.like] if args.like else wild.IMPLEMENTATIONS
        print("\n\n".join(str(wild.IMPLEMENTATIONS[name]) for name in names))
        return 0
    like = wild.IMPLEMENTATIONS[args.like] if args.like else None
    names = [field.name for field in dataclasses.fields(TrainingConfig)]
    given = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    given = {"compile": None, **(like.recipe if like else {}), **given}
    seed = TrainingConfig(**given).seed  # it refuses what is out of range before anything is read
    fabric = make_fabric(args.device)
    dataset = args.dataset  # "" is none: an empty variable of a shell
    if dataset is None:
        dataset = like.dataset if like else "mnist"
    data_name = Path(dataset.removeprefix("folder:")).expanduser().resolve().name
    out = args.out or Path("runs") / "-".join([data_name, *filter(None, [args.like])])
    choices = ("routing", "stack", "routing_iterations", "learn_prior", "reconstruct")
    network = {name: getattr(args, name) for name in choices if getattr(args, name) is not None}
    its_own = like.options.get("image_shape") if like else None
    shape = parse_shape(args.image_shape) if args.image_shape else its_own
    make: Callable[..., CapsNet] = like.under(given).make if like else make_network
    if like and network.keys() & {"routing", "stack"}:
        raise ValueError("--as fixes the routing: give neither --routing nor --stack beside it")
    if args.init:
        if network or args.image_shape or like:
            raise ValueError("--init fixes the network: give no option of its shape beside it")
        model, metadata = load_weights(args.init, make_network)
        shape = tuple(model.config["image_shape"])
    else:
        with torch.device("meta"):  # a wrong option is told before the pictures are looked at
            made = make(**network | ({"image_shape": shape} if shape else {})).config
        for name, value in network.items() if like else ():
            if made[name] != value:  # a deviation's own
                raise ValueError(f"--as {args.like} fixes {name} at {made[name]}, got {value}")
    source = data.find(dataset, shape, download=not args.no_download)
    groups: list[tuple[str, ...]]
    groups = [("train", "validation")] if args.all else [("train",), ("validation",)]
    if args.test:
        groups.append(source.group("test"))
    if args.init:
        check_classes(class_names(metadata, model, args.init), source)
    else:
        torch.manual_seed(seed)
        its = {"image_shape": source.image_shape, "num_classes": len(source.classes)}
        model = make(**its, **network)
    arrange(model, given.get("arrangement", "auto"))  # refuses what there is not
    check_apart(out, source)
    check_writable(out / WEIGHTS, *[args.init] if args.init else [])
    check_resumable(out)
    # Last of what may be refused before the pictures are read: torch.compile takes seconds, and
    # has things to say on stderr.
    if args.compile and not can_compile(fabric.device):
        raise ValueError("--compile: torch.compile does not work here; is there a C++ compiler?")

    first = fabric.is_global_zero  # this process alone speaks
    sets = source.read(*groups, skip_unreadable=args.skip_unreadable, progress=first)
    test = sets.pop() if args.test else None
    learned, validation = sets[0], None if args.all else sets[1]
    if like and args.all and dataset == like.dataset:
        learned = learned.subset(slice(like.images))
    config = TrainingConfig.suited(model, len(learned), **given)
    how: dict[str, Any] = {"draw": like.draw} if like else {}
    if isinstance(model, wild.WildCapsNet):
        how["loss"] = wild.WildLoss
    if model.config.get("routing") == "em":
        how["criterion"] = routings.spread_loss  # its source's; the margin loss hardly moves it
    if first:
        parameters = sum(p.numel() for p in model.parameters())
        print(f"{parameters:,} parameters, {len(learned):,} images, {fabric.device}")
        text = f"batches of {config.batch_size}, learning rate {config.learning_rate:g}"
        print(f"{config.epochs} epochs, {text}", flush=True)
    start = f"{zlib.crc32(args.init.read_bytes()):08x}" if args.init else None
    training.fit(model, learned, validation, config, out=out, fabric=fabric, start=start, **how)
    if first:
        print(f"weights: {out / WEIGHTS}")
        if test is not None:
            print_evaluation(training.evaluate(model, test))
    return 0


def evaluate(args: argparse.Namespace) -> int:
    outputs = "figure", "reconstructions", "json"
    check_outputs(args, *outputs)
    device = pick_device(args.device)
    model, metadata = load_weights(args.weights, make_network)
    if args.reconstructions and model.decoder is None:
        raise ValueError("the network has no decoder, so there are no reconstructions to draw")
    name = metadata.get("dataset") if args.dataset is None else args.dataset
    if not isinstance(name, str):
        raise ValueError(f"{args.weights} does not say on what it was trained: give --dataset")
    TrainingConfig(  # which checks them
        batch_size=args.batch_size, precision=args.precision, arrangement=args.arrangement
    )
    source = data.find(name, tuple(model.config["image_shape"]), not args.no_download)
    check_classes(class_names(metadata, model, args.weights), source)
    check_outputs(args, *outputs, inputs=source.files())
    arrange(model, args.arrangement)
    split = args.split or source.usual_split(metadata.get("dataset"))
    group, skip = source.group(split), args.skip_unreadable
    (images,) = source.read(group, skip_unreadable=skip, progress=True)
    result = training.evaluate(
        model.to(device), images, args.batch_size, args.precision, args.arrangement
    )
    # Files first: they are there even if nobody reads the text to its end.
    if args.json:
        of = {"dataset": name, "split": split, "weights": metadata}
        write_json(args.json, of | result.summary())
    if args.figure:
        from capsnet import figures

        names = printable(result.classes)
        save_figure(figures.confusion_matrix(result.confusion, names), args.figure)
    if args.reconstructions:
        save_figure(draw_reconstructions(model, images), args.reconstructions)
    print_evaluation(result)
    return 0


def draw_reconstructions(model: CapsNet, images: ImageSet) -> "Figure":
    """The first image of each class over its reconstruction from the longest capsule."""
    from capsnet import figures

    labels = images.labels.tolist()
    first = images.subset([labels.index(label) for label in sorted(set(labels))])
    with torch.no_grad():
        out = model(to_float(first.images).to(next(model.parameters()).device))
    answered, names = out.lengths.argmax(1), printable(first.classes)
    return figures.reconstructions(first.images, out.reconstruction, first.labels, answered, names)


def predict(args: argparse.Namespace) -> int:
    if args.top is not None and args.top < 1:
        raise ValueError(f"--top must be at least 1, got {args.top}")
    if not 0 <= args.threshold <= 1:
        raise ValueError(f"--threshold must be in 0 … 1, got {args.threshold}")
    pictures = answers.find_pictures(args.pictures)
    if args.save and len(pictures) > 1:
        raise ValueError(f"--save takes one picture, got {len(pictures)}: --sheet takes many")
    outputs = check_outputs(args, "save", "sheet", "json", "csv", inputs=pictures)
    device = pick_device(args.device)
    model, metadata = load_weights(args.weights, make_network)
    classes, style = printable(class_names(metadata, model, args.weights)), args.style
    if style == "auto":
        styles = {"mnist": "digit", "fashion-mnist": "garment"}
        style = styles.get(str(metadata.get("dataset")), "plain")
    how = model.to(device), classes, pictures, style, args.threshold
    code = 0
    try:
        answered, missing = answers.tell(answers.predict(*how), len(pictures), args.top)
    except BrokenPipeError:
        if not outputs:
            raise
        # The answers so far went with the error: once more, for the files.
        speak_to_nobody()
        answered, missing = answers.tell(answers.predict(*how), len(pictures), args.top)
        code = UNREAD
    if missing:
        from capsnet.data.pictures import unreadable

        said = unreadable([one.picture for one in missing], missing[0].error, len(pictures))
        if not (args.skip_unreadable and answered):
            raise ValueError(f"{said}; no file is written; --skip-unreadable leaves them out")
        print(f"left out: {one_line(said)}", file=sys.stderr)
    cells = [
        (one.image, one.reconstruction, Path(one.picture).name, f"{one.answer} {one.length:.2f}",
         one.answer in classes)
        for one in answered if one.image is not None
    ]  # fmt: skip
    # What no drawing can spoil goes first.
    if args.json:
        named = ("picture", "answer", "length", "lengths")
        write_json(args.json, [{of: getattr(one, of) for of in named} for one in answered])
    if args.csv:
        write_atomically(args.csv, answers.as_csv(answered, classes))
    if args.save or args.sheet:
        from capsnet import figures
    if args.save:
        image, decoded, *_ = cells[0]
        lengths, answer = [*answered[0].lengths.values()], answered[0].answer
        save_figure(figures.prediction(image, decoded, lengths, classes, answer), args.save)
    if args.sheet:
        save_figure(figures.contact_sheet(cells), args.sheet)
    for path in outputs:
        some = f" ({len(cells)} of {len(pictures)} pictures)" if path == args.sheet else ""
        print(f"written: {path}{some}")
    return code


def export(args: argparse.Namespace) -> int:
    from capsnet.export import export_onnx

    check_writable(args.onnx, args.weights)
    model, _ = load_weights(args.weights, make_network)
    difference = export_onnx(model, args.onnx)
    print(f"{args.onnx}: onnxruntime and PyTorch differ by at most {difference:.1e}")
    return 0


def bench(args: argparse.Namespace) -> int:
    from capsnet.bench import benchmark, table

    if args.json:
        check_writable(args.json)
    result = benchmark(pick_device(args.device), args.batch_size, args.steps)
    print(table(result))
    if args.json:
        write_json(args.json, result)
    return 0


def check(args: argparse.Namespace) -> int:
    from capsnet.wild.check import main_check

    shape = parse_shape(args.image_shape) if args.image_shape else None
    report = main_check(args.network, args.adapter, shape)
    print(report)
    return 3 if report.failed else 1 if report.found or report.otherwise else 0


def print_evaluation(result: Evaluation) -> None:
    print(f"accuracy {result.accuracy:.2%} ({result.correct}/{result.total})")
    error = result.reconstruction
    drawn = "" if error is None else f", squared error an image {error:.2f}"
    print(f"margin loss {result.margin:.5f}{drawn}")
    print(f"\n{per_class_table(result.per_class, result.classes)}")
    print(f"\n{confusion_text(result.confusion, result.classes)}")


def make_network(**config: Any) -> CapsNet:
    """A network of its options: ours, another's, or one that is routed in another way."""
    if "deviations" in config:
        return wild.WildCapsNet(**config)
    return (routings.RoutedCapsNet if {"routing", "stack"} & config.keys() else CapsNet)(**config)


def parse_shape(text: str) -> tuple[int, int, int]:
    if not re.fullmatch(r"[13]x[0-9]+x[0-9]+", text):
        raise ValueError(f"--image-shape must be like 1x28x28 or 3x32x32, got {text}")
    channels, height, width = map(int, text.split("x"))
    return channels, height, width


def class_names(metadata: dict[str, Any], model: CapsNet, source: Path) -> list[str]:
    """The names of a network's classes, as its weights file has them; else 0, 1, 2 …."""
    count = model.config["num_classes"]
    names = metadata.get("classes", [str(number) for number in range(count)])
    whole = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if not whole or len(names) != count:
        raise ValueError(f"{source} should name {count} classes, it names {names}")
    return names


def printable(names: Sequence[str]) -> list[str]:
    """Names of folders, any bytes, as what a figure and a table can hold."""
    return [name.encode(errors=ESCAPED).decode() for name in names]


def check_classes(names: list[str], source: Source) -> None:
    """Refuse a data set whose classes are not the network's."""
    if names != list(source.classes):
        raise ValueError(
            f"the network tells {', '.join(names)} apart, the classes of {source.name} are "
            f"{', '.join(source.classes)}"
        )


def check_apart(out: Path, source: Source) -> None:
    """Refuse a run's folder that a data set's folder would take for a class, or pictures of one."""
    place = out.resolve()
    for folder in source.folders():
        above = folder.resolve()
        hidden = any(part.startswith(".") for part in place.parts[len(above.parts) :])
        if place.is_relative_to(above) and not hidden:
            raise ValueError(
                f"{place} is inside the data folder {above}, of which it would become a part: "
                "choose another --out"
            )


def check_resumable(out: Path) -> None:
    """Refuse a folder that has weights, but no checkpoint that says of which run."""
    if (out / WEIGHTS).exists() and not (out / CHECKPOINT).exists():
        raise ValueError(
            f"{out} holds {WEIGHTS}, which would be overwritten, but no {CHECKPOINT} to go on "
            "from: choose another --out, or move them away"
        )


def check_outputs(
    args: argparse.Namespace, *options: str, inputs: Sequence[Path] = ()
) -> list[Path]:
    """The files that options name, once it is certain that they can be written."""
    outputs = {option: path for option in options if (path := getattr(args, option))}
    if len({path.resolve() for path in outputs.values()}) < len(outputs):
        raise ValueError(f"--{', --'.join(options)} must be different files")
    for option, path in outputs.items():
        check_writable(path, args.weights, *inputs, figure=option not in ("json", "csv"))
    return [*outputs.values()]


def check_writable(path: Path, *inputs: Path, figure: bool = False) -> None:
    """Refuse a file that could not be written, or is an input, before the work that it is for."""
    if figure and path.suffix.lower() not in FIGURE_SUFFIXES:
        raise ValueError(
            f"a figure's file must end in {', '.join(FIGURE_SUFFIXES)}, got {path.name}"
        )
    if path.exists() and not path.is_file():
        kind = "a folder" if path.is_dir() else "no ordinary file"
        raise OSError(f"cannot write {path}: it is {kind}")
    if any(path.exists() and other.exists() and path.samefile(other) for other in inputs):
        raise ValueError(f"{path} would be overwritten: it is an input")
    # Folders that are missing are made when the file is: no other trace is left of what fails.
    there = next(folder for folder in path.absolute().parents if os.path.lexists(folder))
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise OSError(f"cannot write {path}: {reason(error)}") from error


def save_figure(figure: "Figure", path: Path) -> None:
    buffer = io.BytesIO()
    figure.savefig(buffer, format=path.suffix[1:].lower())
    write_atomically(path, buffer.getvalue())
