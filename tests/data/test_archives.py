"""MNIST and Fashion-MNIST from verified archives, downloaded where they are missing."""

import functools
import gzip
import hashlib
import shutil
import struct
import sys
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import torch

from capsnet.data import archives, load

RAW = Path(__file__).parents[2] / "data" / "MNIST" / "raw"
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
    assert found.images.dtype == torch.uint8 and found.labels.dtype == torch.int64
    assert found.classes == tuple("0123456789")
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
    with pytest.raises(FileNotFoundError, match="mnist not found"):
        load("mnist", download=False)


def test_nothing_found_says_where_and_how(elsewhere: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        load("fashion-mnist", download=False)
    debian = str(archives.DEBIAN_FASHION_MNIST)
    for part in ("data/FashionMNIST/raw", "CAPSNET_DATA", "dataset-fashion-mnist", debian):
        assert part in str(caught.value)
    assert "\n" not in str(caught.value) and not list(elsewhere.iterdir())


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
    monkeypatch.setattr("torchvision.datasets.MNIST.mirrors", [address])
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
        monkeypatch.setattr("torchvision.datasets.MNIST.mirrors", ["http://127.0.0.1:0/"])
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


def test_archives_that_were_packed_anew(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, refuses
) -> None:
    """Debian's hold the same bytes as the official ones, but have other MD5s."""
    contents = {
        "t10k-images-idx3-ubyte.gz": struct.pack(">4i", 0x803, 2, 1, 2) + bytes(range(4)),
        "t10k-labels-idx1-ubyte.gz": struct.pack(">2i", 0x801, 2) + bytes([9, 4]),
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


def test_names_and_shapes_that_are_none(refuses) -> None:
    with refuses("'cifar'", "mnist", "fashion-mnist", "folder:PATH"):
        load("cifar")
    with refuses("(1, 28, 28)", "(3, 28, 28)"):
        load("mnist", image_shape=(3, 28, 28))
    with refuses("PATH is empty"):
        load("folder:")
