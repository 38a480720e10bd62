"""Folders of pictures as data sets: a folder for each class."""

import os
import sys
import warnings
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor

from capsnet.data.imageset import ImageSet, Source
from capsnet.data.pictures import open_picture, plain, read_picture

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
NAMED = 10  # unreadable pictures
CHUNK = 8  # pictures that a thread reads in one go; Ctrl-C waits for it

Pictures = list[tuple[Path, int]]  # files and their labels


class Folder(Source):
    """A folder that is looked through; its pictures are decoded when it is read."""

    def __init__(self, name: str, image_shape: tuple[int, int, int] | None) -> None:
        if name == "folder:":
            raise ValueError("expected folder:PATH, got 'folder:', whose PATH is empty")
        self.path = Path(name.removeprefix("folder:")).expanduser()
        self.own = own_parts(self.path)
        found = {part: class_folders(folder) for part, folder in self.own.items()}
        for part, of in found.items():
            if odd := sorted(of.keys() ^ found["train"].keys()):
                two = f"{self.own['train'].name}/ and {self.own[part].name}/"
                raise ValueError(f"{self.path}: {two} must hold the same classes, not so: {odd}")
        by = "split by " + ", ".join(f"{folder.name}/" for folder in self.own.values())
        if not found:
            found = drawn(class_folders(self.path))
            by = "split by a seed: a sixth of each class is for test"
        self.pictures = {
            part: [(path, k) for k, files in enumerate(of.values()) for path in files]
            for part, of in found.items()
        }
        # Mixed, so that the first and the last of them are of all classes.
        train = self.pictures["train"]
        order = torch.randperm(len(train), generator=torch.Generator().manual_seed(SEED))
        train = [train[i] for i in order]
        kept = len(train)
        if holds_out := "validation" not in found:
            kept -= len(train) // 6
            self.pictures["validation"] = train[kept:]
            by += "; a sixth of the training pictures is for validation"
        self.pictures["train"] = train[:kept]
        size = ""
        if image_shape is None:
            image_shape, size = shape_of(path for path, _ in train)
        parts = tuple(part for part in NAMES if part in self.pictures)
        super().__init__(name, tuple(found["train"]), image_shape, by, parts, holds_out, size)

    def usual_split(self, trained_on: object) -> str:
        """All pictures of a folder that is not split, unless the network has learned from it."""
        kind, _, path = str(trained_on).partition(":")
        same = kind == "folder" and Path(path).expanduser().resolve() == self.path.resolve()
        return "test" if self.own or same else "all"

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
                why = "a test picture takes a class of two or more pictures"
                if group == ("validation",):
                    why = "holding out a sixth takes at least 6 training pictures"
                raise ValueError(f"{self.name} is too small: {why}")
        if progress:
            known = {part: labels_of(of) for part, of in self.pictures.items()}
            print(self.describe(groups, known), flush=True)
        paths, labels = zip(*(picture for pictures in wanted for picture in pictures), strict=True)
        images, reasons = decode(paths, self.image_shape, progress)
        if reasons:
            named = ", ".join(str(paths[i].relative_to(self.path)) for i in [*reasons][:NAMED])
            more = f" and {len(reasons) - NAMED:,} more" if len(reasons) > NAMED else ""
            said = f"{len(reasons):,} of {len(paths):,} pictures cannot be read: {named}{more}"
            if not skip_unreadable:
                reason = next(iter(reasons.values()))
                raise ValueError(f"{said}; --skip-unreadable leaves them out; the first: {reason}")
            readable = {label for i, label in enumerate(labels) if i not in reasons}
            if gone := sorted({*labels} - readable):
                lost = ", ".join(self.classes[k] for k in gone)
                raise ValueError(f"{self.name}: not one picture of {lost} can be read")
            if progress:
                print(f"left out: {said}", flush=True)
        # The full path: evaluate knows the folder by it.
        sets, end, name = [], 0, f"folder:{self.path.resolve()}"
        for pictures in wanted:
            begin, end = end, end + len(pictures)
            part = ImageSet(images[begin:end], labels_of(pictures), self.classes, name)
            if reasons:
                part = part.subset([i - begin for i in range(begin, end) if i not in reasons])
            sets.append(part)
        return sets


def own_parts(folder: Path) -> dict[str, Path]:
    """The folders of the parts into which a folder is split by its owner; {} if it is not."""
    if not folder.exists():
        raise FileNotFoundError(f"no such folder: {folder}")
    if not folder.is_dir():
        raise NotADirectoryError(f"not a folder: {folder}")
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
    """The files of each class folder and of the folders in it, sorted, without hidden ones."""
    classes = folders_in(folder)
    if len(classes) < 2:
        found = f"only {classes[0].name}/" if classes else "none"
        if not classes and any(p.is_file() for p in folder.iterdir()):
            found = "files beside each other"
        raise ValueError(
            f"{folder} must hold two or more class folders, each with its pictures, got {found}"
        )
    pictures: dict[str, list[Path]] = {kind.name: [] for kind in classes}
    for kind, files in pictures.items():
        for root, _, names in sorted(os.walk(folder / kind, followlinks=True)):
            files += [Path(root, name) for name in sorted(names) if not name.startswith(".")]
        if not files:
            raise ValueError(f"no pictures in {folder / kind}")
    return pictures


def folders_in(folder: Path) -> list[Path]:
    return sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))


def drawn(classes: dict[str, list[Path]]) -> dict[str, dict[str, list[Path]]]:
    """A sixth of each class, drawn by the seed, for test; one picture of a class of 2 to 11."""
    parts: dict[str, dict[str, list[Path]]] = {"train": {}, "test": {}}
    for kind, files in classes.items():
        order = torch.randperm(len(files), generator=torch.Generator().manual_seed(SEED)).tolist()
        held = {*order[: max(len(files) // 6, int(len(files) > 1))]}
        parts["train"][kind] = [path for i, path in enumerate(files) if i not in held]
        parts["test"][kind] = [path for i, path in enumerate(files) if i in held]
    return parts


def labels_of(pictures: Pictures) -> Tensor:
    return torch.tensor([label for _, label in pictures], dtype=torch.int64)


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
    channels, kind = (3, "colour") if coloured else (1, "grey")
    width, height = next(iter(sizes), (0, 0))
    if len(sizes) == 1 and width in SIDES and height in SIDES:
        return (channels, height, width), f"{kind} pictures of this size"
    side = 32 if coloured else 28  # CIFAR-10's and MNIST's
    size = f"{width} × {height} pixels" if len(sizes) == 1 else "several sizes"
    return (channels, side, side), f"{kind} pictures of {size}, cropped and resized"


def decode(
    paths: Sequence[Path], image_shape: tuple[int, int, int], progress: bool
) -> tuple[Tensor, dict[int, str]]:
    """The images, uint8 [n, c, h, w], and why some of them could not be read."""
    from tqdm import tqdm

    images = torch.zeros(len(paths), *image_shape, dtype=torch.uint8)
    reasons: dict[int, str] = {}

    def read(first: int) -> int:
        chunk = paths[first : first + CHUNK]
        for i, path in enumerate(chunk, first):
            try:
                images[i] = read_picture(path, image_shape, "plain")
            except (ValueError, OSError) as error:
                reasons[i] = str(error)
        return len(chunk)

    # Nothing is shown of what takes less than a second.
    bar = tqdm(desc="reading", total=len(paths), unit=" pictures", leave=False, delay=1,
               disable=not progress, mininterval=0.2 if sys.stderr.isatty() else 15)  # fmt: skip
    # Each picture changes the filters of warnings and puts them back, which threads do in any
    # order: here they are the same before and after, and put back at last.
    with bar, warnings.catch_warnings(action="ignore"), ThreadPoolExecutor() as pool:
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        for count in pool.map(read, range(0, len(paths), CHUNK)):
            bar.update(count)
    return images, dict(sorted(reasons.items()))
