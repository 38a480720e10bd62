"""The data sets that the command line takes: one by name, or a folder of pictures a class."""

import contextlib
import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from capsnet import data
from capsnet.data import ImageSet
from capsnet_lab.pictures import (
    crop_and_resize,
    describe_unreadable,
    folders_in,
    open_picture,
    pictures_in,
    read_picture,
    read_pictures,
)

Shape = tuple[int, int, int]  # of an image: channels, height, width
Labelled = list[tuple[Path, int]]  # pictures and their labels

# The parts of a data set, and what the folder of each may be called, in any case of letters.
PARTS = {
    "train": ("train", "training"),
    "validation": ("val", "valid", "validation"),
    "test": ("test", "testing"),
}
# How pictures are prepared for a network that was trained on a data set by name; all others learn
# from pictures as they are.
PREPARATION_BY_NAME = {"mnist": "digit", "fashion-mnist": "figure"}
SEED = 0
SAMPLE_SIZE = 50  # pictures that decide size and colour
KEPT_SIDES = range(17, 49)  # pixels: pictures that all have one of these sizes keep it
MIN_TINT = 16  # levels between the channels of a coloured pixel; those of grey JPEGs differ by less
MAX_LISTED_CLASSES = 20  # of more, the images of each are not counted
MIN_CORRELATION = 0.98  # of an image of MNIST's kind, or of its negative, with its figure


def load_split(name: str, split: str = "train") -> ImageSet:
    """Load the images of ``folder:PATH``, or of a data set by its name.

    Args:
        name: ``folder:PATH``, or a name that :func:`capsnet.data.load` knows.
        split: "train", "validation", "test" or "all". Where a data set has no validation images
            of its own, "train" includes "validation", which is about a sixth of it.

    Raises:
        ValueError: an unknown name or split, pictures that cannot be read, or a folder that is no
            data set.
        FileNotFoundError: the data are neither here nor to be downloaded.
    """
    source = find(name)
    return concatenated(source.read(source.parts_of(split)).values())


def find(
    name: str, image_shape: Shape | None = None, preparation: str | None = None
) -> "DataSource":
    """Look a data set up before its images are read; name and errors as of :func:`load_split`.

    For a folder, an ``image_shape`` of None means colour if some picture has any, else grey; and
    the size of the pictures if all have the same, of 17 to 48 pixels, else 32 × 32 in colour and
    28 × 28 in grey. A ``preparation`` of None means "figure" if that leaves the pictures as they
    are, or makes them their negatives, as MNIST's would be; else "picture". Images by name have one
    shape and one preparation; any other is refused.
    """
    if name.startswith("folder:"):
        return find_folder(name, image_shape, preparation)
    if name not in data.NAMES:
        known = ", ".join([*data.NAMES, "folder:PATH"])
        raise ValueError(f"unknown data set {name!r}; expected one of: {known}")
    shape = (3, 32, 32) if name == "cifar-10" else (1, 28, 28)
    if image_shape not in (None, shape):
        raise ValueError(
            f"the images of {name} are {shape} [channels, height, width], not {image_shape}"
        )
    prepared = PREPARATION_BY_NAME.get(name, "picture")
    if preparation not in (None, prepared):
        raise ValueError(f"the images of {name} are prepared already, as {prepared}")
    split_by = "validation is the last sixth for training"
    return DataSource(name, data.CLASSES[name], shape, prepared, split_by, [*PARTS])


def preparation_of(metadata: Mapping[str, Any]) -> str:
    """How pictures are prepared for a network, by what its weights file says."""
    by_name = PREPARATION_BY_NAME.get(str(metadata.get("dataset")), "picture")
    return str(metadata.get("preparation", by_name))


def concatenated(sets: Iterable[ImageSet]) -> ImageSet:
    """One set of all images."""
    first, *others = sets
    images = torch.cat([first.images, *(other.images for other in others)])
    labels = torch.cat([first.labels, *(other.labels for other in others)])
    return replace(first, images=images, labels=labels)


@dataclass
class DataSource:
    """A data set before it is read: what it holds and how it is split."""

    name: str
    classes: tuple[str, ...]
    image_shape: Shape
    preparation: str  # how pictures become its images
    split_by: str  # what divides the images into parts, for the user
    parts: Sequence[str]  # those that have images
    holds_out: bool = True  # its validation images are some of those it has for training
    folder: Path | None = None  # None for a data set by its name
    divided: bool = False  # by the folder's owner
    pictures: dict[str, Labelled] = field(default_factory=dict)  # of a folder's parts

    def parts_of(self, split: str) -> Sequence[str]:
        """The parts that make up a split. Raises ValueError if the data set has no such split."""
        if split == "all":
            return self.parts
        if split == "train" and self.holds_out:
            return [part for part in self.parts if part != "test"]
        if split not in self.parts:
            known = ", ".join((*self.parts, "all"))
            raise ValueError(f"{self.name} has no {split!r} images; its splits are: {known}")
        return (split,)

    def files(self) -> list[Path]:
        """All pictures of a folder."""
        return [path for labelled in self.pictures.values() for path, _ in labelled]

    def read(self, parts: Sequence[str], progress: bool = False) -> dict[str, ImageSet]:
        """Read the images of each part; print what is read and show a bar if ``progress``.

        Raises ValueError if a picture cannot be read.
        """
        if self.folder is None:
            return self.load(parts, progress)
        labels = {part: [label for _, label in self.pictures[part]] for part in parts}
        if progress:
            print(self.describe(labels), flush=True)
        paths = [path for part in parts for path, _ in self.pictures[part]]
        images, errors = read_pictures(paths, self.image_shape, self.preparation, progress)
        if errors:
            names = [str(paths[i].relative_to(self.folder)) for i in errors]
            raise ValueError(describe_unreadable(names, next(iter(errors.values())), len(paths)))
        if progress:
            distinct = {hash(image.numpy().tobytes()) for image in images}
            if copies := len(paths) - len(distinct):
                total = f"{len(paths):,} images"
                print(f"  warning: {copies:,} of {total} are copies of others", flush=True)
        name = f"folder:{self.folder.resolve()}"  # by the full path evaluate finds the folder again
        sets = {}
        for part in parts:
            count = len(labels[part])
            sets[part] = ImageSet(images[:count], torch.tensor(labels[part]), self.classes, name)
            images = images[count:]
        return sets

    def load(self, parts: Sequence[str], progress: bool) -> dict[str, ImageSet]:
        """Read the parts of a data set by its name."""
        sets = {}
        if {*parts} - {"test"}:
            sets["train"], sets["validation"] = data.hold_out(data.load(self.name, True))
        if "test" in parts:
            sets["test"] = data.load(self.name, False)
        sets = {part: sets[part] for part in parts}
        if progress:
            print(self.describe({part: images.labels.tolist() for part, images in sets.items()}))
        return sets

    def describe(self, labels: dict[str, list[int]]) -> str:
        """How many images of which class the parts have, by their labels."""
        total = sum(map(len, labels.values()))
        lines = [
            f"{self.name}: {len(self.classes)} classes, {self.split_by}",
            f"preparation: {self.preparation}",
            f"{total:,} images of {' × '.join(map(str, self.image_shape))}",
        ]
        for part, of_part in labels.items():
            line = f"  {part}: {len(of_part):,}"
            if len(self.classes) <= MAX_LISTED_CLASSES:
                count = Counter(of_part)
                sizes = [f"{name}: {count[k]:,}" for k, name in enumerate(self.classes)]
                line += f" ({'; '.join(sizes)})"
            lines.append(line)
        return "\n".join(lines)


def find_folder(name: str, image_shape: Shape | None, preparation: str | None) -> DataSource:
    """Look through a folder; its pictures are decoded when they are read."""
    folder = Path(name.removeprefix("folder:")).expanduser()
    if not folder.is_dir():
        raise FileNotFoundError(f"no such folder: {folder}")
    part_folder = part_folders(folder)
    pictures: dict[str, Labelled] = {}
    classes: list[str] = []
    for part, root in (part_folder or {"train": folder}).items():
        class_folders = folders_in(root)
        names = [class_folder.name for class_folder in class_folders]
        if len(names) < 2:
            got = ", ".join(names) or "none"
            raise ValueError(
                f"{root} must hold two or more class folders, each with its pictures, got {got}"
            )
        classes = classes or names
        if names != classes:
            raise ValueError(f"{name}: {root.name}/ must hold the classes {classes}, got {names}")
        pictures[part] = []
        for label, class_folder in enumerate(class_folders):
            pictures[part] += [(path, label) for path in pictures_in(class_folder)]

    split_by = "split by file names"
    if part_folder:
        split_by = f"split by {', '.join(f'{root.name}/' for root in part_folder.values())}"
        if others := [f.name for f in folders_in(folder) if f not in part_folder.values()]:
            split_by += f", without {', '.join(f'{other}/' for other in others)}"
    else:
        split_off(pictures, "test", folder, 1 / 6)
    if holds_out := "validation" not in pictures:
        # A sixth of what is left.
        split_off(pictures, "validation", folder, 1 / 6 if part_folder else 11 / 36)
        split_by += ", validation by file names" if part_folder else ""
    if lost := {*range(len(classes))} - {label for _, label in pictures["train"]}:
        names_lost = ", ".join(classes[label] for label in sorted(lost))
        raise ValueError(f"{name}: too few pictures of {names_lost}: all of them are held out")

    # Mixed, so that the first of them are of all classes.
    train = pictures["train"]
    order = torch.randperm(len(train), generator=torch.Generator().manual_seed(SEED)).tolist()
    pictures["train"] = [train[i] for i in order]
    sample = [path for path, _ in pictures["train"][:SAMPLE_SIZE]]
    image_shape = image_shape or shape_of(sample)
    return DataSource(
        name,
        tuple(map(printable, classes)),
        image_shape,
        preparation or preparation_for(sample, image_shape),
        split_by,
        [part for part in PARTS if pictures.get(part)],
        holds_out,
        folder,
        bool(part_folder),
        pictures,
    )


def printable(name: str) -> str:
    """The name of a folder, any bytes, as what a figure and a table can hold."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in name)


def part_folders(folder: Path) -> dict[str, Path]:
    """The folders of the parts into which a folder is split by its owner; {} if it is not.

    A class may be called train, but holds no folders.
    """
    found: dict[str, Path] = {}
    for part, known in PARTS.items():
        for inner in folders_in(folder):
            if inner.name.lower() in known:
                found[part] = inner
    return found if "train" in found and folders_in(found["train"]) else {}


def split_off(pictures: dict[str, Labelled], part: str, folder: Path, limit: float) -> None:
    """Take another part out of the pictures for training: those whose hash is below a limit.

    Each picture's own name decides, so those of a folder that has grown, or moved, stay what they
    were.
    """
    kept: Labelled = []
    taken: Labelled = []
    for path, label in pictures["train"]:
        held = name_hash(path.relative_to(folder)) < limit
        (taken if held else kept).append((path, label))
    pictures["train"], pictures[part] = kept, taken


def name_hash(name: Path) -> float:
    """A number in [0, 1) that looks random and is always the same for a name."""
    digest = hashlib.blake2b(os.fsencode(name.as_posix()), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def preparation_for(paths: list[Path], image_shape: Shape) -> str:
    """That of a figure, if these pictures or their negatives are images of MNIST's kind already."""
    preparation = "picture"  # if not one of them can be read
    for path in paths:
        try:
            picture = read_picture(path, image_shape).flatten().double()
        except (ValueError, OSError):
            continue
        try:
            figure = read_picture(path, image_shape, "figure").flatten().double()
        except ValueError:  # it is blank
            return "picture"
        if torch.corrcoef(torch.stack([picture, figure]))[0, 1].abs() < MIN_CORRELATION:
            return "picture"
        preparation = "figure"
    return preparation


def shape_of(paths: list[Path]) -> Shape:
    """The shape for pictures like these; unreadable ones do not count."""
    sizes, coloured = set(), False
    for path in paths:
        with contextlib.suppress(ValueError, OSError):
            picture = open_picture(path)
            sizes.add(picture.size)
            small = crop_and_resize(picture, 3, 32, 32).int()
            tinted = small.amax(dim=0) - small.amin(dim=0) > MIN_TINT
            coloured |= bool(tinted.float().mean() > 0.01)
    channels, side = (3, 32) if coloured else (1, 28)  # CIFAR-10's, MNIST's
    width, height = sizes.pop() if len(sizes) == 1 else (0, 0)
    if width in KEPT_SIDES and height in KEPT_SIDES:
        return channels, height, width
    return channels, side, side
