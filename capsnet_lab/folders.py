"""The data sets that the command line takes: one by name, or a folder of pictures a class."""

import contextlib
import hashlib
import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from capsnet import data
from capsnet.data import ImageSet
from capsnet_lab.pictures import (
    check_preparation,
    check_shape,
    crop_and_resize,
    describe_unreadable,
    folders_in,
    open_picture,
    pictures_in,
    read_picture,
    read_pictures,
)

Shape = tuple[int, int, int]  # of an image: channels, height, width
Classes = dict[str, list[Path]]  # the pictures of each class

# The parts of a data set, and what the folder of each may be called, in any case of letters.
PARTS = {
    "train": ("train", "training"),
    "validation": ("val", "valid", "validation"),
    "test": ("test", "testing"),
}
# How pictures are prepared for a network that was trained on a data set by name; all others learn
# from pictures as they are.
PREPARATION_BY_NAME = {"mnist": "digit", "fashion-mnist": "figure"}
DESCRIPTIONS = {
    "digit": "the ink of one digit, white on black and centred",
    "figure": "the ink, white on black and centred",
    "picture": "the largest centred crop, with its background",
}
SEED = 0
SAMPLE_SIZE = 50  # pictures that decide size and colour
KEPT_SIDES = range(17, 49)  # pixels: pictures that all have one of these sizes keep it
MIN_TINT = 16  # levels between the channels of a coloured pixel; those of grey JPEGs differ by less
MAX_LISTED_CLASSES = 20  # of more, only the smallest and the largest are named
MIN_CORRELATION = 0.98  # of an image of MNIST's kind, or of its negative, with its figure
MIN_PER_CLASS = 6  # pictures: of a class of so many, at least one is held out
MAX_IMBALANCE = 3  # the largest class by the smallest; a larger ratio is worth a warning


def load_split(name: str, split: str = "train") -> ImageSet:
    """Load the images of ``folder:PATH``, or of a data set by its name.

    Args:
        name: ``folder:PATH``, or a name that :func:`capsnet.data.load` knows.
        split: "train", "validation", "test" or "all". Where a data set has no validation images
            of its own, "train" includes "validation", which is the last sixth of it.

    Raises:
        ValueError: an unknown name or split, pictures that cannot be read, or a folder that is no
            data set.
        FileNotFoundError: the data are neither here nor to be downloaded.
    """
    source = find(name)
    return concatenated(source.read(source.parts_of(split)).values())


def find(
    name: str,
    image_shape: Shape | None = None,
    download: bool = True,
    preparation: str | None = None,
) -> "DataSource":
    """Look a data set up before its images are read; name and errors as of :func:`load_split`.

    For a folder, an ``image_shape`` of None means colour if some picture has any, else grey; and
    the size of the pictures if all have the same, of 17 to 48 pixels, else 32 × 32 in colour and
    28 × 28 in grey. A ``preparation`` of None means "figure" if that leaves the pictures as they
    are, or makes them their negatives, as MNIST's would be; else "picture". Of images by name, the
    middle is cut out, and they are prepared already.
    """
    if preparation is not None:
        check_preparation(preparation)
    if image_shape is not None:
        check_shape(image_shape)
    if name.startswith("folder:"):
        return FolderSource(name, image_shape, preparation)
    return NamedSource(name, image_shape, download)


def preparation_of(metadata: Mapping[str, Any]) -> str:
    """How pictures are prepared for a network, by what its weights file says.

    Raise ValueError if the file names an unknown preparation.
    """
    by_name = PREPARATION_BY_NAME.get(str(metadata.get("dataset")), "picture")
    preparation = str(metadata.get("preparation", by_name))
    check_preparation(preparation)
    return preparation


def printable_names(names: Iterable[str]) -> list[str]:
    """Names of folders, any bytes, as what a figure and a table can hold."""
    return ["".join(c if c.isprintable() else ascii(c)[1:-1] for c in name) for name in names]


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
    split_by: str  # what divides the images into parts, for the user
    preparation: str  # how pictures become its images
    parts: Sequence[str] = tuple(PARTS)  # those that have images
    holds_out: bool = True  # its validation images are a sixth of those it has for training
    shape_by: str = ""  # why images have this shape, if none was asked for; for the user
    roots: Sequence[Path] = ()  # every folder in one of them is a class
    files: Sequence[Path] = ()  # its pictures

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

    def read(
        self, parts: Sequence[str], skip_unreadable: bool = False, progress: bool = False
    ) -> dict[str, ImageSet]:
        """Read the images of each part; print what is read and show a bar if ``progress``."""
        raise NotImplementedError

    def describe(self, parts: Sequence[str], labels: dict[str, list[int]]) -> str:
        """How many images of which class the parts have, by their labels; others are not read."""
        total = sum(len(labels[part]) for part in parts)
        memory = f"{total * math.prod(self.image_shape) / 1e6:,.1f} MB in memory as uint8"
        shape = " × ".join(map(str, self.image_shape))
        lines = [
            f"{self.name}: {len(self.classes)} classes, {self.split_by}",
            f"preparation {self.preparation}: {DESCRIPTIONS[self.preparation]}",
            f"{total:,} images of {shape}{self.shape_by}, {memory}",
        ]
        for part, of_part in labels.items():
            if part not in parts:
                lines.append(f"  {part}: {len(of_part):,}, not read now")
                continue
            count = Counter(of_part)
            by_size = sorted(range(len(self.classes)), key=count.__getitem__)
            sizes = [f"{self.classes[k]}: {count[k]:,}" for k in by_size]
            shown = sizes if len(sizes) <= MAX_LISTED_CLASSES else [sizes[0], "…", sizes[-1]]
            lines.append(f"  {part}: {len(of_part):,} ({'; '.join(shown)})")
            if part == "train" and count[by_size[-1]] > MAX_IMBALANCE * count[by_size[0]]:
                lines.append(f"  warning: unequal classes, from {sizes[0]} to {sizes[-1]}")
        return "\n".join(lines)


class NamedSource(DataSource):
    """A data set by its name; of its images the middle, where a smaller shape is asked for."""

    def __init__(self, name: str, image_shape: Shape | None, download: bool) -> None:
        if name not in data.NAMES:
            known = ", ".join([*data.NAMES, "folder:PATH"])
            raise ValueError(f"unknown data set {name!r}; expected one of: {known}")
        whole = (3, 32, 32) if name == "cifar-10" else (1, 28, 28)
        shape = image_shape or whole
        if shape[0] != whole[0] or shape[1] > whole[1] or shape[2] > whole[2]:
            raise ValueError(
                f"the images of {name} are {whole} [channels, height, width], not {tuple(shape)}"
            )
        split_by = "validation is the last sixth for training"
        preparation = PREPARATION_BY_NAME.get(name, "picture")
        super().__init__(name, data.CLASSES[name], shape, split_by, preparation)
        self.download = download

    def read(
        self, parts: Sequence[str], skip_unreadable: bool = False, progress: bool = False
    ) -> dict[str, ImageSet]:
        loaded: dict[str, ImageSet] = {}
        if {*parts} - {"test"}:
            learned = data.load(self.name, True, download=self.download)
            loaded["train"], loaded["validation"] = data.hold_out(learned)
        if "test" in parts:
            loaded["test"] = data.load(self.name, False, download=self.download)
        if progress:
            labels = {part: images.labels.tolist() for part, images in loaded.items()}
            print(self.describe(parts, labels), flush=True)
        _, height, width = self.image_shape
        sets = {}
        for part in parts:
            images = loaded[part].images
            top, left = (images.shape[2] - height) // 2, (images.shape[3] - width) // 2
            middle = images[:, :, top : top + height, left : left + width]
            sets[part] = replace(loaded[part], images=middle)
        return sets


class FolderSource(DataSource):
    """A folder that is looked through; its pictures are decoded when it is read."""

    def __init__(self, name: str, image_shape: Shape | None, preparation: str | None) -> None:
        self.path = Path(name.removeprefix("folder:")).expanduser()
        part_folder = part_folders(self.path)
        roots = part_folder or {"train": self.path}
        classes_of = {part: pictures_by_class(folder) for part, folder in roots.items()}
        fewest = min(len(files) for files in classes_of["train"].values())
        names = ", ".join(f"{folder.name}/" for folder in part_folder.values())
        split_by = f"split by {names or 'file names'}"
        others = [f.name for f in folders_in(self.path) if f not in part_folder.values()]
        if part_folder and others:
            split_by += f", without {', '.join(f'{name}/' for name in others)}"
        if not part_folder:
            classes_of = split_off(classes_of, "test", self.path, 1 / 6)
        if holds_out := "validation" not in classes_of:
            limit = 1 / 6 if part_folder else 11 / 36  # a sixth of what is left
            classes_of = split_off(classes_of, "validation", self.path, limit)
            split_by += ", validation by names" if part_folder else ""
            if fewest < MIN_PER_CLASS:
                taken = "validation" if part_folder else "test or validation"
                small = f"a class of fewer than {MIN_PER_CLASS} pictures"
                split_by += f" ({small} may have none for {taken})"
        for part, classes in classes_of.items():
            if odd := sorted(classes.keys() ^ classes_of["train"].keys()):
                folders = f"{part_folder['train'].name}/ and {part_folder[part].name}/"
                raise ValueError(f"{name}: {folders} must hold the same classes, not so: {odd}")
        pictures = {
            part: [(path, label) for label, files in enumerate(classes.values()) for path in files]
            for part, classes in classes_of.items()
        }
        # Mixed, so that the first of them are of all classes.
        train = pictures["train"]
        order = torch.randperm(len(train), generator=torch.Generator().manual_seed(SEED)).tolist()
        train = pictures["train"] = [train[i] for i in order]
        sample = [path for path, _ in train[:SAMPLE_SIZE]]
        shape_by = ""
        if image_shape is None:
            image_shape, shape_by = shape_of(sample)
        self.pictures = {part: pictures[part] for part in PARTS if pictures.get(part)}
        super().__init__(
            name,
            classes=tuple(printable_names(classes_of["train"])),
            image_shape=image_shape,
            split_by=split_by,
            preparation=preparation or preparation_for(sample, image_shape),
            parts=[*self.pictures],
            holds_out=holds_out,
            shape_by=shape_by,
            roots=[*part_folder.values()] if len(part_folder) > 1 else [self.path],
            files=[path for labelled in pictures.values() for path, _ in labelled],
        )

    def read(
        self, parts: Sequence[str], skip_unreadable: bool = False, progress: bool = False
    ) -> dict[str, ImageSet]:
        """Decode the pictures of all these parts, in parallel.

        Raises:
            ValueError: there are unreadable pictures, and skip_unreadable is not given; or no
                picture of a class is left without them.
        """
        labels = {part: [label for _, label in files] for part, files in self.pictures.items()}
        if progress:
            print(self.describe(parts, labels), flush=True)
        paths = [path for part in parts for path, _ in self.pictures[part]]
        images, errors = read_pictures(paths, self.image_shape, self.preparation, progress)
        if errors:
            names = [str(paths[i].relative_to(self.path)) for i in errors]
            message = describe_unreadable(names, next(iter(errors.values())), len(paths))
            if not skip_unreadable:
                raise ValueError(f"{message}; --skip-unreadable leaves them out")
            if progress:
                print(f"left out: {message}", flush=True)
        distinct = {image.numpy().tobytes() for i, image in enumerate(images) if i not in errors}
        if (copies := len(paths) - len(errors) - len(distinct)) and progress:
            print(
                f"  warning: {copies:,} of {len(paths):,} images are copies of others", flush=True
            )
        name = f"folder:{self.path.resolve()}"  # by the full path evaluate finds the folder again
        sets, start = {}, 0
        for part in parts:
            stop, of_part = start + len(labels[part]), torch.tensor(labels[part])
            readable = [i - start for i in range(start, stop) if i not in errors]
            if lost := {*labels[part]} - {*of_part[readable].tolist()}:
                kinds = ", ".join(self.classes[k] for k in sorted(lost))
                raise ValueError(f"{self.name}: not one picture of {kinds} for {part} can be read")
            whole = ImageSet(images[start:stop], of_part, self.classes, name)
            sets[part] = whole.subset(readable)
            start = stop
        return sets


def part_folders(folder: Path) -> dict[str, Path]:
    """The folders of the parts into which a folder is split by its owner; {} if it is not."""
    if folder.is_file():
        raise ValueError(f"{folder} is a file, expected a folder: unpack it if it is an archive")
    if not folder.is_dir():
        raise FileNotFoundError(f"no such folder: {folder}")
    folders = folders_in(folder)
    part_folder: dict[str, Path] = {}
    for part, known in PARTS.items():
        matching = [f for f in folders if f.name.lower() in known]
        if len(matching) > 1:
            names = " and ".join(f"{f.name}/" for f in matching)
            raise ValueError(f"{folder} has {names}: which of them is for {part}?")
        if matching:
            part_folder[part] = matching[0]
    if "train" in part_folder and (len(part_folder) > 1 or len(folders) == 1):
        return part_folder
    if "train" in part_folder:
        classes = {kind.name for kind in folders_in(part_folder["train"])}
        for other in folders:
            if other != part_folder["train"] and {f.name for f in folders_in(other)} & classes:
                raise ValueError(
                    f"{folder} has {part_folder['train'].name}/ and {other.name}/ with the same "
                    f"folders: call {other.name}/ test/ or validation/ (or train/ otherwise)"
                )
    if part_folder and len(part_folder) == len(folders):
        names = " and ".join(f"{f.name}/" for f in folders)
        raise ValueError(f"{folder} has {names} but no train/")
    return {}  # a class may be called train, among others


def pictures_by_class(folder: Path) -> Classes:
    """The pictures in each class folder and in the folders in it."""
    classes = folders_in(folder)
    if len(classes) < 2:
        names = f"only {classes[0].name}/" if classes else "none"
        raise ValueError(
            f"{folder} must hold two or more class folders, each with its pictures, got {names}"
        )
    return {kind.name: pictures_in(kind) for kind in classes}


def split_off(
    parts: dict[str, Classes], part: str, folder: Path, limit: float
) -> dict[str, Classes]:
    """Take another part out of each class's pictures for training: those whose hash is below limit.

    Each picture's own name decides, so those of a folder that has grown, or moved, stay what they
    were. Only in a class of few do the others count: of six pictures one is taken, and never all.
    """
    train: Classes = {}
    taken: Classes = {}
    for kind, files in parts["train"].items():
        draw = {path: name_hash(path.relative_to(folder)) for path in files}
        order = sorted(files, key=draw.__getitem__)
        count = sum(value < limit for value in draw.values())
        if count == 0 and len(files) >= MIN_PER_CLASS:
            count = 1
        held = {*order[: min(count, len(files) - 1)]}
        train[kind] = [path for path in files if path not in held]
        taken[kind] = [path for path in files if path in held]
    return parts | {"train": train, part: taken}


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


def shape_of(paths: list[Path]) -> tuple[Shape, str]:
    """The shape for pictures like these, and why; unreadable ones do not count."""
    sizes, coloured = set(), False
    for path in paths:
        with contextlib.suppress(ValueError, OSError):
            picture = open_picture(path)
            sizes.add(picture.size)
            small = crop_and_resize(picture, 3, 32, 32).int()
            tinted = small.amax(dim=0) - small.amin(dim=0) > MIN_TINT
            coloured |= bool(tinted.float().mean() > 0.01)
    channels, kind, side = (3, "colour", 32) if coloured else (1, "grey", 28)  # CIFAR-10's, MNIST's
    width, height = sizes.pop() if len(sizes) == 1 else (0, 0)
    if width in KEPT_SIDES and height in KEPT_SIDES:
        return (channels, height, width), f" ({kind} pictures of this size)"
    size = f"{width} × {height} pixels" if width else "several sizes"
    return (channels, side, side), f" ({kind} pictures of {size}, cropped and resized)"
