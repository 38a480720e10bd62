"""Labelled images in memory: uint8 [n, c, h, w] that may live on any device."""

from collections.abc import Sequence
from dataclasses import InitVar, dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor


class ByClass(NamedTuple):
    """Where the images of each class are: class k has ``order[starts[k] : starts[k + 1]]``."""

    order: Tensor  # indices of the images, class by class, int64 [n]
    starts: Tensor  # int64 [classes + 1]
    present: int  # how many classes have an image


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
    # True where the labels are known to be in range. To look at them makes the host wait for a GPU.
    trusted: InitVar[bool] = False

    def __post_init__(self, trusted: bool) -> None:
        if self.images.dtype != torch.uint8 or self.images.dim() != 4:
            raise ValueError(f"images must be uint8 [n, c, h, w], got {kind(self.images)}")
        if self.labels.dtype != torch.int64 or self.labels.shape != self.images.shape[:1]:
            raise ValueError(f"labels must be int64 [{len(self.images)}], got {kind(self.labels)}")
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
        return ImageSet(images, labels, self.classes, self.name, trusted=True)

    def subset(self, index: slice | Tensor | Sequence[int]) -> "ImageSet":
        """Return the images that a slice, an index tensor or a list of indices selects."""
        if not isinstance(index, slice | Tensor):
            index = torch.as_tensor(index, dtype=torch.int64)
        images, labels = self.images[index], self.labels[index]
        return ImageSet(images, labels, self.classes, self.name, trusted=True)

    @cached_property
    def by_class(self) -> ByClass:
        """The images of each class, found once for all batches."""
        ordered, order = self.labels.sort(stable=True)
        bounds = torch.arange(len(self.classes) + 1, device=ordered.device)
        starts = torch.searchsorted(ordered, bounds)
        return ByClass(order, starts, int(starts.diff().count_nonzero()))


def hold_out(image_set: ImageSet) -> tuple[ImageSet, ImageSet]:
    """Split off the last sixth for validation: the last 10,000 images of 60,000.

    Returns:
        (training, validation).

    Raises:
        ValueError: there are fewer than 6 images.
    """
    held = len(image_set) // 6
    if held == 0:
        raise ValueError(f"holding out a sixth takes at least 6 images, got {len(image_set)}")
    return image_set.subset(slice(None, -held)), image_set.subset(slice(-held, None))


def to_float(images: Tensor) -> Tensor:
    """Convert uint8 images (0..255) to float32 in 0..1.

    Raises:
        ValueError: the images are not uint8.
    """
    if images.dtype != torch.uint8:
        raise ValueError(f"images must be uint8, got {kind(images)}")
    return images.to(torch.float32) / 255


def kind(tensor: Tensor) -> str:
    """Type and shape, for messages."""
    return f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"
