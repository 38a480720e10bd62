"""Data sets as tensors, uint8 images [n, c, h, w] that may live on any device; and their shifts.

Numbers are drawn from the ``torch.Generator`` that is passed in (PyTorch's own when it is None), on
its device, and then moved: a CPU generator gives the same result for images on any device.
"""

import contextlib
import gzip
import hashlib
import os
import string
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from http.client import HTTPException
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.data import DataLoader, Subset

from capsnet.checks import require_bool
from capsnet.text import reason

# The name of a data set -> the class of torchvision.datasets that downloads it.
SOURCES = {"mnist": "MNIST", "fashion-mnist": "FashionMNIST", "cifar-10": "CIFAR10"}
NAMES = tuple(SOURCES)
CLASSES = {
    "mnist": tuple(string.digits),
    "fashion-mnist": (
        "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
        "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
    ),
    "cifar-10": (
        "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
    ),
}  # fmt: skip
MD5 = {  # of MNIST's archives, as everybody has them
    "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
    "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
    "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
    "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
}


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Labelled images that fit in memory; a batch is ``images[index], labels[index]``.

    Raises:
        ValueError: the shapes, types or labels do not fit together. Labels are looked at on the
            CPU only.
    """

    images: Tensor  # uint8 [n, c, h, w]
    labels: Tensor  # int64 [n], 0 <= label < len(classes)
    classes: tuple[str, ...]
    name: str

    def __post_init__(self) -> None:
        if self.images.dtype != torch.uint8 or self.images.dim() != 4:
            raise ValueError(
                f"images must be a tensor, uint8 [n, c, h, w], got {describe_type(self.images)}"
            )
        if self.labels.dtype != torch.int64 or self.labels.shape != self.images.shape[:1]:
            raise ValueError(
                f"labels must be a tensor, int64 [{len(self.images)}], got "
                f"{describe_type(self.labels)}"
            )
        if self.labels.device.type != "cpu" or len(self.labels) == 0:
            return  # reading a value on a GPU would wait for everything before it
        low, high = (int(bound) for bound in self.labels.aminmax())
        if low < 0 or high >= len(self.classes):
            raise ValueError(f"labels must be 0..{len(self.classes) - 1}, got {low}..{high}")

    def __len__(self) -> int:
        return len(self.images)

    def to(self, device: torch.device | str) -> "ImageSet":
        """Return the same images and labels on another device."""
        images, labels = self.images.to(device), self.labels.to(device)
        return replace(self, images=images, labels=labels)

    def subset(self, index: slice | Tensor | Sequence[int]) -> "ImageSet":
        """Return the images that a slice, indices or a mask select (a tensor, an array or a list).

        Raises:
            IndexError: as a tensor's, such as of a mask that is not as long as the images.
        """
        if not isinstance(index, slice):
            index = torch.as_tensor(index)
            if len(index) == 0:  # an empty list becomes float32
                index = index.long()
        return replace(self, images=self.images[index], labels=self.labels[index])

    @cached_property
    def by_class(self) -> tuple[Tensor, Tensor, int]:
        """(order, starts, present), computed once for all batches.

        ``order[starts[k] : starts[k + 1]]`` are the images of class k; ``present`` is the number of
        classes that have an image.
        """
        ordered, order = self.labels.sort(stable=True)
        bounds = torch.arange(len(self.classes) + 1, device=ordered.device)
        starts = torch.searchsorted(ordered, bounds)
        return order, starts, int(starts.diff().count_nonzero())


def as_image_set(data: Any, num_classes: int) -> ImageSet:
    """Labelled images in one of PyTorch's forms as an :class:`ImageSet`.

    Every item of a Dataset is read once, so a random transform is drawn once for each image.

    Args:
        data: an :class:`ImageSet`, which is returned; a tuple of images and labels; or a Dataset
            with a length, whose items are (image, label). Images are tensors or arrays, [channels,
            height, width] or [height, width], of uint8, or of numbers in 0 … 1, of which 256 levels
            are kept. Labels are class indices of any integer type.
        num_classes: of the network. The classes have the names in the dataset's ``classes``, else
            they are numbered.

    Raises:
        ValueError: data, images or labels of another kind.
    """
    if isinstance(data, ImageSet):
        return data
    if isinstance(data, DataLoader):
        raise ValueError("expected a Dataset, got a DataLoader: give its dataset")
    try:
        if isinstance(data, tuple):
            images, labels = (torch.as_tensor(part) for part in data)
            images = as_uint8(images)
        else:
            images, labels = read_items(data)
    except (TypeError, LookupError, ValueError, RuntimeError) as error:
        raise ValueError(
            "expected an ImageSet, a tuple (no list) of images and labels, or a Dataset of (image, "
            "label) with tensors or arrays (of PIL images: with transform=ToTensor()), "
            f"got {describe_type(data)}: {reason(error)}"
        ) from error
    if images.dim() == 3:
        images = images.unsqueeze(1)
    if torch.can_cast(labels.dtype, torch.int64):
        labels = labels.long()
    dataset = data
    while isinstance(dataset, Subset):
        dataset = dataset.dataset  # which names the classes
    names = getattr(dataset, "classes", range(num_classes))
    return ImageSet(images, labels, tuple(map(str, names)), type(dataset).__name__)


def read_items(dataset: Any) -> tuple[Tensor, Tensor]:
    """All images, as :func:`as_uint8` returns them, and all labels of a Dataset."""
    images, labels = [], []
    for i in range(len(dataset)):
        image, label = dataset[i]
        images.append(as_uint8(torch.as_tensor(image)))
        labels.append(torch.as_tensor(label))
    return torch.stack(images), torch.stack(labels)


def as_uint8(images: Tensor) -> Tensor:
    """Numbers in 0 … 1 as uint8; integers as they are."""
    if not images.is_floating_point():
        return images
    if not ((images >= 0) & (images <= 1)).all():
        low, high = (bound.item() for bound in images.aminmax())
        raise ValueError(
            f"images must lie in 0 … 1, got {low:.3g} … {high:.3g} (divide by 255, or leave out "
            "Normalize)"
        )
    return (255 * images.float()).round().to(torch.uint8)


def hold_out(image_set: ImageSet) -> tuple[ImageSet, ImageSet]:
    """Return (training, validation): validation is the last sixth, 10,000 images of 60,000.

    Raises:
        ValueError: there are fewer than 6 images, or for training none of a class that is held out.
    """
    if len(image_set) < 6:
        raise ValueError(f"holding out a sixth takes at least 6 images, got {len(image_set)}")
    kept = len(image_set) - len(image_set) // 6
    training, validation = image_set.subset(slice(kept)), image_set.subset(slice(kept, None))
    if lacking := {*validation.labels.tolist()} - {*training.labels.tolist()}:
        names = ", ".join(image_set.classes[label] for label in sorted(lacking))
        raise ValueError(f"no images of {names} would be left: mix them first, by torch.randperm")
    return training, validation


def load(name: str, train: bool = True, *, download: bool = True) -> ImageSet:
    """Load the training or the test images of mnist, fashion-mnist or cifar-10.

    The search goes through ``$CAPSNET_DATA``, then ``data`` in the working directory, in the
    folders above it, and in the repository, each laid out as torchvision does. If none of them has
    the files, torchvision downloads them into ``$CAPSNET_DATA`` or ``./data``.

    Raises:
        ValueError: an unknown name, ``train`` is no bool, or an archive is damaged.
        FileNotFoundError: the data are not here, and were not downloaded.
    """
    if name not in NAMES:
        raise ValueError(f"unknown data set {name!r}; expected one of: {', '.join(NAMES)}")
    require_bool("train", train)
    roots = data_folders()
    for root in roots:
        folder = root / SOURCES[name] / "raw"
        if all((folder / file).is_file() for file in archives(train)):
            return read_archives(name, folder, train)
    for root in roots:
        with contextlib.suppress(RuntimeError):  # it is not there, or damaged
            return by_torchvision(name, root, train, download=False)
    trouble = "not downloaded, as download=False"
    if download:
        try:
            return by_torchvision(name, roots[0], train, download=True)
        except (RuntimeError, OSError, HTTPException) as error:
            trouble = f"the download failed: {' '.join(str(error).split())}"
    raise FileNotFoundError(
        f"{name} is missing or damaged: looked in {', '.join(map(str, roots))}; {trouble}; put "
        f"the files of torchvision's {SOURCES[name]} into {roots[0]}"
    )


def data_folders() -> list[Path]:
    """``$CAPSNET_DATA``, ``data`` here and above, and the repository's: tried in this order."""
    variable = os.environ.get("CAPSNET_DATA")
    chosen = [Path(variable).expanduser()] if variable else []
    # A notebook of a clone runs in a folder of the clone, perhaps with an installed package.
    above = [folder / "data" for folder in Path.cwd().parents if (folder / "data").is_dir()]
    return [*chosen, Path("data"), *above, Path(__file__).resolve().parents[1] / "data"]


def archives(train: bool) -> tuple[str, str]:
    """The archives of images and of labels in MNIST's format."""
    part = "train" if train else "t10k"
    return f"{part}-images-idx3-ubyte.gz", f"{part}-labels-idx1-ubyte.gz"


def read_archives(name: str, folder: Path, train: bool) -> ImageSet:
    """Read MNIST's archives, or others in their format.

    torchvision would unpack them first, into the same folder, which may be read-only; and its
    import takes longer than PyTorch's.
    """
    contents = []
    for file in archives(train):
        packed = (folder / file).read_bytes()
        md5 = hashlib.md5(packed, usedforsecurity=False).hexdigest()
        if name == "mnist" and md5 != MD5[file]:
            raise ValueError(f"{folder / file} is damaged: expected MD5 {MD5[file]}, got {md5}")
        try:
            content = gzip.decompress(packed)  # which compares a checksum, too
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{folder / file} is damaged: {reason(error)}") from None
        contents.append(torch.frombuffer(bytearray(content), dtype=torch.uint8))
    images, labels = contents[0][16:], contents[1][8:]  # without their headers
    return ImageSet(images.view(-1, 1, 28, 28), labels.long(), CLASSES[name], name)


def by_torchvision(name: str, root: Path, train: bool, download: bool) -> ImageSet:
    """Have torchvision download, verify, unpack and read a data set below ``root``.

    Raises:
        RuntimeError: it is not there, or damaged.
        OSError: the download fails.
    """
    from torchvision import datasets

    source = getattr(datasets, SOURCES[name])(root, train, download=download)
    if name == "cifar-10":
        images = torch.from_numpy(source.data).permute(0, 3, 1, 2).contiguous()
    else:
        images = source.data[:, None]
    return ImageSet(images, torch.as_tensor(source.targets), CLASSES[name], name)


def random_offsets(
    n: int,
    max_shift: int = 2,
    generator: torch.Generator | None = None,
    device: torch.device | str | None = None,
) -> Tensor:
    """Draw offsets (dy, dx), int64 [n, 2] in pixels, uniform in -max_shift..max_shift.

    Raises:
        ValueError: max_shift is negative.
    """
    if max_shift < 0:
        raise ValueError(f"max_shift must be at least 0 pixels, got {max_shift}")
    randint = partial(torch.randint, 2 * max_shift + 1)
    return sample_on(randint, (n, 2), generator, device) - max_shift


def shift(images: Tensor, offsets: Tensor) -> Tensor:
    """Move images [n, c, h, w] by offsets (down, right), int64 [n, 2] in pixels; zeros come in.

    Raises:
        ValueError: the shapes do not fit together.
    """
    if images.dim() != 4 or offsets.shape != (images.shape[0], 2):
        got = f"{describe_type(images)} and {describe_type(offsets)}"
        raise ValueError(f"expected images [n, c, h, w] and offsets [n, 2], got {got}")
    h, w = images.shape[2:]
    framed = F.pad(images, (1, 1, 1, 1))  # whatever lies outside is on this frame of zeros
    image, channel, row, column = (torch.arange(s, device=images.device) for s in images.shape)
    row = (1 + row - offsets[:, :1]).clamp(0, h + 1)[:, None, :, None]  # where it comes from
    column = (1 + column - offsets[:, 1:]).clamp(0, w + 1)[:, None, None, :]
    return framed[image[:, None, None, None], channel[:, None, None], row, column]


def random_shift(
    images: Tensor, max_shift: int = 2, generator: torch.Generator | None = None
) -> Tensor:
    """Move each of images [n, c, h, w] at random, by up to max_shift pixels in each direction.

    The paper's only augmentation on MNIST (section 5).

    Raises:
        ValueError: max_shift is negative.
    """
    if max_shift == 0:
        return images
    return shift(images, random_offsets(len(images), max_shift, generator, images.device))


def shifted_batch(
    image_set: ImageSet, index: Tensor, max_shift: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Make a batch to learn from: images float32 [n, c, h, w] in 0..1, and labels int64 [n].

    They are the images at ``index`` [n], moved by up to max_shift pixels.
    """
    images = random_shift(image_set.images[index], max_shift, generator)
    return to_float(images), image_set.labels[index]


def centred(image_set: ImageSet, size: int) -> ImageSet:
    """Return the same set with each image in the middle of size × size pixels of zeros.

    Raises:
        ValueError: the images do not fit.
    """
    return replace(image_set, images=pad_centred(image_set.images, size))


def pad_centred(images: Tensor, size: int) -> Tensor:
    """Pad images with zeros to size × size pixels."""
    h, w = images.shape[-2:]
    if size < h or size < w:
        raise ValueError(f"images of {h} × {w} pixels do not fit in {size} × {size}")
    top, left = (size - h) // 2, (size - w) // 2
    return F.pad(images, (left, size - w - left, top, size - h - top))


def to_float(images: Tensor) -> Tensor:
    """Convert uint8 images (0..255) to float32 in 0..1.

    Raises:
        ValueError: the images are not uint8.
    """
    if images.dtype != torch.uint8:
        raise ValueError(f"images must be a tensor, uint8, got {describe_type(images)}")
    return images.to(torch.float32) / 255


def sample_on(
    sampler: Callable[..., Tensor],
    shape: tuple[int, ...],
    generator: torch.Generator | None,
    device: torch.device | str | None,
) -> Tensor:
    """Sample on the generator's device, then move to `device` without waiting for it."""
    sample = sampler(shape, generator=generator, device=generator.device if generator else device)
    if device is not None and torch.device(device).type == "cuda" and not sample.is_cuda:
        return sample.pin_memory().to(device, non_blocking=True)
    return sample.to(device)


def describe_type(value: object) -> str:
    """A tensor's type and shape, or another object's class, for messages."""
    if not isinstance(value, Tensor):
        return type(value).__name__
    return f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}"
