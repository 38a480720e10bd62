"""What each command does, once its arguments are known to be sound."""

import argparse
import dataclasses
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from capsnet import CapsNet, training
from capsnet.checkpoint import load_weights
from capsnet.device import make_fabric, pick_device
from capsnet.files import write_json
from capsnet.training import TrainingConfig
from capsnet_lab import folders, routings, wild
from capsnet_lab import predict as predictions
from capsnet_lab.cli import arguments, outputs
from capsnet_lab.wild.recipes import split_recipe

# What only one command needs is imported in its function: most need no matplotlib, for instance.


def train(args: argparse.Namespace) -> int:
    if args.list_implementations:
        names = [args.implementation] if args.implementation else wild.IMPLEMENTATIONS
        print("\n\n".join(str(wild.IMPLEMENTATIONS[name]) for name in names))
        return 0
    implementation = wild.IMPLEMENTATIONS[args.implementation] if args.implementation else None
    names = [field.name for field in dataclasses.fields(TrainingConfig)]
    chosen = {name: v for name in names if (v := getattr(args, name)) is not None}
    recipe = {"compile": None, **(implementation.recipe if implementation else {}), **chosen}
    settings, fit_options = split_recipe(recipe)
    fabric = make_fabric(args.device)
    is_main = fabric.is_global_zero  # this process alone prints
    model, source = network_to_train(args, implementation, recipe)
    if args.test:
        source.parts_of("test")  # which raises if there is none
    if "validation" not in source.parts and not args.all:
        raise ValueError(
            f"{source.name} has too few pictures for a validation set: train on all of them with "
            "--all"
        )
    parts = [part for part in source.parts if part != "test" or args.test]
    if source.folder and args.out.resolve().is_relative_to(source.folder.resolve()):
        raise ValueError(
            f"{args.out} is inside the data folder {source.folder}, of which it would become a "
            "part: choose another --out"
        )
    sets = source.read(parts, progress=is_main)
    test, train_set, validation = sets.pop("test", None), sets["train"], sets.get("validation")
    if args.all:
        train_set, validation = folders.concatenated(sets.values()), None
        if implementation and args.dataset == "mnist":
            train_set = train_set.subset(slice(implementation.images))
    config = TrainingConfig.for_model(model, len(train_set), **settings)
    if is_main:
        parameters = sum(p.numel() for p in model.parameters())
        print(f"{parameters:,} parameters, {len(train_set):,} images, {fabric.device}")
        text = f"{config.epochs} epoch{'s' * (config.epochs > 1)}"
        if "epochs" not in settings and config.epochs > TrainingConfig.epochs:
            text += f", as {len(train_set):,} images are few (--epochs sets another number)"
        text += f", batches of {config.batch_size}, learning rate {config.learning_rate:g}"
        print(text, flush=True)
    tag = f"from {zlib.crc32(args.init.read_bytes()):08x}" if args.init else None
    if isinstance(model, wild.WildCapsNet):
        fit_options["make_loss"] = wild.WildLoss
    if model.config.get("routing") == "em":
        # Its source's; the margin loss hardly moves it.
        fit_options["criterion"] = routings.spread_loss
    fit_options["metadata"] = {"preparation": source.preparation}
    fit_options |= {"out": args.out, "fabric": fabric, "tag": tag}
    training.fit(model, train_set, validation, config, **fit_options)
    if is_main:
        print(f"weights: {args.out / arguments.WEIGHTS}")
        if test:
            outputs.print_evaluation(training.evaluate(model, test))
    return 0


def network_to_train(
    args: argparse.Namespace,
    implementation: "wild.Implementation | None",
    recipe: Mapping[str, Any],
) -> tuple[CapsNet, folders.DataSource]:
    """The network, new or that of --init, and the data set for it."""
    if args.init:
        model, metadata = load_weights(args.init)
        return model, data_for(model, metadata, args.init, args.dataset, args)
    names = arguments.NETWORK_OPTIONS
    options: dict[str, Any] = {name: v for name in names if (v := getattr(args, name)) is not None}
    source = folders.find(args.dataset, args.image_shape, args.preparation)
    sizes: dict[str, Any] = {"image_shape": source.image_shape, "num_classes": len(source.classes)}
    torch.manual_seed(recipe.get("seed", TrainingConfig.seed))
    if implementation is None:
        make = routings.RoutedCapsNet if args.routing or args.stack else CapsNet
        return make(**options, **sizes), source
    model = implementation.without_overridden(recipe).make(**options, **sizes)
    for name, value in options.items():
        if (kept := model.config[name]) != value:  # a deviation's own
            raise ValueError(f"--as {args.implementation} fixes {name} at {kept}, got {value}")
    return model, source


def data_for(
    model: CapsNet, metadata: Mapping[str, Any], weights: Path, name: str, args: argparse.Namespace
) -> folders.DataSource:
    """The data set of a name in a network's format, prepared as what the network learned from.

    Raise ValueError if its classes are not the network's.
    """
    channels, height, width = model.image_shape
    preparation = args.preparation
    if preparation is None and name.startswith("folder:"):
        preparation = folders.preparation_of(metadata)
    source = folders.find(name, (channels, height, width), preparation)
    names = class_names(metadata, model, weights)
    if names != list(source.classes):
        raise ValueError(
            f"the network's classes are {', '.join(names)}; those of {source.name} are "
            f"{', '.join(source.classes)}"
        )
    return source


def evaluate(args: argparse.Namespace) -> int:
    device = pick_device(args.device)
    model, metadata = load_weights(args.weights)
    trained_on = metadata.get("dataset")
    name = args.dataset or trained_on
    if not isinstance(name, str):
        raise ValueError(f"{args.weights} does not say on what it was trained: give --dataset")
    source = data_for(model, metadata, args.weights, name, args)
    arguments.check_not_overwritten(args, [args.weights, *source.files()])
    # Of a folder that is not split, all pictures are for the test, unless the network learned from
    # a folder: that may be this one, moved.
    unseen = source.folder and not source.divided and not str(trained_on).startswith("folder:")
    split = args.split or ("all" if unseen else "test")
    sets = source.read(source.parts_of(split), progress=True)
    images = folders.concatenated(sets.values())
    result = training.evaluate(model.to(device), images, args.batch_size)
    # Files first: they are there even if nobody reads the text to its end.
    if args.json:
        facts = {"dataset": name, "split": split, "weights": metadata}
        write_json(args.json, facts | result.summary())
    outputs.print_evaluation(result)
    return 0


def predict(args: argparse.Namespace) -> int:
    pictures = predictions.find_pictures(args.pictures)
    arguments.check_not_overwritten(args, [args.weights, *pictures])
    device = pick_device(args.device)
    model, metadata = load_weights(args.weights)
    classes = class_names(metadata, model, args.weights)
    preparation = args.preparation or folders.preparation_of(metadata)
    results = predictions.predict(model.to(device), classes, pictures, preparation, args.threshold)
    answered, failed = outputs.print_predictions(results, len(pictures))
    if answered:
        outputs.write_predictions(args, answered, classes, len(pictures))
    errors = [prediction.error for prediction in [*answered, *failed] if prediction.error]
    if len(pictures) == 1 and errors:
        raise errors[0]
    if failed:
        from capsnet_lab.pictures import describe_unreadable

        names, first = [prediction.picture for prediction in failed], failed[0].error
        raise ValueError(describe_unreadable(names, first, len(pictures)))
    if len(errors) == len(pictures):
        raise ValueError(f"none of {len(pictures)} pictures is classified; the first: {errors[0]}")
    return 0


def export(args: argparse.Namespace) -> int:
    from capsnet_lab.export import export_onnx

    arguments.check_not_overwritten(args, [args.weights])
    model, _ = load_weights(args.weights)
    difference = export_onnx(model, args.onnx)
    print(f"{args.onnx}: onnxruntime and PyTorch differ by at most {difference:.1e}")
    return 0


def check(args: argparse.Namespace) -> int:
    from capsnet_lab.check.checker import check_by_name

    report = check_by_name(args.network, args.adapter, args.image_shape, args.routing)
    print(report)
    if report.failed:
        return 3
    if report.found or report.unnamed:
        return 1
    return 3 if report.unrouted else 0


def class_names(metadata: Mapping[str, Any], model: CapsNet, weights: Path) -> list[str]:
    """The names of a network's classes, as its weights file has them; else 0, 1, 2 …."""
    count = model.num_classes
    names = [str(name) for name in metadata.get("classes", range(count))]
    if len(names) != count:
        raise ValueError(f"{weights} should name {count} classes, it names {names}")
    return names
