"""Labelled images in memory: uint8 [n, c, h, w] that may live on any device."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import InitVar, dataclass, replace
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

MANY = 20  # classes: of more, only the smallest and the largest are named
UNEQUAL = 3  # times as many images in the largest class as in the smallest are worth a warning


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Labelled images that fit in memory; a batch is ``images[index], labels[index]``.

    Raises:
        ValueError: the shapes, types or labels do not fit together.
    """

    images: Tensor  # uint8 [n, c, h, w]
    labels: Tensor  # int64 [n], 0 <= label < len(classes)
    classes: tuple[str, ...]
    name: str
    trusted: InitVar[bool] = False  # do not look at the labels: the host would wait for a GPU

    def __post_init__(self, trusted: bool) -> None:
        if self.images.dtype != torch.uint8 or self.images.dim() != 4:
            expected = "a tensor, uint8 [n, c, h, w]"
            raise ValueError(f"images must be {expected}, got {kind(self.images)}")
        if self.labels.dtype != torch.int64 or self.labels.shape != self.images.shape[:1]:
            expected = f"a tensor, int64 [{len(self.images)}]"
            raise ValueError(f"labels must be {expected}, got {kind(self.labels)}")
        if trusted or len(self.labels) == 0:
            return
        low, high = (int(bound) for bound in self.labels.aminmax())
        if low < 0 or high >= len(self.classes):
            raise ValueError(f"labels must be 0..{len(self.classes) - 1}, got {low}..{high}")

    def __len__(self) -> int:
        return len(self.images)

    def to(self, device: torch.device | str) -> "ImageSet":
        """Return the same images and labels on another device."""
        images, labels = self.images.to(device), self.labels.to(device)
        return replace(self, images=images, labels=labels, trusted=True)

    def subset(self, index: slice | Tensor | Sequence[int]) -> "ImageSet":
        """Return the images that a slice, indices or a mask select; the latter as a tensor, an
        array or a list.

        Raises:
            ValueError: a mask is not as long as the images, or indices are not integers.
        """
        if not isinstance(index, slice):
            index = torch.as_tensor(index)
            if index.dtype == torch.bool:
                if index.shape != self.labels.shape:
                    raise ValueError(f"a mask must be bool [{len(self)}], got {kind(index)}")
            elif index.numel() and (index.is_floating_point() or index.is_complex()):
                raise ValueError(f"indices must be integers or a mask, got {kind(index)}")
            else:
                index = index.long()
        images, labels = self.images[index], self.labels[index]
        return replace(self, images=images, labels=labels, trusted=True)

    @cached_property
    def by_class(self) -> tuple[Tensor, Tensor, int]:
        """(order, starts, present), found once for all batches: the images of class k are
        ``order[starts[k] : starts[k + 1]]``, and ``present`` classes have any.
        """
        ordered, order = self.labels.sort(stable=True)
        bounds = torch.arange(len(self.classes) + 1, device=ordered.device)
        starts = torch.searchsorted(ordered, bounds)
        return order, starts, int(starts.diff().count_nonzero())


def hold_out(image_set: ImageSet) -> tuple[ImageSet, ImageSet]:
    """Return (training, validation): validation is the last sixth, 10,000 images of 60,000.

    Raises:
        ValueError: there are fewer than 6 images.
    """
    if len(image_set) < 6:
        raise ValueError(f"holding out a sixth takes at least 6 images, got {len(image_set)}")
    kept = len(image_set) - len(image_set) // 6
    return image_set.subset(slice(kept)), image_set.subset(slice(kept, None))


@dataclass
class Source:
    """A data set before it is read: what it holds and how it is split."""

    name: str
    classes: tuple[str, ...]
    image_shape: tuple[int, int, int]
    split_by: str  # what tells the parts apart, for the user
    parts: tuple[str, ...] = ("train", "validation", "test")
    holds_out: bool = True  # its validation images are a sixth of those it has for training
    found: str = ""  # what the images are, where their shape was not given

    def usual_split(self, trained_on: object) -> str:
        """The split to evaluate on; trained_on: the name of what the network learned from."""
        return "test"

    def files(self) -> list[Path]:
        """The files that the images are read from, where each has one of its own."""
        return []

    def folders(self) -> list[Path]:
        """The folders in which whatever lies is taken for images or classes."""
        return []

    def group(self, split: str) -> tuple[str, ...]:
        """The parts that make up a split; a ValueError where the data set has no such split."""
        if split == "all":
            return self.parts
        if split == "train" and self.holds_out:
            return "train", "validation"
        if split not in self.parts:
            known = ", ".join((*self.parts, "all"))
            raise ValueError(f"{self.name} has no {split!r} images; its splits are: {known}")
        return (split,)

    def read(
        self, *groups: tuple[str, ...], skip_unreadable: bool = False, progress: bool = False
    ) -> list[ImageSet]:
        """An image set for each group of parts.

        Args:
            groups: such as ("train", "validation"), whose images then come as one set.
            skip_unreadable: go on without pictures that cannot be read.
            progress: print what is read, and show a bar on stderr.
        """
        raise NotImplementedError

    def describe(self, groups: tuple[tuple[str, ...], ...], labels: dict[str, list[int]]) -> str:
        """Which images are what, by the labels of the parts; what is in no group is not read."""
        read = [[label for part in group for label in labels[part]] for group in groups]
        total, shape = sum(map(len, read)), " × ".join(map(str, self.image_shape))
        memory = f"{total * math.prod(self.image_shape) / 1e6:,.1f} MB in memory as uint8"
        lines = [
            f"{self.name}: {len(self.classes)} classes, {self.split_by}",
            f"{total:,} images of {shape}{self.found}, {memory}",
        ]
        for group, of in zip(groups, read, strict=True):
            count = Counter(of)
            by_size = sorted(range(len(self.classes)), key=count.__getitem__)
            sizes = [f"{self.classes[k]}: {count[k]:,}" for k in by_size]
            shown = sizes if len(sizes) <= MANY else [sizes[0], "…", sizes[-1]]
            lines.append(f"  {' and '.join(group)}: {len(of):,} ({'; '.join(shown)})")
            if count[by_size[-1]] > UNEQUAL * count[by_size[0]]:
                lines.append(f"  warning: unequal classes, from {sizes[0]} to {sizes[-1]}")
        for part, of in labels.items():
            if part not in sum(groups, ()):
                lines.append(f"  {part}: {len(of):,}, not read now")
        return "\n".join(lines)


def to_float(images: Tensor) -> Tensor:
    """Convert uint8 images (0..255) to float32 in 0..1.

    Raises:
        ValueError: the images are not uint8.
    """
    if images.dtype != torch.uint8:
        raise ValueError(f"images must be a tensor, uint8, got {kind(images)}")
    return images.to(torch.float32) / 255


def kind(value: object) -> str:
    """Type and shape, for messages; the class of what is no tensor."""
    if not isinstance(value, Tensor):
        return type(value).__name__
    return f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}"
