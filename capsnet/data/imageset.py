"""Labelled images in memory: uint8 [n, c, h, w] that may live on any device."""

from collections.abc import Sequence
from dataclasses import InitVar, dataclass, replace
from functools import cached_property

import torch
from torch import Tensor


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
        return replace(self, images=images, labels=labels, trusted=True)

    def subset(self, index: slice | Tensor | Sequence[int]) -> "ImageSet":
        """Return the images that a slice, an index tensor or a list of indices selects."""
        if not isinstance(index, slice | Tensor):
            index = torch.as_tensor(index, dtype=torch.int64)
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
