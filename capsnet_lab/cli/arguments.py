"""Checks of the arguments, before any work is done and without PyTorch."""

import argparse
import contextlib
import json
from collections.abc import Sequence
from pathlib import Path

from capsnet_lab.cli.options import DATASETS, PRETRAINED, WEIGHTS_SUFFIXES

# The files of a training's folder, as capsnet.training.run names them.
CHECKPOINT, WEIGHTS = "checkpoint.safetensors", "weights.safetensors"
NETWORK_OPTIONS = ("routing", "stack", "routing_iterations", "learn_prior", "reconstruct")


def check_arguments(args: argparse.Namespace) -> None:
    """Refuse what is wrong for any network and any pictures; fill in defaults.

    Raises:
        ValueError: arguments that contradict each other, or weights that would be overwritten.
        FileNotFoundError: a file that is missing.
    """
    if args.command == "predict":
        args.weights, args.pictures = split_operands(args.operands)
    named = [getattr(args, name, None) for name in ("weights", "init")]
    for path in [*named, *getattr(args, "pictures", ())]:
        if isinstance(path, Path) and not path.exists():
            advice = ""
            if path.name == WEIGHTS and path.with_name(CHECKPOINT).exists():
                advice = "; the training that writes it is unfinished, so repeat its command"
            raise FileNotFoundError(f"no such file: {path}{advice}")
    if args.command == "train" and not args.list_implementations:
        check_training(args)


def split_operands(operands: Sequence[Path | str]) -> tuple[Path | str, list[Path]]:
    """The weights and the pictures that `predict` is given: weights come first, if at all.

    The name of a network that stands alone is a picture or a folder if there is one of this name.
    """
    first, pictures = operands[0], [Path(operand) for operand in operands]
    named = isinstance(first, str) and (len(pictures) > 1 or not pictures[0].exists())
    if not named and pictures[0].suffix not in WEIGHTS_SUFFIXES:
        return PRETRAINED[-1], pictures
    if len(pictures) == 1:
        raise ValueError(f"expected a picture too, as in: capsnet predict {first} photo.png")
    return first, pictures[1:]


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
    for name in ("sheet", "json", "onnx"):
        path = getattr(args, name, None)
        if path and path.exists() and any(path.samefile(other) for other in inputs):
            raise ValueError(f"{path} would be overwritten: it is an input")
