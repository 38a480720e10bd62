"""Folders of pictures as data sets: a folder for each class."""

import hashlib
import os
from collections.abc import Iterable
from itertools import accumulate, pairwise
from pathlib import Path

import torch

from capsnet import data
from capsnet.data.imageset import ImageSet, Source
from capsnet_lab.pictures import (
    check_shape,
    open_picture,
    pictures_in,
    plain,
    read_pictures,
    unreadable,
)

# What the folder of a part may be called, in any case of letters.
NAMES = {
    "train": ("train", "training"),
    "validation": ("val", "valid", "validation"),
    "test": ("test", "testing"),
}
SEED = 0
SAMPLE = 50  # pictures that tell size and colour
SIDES = range(17, 49)  # pixels: pictures of one size within keep it
TINT = 16  # levels between the channels of a coloured pixel; those of grey JPEGs differ by less


def find(
    name: str, image_shape: tuple[int, int, int] | None = None, download: bool = True
) -> Source:
    """Look a data set up before it is read: one by name, or ``folder:PATH``."""
    if name.startswith("folder:"):
        return Folder(name, image_shape)
    if name not in data.NAMES:
        known = ", ".join([*data.NAMES, "folder:PATH"])
        raise ValueError(f"unknown data set {name!r}; expected one of: {known}")
    return data.find(name, image_shape, download)


def load(
    name: str,
    train: bool = True,
    *,
    split: str | None = None,
    image_shape: tuple[int, int, int] | None = None,
    download: bool = True,
    skip_unreadable: bool = False,
    progress: bool = False,
) -> ImageSet:
    """As :func:`capsnet.data.load`, also of ``folder:PATH``."""
    source = find(name, image_shape, download)
    group = source.group(split or ("train" if train else "test"))
    return source.read(group, skip_unreadable=skip_unreadable, progress=progress)[0]


class Folder(Source):
    """A folder that is looked through; its pictures are decoded when it is read."""

    def __init__(self, name: str, image_shape: tuple[int, int, int] | None) -> None:
        if name == "folder:":
            raise ValueError("expected folder:PATH, got 'folder:', whose PATH is empty")
        if image_shape is not None:
            check_shape(image_shape)
        self.path = Path(name.removeprefix("folder:")).expanduser()
        self.own = own_parts(self.path)
        if self.own:
            found = {part: class_folders(folder) for part, folder in self.own.items()}
            by = "split by " + ", ".join(f"{folder.name}/" for folder in self.own.values())
        else:
            found = drawn(self.path, class_folders(self.path))
            by = "split by their names: about a sixth of each class is for test"
        for part, of in found.items():
            if odd := sorted(of.keys() ^ found["train"].keys()):
                two = f"{self.own['train'].name}/ and {self.own[part].name}/"
                raise ValueError(f"{self.path}: {two} must hold the same classes, not so: {odd}")
        self.pictures = {  # files and their labels
            part: [(path, label) for label, files in enumerate(of.values()) for path in files]
            for part, of in found.items()
        }
        # Mixed, so that the first and the last of them are of all classes.
        train = self.pictures["train"]
        train = self.pictures["train"] = [train[i] for i in mixed(len(train))]
        if holds_out := "validation" not in found:
            kept = len(train) - len(train) // 6
            self.pictures |= {"train": train[:kept], "validation": train[kept:]}
            by += "; a sixth of the training pictures is for validation"
        size = ""
        if image_shape is None:
            image_shape, size = shape_of(path for path, _ in train)
        parts = tuple(part for part in NAMES if part in self.pictures)
        super().__init__(name, tuple(found["train"]), image_shape, by, parts, holds_out, size)

    def usual_split(self, trained_on: object) -> str:
        """All pictures of a folder that is not split, unless the network may have learned from
        them: it is known to if it learned from any folder, since that may have been moved.
        """
        return "test" if self.own or str(trained_on).startswith("folder:") else "all"

    def files(self) -> list[Path]:
        return [file for of in self.pictures.values() for file, _ in of]

    def folders(self) -> list[Path]:
        # Beside those of the parts, none is looked at.
        return [*self.own.values()] if len(self.own) > 1 else [self.path]

    def read(
        self, *groups: tuple[str, ...], skip_unreadable: bool = False, progress: bool = False
    ) -> list[ImageSet]:
        """Decode the pictures of all groups, in parallel, into one tensor.

        Raises:
            ValueError: a group is empty, or so are its pictures of a class without the unreadable
                ones; or there are unreadable ones, and skip_unreadable is not given.
        """
        wanted = [[p for part in group for p in self.pictures[part]] for group in groups]
        for group, pictures in zip(groups, wanted, strict=True):
            if not pictures:
                what = " and ".join(group)
                raise ValueError(f"{self.name} is too small: no picture is for {what}")
        if progress:
            known = {part: [k for _, k in of] for part, of in self.pictures.items()}
            print(self.describe(groups, known), flush=True)
        paths, labels = zip(*(picture for pictures in wanted for picture in pictures), strict=True)
        images, errors = read_pictures(paths, self.image_shape, progress=progress)
        spans = [range(*of) for of in pairwise(accumulate(map(len, wanted), initial=0))]
        if errors:
            names = [str(paths[i].relative_to(self.path)) for i in errors]
            said = unreadable(names, next(iter(errors.values())), len(paths))
            if not skip_unreadable:
                raise ValueError(f"{said}; --skip-unreadable leaves them out")
            for group, span in zip(groups, spans, strict=True):
                readable = {labels[i] for i in span if i not in errors}
                if gone := sorted({labels[i] for i in span} - readable):
                    lost, what = ", ".join(self.classes[k] for k in gone), " and ".join(group)
                    raise ValueError(
                        f"{self.name}: not one picture of {lost} for {what} can be read"
                    )
            if progress:
                print(f"left out: {said}", flush=True)
        # The full path: evaluate finds the folder by it.
        name = f"folder:{self.path.resolve()}"
        whole = ImageSet(images, torch.tensor(labels), self.classes, name)
        if not errors:
            return [whole.subset(slice(span.start, span.stop)) for span in spans]
        return [whole.subset([i for i in span if i not in errors]) for span in spans]


def own_parts(folder: Path) -> dict[str, Path]:
    """The folders of the parts into which a folder is split by its owner; {} if it is not."""
    if not folder.is_dir():
        raise FileNotFoundError(f"no such folder: {folder}")
    folders = folders_in(folder)
    own: dict[str, Path] = {}
    for part, names in NAMES.items():
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


def drawn(folder: Path, classes: dict[str, list[Path]]) -> dict[str, dict[str, list[Path]]]:
    """About a sixth of each class for test, at least one of two pictures and never all.

    Each picture's own name decides, so those of a folder that has grown, or moved, stay what they
    were. Only in a class of few, where none or all would be held, do the others count.
    """
    parts: dict[str, dict[str, list[Path]]] = {"train": {}, "test": {}}
    for kind, files in classes.items():
        draw = {path: lot(path.relative_to(folder)) for path in files}
        order = sorted(files, key=draw.__getitem__)
        held = {path for path in files if draw[path] < 1 / 6}
        held = (held | {*order[:1]}) - {*order[-1:]}
        parts["train"][kind] = [path for path in files if path not in held]
        parts["test"][kind] = [path for path in files if path in held]
    return parts


def lot(name: Path) -> float:
    """A number in 0 … 1 that looks drawn at random, always the same for a name."""
    digest = hashlib.blake2b(os.fsencode(name.as_posix()), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def mixed(count: int) -> list[int]:
    """0 … count - 1 in an order that is always the same."""
    return torch.randperm(count, generator=torch.Generator().manual_seed(SEED)).tolist()


def shape_of(paths: Iterable[Path]) -> tuple[tuple[int, int, int], str]:
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
