"""Folders of pictures as data sets: a folder for each class."""

import os
from pathlib import Path

import torch

from capsnet.data.imageset import ImageSet
from capsnet.data.pictures import read_picture


def load_folder(name: str, train: bool, image_shape: tuple[int, int, int]) -> ImageSet:
    """Read "folder:PATH"; see :func:`capsnet.data.load`."""
    if name == "folder:":
        raise ValueError("expected folder:PATH, got 'folder:', whose PATH is empty")
    pictures = split(Path(name.removeprefix("folder:")).expanduser(), train)
    paths = [path for files in pictures.values() for path in files]
    labels = torch.tensor([k for k, files in enumerate(pictures.values()) for _ in files])
    if train:
        order = torch.randperm(len(paths), generator=torch.Generator().manual_seed(0))
        paths, labels = [paths[i] for i in order], labels[order]
    images = torch.stack([read_picture(path, image_shape, "plain") for path in paths])
    return ImageSet(images, labels, tuple(pictures), name)


def split(folder: Path, train: bool) -> dict[str, list[Path]]:
    """The training or the test pictures of a folder, by class."""
    if (folder / "train").is_dir() and (folder / "test").is_dir():
        training, test = find(folder / "train"), find(folder / "test")
        if odd := sorted(training.keys() ^ test.keys()):
            raise ValueError(f"{folder}: train/ and test/ must hold the same classes, got {odd}")
        return training if train else test
    chosen = {}
    for kind, files in find(folder).items():
        held = set(files[5::6] or files[1:][-1:])
        chosen[kind] = [path for path in files if (path in held) != train]
    if not any(chosen.values()):
        raise ValueError(f"{folder}: a test picture takes a class of two or more pictures")
    return chosen


def find(folder: Path) -> dict[str, list[Path]]:
    """The files of each class folder, sorted, without hidden ones."""
    if not folder.exists():
        raise FileNotFoundError(f"no such folder: {folder}")
    if not folder.is_dir():
        raise NotADirectoryError(f"not a folder: {folder}")
    classes = sorted(p.name for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))
    if len(classes) < 2:
        found = f"only {classes[0]}/" if classes else "none"
        raise ValueError(f"{folder} must hold two or more class folders of pictures, got {found}")
    pictures: dict[str, list[Path]] = {kind: [] for kind in classes}
    for kind, files in pictures.items():
        for root, _, names in sorted(os.walk(folder / kind, followlinks=True)):
            files += [Path(root, name) for name in sorted(names) if not name.startswith(".")]
        if not files:
            raise ValueError(f"no pictures in {folder / kind}")
    return pictures
