"""The official affNIST test set, where a user has it.

Source: T. Tieleman, https://www.cs.toronto.edu/~tijmen/affNIST/
"""

from pathlib import Path

import torch

from capsnet.data import ImageSet, data_folders

FILE = Path("affNIST", "test.mat")  # of the "transformed" version
SIDE = 40  # pixels


def load() -> ImageSet | None:
    """What ``affNIST/test.mat`` in one of the data folders holds; None without it.

    Raises:
        ValueError: the file is something else.
    """
    paths = [folder / FILE for folder in data_folders()]
    return next((read(path) for path in paths if path.exists()), None)


def read(path: Path) -> ImageSet:
    """A file in affNIST's format: MATLAB's, an image a column, row by row."""
    from scipy.io import loadmat

    try:
        found = loadmat(path, squeeze_me=True, variable_names=["affNISTdata"])["affNISTdata"]
        pixels = torch.from_numpy(found["image"].item().T.copy())  # [n, 1600], uint8
        labels = torch.from_numpy(found["label_int"].item().astype("int64"))
        classes = tuple(str(digit) for digit in range(10))
        return ImageSet(pixels.view(-1, 1, SIDE, SIDE), labels, classes, "affnist")
    except Exception as error:  # SciPy's reader raises what it happens upon
        raise ValueError(
            f"{path} must be affNIST's test.mat, with affNISTdata of 40 × 40 pixels, got: {error}"
        ) from error
