"""What the command line was given: files, names and shapes, refused before any work is done."""

import argparse
import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from capsnet import CapsNet
from capsnet.text import reason
from capsnet.training.run import CHECKPOINT, WEIGHTS
from capsnet_lab.folders import Source

FIGURE_SUFFIXES = (".png", ".svg", ".pdf")
ESCAPED = "backslashreplace"  # how what is not UTF-8 in a name is told, as on stderr


def given_path(text: str) -> Path:
    """A path, not the empty one: a shell's empty variable would be the current folder."""
    if not text:
        raise argparse.ArgumentTypeError("expected a path, got an empty one")
    return Path(text)


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


def check_apart(out: Path, folders: list[Path]) -> None:
    """Refuse a run's folder that a data set's folder would take for a class, or pictures of one."""
    place = out.resolve()
    for folder in folders:
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
        with tempfile.TemporaryFile(dir=there, buffering=0) as probe:
            probe.write(bytes(4096))  # a full disk takes an empty file
    except OSError as error:
        raise OSError(f"cannot write {path}: {reason(error)}") from error
