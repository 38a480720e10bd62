"""Data sets and augmentation as tensors: uint8 images [n, c, h, w] that may live on any device."""

from capsnet.data.archives import NAMES, Archives, data_folders
from capsnet.data.augment import (
    MultiMNIST,
    centred,
    multimnist,
    overlaid,
    random_offsets,
    random_shift,
    shift,
    shifted,
)
from capsnet.data.imageset import ImageSet, Source, hold_out, to_float

__all__ = [
    "NAMES", "ImageSet", "MultiMNIST", "Source", "centred", "data_folders", "find", "hold_out",
    "load", "multimnist", "overlaid", "random_offsets", "random_shift", "shift", "shifted",
    "to_float",
]  # fmt: skip


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
    """Load the images of a data set.

    **By name**: mnist, fashion-mnist, kmnist, emnist-letters, emnist-balanced, cifar-10, svhn. The
    official archives are looked for where torchvision puts them, below ``$CAPSNET_DATA``, ``data``
    of the working directory, then of the repository, and for Fashion-MNIST in Debian's package
    dataset-fashion-mnist; they are verified by MD5. Only where they are nowhere are they downloaded
    from torchvision's addresses, into ``$CAPSNET_DATA`` or ``./data``.

    Args:
        name: of the data set.
        train: the training images, or the test images, where no split is given.
        split: "train", "validation", "test" or "all". Without validation images of its own, a data
            set's last sixth of "train" are these too, as of :func:`hold_out`.
        image_shape: (channels, height, width) of a folder's images. None: colour if some picture
            has any, else grey; the size of pictures that all have one of 17 to 48 pixels, else
            32 × 32 in colour and 28 × 28 in grey. Of images by name, the middle is cut out.
        download: whether to download what is not there.
        skip_unreadable: leave out pictures that cannot be read.
        progress: print what is read; show a bar on stderr.

    Raises:
        ValueError: an unknown name or split, a damaged archive, pictures that cannot be read, a
            folder that is no data set, or a shape that images by name do not have.
        FileNotFoundError: the data are not to be had.
    """
    source = find(name, image_shape, download)
    group = source.group(split or ("train" if train else "test"))
    return source.read(group, skip_unreadable=skip_unreadable, progress=progress)[0]


def find(
    name: str, image_shape: tuple[int, int, int] | None = None, download: bool = True
) -> Source:
    """Look a data set up before it is read; arguments and errors as of :func:`load`.

    ``learned, validation = find(name).read(("train",), ("validation",))`` is for training.
    """
    if image_shape is not None and (
        len(image_shape) != 3 or not all(hasattr(n, "__index__") and n > 0 for n in image_shape)
    ):
        expected = "(channels, height, width), whole numbers of at least 1"
        raise ValueError(f"image_shape must be {expected}, got {tuple(image_shape)}")
    if name not in NAMES:
        raise ValueError(f"unknown data set {name!r}; expected one of: {', '.join(NAMES)}")
    return Archives(name, download, image_shape)
