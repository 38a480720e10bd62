"""The data sets that the command line takes: one by name, or a folder of pictures a class."""

import hashlib
import math
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from capsnet import data
from capsnet.data import ImageSet
from capsnet_lab.pictures import (
    check_shape,
    describe_unreadable,
    open_picture,
    pictures_in,
    plain,
    read_pictures,
)

Shape = tuple[int, int, int]  # of an image: channels, height, width
Group = tuple[str, ...]  # parts whose images come as one set, such as ("train", "validation")

# What the folder of a part may be called, in any case of letters.
PART_NAMES = {
    "train": ("train", "training"),
    "validation": ("val", "valid", "validation"),
    "test": ("test", "testing"),
}
SEED = 0
SAMPLE = 50  # pictures that decide size and colour
SIDES = range(17, 49)  # pixels: pictures of one size within keep it
TINT = 16  # levels between the channels of a coloured pixel; those of grey JPEGs differ by less
MANY = 20  # classes: of more, only the smallest and the largest are named
UNEQUAL = 3  # times as many images in the largest class as in the smallest are worth a warning


def load(
    name: str,
    split: str = "train",
    *,
    image_shape: Shape | None = None,
    download: bool = True,
    skip_unreadable: bool = False,
    progress: bool = False,
) -> ImageSet:
    """Load the images of ``folder:PATH``, or of a data set by its name.

    Args:
        name: ``folder:PATH``, or a name that :func:`capsnet.data.load` knows.
        split: "train", "validation", "test" or "all". Where a data set has no validation images
            of its own, "train" includes "validation", which is the last sixth of it.
        image_shape: (channels, height, width). For a folder, None means colour if some picture has
            any, else grey; and the size of the pictures if all have the same, of 17 to 48 pixels,
            else 32 × 32 in colour and 28 × 28 in grey. Of images by name, the middle is cut out.
        download: whether to download what is missing.
        skip_unreadable: leave out pictures that cannot be read.
        progress: print what is read; show a bar on stderr.

    Raises:
        ValueError: an unknown name or split, pictures that cannot be read, a folder that is no
            data set, or a shape that images by name do not have.
        FileNotFoundError: the data are neither here nor to be downloaded.
    """
    source = find(name, image_shape, download)
    group = source.group(split)
    return source.read(group, skip_unreadable=skip_unreadable, progress=progress)[0]


def find(name: str, image_shape: Shape | None = None, download: bool = True) -> "Source":
    """Look a data set up before its images are read; arguments and errors as of :func:`load`.

    ``learned, validation = find(name).read(("train",), ("validation",))`` is for training.
    """
    if image_shape is not None:
        check_shape(image_shape)
    if name.startswith("folder:"):
        return Folder(name, image_shape)
    return Named(name, image_shape, download)


@dataclass
class Source:
    """A data set before it is read: what it holds and how it is split."""

    name: str
    classes: tuple[str, ...]
    image_shape: Shape
    split_by: str  # what divides the images into parts, for the user
    parts: Group = ("train", "validation", "test")
    holds_out: bool = True  # its validation images are a sixth of those it has for training
    shape_by: str = ""  # why images have this shape, if none was asked for; for the user

    def group(self, split: str) -> Group:
        """The parts that make up a split.

        Raises:
            ValueError: the data set has no such split.
        """
        if split == "all":
            return self.parts
        if split == "train" and self.holds_out:
            return "train", "validation"
        if split not in self.parts:
            known = ", ".join((*self.parts, "all"))
            raise ValueError(f"{self.name} has no {split!r} images; its splits are: {known}")
        return (split,)

    def read(
        self, *groups: Group, skip_unreadable: bool = False, progress: bool = False
    ) -> list[ImageSet]:
        """Read an image set for each group of parts; arguments and errors as of :func:`load`."""
        raise NotImplementedError

    def describe(self, groups: tuple[Group, ...], labels: dict[str, list[int]]) -> str:
        """Which images serve for what, by the labels of the parts; other groups are not read."""
        read = [[label for part in group for label in labels[part]] for group in groups]
        total, shape = sum(map(len, read)), " × ".join(map(str, self.image_shape))
        memory = f"{total * math.prod(self.image_shape) / 1e6:,.1f} MB in memory as uint8"
        lines = [
            f"{self.name}: {len(self.classes)} classes, {self.split_by}",
            f"{total:,} images of {shape}{self.shape_by}, {memory}",
        ]
        for group, of_group in zip(groups, read, strict=True):
            count = Counter(of_group)
            by_size = sorted(range(len(self.classes)), key=count.__getitem__)
            sizes = [f"{self.classes[k]}: {count[k]:,}" for k in by_size]
            shown = sizes if len(sizes) <= MANY else [sizes[0], "…", sizes[-1]]
            lines.append(f"  {' and '.join(group)}: {len(of_group):,} ({'; '.join(shown)})")
            if count[by_size[-1]] > UNEQUAL * count[by_size[0]]:
                lines.append(f"  warning: unequal classes, from {sizes[0]} to {sizes[-1]}")
        for part, of_part in labels.items():
            if not any(part in group for group in groups):
                lines.append(f"  {part}: {len(of_part):,}, not read now")
        return "\n".join(lines)


class Named(Source):
    """A data set by its name; of its images the middle, where a smaller shape is asked for."""

    def __init__(self, name: str, image_shape: Shape | None, download: bool) -> None:
        if name not in data.NAMES:
            known = ", ".join([*data.NAMES, "folder:PATH"])
            raise ValueError(f"unknown data set {name!r}; expected one of: {known}")
        whole = (3, 32, 32) if name in ("cifar-10", "svhn") else (1, 28, 28)
        shape = image_shape or whole
        self.top, self.left = (whole[1] - shape[1]) // 2, (whole[2] - shape[2]) // 2
        if shape[0] != whole[0] or min(self.top, self.left) < 0:
            raise ValueError(
                f"the images of {name} are {whole} [channels, height, width], not {tuple(shape)}"
            )
        split_by = "validation is the last sixth for training"
        super().__init__(name, data.CLASSES[name], shape, split_by)
        self.download = download

    def read(
        self, *groups: Group, skip_unreadable: bool = False, progress: bool = False
    ) -> list[ImageSet]:
        wanted = {part for group in groups for part in group}
        parts: dict[str, ImageSet] = {}
        if wanted - {"test"}:
            learned = data.load(self.name, True, download=self.download)
            parts["train"], parts["validation"] = data.hold_out(learned)
        if "test" in wanted:
            parts["test"] = data.load(self.name, False, download=self.download)
        if progress:
            labels = {part: images.labels.tolist() for part, images in parts.items()}
            print(self.describe(groups, labels), flush=True)
        _, height, width = self.image_shape
        rows = slice(self.top, self.top + height)
        columns = slice(self.left, self.left + width)
        sets = []
        for group in groups:
            images = torch.cat([parts[part].images[:, :, rows, columns] for part in group])
            labels_of_group = torch.cat([parts[part].labels for part in group])
            sets.append(ImageSet(images, labels_of_group, self.classes, self.name))
        return sets


class Folder(Source):
    """A folder that is looked through; its pictures are decoded when it is read.

    Attributes:
        own: the folders of the parts into which its owner has split it, {} if it is not split.
        pictures: the files of each part and their labels.
    """

    def __init__(self, name: str, image_shape: Shape | None) -> None:
        if name == "folder:":
            raise ValueError("expected folder:PATH, got 'folder:', whose PATH is empty")
        self.path = Path(name.removeprefix("folder:")).expanduser()
        self.own = own_parts(self.path)
        if self.own:
            found = {part: class_folders(folder) for part, folder in self.own.items()}
            check_same_classes(self.path, self.own, found)
            split_by = "split by " + ", ".join(f"{folder.name}/" for folder in self.own.values())
        else:
            found = split_by_name(self.path, class_folders(self.path))
            split_by = "split by their names: about a sixth of each class is for test"
        self.pictures = {
            part: [(path, label) for label, files in enumerate(of.values()) for path in files]
            for part, of in found.items()
        }
        # Mixed, so that the first and the last of them are of all classes.
        train = self.pictures["train"]
        train = self.pictures["train"] = [train[i] for i in mixed(len(train))]
        if holds_out := "validation" not in found:
            kept = len(train) - len(train) // 6
            self.pictures |= {"train": train[:kept], "validation": train[kept:]}
            split_by += "; a sixth of the training pictures is for validation"
        shape_by = ""
        if image_shape is None:
            image_shape, shape_by = shape_of(path for path, _ in train)
        parts = tuple(part for part in PART_NAMES if part in self.pictures)
        classes = tuple(found["train"])
        super().__init__(name, classes, image_shape, split_by, parts, holds_out, shape_by)

    def files(self) -> list[Path]:
        """The pictures of all parts."""
        return [file for of_part in self.pictures.values() for file, _ in of_part]

    def folders(self) -> list[Path]:
        """The folders in which whatever lies is taken for a picture or a class."""
        return [*self.own.values()] if len(self.own) > 1 else [self.path]

    def read(
        self, *groups: Group, skip_unreadable: bool = False, progress: bool = False
    ) -> list[ImageSet]:
        """Decode the pictures of all groups, in parallel.

        Raises:
            ValueError: a group is empty, or so is one of its classes without the unreadable
                pictures; or there are unreadable pictures, and skip_unreadable is not given.
        """
        wanted = [[p for part in group for p in self.pictures[part]] for group in groups]
        for group, pictures in zip(groups, wanted, strict=True):
            if not pictures:
                what = " and ".join(group)
                raise ValueError(f"{self.name} is too small: no picture is for {what}")
        if progress:
            labels = {part: [k for _, k in of_part] for part, of_part in self.pictures.items()}
            print(self.describe(groups, labels), flush=True)
        paths = [path for pictures in wanted for path, _ in pictures]
        images, errors = read_pictures(paths, self.image_shape, progress=progress)
        if errors:
            names = [str(paths[i].relative_to(self.path)) for i in errors]
            message = describe_unreadable(names, next(iter(errors.values())), len(paths))
            if not skip_unreadable:
                raise ValueError(f"{message}; --skip-unreadable leaves them out")
            if progress:
                print(f"left out: {message}", flush=True)
        sets, start = [], 0
        for group, pictures in zip(groups, wanted, strict=True):
            stop = start + len(pictures)
            readable = [i for i in range(len(pictures)) if start + i not in errors]
            sets.append(self.image_set(group, pictures, images[start:stop], readable))
            start = stop
        return sets

    def image_set(
        self, group: Group, pictures: list[tuple[Path, int]], images: Tensor, readable: list[int]
    ) -> ImageSet:
        """The readable ones of a group's pictures, once it is certain that no class is lost."""
        labels = [label for _, label in pictures]
        if lost := sorted({*labels} - {labels[i] for i in readable}):
            names, what = ", ".join(self.classes[k] for k in lost), " and ".join(group)
            raise ValueError(f"{self.name}: not one picture of {names} for {what} can be read")
        # By the full path evaluate finds the folder again.
        name = f"folder:{self.path.resolve()}"
        found = ImageSet(images, torch.tensor(labels), self.classes, name)
        return found if len(readable) == len(labels) else found.subset(readable)


def own_parts(folder: Path) -> dict[str, Path]:
    """The folders of the parts into which a folder is split by its owner; {} if it is not."""
    if not folder.is_dir():
        raise FileNotFoundError(f"no such folder: {folder}")
    folders = folders_in(folder)
    own: dict[str, Path] = {}
    for part, names in PART_NAMES.items():
        matching = [f for f in folders if f.name.lower() in names]
        if len(matching) > 1:
            both = " and ".join(f"{f.name}/" for f in matching)
            raise ValueError(f"{folder} has {both}: which of them is for {part}?")
        if matching:
            own[part] = matching[0]
    if "train" in own and (len(own) > 1 or len(folders) == 1):
        return own
    if own and len(own) == len(folders):
        have = " and ".join(f"{f.name}/" for f in folders)
        raise ValueError(f"{folder} has {have} but no train/")
    return {}  # a class may be called train, among others


def check_same_classes(
    folder: Path, own: dict[str, Path], found: dict[str, dict[str, list[Path]]]
) -> None:
    """Raise ValueError if a part has other classes than train."""
    for part, classes in found.items():
        if odd := sorted(classes.keys() ^ found["train"].keys()):
            two = f"{own['train'].name}/ and {own[part].name}/"
            raise ValueError(f"{folder}: {two} must hold the same classes, not so: {odd}")


def class_folders(folder: Path) -> dict[str, list[Path]]:
    """The pictures in each class folder and in the folders in it."""
    classes = folders_in(folder)
    if len(classes) < 2:
        found = f"only {classes[0].name}/" if classes else "none"
        raise ValueError(
            f"{folder} must hold two or more class folders, each with its pictures, got {found}"
        )
    return {kind.name: pictures_in(kind) for kind in classes}


def folders_in(folder: Path) -> list[Path]:
    return sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))


def split_by_name(folder: Path, classes: dict[str, list[Path]]) -> dict[str, dict[str, list[Path]]]:
    """About a sixth of each class for test, at least one of two pictures and never all.

    Each picture's own name decides, so those of a folder that has grown, or moved, stay what they
    were. Only in a class of few, where none or all would be held, do the others count.
    """
    parts: dict[str, dict[str, list[Path]]] = {"train": {}, "test": {}}
    for kind, files in classes.items():
        draw = {path: name_hash(path.relative_to(folder)) for path in files}
        order = sorted(files, key=draw.__getitem__)
        held = {path for path in files if draw[path] < 1 / 6}
        held = (held | {*order[:1]}) - {*order[-1:]}
        parts["train"][kind] = [path for path in files if path not in held]
        parts["test"][kind] = [path for path in files if path in held]
    return parts


def name_hash(name: Path) -> float:
    """A number in [0, 1) that looks random and is always the same for a name."""
    digest = hashlib.blake2b(os.fsencode(name.as_posix()), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def mixed(count: int) -> list[int]:
    """0 … count - 1 in an order that is always the same."""
    return torch.randperm(count, generator=torch.Generator().manual_seed(SEED)).tolist()


def shape_of(paths: Iterable[Path]) -> tuple[Shape, str]:
    """The shape for pictures that begin with these, and why; unreadable ones do not count."""
    sizes, coloured, seen = set(), False, 0
    for path in paths:
        try:
            picture = open_picture(path)
        except (ValueError, OSError):
            continue
        sizes.add(picture.size)
        small = plain(picture, 3, 32, 32).int()
        tinted = small.amax(dim=0) - small.amin(dim=0) > TINT
        coloured |= bool(tinted.float().mean() > 0.01)
        seen += 1
        if seen == SAMPLE:
            break
    channels, kind, side = (3, "colour", 32) if coloured else (1, "grey", 28)  # CIFAR-10's, MNIST's
    width, height = sizes.pop() if len(sizes) == 1 else (0, 0)
    if width in SIDES and height in SIDES:
        return (channels, height, width), f" ({kind} pictures of this size)"
    size = f"{width} × {height} pixels" if width else "several sizes"
    return (channels, side, side), f" ({kind} pictures of {size}, cropped and resized)"
