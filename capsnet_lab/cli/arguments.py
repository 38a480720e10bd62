"""Checks of the arguments, before any work is done and without PyTorch."""

import argparse
import contextlib
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from capsnet_lab.cli.options import DATASETS, PRETRAINED, WEIGHTS_SUFFIXES

# The files of a training's folder, as capsnet.training.run names them.
CHECKPOINT, WEIGHTS = "checkpoint.safetensors", "weights.safetensors"
NETWORK_OPTIONS = ("routing", "stack", "routing_iterations", "learn_prior", "reconstruct")
OUTPUTS = ("json", "sheet", "onnx")  # options, and an operand, that name a file to write


def check_arguments(args: argparse.Namespace) -> None:
    """Refuse what is wrong for any network and any pictures; fill in defaults.

    Raises:
        ValueError: arguments that contradict each other, or weights that would be overwritten.
        OSError: a file that is missing, or cannot be written.
    """
    if args.command == "predict":
        args.weights, args.pictures = split_operands(args.operands)
    weights = [getattr(args, name, None) for name in ("weights", "init")]
    for path in weights:
        if isinstance(path, Path):
            check_holds_weights(path)
    for path in [*weights, *getattr(args, "pictures", ())]:
        if isinstance(path, Path) and not path.exists():
            raise FileNotFoundError(f"no such file: {path}")
    if args.command == "train" and not args.list_implementations:
        check_training(args)
    outputs = [path for name in OUTPUTS if (path := getattr(args, name, None))]
    if len({path.resolve() for path in outputs}) < len(outputs):
        raise ValueError("--json and --sheet must be different files")
    for path in outputs:
        check_writable(path)


def split_operands(operands: Sequence[Path | str]) -> tuple[Path | str, list[Path]]:
    """The weights and the pictures that `predict` is given, in whatever order.

    A network's name comes first. Alone, it is a picture or a folder if there is one of this name.
    """
    paths = [Path(operand) for operand in operands]
    files = [path for path in paths if path.suffix in WEIGHTS_SUFFIXES or is_run(path)]
    if len(files) > 1:
        raise ValueError(f"expected the weights of one network, got {', '.join(map(str, files))}")
    weights: Path | str = PRETRAINED[-1]
    if files:
        weights = files[0]
        paths.remove(weights)
    elif isinstance(operands[0], str) and (len(paths) > 1 or not paths[0].exists()):
        weights = operands[0]
        del paths[0]
    if not paths:
        raise ValueError(f"expected a picture too, as in: capsnet predict {weights} photo.png")
    return weights, paths


def is_run(folder: Path) -> bool:
    """Whether a training has written into this folder."""
    return (folder / CHECKPOINT).is_file() or (folder / WEIGHTS).is_file()


def check_holds_weights(path: Path) -> None:
    """Refuse the folder of a training, or its checkpoint, and say which file has the weights."""
    folder = path if path.is_dir() else path.parent
    unfinished = path.name == WEIGHTS and not path.exists() and is_run(folder)
    if unfinished or is_run(path) or path.name == CHECKPOINT:
        advice = f"give {folder / WEIGHTS}"
        if not (folder / WEIGHTS).is_file():
            advice = "repeat the command that began the training, which writes them at its end"
        raise ValueError(f"expected a file of weights, {path} holds none: {advice}")


def check_training(args: argparse.Namespace) -> None:
    """Check that the options agree on the network; find its data set and the folder of the run."""
    if args.init:
        names = (*NETWORK_OPTIONS, "image_shape", "implementation")
        if any(getattr(args, name) is not None for name in names):
            raise ValueError("--init fixes the network: give no option of its shape with it")
    if args.implementation and (args.routing or args.stack):
        raise ValueError("--as fixes the routing: give neither --routing nor --stack with it")
    if args.dataset is None:
        args.dataset = dataset_of(args.init) if args.init else "mnist"
    if args.out is None:
        name = args.dataset
        if name.startswith("folder:"):
            name = Path(name.removeprefix("folder:")).expanduser().resolve().name
        args.out = Path("runs", f"{name}-{args.implementation}" if args.implementation else name)
    check_writable(args.out / WEIGHTS)
    if (args.out / WEIGHTS).exists() and not (args.out / CHECKPOINT).exists():
        raise ValueError(
            f"{args.out} holds {WEIGHTS}, which would be overwritten, but no {CHECKPOINT} to go on "
            "from: choose another --out, or move them away"
        )


def dataset_of(weights: Path) -> str:
    """The data set that a file of weights names; ValueError if that is a folder, or there is none.

    Safetensors would import NumPy to read what capsnet.checkpoint wrote.
    """
    content, dataset = weights.read_bytes(), None
    with contextlib.suppress(ValueError, LookupError, TypeError):
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        dataset = json.loads(header["__metadata__"]["capsnet"])["dataset"]
    if dataset not in DATASETS:
        learned = f"was trained on {dataset}" if dataset else "names no data set"
        raise ValueError(f"give --dataset, because {weights} {learned}")
    return dataset


def check_not_overwritten(args: argparse.Namespace, inputs: Sequence[Path]) -> None:
    """Refuse an output that is an input; not every command has every output."""
    for name in OUTPUTS:
        path = getattr(args, name, None)
        if path and path.exists() and any(path.samefile(other) for other in inputs):
            raise ValueError(f"{path} would be overwritten: it is an input")


def check_writable(path: Path) -> None:
    """Refuse a file that could not be written, before the work that it is for."""
    if path.exists() and not path.is_file():
        kind = "a folder" if path.is_dir() else "a device or a pipe"
        raise OSError(f"cannot write {path}: it is {kind}")
    # Missing folders are made when the file is written: a failed command leaves none behind.
    there = next(folder for folder in path.absolute().parents if os.path.lexists(folder))
    try:
        tempfile.TemporaryFile(dir=there).close()
    except OSError as error:
        raise OSError(f"cannot write {path}: {error.strerror or error}") from error
