"""Data sets by name from verified archives, downloaded where they are missing."""

import functools
import gzip
import hashlib
import io
import pickle
import shutil
import struct
import sys
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.io import savemat
from torchvision import datasets

from capsnet.data import archives, find, load
from helpers import ROOT

RAW = ROOT / "data" / "MNIST" / "raw"
ARCHIVES = sorted(RAW.glob("*.gz"))


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, far from the repository and from all other data."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CAPSNET_DATA", raising=False)
    monkeypatch.setattr(archives, "__file__", str(tmp_path / "site/capsnet/data/archives.py"))
    monkeypatch.setattr(archives, "DEBIAN_FASHION_MNIST", tmp_path / "debian")
    return tmp_path


def copy_mnist(root: Path) -> Path:
    raw = root / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for archive in ARCHIVES:
        shutil.copy(archive, raw)
    return raw


@pytest.mark.parametrize("train", [True, False])
def test_mnist_is_mnist_bit_for_bit(train: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The idx format by hand: 16 or 8 bytes of header, then the numbers."""
    monkeypatch.setitem(sys.modules, "torchvision", None)  # needed for downloads alone
    found = load("mnist", train=train, download=False)
    assert found.images.shape == (60000 if train else 10000, 1, 28, 28)
    part = "train" if train else "t10k"
    images = gzip.decompress((RAW / f"{part}-images-idx3-ubyte.gz").read_bytes())[16:]
    labels = gzip.decompress((RAW / f"{part}-labels-idx1-ubyte.gz").read_bytes())[8:]
    assert found.images.numpy().tobytes() == images
    assert found.labels.to(torch.uint8).numpy().tobytes() == labels
    first = [5, 0, 4, 1, 9] if train else [7, 2, 1, 0, 4]  # as everybody has them
    assert found.labels[:5].tolist() == first


def test_the_variable_comes_first_and_its_folder_is_only_read(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, refuses
) -> None:
    copy_mnist(elsewhere / "data")
    damaged = copy_mnist(elsewhere / "mine") / "t10k-labels-idx1-ubyte.gz"
    damaged.write_bytes(damaged.read_bytes()[:-5])
    before = {path: path.stat().st_mtime_ns for path in elsewhere.rglob("*")}
    assert len(load("mnist", train=False, download=False)) == 10000
    monkeypatch.setenv("CAPSNET_DATA", str(elsewhere / "mine"))
    with refuses(damaged, "damaged", "ec29112dd5afa0611ce80d1b7f02629c"):
        load("mnist", train=False)
    assert {path: path.stat().st_mtime_ns for path in elsewhere.rglob("*")} == before


def test_the_other_split_is_not_read(elsewhere: Path) -> None:
    raw = copy_mnist(elsewhere / "data")
    (raw / "train-images-idx3-ubyte.gz").write_bytes(b"broken")
    (raw / "train-labels-idx1-ubyte.gz").unlink()
    assert len(load("mnist", train=False, download=False)) == 10000


def test_nothing_found_says_where_and_how(elsewhere: Path) -> None:
    debian = archives.DEBIAN_FASHION_MNIST
    expected = rf"data/FashionMNIST/raw.*{debian}.*CAPSNET_DATA.*dataset-fashion-mnist"
    with pytest.raises(FileNotFoundError, match=expected):
        load("fashion-mnist", download=False)
    assert not list(elsewhere.iterdir())


@pytest.fixture
def mirror(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """A folder: what lies in it can be downloaded, as if from torchvision's own server."""
    folder = tmp_path_factory.mktemp("mirror")
    for archive in ARCHIVES:
        shutil.copy(archive, folder)
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(folder))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    address = f"http://127.0.0.1:{server.server_port}/"
    # The first one is dead, which is no failure.
    monkeypatch.setattr(datasets.MNIST, "mirrors", ["http://127.0.0.1:0/", address])
    monkeypatch.setattr(datasets.KMNIST, "mirrors", [address])
    monkeypatch.setattr(datasets.EMNIST, "url", address + "gzip.zip")
    monkeypatch.setattr(datasets.CIFAR10, "url", address + datasets.CIFAR10.filename)
    lists = {split: [address + of[1], *of[1:]] for split, of in datasets.SVHN.split_list.items()}
    monkeypatch.setattr(datasets.SVHN, "split_list", lists)
    yield folder
    server.shutdown()
    server.server_close()


def test_a_download_keeps_the_four_archives_alone(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, mirror: Path
) -> None:
    monkeypatch.setenv("CAPSNET_DATA", str(elsewhere / "mine"))
    assert len(load("mnist", train=False)) == 10000
    kept = sorted(path for path in elsewhere.rglob("*") if path.is_file())
    assert kept == [elsewhere / "mine" / "MNIST" / "raw" / archive.name for archive in ARCHIVES]
    assert all(a.read_bytes() == b.read_bytes() for a, b in zip(kept, ARCHIVES, strict=True))


@pytest.mark.parametrize("fault", ["no server", "a byte less"])
def test_a_download_that_fails_is_told_and_leaves_nothing(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, mirror: Path, fault: str
) -> None:
    if fault == "no server":
        monkeypatch.setattr(datasets.MNIST, "mirrors", ["http://127.0.0.1:0/"])
    else:
        last = mirror / ARCHIVES[-1].name
        last.write_bytes(last.read_bytes()[:-1])
    with pytest.raises(FileNotFoundError, match=r"^[^\n]*the download failed[^\n]*$"):
        load("mnist")
    assert not list(elsewhere.iterdir())


def test_fashion_mnist() -> None:
    try:
        test = load("fashion-mnist", train=False, download=False)
    except FileNotFoundError:
        pytest.skip("Fashion-MNIST is not here: set CAPSNET_DATA, or install dataset-fashion-mnist")
    assert test.images.shape == (10000, 1, 28, 28)
    assert test.labels.bincount().tolist() == [1000] * 10
    assert test.classes[0] == "T-shirt/top" and test.classes[9] == "Ankle boot"


def idx(numbers: np.ndarray) -> bytes:
    header = struct.pack(f">{1 + numbers.ndim}i", 0x800 + numbers.ndim, *numbers.shape)
    return header + numbers.astype(np.uint8).tobytes()


def test_archives_that_were_packed_anew(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, refuses
) -> None:
    """Debian's hold the same bytes as the official ones, but have other MD5s."""
    contents = {
        "t10k-images-idx3-ubyte.gz": idx(np.arange(4).reshape(2, 1, 2)),
        "t10k-labels-idx1-ubyte.gz": idx(np.array([9, 4])),
    }
    known = {name: hashlib.md5(content).hexdigest() for name, content in contents.items()}
    monkeypatch.setitem(archives.MD5, "fashion-mnist", known)
    archives.DEBIAN_FASHION_MNIST.mkdir()
    for name, content in contents.items():
        (archives.DEBIAN_FASHION_MNIST / name).write_bytes(gzip.compress(content, 1))
    found = load("fashion-mnist", train=False, download=False)
    assert found.images.tolist() == [[[[0, 1]]], [[[2, 3]]]]
    assert found.labels.tolist() == [9, 4]
    # Another content is damage, however well it is packed.
    labels = archives.DEBIAN_FASHION_MNIST / name
    labels.write_bytes(gzip.compress(content[:-1] + b"\0"))
    with refuses(labels, "damaged"):
        load("fashion-mnist", train=False, download=False)


IMAGES = {  # of training and test: so many that each batch of CIFAR-10 has two
    "kmnist": (7, 28, 28), "emnist-letters": (7, 28, 28), "emnist-balanced": (7, 28, 28),
    "cifar-10": (10, 3, 32, 32), "svhn": (7, 3, 32, 32),
}  # fmt: skip


def as_python_2_pickles(pixels: np.ndarray, labels: list[int]) -> bytes:
    """A batch of CIFAR-10 with the opcodes of the official ones, which Python 2 wrote."""
    batch = (
        b"\x80\x02}(U\x0bbatch_labelU\x10training batch 1K\x03K\x04U\x06labels]("
        + b"".join(b"K" + bytes([label]) for label in labels)
        + b"eU\x04dataT" + struct.pack("<i", pixels.size) + pixels.tobytes()
        + b"U\x09filenames](U\x05a.pngK\x05eu."
    )  # fmt: skip
    understood = pickle.loads(batch, encoding="latin-1")  # noqa: S301 (made here)
    assert (
        understood["labels"] == labels and understood["data"].encode("latin-1") == pixels.tobytes()
    )
    return batch


def official(
    name: str, sets: dict[str, tuple[np.ndarray, list[int]]]
) -> Iterator[tuple[str, bytes]]:
    """Archives in the format that the data set has on its own page; keys "train" and "test"."""
    packed = io.BytesIO()
    if name == "kmnist":
        for part, (images, labels) in sets.items():
            start = part.replace("test", "t10k")
            yield f"{start}-images-idx3-ubyte.gz", gzip.compress(idx(images))
            yield f"{start}-labels-idx1-ubyte.gz", gzip.compress(idx(np.array(labels)))
    elif name == "svhn":
        for part, (images, labels) in sets.items():
            packed, column = io.BytesIO(), np.array([[label or 10] for label in labels], np.uint8)
            savemat(packed, {"X": images.transpose(2, 3, 1, 0), "y": column}, do_compression=True)
            yield f"{part}_32x32.mat", packed.getvalue()
    elif name == "cifar-10":
        batches = {"test_batch": ("test", slice(None))}
        batches |= {f"data_batch_{i}": ("train", slice(2 * i - 2, 2 * i)) for i in range(1, 6)}
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            for batch, (part, of) in batches.items():
                content = as_python_2_pickles(*(values[of] for values in sets[part]))
                info = tarfile.TarInfo(f"cifar-10-batches-py/{batch}")
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
        yield "cifar-10-python.tar.gz", packed.getvalue()
    else:
        with zipfile.ZipFile(packed, "w") as archive:
            for part, (images, labels) in sets.items():
                first = int(name == "emnist-letters")
                on_its_side, start = images.transpose(0, 2, 1), f"gzip/{name}-{part}"
                for kind, of in (
                    ("images-idx3", on_its_side),
                    ("labels-idx1", np.array(labels) + first),
                ):
                    archive.writestr(f"{start}-{kind}-ubyte.gz", gzip.compress(idx(of)))
        yield "gzip.zip", packed.getvalue()


@pytest.mark.parametrize("name", IMAGES)
def test_official_archives_are_downloaded_verified_and_read(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, mirror: Path, refuses, name: str
) -> None:
    dice = np.random.default_rng(0)
    classes = find(name).classes
    sets = {}
    for part in ("train", "test"):
        images = dice.integers(0, 256, IMAGES[name], np.uint8)
        labels = [0, *dice.integers(len(classes), size=len(images) - 2).tolist(), len(classes) - 1]
        sets[part] = images, labels
    md5 = {}
    for file, content in official(name, sets):
        (mirror / file).write_bytes(content)
        md5[file] = hashlib.md5(content).hexdigest()
    monkeypatch.setattr(datasets.KMNIST, "resources", [*md5.items()])
    monkeypatch.setattr(datasets.EMNIST, "md5", md5.get("gzip.zip"))
    monkeypatch.setattr(datasets.CIFAR10, "tgz_md5", md5.get(datasets.CIFAR10.filename))
    lists = datasets.SVHN.split_list
    lists |= {split: [*lists[split][:2], md5.get(lists[split][1])] for split in sets}
    for part, (images, labels) in sets.items():
        found = load(name, train=part == "train")
        assert found.images.numpy().reshape(images.shape).tolist() == images.tolist()
        assert found.labels.tolist() == labels and found.classes == classes
        assert found.images.shape[1:] == find(name).image_shape
        channels, height, width = found.images.shape[1:]
        middle = load(name, train=part == "train", image_shape=(channels, height - 8, width - 3))
        assert torch.equal(middle.images, found.images[..., 4:-4, 1:-2])
        assert torch.equal(middle.labels, found.labels)
    raw = elsewhere / "data" / ("" if images.ndim == 4 else f"{archives.NAMES[name]}/raw")
    assert sorted(raw.iterdir()) == sorted(raw / file for file in md5)
    for file in md5:
        content = bytearray((raw / file).read_bytes())
        content[len(content) // 2] ^= 1  # a bit that is damaged afterwards
        (raw / file).write_bytes(content)
    with refuses("is damaged"):
        load(name, train=False)


def test_classes_and_checksums_are_torchvisions() -> None:
    for name, known in (("fashion-mnist", datasets.FashionMNIST), ("kmnist", datasets.KMNIST)):
        assert archives.CLASSES[name] == tuple(known.classes)
    for split in ("letters", "balanced"):
        known = [kind for kind in datasets.EMNIST.classes_split_dict[split] if kind != "N/A"]
        assert archives.CLASSES[f"emnist-{split}"] == tuple(known)
    assert dict(datasets.MNIST.resources) == archives.MD5["mnist"]


def test_names_and_shapes_that_are_none(refuses) -> None:
    with refuses("'cifar'", "mnist", "fashion-mnist", "cifar-10", "svhn"):
        load("cifar")
    for shape in ((1, 24, 24), (3, 33, 32)):
        with refuses("(3, 32, 32)", shape):
            load("cifar-10", image_shape=shape)
    for shape in ((1, 0, 28), (1, -4, 28), (1, 20.0, 20), (28, 28), (1, 28, 28, 1), ()):
        with refuses("(channels, height, width)", "numbers of at least 1", f"got {shape}"):
            load("mnist", image_shape=shape)
