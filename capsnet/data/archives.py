"""Data sets by name, read from their official archives and verified."""

import contextlib
import gzip
import hashlib
import io
import os
import pickletools
import socket
import string
import tarfile
import tempfile
import zipfile
import zlib
from http.client import HTTPException
from pathlib import Path
from typing import IO, cast

import numpy as np
import torch
from torch import Tensor

from capsnet.data.imageset import ImageSet, Source, hold_out
from capsnet.files import write_atomically
from capsnet.text import reason

# The name of a data set -> torchvision's name for it.
NAMES = {
    "mnist": "MNIST", "fashion-mnist": "FashionMNIST", "kmnist": "KMNIST",
    "emnist-letters": "EMNIST", "emnist-balanced": "EMNIST", "cifar-10": "CIFAR10", "svhn": "SVHN",
}  # fmt: skip
# Of these two torchvision, which takes seconds to import, is asked for downloads alone.
MD5 = {
    "mnist": {  # of the archives, as everybody has them
        "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
        "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
        "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
    },
    "fashion-mnist": {  # of what is inside, for Debian has packed the same files anew
        "train-images-idx3-ubyte.gz": "f4a8712d7a061bf5bd6d2ca38dc4d50a",
        "train-labels-idx1-ubyte.gz": "9018921c3c673c538a1fc5bad174d6f9",
        "t10k-images-idx3-ubyte.gz": "8181f5470baa50b63fa0f6fddb340f0a",
        "t10k-labels-idx1-ubyte.gz": "15d484375f8d13e6eb1aabb0c3f46965",
    },
}
DIGITS = tuple(string.digits)
CLASSES = {
    "mnist": DIGITS,
    "fashion-mnist": (
        "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
        "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
    ),
    "kmnist": ("o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"),
    "emnist-letters": tuple(string.ascii_lowercase),
    "emnist-balanced": (*DIGITS, *string.ascii_uppercase, *"abdefghnqrt"),
    "cifar-10": (
        "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
    ),
    "svhn": DIGITS,
}  # fmt: skip
DEBIAN_FASHION_MNIST = Path("/usr/share/datasets/fashion-mnist")  # package dataset-fashion-mnist
DOWNLOAD_TIMEOUT = 30.0  # seconds without an answer


class Archives(Source):
    """A data set by its name; of its images the middle, where a smaller shape is asked for.

    Raises:
        ValueError: the images have other channels, or are smaller.
    """

    def __init__(
        self, name: str, download: bool, image_shape: tuple[int, int, int] | None = None
    ) -> None:
        whole = (3, 32, 32) if name in ("cifar-10", "svhn") else (1, 28, 28)
        shape = image_shape or whole
        self.above, self.beside = ((a - b) // 2 for a, b in zip(whole[1:], shape[1:], strict=True))
        if shape[0] != whole[0] or min(whole[1] - shape[1], whole[2] - shape[2]) < 0:
            raise ValueError(
                f"the images of {name} are {whole} [channels, height, width], not {tuple(shape)}"
            )
        super().__init__(name, CLASSES[name], shape, "validation is the last sixth for training")
        self.download = download

    def read(
        self, *groups: tuple[str, ...], skip_unreadable: bool = False, progress: bool = False
    ) -> list[ImageSet]:
        """Whatever is damaged is refused, also with skip_unreadable."""
        parts: dict[str, ImageSet] = {}
        if any(part != "test" for group in groups for part in group):
            learned = load_archives(self.name, True, self.download)
            parts["train"], parts["validation"] = hold_out(learned)
        if any("test" in group for group in groups):
            parts["test"] = load_archives(self.name, False, self.download)
        if progress:
            labels = {part: images.labels.tolist() for part, images in parts.items()}
            print(self.describe(groups, labels), flush=True)
        _, height, width = self.image_shape
        rows = slice(self.above, self.above + height)
        columns = slice(self.beside, self.beside + width)
        sets = [[parts[part] for part in group] for group in groups]
        return [
            ImageSet(torch.cat([s.images[:, :, rows, columns] for s in of]),
                     torch.cat([s.labels for s in of]), self.classes, self.name)
            for of in sets
        ]  # fmt: skip


def load_archives(name: str, train: bool, download: bool) -> ImageSet:
    """Read the training or the test images of a data set; see :func:`capsnet.data.load`."""
    known = MD5.get(name) or {file: md5 for file, (md5, _) in official(name).items()}
    # What holds both kinds of images is one archive.
    files = [f for f in known if len(known) == 1 or f.startswith("train") == train]
    complete = (f for f in places(name) if all((f / file).is_file() for file in files))
    folder = next(complete, None) or fetch(name, download)
    contents = [verified(folder / file, known[file]) for file in files]
    if name == "cifar-10":
        images, labels = read_cifar(contents[0], train)
    elif name == "svhn":
        images, labels = read_svhn(contents[0])
    elif name.startswith("emnist"):
        images, labels = read_emnist(contents[0], f"{name}-{'train' if train else 'test'}")
        labels = labels - 1 if name == "emnist-letters" else labels
    else:
        images, labels = map(read_idx, contents)
    if images.dim() == 3:
        images = images[:, None]
    return ImageSet(images.contiguous(), labels.to(torch.int64), CLASSES[name], name)


def data_folders() -> list[Path]:
    """``$CAPSNET_DATA``, ``data``, and the one beside the package: tried in this order."""
    given = os.environ.get("CAPSNET_DATA")
    first = [Path(given).expanduser()] if given else []
    return [*first, Path("data"), Path(__file__).resolve().parents[2] / "data"]


def below(name: str) -> Path:
    """Where torchvision puts a data set's archives below its root."""
    return Path() if name in ("cifar-10", "svhn") else Path(NAMES[name], "raw")


def places(name: str) -> list[Path]:
    """The folders where a data set's archives may be, in the order in which they are tried."""
    found = [root / below(name) for root in data_folders()]
    return [*found, DEBIAN_FASHION_MNIST] if name == "fashion-mnist" else found


def official(name: str) -> dict[str, tuple[str, list[str]]]:
    """The archives of a data set, their MD5s and addresses, as torchvision has them."""
    from torchvision import datasets

    source = getattr(datasets, NAMES[name])
    if name == "cifar-10":
        return {source.filename: (source.tgz_md5, [source.url])}
    if name == "svhn":
        lists = [source.split_list[split] for split in ("train", "test")]
        return {file: (md5, [url]) for url, file, md5 in lists}
    if name.startswith("emnist"):
        return {"gzip.zip": (source.md5, [source.url])}
    return {file: (md5, [m + file for m in source.mirrors]) for file, md5 in source.resources}


def verified(archive: Path, md5: str) -> bytes:
    """The content of a file, of a .gz file unpacked; its MD5, or that of the file, must be md5."""
    content = archive.read_bytes()
    found = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if archive.suffix == ".gz":
        with contextlib.suppress(OSError, EOFError, zlib.error):
            content = gzip.decompress(content)
    if md5 not in (found, hashlib.md5(content, usedforsecurity=False).hexdigest()):
        raise ValueError(f"{archive} is damaged: expected MD5 {md5}, got {found}")
    return content


def read_idx(content: bytes) -> Tensor:
    """The bytes of a file in the idx format."""
    # Four bytes, of which the last is the number of dimensions; their sizes; the numbers.
    shape = np.frombuffer(content, ">i4", count=content[3], offset=4)
    pixels = np.frombuffer(content, np.uint8, offset=4 + shape.nbytes)
    return torch.from_numpy(pixels.reshape(shape).copy())


def read_emnist(content: bytes, part: str) -> tuple[Tensor, Tensor]:
    """A part of EMNIST's zip file of idx files, whose images are stored column by column."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        images, labels = (
            read_idx(gzip.decompress(archive.read(f"gzip/{part}-{kind}-ubyte.gz")))
            for kind in ("images-idx3", "labels-idx1")
        )
    return images.transpose(1, 2), labels


def read_svhn(content: bytes) -> tuple[Tensor, Tensor]:
    """SVHN's .mat file: pixels [32, 32, 3, n], and the digit 0 has the label 10."""
    from scipy.io import loadmat

    read = loadmat(io.BytesIO(content))
    return torch.from_numpy(read["X"].transpose(3, 2, 0, 1)), torch.from_numpy(read["y"][:, 0] % 10)


def read_cifar(content: bytes, train: bool) -> tuple[Tensor, Tensor]:
    """CIFAR-10's batches of 10,000 images.

    They are pickles, and nothing is unpickled here: ``pickletools`` takes them apart, as data,
    without running them. So the archive is the one that torchvision loads, with its checksum.
    """
    pixels, labels = [], []
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        for batch in [f"data_batch_{i}" for i in range(1, 6)] if train else ["test_batch"]:
            file = cast(IO[bytes], archive.extractfile(f"cifar-10-batches-py/{batch}"))
            key = longest = ""
            for code, value, _ in pickletools.genops(file.read()):
                if isinstance(value, str):
                    key, longest = value, max(longest, value, key=len)
                elif code.name == "BININT1" and key == "labels":  # a number of one byte
                    labels.append(value)
            pixels.append(np.frombuffer(longest.encode("latin-1"), np.uint8))
    return torch.from_numpy(np.concatenate(pixels).reshape(-1, 3, 32, 32)), torch.tensor(labels)


def fetch(name: str, allowed: bool) -> Path:
    """Download the archives from torchvision's addresses; return the folder that holds them."""
    looked, raw = places(name), below(name)
    trouble = "not downloaded, as download=False"
    if allowed:
        from torchvision.datasets.utils import download_url

        timeout = socket.getdefaulttimeout()
        socket.setdefaulttimeout(DOWNLOAD_TIMEOUT)  # torchvision would wait for ever
        try:
            with tempfile.TemporaryDirectory() as temporary:  # torchvision leaves parts of files
                for file, (md5, addresses) in official(name).items():
                    for mirror in addresses[:-1]:
                        with contextlib.suppress(RuntimeError, OSError, HTTPException):
                            download_url(mirror, temporary, file, md5)
                    download_url(addresses[-1], temporary, file, md5)  # not if it is there by now
                for archive in Path(temporary).iterdir():
                    write_atomically(looked[0] / archive.name, archive.read_bytes())
            return looked[0]
        except (RuntimeError, OSError, HTTPException) as error:
            trouble = f"the download failed: {reason(error)}"
        finally:
            socket.setdefaulttimeout(timeout)
    debian = " or install Debian's dataset-fashion-mnist" if name == "fashion-mnist" else ""
    raise FileNotFoundError(
        f"{name} not found: looked in {', '.join(map(str, looked))}; {trouble}; "
        f"put {', '.join(MD5.get(name) or official(name))} into {'data' / raw} or "
        f"{'$CAPSNET_DATA' / raw}{debian}"
    )
