"""What the command line was given, refused before any work is done, and without PyTorch."""

import argparse
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from capsnet_lab.cli.options import IMPLEMENTATIONS

# The files of a training's folder, as capsnet.training.run names them.
CHECKPOINT, WEIGHTS = "checkpoint.safetensors", "weights.safetensors"
NETWORK_OPTIONS = ("routing", "stack", "routing_iterations", "learn_prior", "reconstruct")
OUTPUTS = ("sheet", "json", "csv", "onnx")


def check_arguments(args: argparse.Namespace) -> None:
    """Refuse what is wrong for any network and any pictures; fill in train's defaults.

    Raises:
        ValueError: arguments that contradict each other, or a file that would be overwritten.
        OSError: a file that is missing, or cannot be written.
    """
    if args.command == "check" or getattr(args, "list_implementations", False):
        return
    if args.command == "train":
        check_network(args)
    named = [getattr(args, name, None) for name in ("weights", "init")]
    inputs = [path for path in (*named, *getattr(args, "pictures", ())) if isinstance(path, Path)]
    for path in inputs:
        if not path.exists():
            raise FileNotFoundError(f"no such file: {path}")
    if args.command == "train" and args.out is None:
        name = args.dataset
        if name.startswith("folder:"):
            name = Path(os.path.expanduser(name.removeprefix("folder:"))).resolve().name
        args.out = Path("runs", f"{name}-{args.like}" if args.like else name)
    files = output_files(args)
    if len({path.resolve() for path in files}) < len(files):
        options = [option for option in OUTPUTS if hasattr(args, option)]
        raise ValueError(f"--{', --'.join(options)} must be different files")
    for path in files:
        check_writable(path)
    check_not_overwritten(files, inputs)
    if args.command == "train" and files[0].exists() and not (args.out / CHECKPOINT).exists():
        raise ValueError(
            f"{args.out} holds {WEIGHTS}, which would be overwritten, but no {CHECKPOINT} to go on "
            "from: choose another --out, or move them away"
        )


def check_network(args: argparse.Namespace) -> None:
    """Check that the options agree on the network; its data set, if none is given, is its own."""
    if args.init:
        names = (*NETWORK_OPTIONS, "image_shape", "like")
        if any(getattr(args, name) is not None for name in names):
            raise ValueError("--init fixes the network: give no option of its shape with it")
    if args.like and (args.routing or args.stack):
        raise ValueError("--as fixes the routing: give neither --routing nor --stack with it")
    if args.dataset is None:
        args.dataset = IMPLEMENTATIONS[args.like or "paper"]


def output_files(args: argparse.Namespace) -> list[Path]:
    """The files that a command writes, as far as options name them."""
    if args.command == "train":
        return [args.out / WEIGHTS]
    return [path for option in OUTPUTS if (path := getattr(args, option, None))]


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
        tempfile.TemporaryFile(dir=there).close()
    except OSError as error:
        raise OSError(f"cannot write {path}: {error.strerror or error}") from error
