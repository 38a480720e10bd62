"""Image sets: read by name, divided, and shifted."""

import gzip
import inspect
import shutil
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.error import URLError

import numpy as np
import pytest
import torch
from scipy import ndimage
from torch.utils.data import DataLoader, Subset, TensorDataset, random_split
from torchvision import datasets
from torchvision.transforms.functional import to_pil_image, to_tensor

from capsnet import data
from capsnet.data import ImageSet, hold_out, load, to_float
from capsnet.multimnist import overlaid_batch
from helpers import ROOT, Refuses
from helpers.tiny import some_digits

RAW = ROOT / "data" / "MNIST" / "raw"
TWO = ImageSet(
    torch.zeros(2, 1, 28, 28, dtype=torch.uint8), torch.tensor([0, 1]), tuple("0123456789"), "x"
)
ENOUGH = torch.zeros(2, 1, 28, 28)
ARCHIVES = sorted(RAW.glob("*.gz"))


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def digits() -> ImageSet:
    return some_digits(300)


class Pictures(datasets.VisionDataset):
    """A Dataset such as torchvision's, of PIL images and a transform, whose classes have names."""

    classes = ("nought", "one", *"23456789")

    def __init__(self, images: ImageSet, transform: Any = None) -> None:
        super().__init__(transform=transform)
        self.images = images

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        image = to_pil_image(self.images.images[index])
        return self.transform(image) if self.transform else image, int(self.images.labels[index])


def test_whatever_pytorch_holds_images_in_is_an_image_set(digits: ImageSet) -> None:
    few = digits.subset(slice(30))
    images, labels, pictures = few.images, few.labels, Pictures(few, to_tensor)
    for given in (
        few, (images, labels), (to_float(images), labels.tolist()),
        (images[:, 0].numpy(), labels.numpy().astype("uint8")), [*zip(images, labels, strict=True)],
        TensorDataset(to_float(images).half(), labels.short()), pictures,
        Subset(pictures, range(30)),
    ):  # fmt: skip
        found = data.as_image_set(given, 10)
        assert torch.equal(found.images, images) and torch.equal(found.labels, labels)
        assert len(found.classes) == 10
    part, _ = random_split(pictures, [0.5, 0.5])
    assert data.as_image_set(part, 10).classes[:3] == ("nought", "one", "2")


def refused_data() -> list[tuple[Any, str]]:
    labels = torch.tensor([0, 1])
    return [
        (ENOUGH, "expected an ImageSet, a tuple (no list) of images and labels, or a Dataset of"),
        ([ENOUGH[:, 0], labels], "a tuple (no list) of images and labels"),
        ("mnist", "got str: not enough values"),
        ({"images": ENOUGH, "labels": labels}, "got dict: "),
        (DataLoader(TensorDataset(ENOUGH, labels)), "got a DataLoader: give its dataset"),
        ((ENOUGH - 1, labels), "images must lie in 0 … 1, got -1 … -1 (divide by 255, or"),
        ((ENOUGH.long(), labels), "images must be a tensor, uint8 [n, c, h, w], got int64"),
        ((ENOUGH, labels / 2), "labels must be a tensor, int64 [2], got float32 [2]"),
        ((ENOUGH, labels, labels), "got tuple: too many values"),
        (Pictures(TWO), "transform=ToTensor()), got Pictures: Could not infer dtype of Image"),
        ([(ENOUGH[0], 0), (ENOUGH[0, :, 1:], 1)], "got list: stack expects each tensor"),
        (TensorDataset(ENOUGH[:0], labels[:0]), "got TensorDataset: stack expects a non-empty"),
    ]  # fmt: skip


@pytest.mark.parametrize(("given", "message"), refused_data())
def test_what_is_no_image_set_is_refused(given: Any, message: str, refuses: Refuses) -> None:
    with refuses(message):
        data.as_image_set(given, 10)


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, far from the repository, from all other data and the network."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CAPSNET_DATA", raising=False)
    monkeypatch.setattr(data, "__file__", str(tmp_path / "site/capsnet/data.py"))

    def refuse(*_: object, **__: object) -> None:
        raise URLError("no network")

    monkeypatch.setattr("urllib.request.urlopen", refuse)
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
    monkeypatch.setitem(sys.modules, "torchvision", None)  # its import is slow, and not needed
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
    raw = copy_mnist(elsewhere / "data")
    (raw / "train-images-idx3-ubyte.gz").write_bytes(b"broken")  # not read for the test images
    damaged = copy_mnist(elsewhere / "mine") / "t10k-labels-idx1-ubyte.gz"
    damaged.write_bytes(damaged.read_bytes()[:-5])
    (elsewhere / "notebooks" / "mine").mkdir(parents=True)
    before = {path: path.stat().st_mtime_ns for path in elsewhere.rglob("*")}
    assert len(load("mnist", train=False, download=False)) == 10000
    monkeypatch.chdir(elsewhere / "notebooks" / "mine")  # it is looked for in the folders above
    assert len(load("mnist", train=False, download=False)) == 10000
    monkeypatch.setenv("CAPSNET_DATA", str(elsewhere / "mine"))
    with refuses(damaged, "damaged", data.MD5[damaged.name]):
        load("mnist", train=False)
    assert {path: path.stat().st_mtime_ns for path in elsewhere.rglob("*")} == before


@pytest.mark.parametrize(
    ("download", "trouble"), [(False, "download=False"), (True, "the download failed.*no network")]
)
def test_nothing_found_says_where_and_how(elsewhere: Path, download: bool, trouble: str) -> None:
    looked = rf"data, {elsewhere}/site/data"
    line = (
        rf"^fashion-mnist is missing[^\n]*{looked}[^\n]*{trouble}[^\n]* torchvision's FashionMNIST"
    )
    with pytest.raises(FileNotFoundError, match=line):
        load("fashion-mnist", download=download)


def test_archives_that_were_packed_anew(elsewhere: Path, refuses) -> None:
    """As Debian's of Fashion-MNIST are: of other MD5s than the official ones."""
    folder = elsewhere / "data" / "FashionMNIST" / "raw"
    folder.mkdir(parents=True)
    images, labels = (folder / name for name in data.archives(train=False))
    images.write_bytes(gzip.compress(bytes(16) + bytes([0, 7] * 784)))
    labels.write_bytes(gzip.compress(bytes(8) + bytes([9, 4])))
    found = load("fashion-mnist", train=False, download=False)
    assert found.images.shape == (2, 1, 28, 28) and found.images[1, 0, 0, :2].tolist() == [0, 7]
    assert found.labels.tolist() == [9, 4] and found.classes[9] == "Ankle boot"
    content = bytearray(labels.read_bytes())
    content[-6] ^= 1  # a bit of gzip's checksum
    labels.write_bytes(content)
    with refuses(labels.relative_to(elsewhere), "damaged"):
        load("fashion-mnist", train=False, download=False)


PIXELS = np.arange(2 * 3 * 32 * 32, dtype=np.uint8).reshape(2, 3, 32, 32)
GREY = torch.arange(2 * 28 * 28, dtype=torch.uint8).view(2, 28, 28)


READ = {  # what torchvision's class holds, and the images made of it
    "fashion-mnist": ({"data": GREY, "targets": torch.tensor([9, 4])}, GREY[:, None]),
    "cifar-10": ({"data": PIXELS.transpose(0, 2, 3, 1), "targets": [9, 4]}, PIXELS),
}


@pytest.mark.parametrize("name", READ)
def test_what_torchvision_reads_becomes_an_image_set(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    fields, images = READ[name]
    source = getattr(datasets, data.SOURCES[name])
    asked = []

    def read(root: Path, *given: object, **options: object) -> SimpleNamespace:
        inspect.signature(source).bind(root, *given, **options)
        asked.append((root, *given, options["download"]))
        if not options["download"]:
            raise RuntimeError("Dataset not found or corrupted")
        return SimpleNamespace(**fields)

    monkeypatch.setattr(datasets, data.SOURCES[name], read)
    monkeypatch.setenv("CAPSNET_DATA", "mine")
    found = load(name, train=False)
    assert torch.equal(found.images, torch.as_tensor(images))
    assert found.labels.tolist() == [9, 4] and found.images.is_contiguous()
    assert found.classes == data.CLASSES[name]
    assert asked[-1] == (Path("mine"), False, True)  # only once it was found nowhere
    assert [root for root, *_, download in asked if not download] == data.data_folders()


def test_classes_and_checksums_are_torchvisions() -> None:
    assert data.CLASSES["fashion-mnist"] == tuple(datasets.FashionMNIST.classes)
    assert dict(datasets.MNIST.resources) == data.MD5


@pytest.mark.parametrize("made", [list, np.array, torch.tensor])
def test_a_subset(digits: ImageSet, made) -> None:
    for index in (made([i in (5, 9) for i in range(300)]), made([5, 9]), slice(5, 10, 4)):
        chosen = digits.subset(index)
        assert torch.equal(chosen.images, digits.images[[5, 9]])
        assert chosen.labels.tolist() == digits.labels[[5, 9]].tolist()
    assert len(digits.subset(made([]))) == 0


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.float64])
def test_shift_is_scipys(dtype: torch.dtype) -> None:
    images = (torch.rand(9, 3, 7, 5, generator=seeded()) * 255).to(dtype)
    offsets = [(0, 0), (2, -2), (-2, 2), (2, 2), (-2, -2), (1, 0), (0, -1), (7, 0), (0, 5)]
    moved = data.shift(images, torch.tensor(offsets))
    assert moved.dtype == dtype
    for before, after, offset in zip(images, moved, offsets, strict=True):
        assert (after.numpy() == ndimage.shift(before.numpy(), (0, *offset), order=0)).all()


def test_hold_out_is_the_last_sixth(digits: ImageSet) -> None:
    training, validation = hold_out(digits.subset(slice(31)))
    assert torch.equal(training.images, digits.images[:26])
    assert torch.equal(validation.labels, digits.labels[26:31])


def test_to_float() -> None:
    values = torch.tensor([0, 51, 255], dtype=torch.uint8)
    torch.testing.assert_close(to_float(values), torch.tensor([0.0, 0.2, 1.0]))


def image_set(images: object = TWO.images, labels: object = TWO.labels) -> ImageSet:
    return ImageSet(images, labels, TWO.classes, "x")


REFUSED = [  # a call that is refused, and parts of what it says
    (lambda: load("cifar"), "'cifar'", *data.NAMES),
    (lambda: load("mnist", "test"), "train must be True or False, got 'test'"),  # type: ignore
    (lambda: image_set(images=TWO.images.float()), "uint8", "float32"),
    (lambda: image_set(images=TWO.images[:, 0]), "uint8", "[2, 28, 28]"),
    (lambda: image_set(images=TWO.images.numpy()), "a tensor, uint8", "got ndarray"),
    (lambda: image_set(labels=TWO.labels[:1]), "int64 [2]", "int64 [1]"),
    (lambda: image_set(labels=TWO.labels.int()), "int64", "int32"),
    (lambda: image_set(labels=torch.tensor([0, 10])), "0..9", "10"),
    (lambda: image_set(labels=torch.tensor([0, -1])), "0..9", "-1"),
    (lambda: hold_out(TWO), "at least 6", "2"),
    (lambda: hold_out(TWO.subset([0] * 10 + [1] * 2)), "no images of 1 would be left", "randperm"),
    (lambda: to_float(TWO.images.float()), "uint8", "float32"),
    (lambda: data.shift(TWO.images, TWO.images), "[n, 2]", "[2, 1, 28, 28]"),
    (lambda: data.shift(TWO.images[0], torch.zeros(1, 2).long()), "[n, c, h, w]", "[1, 28, 28]"),
    (lambda: data.random_shift(TWO.images, -1), "at least 0", "-1"),
    (lambda: data.centred(TWO, 27), "28 × 28", "27 × 27"),
]


@pytest.mark.parametrize(("call", "parts"), [(call, parts) for call, *parts in REFUSED])
def test_what_does_not_fit_is_refused(refuses: Refuses, call: Any, parts: list[str]) -> None:
    with refuses(*parts):
        call()


def test_offsets_are_uniform_and_independent() -> None:
    offsets = data.random_offsets(50_000, 2, seeded())
    counts = Counter(map(tuple, offsets.tolist()))
    assert len(counts) == 25
    assert offsets.dtype == torch.int64
    # 2000 expected of each; five standard deviations of a binomial are 219.
    assert all(abs(count - 2000) < 219 for count in counts.values())


def test_random_shift_is_per_image(digits: ImageSet) -> None:
    same = digits.images[:1].expand(100, -1, -1, -1)
    moved = data.random_shift(same, 2, seeded())
    assert len({m.numpy().tobytes() for m in moved}) > 20
    assert torch.equal(moved, data.shift(same, data.random_offsets(100, 2, seeded())))
    assert data.random_shift(same, 0) is same


def test_a_batch_to_learn_from(digits: ImageSet) -> None:
    index = torch.tensor([4, 2])
    images, labels = data.shifted_batch(digits, index, 2, seeded())
    assert torch.equal(images, to_float(data.random_shift(digits.images[index], 2, seeded())))
    assert torch.equal(labels, digits.labels[index])


def test_a_cpu_generator_gives_the_same_on_every_device(
    digits: ImageSet, device: torch.device
) -> None:
    for batch in (data.shifted_batch, overlaid_batch):
        index = torch.arange(50)
        there = batch(digits.to(device), index.to(device), 2, seeded())
        for mine, expected in zip(there, batch(digits, index, 2, seeded()), strict=True):
            assert torch.equal(mine.cpu(), expected)
