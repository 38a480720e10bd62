"""MNIST and Fashion-MNIST, read from their official archives and verified."""

import gzip
import hashlib
import os
import socket
import tempfile
import zlib
from http.client import HTTPException
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from capsnet.checkpoint import write_atomically
from capsnet.data.imageset import ImageSet

# The name of a data set -> torchvision's name for it, which is also its folder's.
NAMES = {"mnist": "MNIST", "fashion-mnist": "FashionMNIST"}
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
CLASSES = {
    "mnist": tuple("0123456789"),
    "fashion-mnist": (
        "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
        "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
    ),
}  # fmt: skip
DEBIAN_FASHION_MNIST = Path("/usr/share/datasets/fashion-mnist")  # package dataset-fashion-mnist
DOWNLOAD_TIMEOUT = 30.0  # seconds without an answer


def load_archives(name: str, train: bool, download: bool) -> ImageSet:
    """Read "mnist" or "fashion-mnist"; see :func:`capsnet.data.load`."""
    archives = {a: md5 for a, md5 in MD5[name].items() if a.startswith("train") == train}
    complete = (f for f in places(name) if all((f / archive).is_file() for archive in archives))
    folder = next(complete, None) or fetch(name, download)
    images, labels = (read_idx(folder / archive, md5) for archive, md5 in archives.items())
    return ImageSet(images[:, None], labels.to(torch.int64), CLASSES[name], name)


def data_folders() -> list[Path]:
    """``$CAPSNET_DATA``, ``data``, and the one beside the package: tried in this order."""
    roots = [Path("data")]
    if given := os.environ.get("CAPSNET_DATA"):
        roots.insert(0, Path(given).expanduser())
    beside = Path(__file__).resolve().parents[2] / "data"
    return [*roots, beside] if beside.is_dir() and beside != roots[-1].resolve() else roots


def places(name: str) -> list[Path]:
    """The folders where a data set's archives may be, in the order in which they are tried."""
    found = [root / NAMES[name] / "raw" for root in data_folders()]
    return [*found, DEBIAN_FASHION_MNIST] if name == "fashion-mnist" else found


def read_idx(archive: Path, md5: str) -> Tensor:
    """Read a .gz file of bytes in the idx format; its MD5, or that of its content, must be md5."""
    packed = archive.read_bytes()
    try:
        content = gzip.decompress(packed)
    except (OSError, EOFError, zlib.error):
        content = b""
    found = [hashlib.md5(data, usedforsecurity=False).hexdigest() for data in (packed, content)]
    if md5 not in found:
        raise ValueError(f"{archive} is damaged: expected MD5 {md5}, got {found[0]}")
    # Four bytes, of which the last is the number of dimensions; their sizes; the numbers.
    shape = np.frombuffer(content, ">i4", count=content[3], offset=4)
    pixels = np.frombuffer(content, np.uint8, offset=4 + shape.nbytes)
    return torch.from_numpy(pixels.reshape(shape).copy())


def fetch(name: str, allowed: bool) -> Path:
    """Let torchvision download the archives, and return the folder that then holds them."""
    looked, raw = places(name), Path(NAMES[name], "raw")
    trouble = "not downloaded, as download=False"
    if allowed:
        from torchvision import datasets

        timeout = socket.getdefaulttimeout()
        socket.setdefaulttimeout(DOWNLOAD_TIMEOUT)  # torchvision would wait for ever
        try:
            with tempfile.TemporaryDirectory() as temporary:  # torchvision leaves parts of files
                getattr(datasets, NAMES[name])(temporary, download=True)
                for archive in Path(temporary, raw).glob("*.gz"):
                    write_atomically(looked[0] / archive.name, archive.read_bytes())
            return looked[0]
        except (RuntimeError, OSError, HTTPException) as error:
            trouble = f"the download failed: {' '.join(str(error).split())}"
        finally:
            socket.setdefaulttimeout(timeout)
    debian = " or install Debian's dataset-fashion-mnist" if name == "fashion-mnist" else ""
    raise FileNotFoundError(
        f"{name} not found: looked in {', '.join(map(str, looked))}; {trouble}; "
        f"put {', '.join(MD5[name])} into data/{raw} or $CAPSNET_DATA/{raw}{debian}"
    )
