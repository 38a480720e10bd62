"""What the command line was given, refused before any work is done, and without PyTorch."""

import argparse
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from capsnet_lab.cli.options import FIGURE_SUFFIXES, IMPLEMENTATIONS

# The files of a training's folder, as capsnet.training.run names them.
CHECKPOINT, WEIGHTS = "checkpoint.safetensors", "weights.safetensors"
FIGURES = ("figure", "reconstructions", "save", "sheet")  # options that name a figure's file
TEXTS = ("json", "csv")


def check_arguments(args: argparse.Namespace) -> None:
    """Refuse what is wrong whatever the network and the pictures are; fill in train's defaults.

    Raises:
        ValueError: arguments that contradict each other, or a file that would be overwritten.
        OSError: a file that is missing, or cannot be written.
    """
    if args.command == "train":
        if not args.list_implementations:
            check_train(args)
    elif args.command != "check":
        check_input(args.weights)
    if args.command == "evaluate" and args.dataset:
        check_dataset(args.dataset)
    if args.command == "predict":
        for path in args.pictures:
            check_input(path)
        check_pictures(args, args.pictures)
    if args.command in ("evaluate", "predict"):
        check_outputs(args)
    if args.command == "export":
        check_writable(args.onnx)
        check_not_overwritten([args.onnx], [args.weights])


def check_train(args: argparse.Namespace) -> None:
    if args.init:
        names = ("routing", "stack", "routing_iterations", "learn_prior", "reconstruct")
        if any(getattr(args, name) is not None for name in (*names, "image_shape", "like")):
            raise ValueError("--init fixes the network: give no option of its shape with it")
        check_input(args.init)
    if args.like and (args.routing or args.stack):
        raise ValueError("--as fixes the routing: give neither --routing nor --stack with it")
    if args.dataset is None:
        args.dataset = IMPLEMENTATIONS[args.like or "paper"]
    check_dataset(args.dataset)
    if args.out is None:
        name = args.dataset
        if name.startswith("folder:"):
            name = data_folder(name).resolve().name
        args.out = Path("runs", f"{name}-{args.like}" if args.like else name)
    check_writable(args.out / WEIGHTS)
    check_not_overwritten([args.out / WEIGHTS], [args.init] if args.init else [])
    if (args.out / WEIGHTS).exists() and not (args.out / CHECKPOINT).exists():
        raise ValueError(
            f"{args.out} holds {WEIGHTS}, which would be overwritten, but no {CHECKPOINT} to go on "
            "from: choose another --out, or move them away"
        )


def data_folder(dataset: str) -> Path:
    return Path(os.path.expanduser(dataset.removeprefix("folder:")))


def check_dataset(dataset: str) -> None:
    if dataset.startswith("folder:") and not data_folder(dataset).is_dir():
        raise FileNotFoundError(f"no such folder: {data_folder(dataset)}")


def check_input(path: Path) -> None:
    if not path.exists():
        raise FileNotFoundError(f"no such file: {path}")


def check_pictures(args: argparse.Namespace, pictures: Sequence[Path]) -> None:
    """Refuse outputs that do not fit the pictures: first those named, then those in folders."""
    if args.save and len(pictures) > 1:
        raise ValueError(f"--save takes one picture, got {len(pictures)}: --sheet takes many")
    check_not_overwritten(outputs(args), pictures)


def check_apart(out: Path, folders: Sequence[Path]) -> None:
    """Refuse a run's folder that a data folder would take for a class, or for pictures of one."""
    place = out.resolve()
    for folder in folders:
        above = folder.resolve()
        hidden = any(part.startswith(".") for part in place.parts[len(above.parts) :])
        if place.is_relative_to(above) and not hidden:
            raise ValueError(
                f"{place} is inside the data folder {above}, of which it would become a part: "
                "choose another --out"
            )


def outputs(args: argparse.Namespace) -> list[Path]:
    """The files that options name."""
    named = (getattr(args, option, None) for option in (*FIGURES, *TEXTS))
    return [path for path in named if path]


def check_outputs(args: argparse.Namespace) -> None:
    """Check that the files that options name are different ones, and can be written."""
    files = outputs(args)
    if len({path.resolve() for path in files}) < len(files):
        of_command = [option for option in (*FIGURES, *TEXTS) if hasattr(args, option)]
        raise ValueError(f"--{', --'.join(of_command)} must be different files")
    for option in FIGURES:
        path = getattr(args, option, None)
        if path and path.suffix.lower() not in FIGURE_SUFFIXES:
            known = ", ".join(FIGURE_SUFFIXES)
            raise ValueError(f"a figure's file must end in {known}, got {path.name}")
    for path in files:
        check_writable(path)
    check_not_overwritten(files, [args.weights])


def check_not_overwritten(files: Sequence[Path], inputs: Sequence[Path]) -> None:
    for path in files:
        if any(path.exists() and other.exists() and path.samefile(other) for other in inputs):
            raise ValueError(f"{path} would be overwritten: it is an input")


def check_writable(path: Path) -> None:
    """Refuse a file that could not be written, before the work that it is for."""
    if path.exists() and not path.is_file():
        kind = "a folder" if path.is_dir() else "no ordinary file"
        raise OSError(f"cannot write {path}: it is {kind}")
    # Missing folders are made when the file is written: a failed command leaves none behind.
    there = next(folder for folder in path.absolute().parents if os.path.lexists(folder))
    try:
        with tempfile.TemporaryFile(dir=there, buffering=0) as probe:
            probe.write(bytes(4096))  # a full disk takes an empty file
    except OSError as error:
        raise OSError(f"cannot write {path}: {error.strerror or error}") from error
