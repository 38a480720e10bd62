"""Data sets and augmentation as tensors: uint8 images [n, c, h, w] that may live on any device."""

from capsnet.data.archives import NAMES, data_folders, load_archives
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
from capsnet.data.imageset import ImageSet, hold_out, to_float

__all__ = [
    "ImageSet", "MultiMNIST", "centred", "data_folders", "hold_out", "load", "multimnist",
    "overlaid", "random_offsets", "random_shift", "shift", "shifted", "to_float",
]  # fmt: skip


def load(
    name: str,
    train: bool = True,
    *,
    image_shape: tuple[int, int, int] | None = None,
    download: bool = True,
) -> ImageSet:
    """Load the training images (train=True) or the test images of a data set.

    **mnist, fashion-mnist.** The official .gz archives are looked for in
    ``$CAPSNET_DATA/<MNIST|FashionMNIST>/raw``, ``data/<...>/raw`` of the working directory, then
    of the repository, and for Fashion-MNIST in Debian's package dataset-fashion-mnist; they are
    verified by MD5. Only where they are nowhere does torchvision download them (download=True),
    into ``$CAPSNET_DATA`` or ``./data``.

    **folder:PATH.** torchvision's ImageFolder layout, ``PATH/class/picture``, read as images of
    ``image_shape``, (1, 28, 28) when None, by :func:`capsnet.data.pictures.read_picture`, style
    "plain". Where PATH has both train/ and test/, each of them has that layout; otherwise every
    sixth picture of a class, in sorted order, is a test image (the last one of a class of 2 to 5).
    Training images come in a fixed shuffled order: :func:`hold_out` gets a mixture of the classes.

    Raises:
        ValueError: an unknown name, a damaged archive or picture, a folder that is no data set.
        FileNotFoundError: the data are not to be had.
    """
    if name.startswith("folder:"):
        from capsnet.data.folders import load_folder  # which imports Pillow and SciPy

        return load_folder(name, train, image_shape or (1, 28, 28))
    if name not in NAMES:
        known = ", ".join([*NAMES, "folder:PATH"])
        raise ValueError(f"unknown data set {name!r}; expected one of: {known}")
    if image_shape not in (None, (1, 28, 28)):
        raise ValueError(f"the images of {name} are (1, 28, 28), got {tuple(image_shape)}")
    return load_archives(name, train, download)
