"""MNIST and Fashion-MNIST from verified archives, downloaded where they are missing."""

import gzip
import shutil
import socket
import struct
import sys
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
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


def listing(folder: Path) -> list[tuple[str, int, int]]:
    return sorted(
        (str(p), p.stat().st_size, p.stat().st_mtime_ns) for p in folder.rglob("*") if p.is_file()
    )


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
    # As everybody has them: the first labels, and the counts of the ten classes.
    if train:
        assert found.labels[:5].tolist() == [5, 0, 4, 1, 9]
    else:
        counts = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
        assert found.labels.bincount().tolist() == counts


def test_the_source_is_not_written_to_and_the_variable_comes_first(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = copy_mnist(elsewhere / "mine")
    monkeypatch.setenv("CAPSNET_DATA", str(elsewhere / "mine"))
    before = listing(elsewhere)
    assert len(load("mnist", train=False, download=False)) == 10000
    assert listing(elsewhere) == before
    # It comes before ./data: a damaged copy there is found first.
    shutil.copytree(raw, elsewhere / "data" / "MNIST" / "raw")
    (raw / ARCHIVES[0].name).write_bytes(b"broken")
    with pytest.raises(ValueError, match="mine"):
        load("mnist", train=False, download=False)
    monkeypatch.delenv("CAPSNET_DATA")
    assert len(load("mnist", train=False, download=False)) == 10000


def test_the_other_split_is_not_read(elsewhere: Path) -> None:
    raw = copy_mnist(elsewhere / "data")
    (raw / "train-images-idx3-ubyte.gz").write_bytes(b"broken")
    (raw / "train-labels-idx1-ubyte.gz").unlink()
    assert len(load("mnist", train=False, download=False)) == 10000
    with pytest.raises(FileNotFoundError, match="mnist not found"):
        load("mnist", download=False)


def test_a_damaged_archive_is_named_and_kept(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, refuses
) -> None:
    raw = copy_mnist(elsewhere)
    damaged = raw / "train-labels-idx1-ubyte.gz"
    content = damaged.read_bytes()[:-5]
    damaged.write_bytes(content)
    monkeypatch.setenv("CAPSNET_DATA", str(elsewhere))
    with refuses(damaged, "d53e105ee54ea40749a09fcbcd1e9432"):
        load("mnist")
    assert damaged.read_bytes() == content


def test_nothing_found_says_where_and_how(elsewhere: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        load("fashion-mnist", download=False)
    said = str(caught.value)
    assert "\n" not in said
    debian = str(archives.DEBIAN_FASHION_MNIST)
    for part in ("data/FashionMNIST/raw", "CAPSNET_DATA", "dataset-fashion-mnist", debian):
        assert part in said
    assert not list(elsewhere.iterdir())


def test_a_download_that_fails_is_told_and_leaves_nothing(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as sock:  # a port where nobody listens
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{port}")
    with pytest.raises(FileNotFoundError, match="the download failed") as caught:
        load("mnist")
    assert "\n" not in str(caught.value)
    assert not list(elsewhere.iterdir())


class Mirror(BaseHTTPRequestHandler):
    """A proxy that answers for every host with MNIST's archives, less `missing` bytes of each."""

    missing = 0

    def do_GET(self) -> None:
        archive = RAW / self.path.rsplit("/", 1)[-1]
        content = archive.read_bytes()[: archive.stat().st_size - self.missing]
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Mirror]]:
    """torchvision's servers, on this machine. https is refused, so its second mirror is asked."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Mirror)
    threading.Thread(target=server.serve_forever).start()
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{server.server_port}")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    urllib.request.install_opener(None)  # type: ignore[arg-type]  # else it keeps older proxies
    yield Mirror
    urllib.request.install_opener(None)  # type: ignore[arg-type]
    server.shutdown()
    server.server_close()


def test_a_download_keeps_the_four_archives_alone(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, mirror: type[Mirror]
) -> None:
    monkeypatch.setenv("CAPSNET_DATA", str(elsewhere / "mine"))
    assert len(load("mnist", train=False)) == 10000
    kept = sorted(path for path in elsewhere.rglob("*") if path.is_file())
    assert kept == [elsewhere / "mine" / "MNIST" / "raw" / archive.name for archive in ARCHIVES]
    assert all(a.read_bytes() == b.read_bytes() for a, b in zip(kept, ARCHIVES, strict=True))


def test_a_download_that_ends_early_leaves_nothing(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, mirror: type[Mirror]
) -> None:
    monkeypatch.setattr(mirror, "missing", 1)
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
    known = {name: archives.digest(content) for name, content in contents.items()}
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
