"""What each command does, once its arguments are known to be sound."""

import argparse
import dataclasses
import sys
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from capsnet import CapsNet, training
from capsnet.checkpoint import load_weights
from capsnet.device import can_compile, make_fabric, pick_device
from capsnet.fast import arrange
from capsnet.files import write_json
from capsnet.training import TrainingConfig
from capsnet_lab import folders, routings, wild
from capsnet_lab import predict as predictions
from capsnet_lab.cli import BROKEN_PIPE, ESCAPED
from capsnet_lab.cli.given import (
    WEIGHTS,
    check_apart,
    check_not_overwritten,
    check_pictures,
    outputs,
)
from capsnet_lab.cli.options import one_line
from capsnet_lab.cli.outputs import (
    draw_reconstructions,
    print_evaluation,
    print_predictions,
    save_figure,
    write_predictions,
)
from capsnet_lab.wild import Implementation
from capsnet_lab.wild.recipes import split_recipe

# What only one command needs is imported in its function: most need no matplotlib, for instance.


def train(args: argparse.Namespace) -> int:
    if args.list_implementations:
        names = [args.like] if args.like else wild.IMPLEMENTATIONS
        print("\n\n".join(str(wild.IMPLEMENTATIONS[name]) for name in names))
        return 0
    like = wild.IMPLEMENTATIONS[args.like] if args.like else None
    recipe = chosen_recipe(args, like)
    settings, by_functions = split_recipe(recipe)
    fabric = make_fabric(args.device)
    first = fabric.is_global_zero  # this process alone prints
    model, source = network_to_train(args, like, recipe)
    groups: list[folders.Group] = [("train",), ("validation",)]
    if args.all:
        groups = [("train", "validation")]
    if args.test:
        groups.append(source.group("test"))
    check_training(args, TrainingConfig(**settings), model, source)
    # Last of what may be refused before the pictures are read: torch.compile takes seconds, and
    # prints to stderr.
    if args.compile and not can_compile(fabric.device):
        raise ValueError("--compile: torch.compile does not work here; is there a C++ compiler?")

    sets = source.read(*groups, skip_unreadable=args.skip_unreadable, progress=first)
    learned = sets[0]
    validation = None if args.all else sets[1]
    if like and args.all and args.dataset == like.dataset:
        learned = learned.subset(slice(like.images))
    config = TrainingConfig.suited(model, len(learned), **settings)
    if first:
        parameters = sum(p.numel() for p in model.parameters())
        print(f"{parameters:,} parameters, {len(learned):,} images, {fabric.device}")
        text = f"batches of {config.batch_size}, learning rate {config.learning_rate:g}"
        print(f"{config.epochs} epochs, {text}", flush=True)
    tag = f"from {zlib.crc32(args.init.read_bytes()):08x}" if args.init else None
    how = by_functions | objective(model)
    training.fit(model, learned, validation, config, out=args.out, fabric=fabric, tag=tag, **how)
    if first:
        print(f"weights: {args.out / WEIGHTS}")
        if args.test:
            print_evaluation(training.evaluate(model, sets[-1]))
    return 0


def chosen_recipe(args: argparse.Namespace, like: Implementation | None) -> dict[str, Any]:
    """How to train, as it was given or is another's; not what is left to be fitted."""
    names = [field.name for field in dataclasses.fields(TrainingConfig)]
    given = {name: v for name in names if (v := getattr(args, name)) is not None}
    return {"compile": None, **(like.recipe if like else {}), **given}


def network_to_train(
    args: argparse.Namespace, like: Implementation | None, recipe: Mapping[str, Any]
) -> tuple[CapsNet, folders.Source]:
    """The network, new or that of --init, and the data set for it."""
    options = {
        name: getattr(args, name)
        for name in ("routing", "stack", "routing_iterations", "learn_prior", "reconstruct")
        if getattr(args, name) is not None
    }
    shape = args.image_shape
    if args.init:
        model, metadata = load_weights(args.init)
        channels, height, width = model.config["image_shape"]
        source = folders.find(args.dataset, (channels, height, width), not args.no_download)
        check_classes(class_names(metadata, model, args.init), source)
        return model, source
    if like and shape is None:
        shape = like.options.get("image_shape")
    source = folders.find(args.dataset, shape, not args.no_download)
    options |= {"image_shape": source.image_shape, "num_classes": len(source.classes)}
    torch.manual_seed(recipe.get("seed", TrainingConfig.seed))
    if like is None:
        routed = {"routing", "stack"} & options.keys()
        return (routings.RoutedCapsNet if routed else CapsNet)(**options), source
    model = like.under(recipe).make(**options)
    for name, value in options.items():
        kept = model.config[name]
        if name not in ("image_shape", "num_classes") and kept != value:  # a deviation's own
            raise ValueError(f"--as {args.like} fixes {name} at {kept}, got {value}")
    return model, source


def check_training(
    args: argparse.Namespace, config: TrainingConfig, model: CapsNet, source: folders.Source
) -> None:
    """Raise ValueError if the network cannot be trained so, or not into this folder."""
    config.check_shift(model.config["image_shape"])
    arrange(model, config.arrangement)
    if isinstance(source, folders.Folder):
        check_apart(args.out, source.folders())


def objective(model: CapsNet) -> dict[str, Any]:
    """What ``fit`` takes for this network in place of the paper's loss."""
    how: dict[str, Any] = {}
    if isinstance(model, wild.WildCapsNet):
        how["loss"] = wild.WildLoss
    if model.config.get("routing") == "em":
        how["criterion"] = routings.spread_loss  # its source's; the margin loss hardly moves it
    return how


def evaluate(args: argparse.Namespace) -> int:
    device = pick_device(args.device)
    model, metadata = load_weights(args.weights)
    if args.reconstructions and model.decoder is None:
        raise ValueError("the network has no decoder, so there are no reconstructions to draw")
    name = metadata.get("dataset") if args.dataset is None else args.dataset
    if not isinstance(name, str):
        raise ValueError(f"{args.weights} does not say on what it was trained: give --dataset")
    channels, height, width = model.config["image_shape"]
    source = folders.find(name, (channels, height, width), not args.no_download)
    check_classes(class_names(metadata, model, args.weights), source)
    if isinstance(source, folders.Folder):
        check_not_overwritten(outputs(args), source.files())
    arrange(model, args.arrangement)
    split = args.split or usual_split(source, metadata.get("dataset"))
    group, skip = source.group(split), args.skip_unreadable
    (images,) = source.read(group, skip_unreadable=skip, progress=True)
    result = training.evaluate(
        model.to(device), images, args.batch_size, args.precision, args.arrangement
    )
    # Files first: they are there even if nobody reads the text to its end.
    if args.json:
        facts = {"dataset": name, "split": split, "weights": metadata}
        write_json(args.json, facts | result.summary())
    if args.figure:
        from capsnet_lab import figures

        names = printable(result.classes)
        save_figure(figures.confusion_matrix(result.confusion, names), args.figure)
    if args.reconstructions:
        names = printable(result.classes)
        save_figure(draw_reconstructions(model, images, names), args.reconstructions)
    print_evaluation(result)
    return 0


def usual_split(source: folders.Source, trained_on: object) -> str:
    """The split to evaluate a network on: "test", or all pictures of a folder that is not split.

    A network that learned from any folder may have learned from this one, since it may have been
    moved: then its test pictures alone.
    """
    unsplit = isinstance(source, folders.Folder) and not source.own
    return "all" if unsplit and not str(trained_on).startswith("folder:") else "test"


def predict(args: argparse.Namespace) -> int:
    pictures = predictions.find_pictures(args.pictures)
    check_pictures(args, pictures)
    device = pick_device(args.device)
    model, metadata = load_weights(args.weights)
    classes = printable(class_names(metadata, model, args.weights))
    style = args.style
    if style == "auto":
        style = "digit" if metadata.get("dataset") == "mnist" else "plain"
    found = predictions.predict(model.to(device), classes, pictures, style, args.threshold)
    # Where nobody reads the answers, they are still predicted for the files.
    answered, failed, read = print_predictions(found, len(pictures), args.top, outputs(args))
    if failed:
        from capsnet_lab.pictures import describe_unreadable

        message = describe_unreadable(
            [one.picture for one in failed], failed[0].error, len(pictures)
        )
        if not (args.skip_unreadable and answered):
            raise ValueError(f"{message}; no file is written; --skip-unreadable leaves them out")
        print(f"left out: {one_line(message)}", file=sys.stderr)
    write_predictions(args, answered, classes, len(pictures))
    return 0 if read else BROKEN_PIPE


def export(args: argparse.Namespace) -> int:
    from capsnet_lab.export import export_onnx

    model, _ = load_weights(args.weights)
    difference = export_onnx(model, args.onnx)
    print(f"{args.onnx}: onnxruntime and PyTorch differ by at most {difference:.1e}")
    return 0


def check(args: argparse.Namespace) -> int:
    from capsnet_lab.check.checker import main_check

    report = main_check(args.network, args.adapter, args.image_shape, args.routing)
    print(report)
    if report.failed:
        return 3
    if report.found or report.otherwise:
        return 1
    return 3 if report.unrouted else 0


def class_names(metadata: Mapping[str, Any], model: CapsNet, weights: Path) -> list[str]:
    """The names of a network's classes, as its weights file has them; else 0, 1, 2 …."""
    count = model.config["num_classes"]
    names = metadata.get("classes", [str(number) for number in range(count)])
    listed = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if not listed or len(names) != count:
        raise ValueError(f"{weights} should name {count} classes, it names {names}")
    return names


def check_classes(names: list[str], source: folders.Source) -> None:
    """Raise ValueError if the classes of a data set are not the network's."""
    if names != list(source.classes):
        raise ValueError(
            f"the network tells {', '.join(names)} apart, the classes of {source.name} are "
            f"{', '.join(source.classes)}"
        )


def printable(names: list[str] | tuple[str, ...]) -> list[str]:
    """Names of folders, any bytes, as what a figure and a table can hold."""
    return [name.encode(errors=ESCAPED).decode() for name in names]
