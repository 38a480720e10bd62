"""What each command does."""

import argparse
import dataclasses
import io
import os
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from capsnet import CapsNet, training
from capsnet.checkpoint import load_weights
from capsnet.data import ImageSet, to_float
from capsnet.device import can_compile, make_fabric, pick_device
from capsnet.fast import arrange
from capsnet.files import write_atomically, write_json
from capsnet.text import confusion_text, one_line, per_class_table
from capsnet.training import Evaluation, TrainingConfig
from capsnet.training.run import WEIGHTS
from capsnet_lab import folders, routings, wild
from capsnet_lab import predict as answers
from capsnet_lab.cli.given import (
    check_apart,
    check_classes,
    check_outputs,
    check_resumable,
    check_writable,
    class_names,
    parse_shape,
    printable,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# What only one command needs is imported in its function: --help needs no matplotlib.

Shape = tuple[int, int, int]  # of an image: channels, height, width
UNREAD = 141  # the exit code where the reader of our output has gone, as with `| head`


def train(args: argparse.Namespace) -> int:
    if args.list_implementations:
        names = [args.like] if args.like else wild.IMPLEMENTATIONS
        print("\n\n".join(str(wild.IMPLEMENTATIONS[name]) for name in names))
        return 0
    like = wild.IMPLEMENTATIONS[args.like] if args.like else None
    names = [field.name for field in dataclasses.fields(TrainingConfig)]
    given = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    given = {"compile": None, **(like.recipe if like else {}), **given}
    early = TrainingConfig(**given)  # it refuses what is out of range before anything is read
    fabric = make_fabric(args.device)
    dataset = args.dataset  # "" is none: an empty variable of a shell
    if dataset is None:
        dataset = like.dataset if like else "mnist"
    data_name = Path(dataset.removeprefix("folder:")).expanduser().resolve().name
    out = args.out or Path("runs") / "-".join([data_name, *filter(None, [args.like])])
    shape, make = network_to_train(args, like, given)
    source = folders.find(dataset, shape, download=not args.no_download)
    groups: list[tuple[str, ...]]
    groups = [("train", "validation")] if args.all else [("train",), ("validation",)]
    if args.test:
        groups.append(source.group("test"))
    torch.manual_seed(early.seed)
    model = make(source)
    early.check_shift(model.config["image_shape"])
    arrange(model, given.get("arrangement", "auto"))  # refuses what there is not
    if isinstance(source, folders.Folder):
        check_apart(out, source.folders())
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


def network_to_train(
    args: argparse.Namespace, like: wild.Implementation | None, given: dict[str, Any]
) -> tuple[Shape | None, Callable[[folders.Source], CapsNet]]:
    """The shape of its images, if it has one, and what makes or loads it once there are images."""
    names = ("routing", "stack", "routing_iterations", "learn_prior", "reconstruct")
    options = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    if args.init:
        if options or args.image_shape or like:
            raise ValueError("--init fixes the network: give no option of its shape beside it")
        model, metadata = load_weights(args.init, make_network)

        def loaded(source: folders.Source) -> CapsNet:
            check_classes(class_names(metadata, model, args.init), source)
            return model

        channels, height, width = model.config["image_shape"]
        return (channels, height, width), loaded

    if like and options.keys() & {"routing", "stack"}:
        raise ValueError("--as fixes the routing: give neither --routing nor --stack beside it")
    make: Callable[..., CapsNet] = like.under(given).make if like else make_network
    its_own = like.options.get("image_shape") if like else None
    shape = parse_shape(args.image_shape) if args.image_shape else its_own
    with torch.device("meta"):  # a wrong option is told before the pictures are looked at
        made = make(**options | ({"image_shape": shape} if shape else {})).config
    for name, value in options.items() if like else ():
        if made[name] != value:  # a deviation's own
            raise ValueError(f"--as {args.like} fixes {name} at {made[name]}, got {value}")

    def new(source: folders.Source) -> CapsNet:
        its = {"image_shape": source.image_shape, "num_classes": len(source.classes)}
        return make(**its, **options)

    return shape, new


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
    source = folders.find(name, tuple(model.config["image_shape"]), not args.no_download)
    check_classes(class_names(metadata, model, args.weights), source)
    pictures = source.files() if isinstance(source, folders.Folder) else []
    check_outputs(args, *outputs, inputs=pictures)
    arrange(model, args.arrangement)
    split = args.split or usual_split(source, metadata.get("dataset"))
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
        from capsnet_lab import figures

        names = printable(result.classes)
        save_figure(figures.confusion_matrix(result.confusion, names), args.figure)
    if args.reconstructions:
        save_figure(draw_reconstructions(model, images), args.reconstructions)
    print_evaluation(result)
    return 0


def usual_split(source: folders.Source, trained_on: object) -> str:
    """The split to evaluate a network on: "test", or all pictures of a folder that is not split.

    A network that learned from any folder may have learned from this one, since it may have been
    moved: then its test pictures alone.
    """
    unsplit = isinstance(source, folders.Folder) and not source.own
    return "all" if unsplit and not str(trained_on).startswith("folder:") else "test"


def draw_reconstructions(model: CapsNet, images: ImageSet) -> "Figure":
    """The first image of each class over its reconstruction from the longest capsule."""
    from capsnet_lab import figures

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
        from capsnet_lab.pictures import unreadable

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
        print(f"written: {args.json}")
    if args.csv:
        write_atomically(args.csv, answers.as_csv(answered, classes))
        print(f"written: {args.csv}")
    if args.save or args.sheet:
        from capsnet_lab import figures
    if args.save:
        image, decoded, *_ = cells[0]
        lengths, answer = [*answered[0].lengths.values()], answered[0].answer
        save_figure(figures.prediction(image, decoded, lengths, classes, answer), args.save)
        print(f"written: {args.save}")
    if args.sheet:
        save_figure(figures.contact_sheet(cells), args.sheet)
        print(f"written: {args.sheet} ({len(cells)} of {len(pictures)} pictures)")
    return code


def export(args: argparse.Namespace) -> int:
    from capsnet_lab.export import export_onnx

    check_writable(args.onnx, args.weights)
    model, _ = load_weights(args.weights, make_network)
    difference = export_onnx(model, args.onnx)
    print(f"{args.onnx}: onnxruntime and PyTorch differ by at most {difference:.1e}")
    return 0


def check(args: argparse.Namespace) -> int:
    from capsnet_lab.check.checker import main_check

    shape = parse_shape(args.image_shape) if args.image_shape else None
    report = main_check(args.network, args.adapter, shape, args.routing)
    print(report)
    if report.failed:
        return 3
    if report.found or report.otherwise:
        return 1
    return 3 if report.unrouted else 0


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


def speak_to_nobody() -> None:
    """Let what is printed go nowhere, once its reader has gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def save_figure(figure: "Figure", path: Path) -> None:
    buffer = io.BytesIO()
    figure.savefig(buffer, format=path.suffix[1:].lower())
    write_atomically(path, buffer.getvalue())
