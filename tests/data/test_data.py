"""Data sets from verified archives and folders; augmentation against plain loops."""

import gzip
import shutil
import socket
import threading
import urllib.request
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import torch
from PIL import Image
from torch import Tensor

from capsnet import data
from capsnet.data import (
    ImageSet,
    affine,
    centred,
    hold_out,
    load,
    moved_whole,
    multimnist,
    overlaid,
    place_in,
    random_offsets,
    random_shift,
    shift,
    shifted,
    to_float,
)
from helpers.tiny import some_digits

REPOSITORY = Path(__file__).parents[2]
ARCHIVES = sorted((REPOSITORY / "data" / "MNIST" / "raw").glob("*.gz"))


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def digits() -> ImageSet:
    return some_digits(300)


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, no $CAPSNET_DATA, and the package far from its repository."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CAPSNET_DATA", raising=False)
    monkeypatch.setattr(data, "__file__", str(tmp_path / "site/capsnet/data/__init__.py"))
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


# --- MNIST and Fashion-MNIST


def test_mnist_is_mnist() -> None:
    training, test = load("mnist", download=False), load("mnist", train=False, download=False)
    assert training.images.shape == (60000, 1, 28, 28)
    assert test.images.shape == (10000, 1, 28, 28)
    assert training.images.dtype == torch.uint8 and training.labels.dtype == torch.int64
    assert training.classes == tuple("0123456789")
    # Counts of the ten classes, as everybody has them.
    counts = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert test.labels.bincount().tolist() == counts
    assert training.labels[:5].tolist() == [5, 0, 4, 1, 9]


def test_archives_are_read_as_they_are_bit_for_bit() -> None:
    """The idx format by hand: 16 or 8 bytes of header, then the numbers."""
    raw = REPOSITORY / "data" / "MNIST" / "raw"
    images = gzip.decompress((raw / "t10k-images-idx3-ubyte.gz").read_bytes())[16:]
    labels = gzip.decompress((raw / "t10k-labels-idx1-ubyte.gz").read_bytes())[8:]
    test = load("mnist", train=False, download=False)
    assert test.images.numpy().tobytes() == images
    assert test.labels.to(torch.uint8).numpy().tobytes() == labels


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
        load("mnist", download=False)
    monkeypatch.delenv("CAPSNET_DATA")
    assert len(load("mnist", train=False, download=False)) == 10000


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
    for part in ("data/FashionMNIST/raw", "CAPSNET_DATA", "dataset-fashion-mnist", "/usr/share"):
        assert part in said or Path(part).exists()
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
        archive = REPOSITORY / "data" / "MNIST" / "raw" / self.path.rsplit("/", 1)[-1]
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


def fashion_mnist_is_here() -> bool:
    try:
        load("fashion-mnist", train=False, download=False)
    except FileNotFoundError:
        return False
    return True


needs_fashion_mnist = pytest.mark.skipif(
    not fashion_mnist_is_here(),
    reason="Fashion-MNIST is not here: set CAPSNET_DATA, or install dataset-fashion-mnist",
)


@needs_fashion_mnist
def test_fashion_mnist() -> None:
    test = load("fashion-mnist", train=False, download=False)
    assert test.images.shape == (10000, 1, 28, 28)
    assert test.labels.bincount().tolist() == [1000] * 10
    assert test.classes[0] == "T-shirt/top" and test.classes[9] == "Ankle boot"


@needs_fashion_mnist
def test_debians_repacked_fashion_mnist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refuses
) -> None:
    """Debian's archives hold the same bytes but have other MD5s: their headers hold no name."""
    expected = load("fashion-mnist", train=False, download=False)
    raw = next(
        place
        for place in data._places("fashion-mnist")
        if all((place / archive.name).is_file() for archive in ARCHIVES)
    )
    for archive in ARCHIVES:
        content = gzip.decompress((raw / archive.name).read_bytes())
        (tmp_path / archive.name).write_bytes(gzip.compress(content, 1, mtime=0))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CAPSNET_DATA", raising=False)
    monkeypatch.setattr(data, "__file__", str(tmp_path / "site/capsnet/data/__init__.py"))
    monkeypatch.setattr(data, "DEBIAN_FASHION_MNIST", tmp_path)
    found = load("fashion-mnist", train=False, download=False)
    assert torch.equal(found.images, expected.images)
    assert torch.equal(found.labels, expected.labels)
    # Another content is damage, however well it is packed.
    labels = tmp_path / "t10k-labels-idx1-ubyte.gz"
    content = bytearray(gzip.decompress(labels.read_bytes()))
    content[-1] ^= 1
    labels.write_bytes(gzip.compress(bytes(content)))
    with refuses(labels, "damaged"):
        load("fashion-mnist", download=False)


def test_names_and_shapes_that_are_none(refuses) -> None:
    with refuses("'cifar'", "mnist", "fashion-mnist", "folder:PATH"):
        load("cifar")
    with refuses("(1, 28, 28)", "(3, 28, 28)"):
        load("mnist", image_shape=(3, 28, 28))
    with refuses("PATH is empty"):
        load("folder:")


# --- the set itself


def test_image_set(digits: ImageSet, refuses) -> None:
    assert len(digits.subset(slice(3, 10))) == 7
    chosen = digits.subset([4, 2])
    assert torch.equal(chosen.images[1], digits.images[2])
    assert chosen.labels.tolist() == [int(digits.labels[4]), int(digits.labels[2])]
    assert digits.to("cpu").classes == digits.classes
    images, labels = digits.images[:3], digits.labels[:3]
    with refuses("uint8", "float32"):
        ImageSet(images.float(), labels, digits.classes, "x")
    with refuses("uint8", "[3, 28, 28]"):
        ImageSet(images[:, 0], labels, digits.classes, "x")
    with refuses("int64 [3]", "int64 [2]"):
        ImageSet(images, labels[:2], digits.classes, "x")
    with refuses("int64", "int32"):
        ImageSet(images, labels.int(), digits.classes, "x")
    with refuses("0..1", "9"):
        ImageSet(images, torch.tensor([0, 1, 9]), ("a", "b"), "x")
    with refuses("0..1", "-1"):
        ImageSet(images, torch.tensor([0, 1, -1]), ("a", "b"), "x")


def test_hold_out_is_the_last_sixth(refuses) -> None:
    everything = load("mnist", download=False)
    training, validation = hold_out(everything)
    assert (len(training), len(validation)) == (50000, 10000)
    assert torch.equal(validation.images, everything.images[50000:])
    assert torch.equal(training.labels, everything.labels[:50000])
    with refuses("at least 6", "5"):
        hold_out(everything.subset(slice(0, 5)))


def test_to_float(refuses) -> None:
    values = torch.tensor([0, 51, 255], dtype=torch.uint8)
    torch.testing.assert_close(to_float(values), torch.tensor([0.0, 0.2, 1.0]))
    with refuses("uint8", "float32"):
        to_float(values.float())


# --- shifts


def shift_by_loops(images: Tensor, offsets: Tensor) -> Tensor:
    moved = torch.zeros_like(images)
    n, _, h, w = images.shape
    for i in range(n):
        dy, dx = offsets[i].tolist()
        for y in range(h):
            for x in range(w):
                if 0 <= y - dy < h and 0 <= x - dx < w:
                    moved[i, :, y, x] = images[i, :, y - dy, x - dx]
    return moved


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.float64])
def test_shift_is_the_loop(dtype: torch.dtype) -> None:
    images = (torch.rand(9, 3, 7, 5, generator=seeded()) * 255).to(dtype)
    offsets = torch.tensor(
        [[0, 0], [2, -2], [-2, 2], [2, 2], [-2, -2], [1, 0], [0, -1], [7, 0], [0, 5]]
    )
    moved = shift(images, offsets)
    assert moved.dtype == dtype
    assert torch.equal(moved, shift_by_loops(images, offsets))


def test_shift_refuses_what_does_not_fit(refuses) -> None:
    with refuses("[n, 2]", "[2, 2]"):
        shift(torch.zeros(3, 1, 4, 4), torch.zeros(2, 2, dtype=torch.int64))
    with refuses("[n, c, h, w]", "[3, 4, 4]"):
        shift(torch.zeros(3, 4, 4), torch.zeros(3, 2, dtype=torch.int64))


def test_offsets_are_uniform_and_independent() -> None:
    offsets = random_offsets(50_000, 2, seeded())
    counts = Counter(map(tuple, offsets.tolist()))
    assert len(counts) == 25
    assert offsets.dtype == torch.int64
    # 2000 expected of each; five standard deviations of a binomial are 219.
    assert all(abs(count - 2000) < 219 for count in counts.values())


def test_random_shift_is_per_image_and_repeats_with_its_seed(digits: ImageSet, refuses) -> None:
    same = digits.images[:1].expand(100, -1, -1, -1)
    moved = random_shift(same, 2, seeded())
    assert len({m.numpy().tobytes() for m in moved}) > 20
    assert torch.equal(moved, random_shift(same, 2, seeded()))
    assert not torch.equal(moved, random_shift(same, 2, seeded(1)))
    assert torch.equal(moved, shift(same, random_offsets(100, 2, seeded())))
    assert random_shift(same, 0) is same
    with refuses("at least 0", "-1"):
        random_shift(same, -1)


@pytest.mark.slow
def test_random_shift_compiles(digits: ImageSet, inductor: None) -> None:
    images, offsets = digits.images[:8], random_offsets(8, 2, seeded())
    assert torch.equal(
        torch.compile(shift, fullgraph=True)(images, offsets), shift(images, offsets)
    )
    # Its own numbers, as a compiled program draws them: each image is some shift of itself.
    moved = torch.compile(random_shift, fullgraph=True)(images)
    for image, found in zip(images, moved, strict=True):
        every = torch.cartesian_prod(torch.arange(-2, 3), torch.arange(-2, 3))
        assert (shift(image.expand(25, 1, 28, 28), every) == found).flatten(1).all(1).any()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_cpu_generator_gives_the_same_on_every_device(digits: ImageSet) -> None:
    there = digits.to("cuda")
    index = torch.arange(len(digits))
    for make in (
        lambda s: random_shift(s.images, 2, seeded()),
        lambda s: place_in(s.images, 40, seeded()),
        lambda s: multimnist(s, index, seeded()).images,
    ):
        assert torch.equal(make(there).cpu(), make(digits))
    gap = affine(there.images, seeded()).cpu().int() - affine(digits.images, seeded()).int()
    assert gap.abs().max() <= 1  # the two samplers round differently


def test_place_in_keeps_the_image_whole_and_reaches_every_corner(digits: ImageSet, refuses) -> None:
    ones = torch.ones(3000, 1, 28, 28, dtype=torch.uint8)
    placed = place_in(ones, 40, seeded())
    assert placed.shape == (3000, 1, 40, 40)
    assert placed.flatten(1).sum(1).eq(28 * 28).all()
    rows, columns = placed[:, 0].amax(2).argmax(1), placed[:, 0].amax(1).argmax(1)
    places = set(zip(rows.tolist(), columns.tolist(), strict=True))
    assert {(0, 0), (0, 12), (12, 0), (12, 12)} <= places
    assert max(map(max, places)) == 12
    with refuses("28 × 28", "27 × 27"):
        place_in(digits.images, 27)


def test_centred(digits: ImageSet, refuses) -> None:
    large = centred(digits, 40)
    assert large.images.shape == (300, 1, 40, 40)
    assert torch.equal(large.images[:, :, 6:34, 6:34], digits.images)
    assert int(large.images.sum()) == int(digits.images.sum())
    assert (large.labels, large.classes, large.name) == (
        digits.labels, digits.classes, digits.name
    )  # fmt: skip
    with refuses("28 × 28", "27 × 27"):
        centred(digits, 27)


def test_moved_whole_reaches_every_place_and_cuts_nothing() -> None:
    image = torch.zeros(1, 2, 6, 7, dtype=torch.uint8)
    image[0, 0, 2, 3], image[0, 1, 3, 5] = 8, 9  # ink of two rows and three columns
    moved = moved_whole(image.expand(2000, -1, -1, -1), seeded())
    places = Counter(tuple((m[0] == 8).nonzero()[0].tolist()) for m in moved)
    assert set(places) == {(row, column) for row in range(5) for column in range(5)}
    assert max(places.values()) < 2 * min(places.values())
    for m in moved:
        (row, column), (row_1, column_1) = (m[0] == 8).nonzero()[0], (m[1] == 9).nonzero()[0]
        assert (row_1 - row, column_1 - column) == (1, 2) and int(m.sum()) == 17
    blank = torch.zeros(3, 1, 4, 4)
    assert torch.equal(moved_whole(blank), blank)


def test_batches_to_learn_from(digits: ImageSet) -> None:
    index = torch.tensor([4, 2])
    images, labels = shifted(digits, index, 2, seeded())
    assert torch.equal(images, to_float(random_shift(digits.images[index], 2, seeded())))
    assert torch.equal(labels, digits.labels[index])
    canvas = centred(digits, 36)
    images, labels, each = overlaid(canvas, index, 4, seeded())
    pairs = multimnist(digits, index, seeded())
    for mine, theirs in ((images, pairs.images), (each, pairs.digits)):
        assert torch.equal(mine, to_float(theirs))
    assert torch.equal(labels, pairs.labels)


# --- MultiMNIST and affine changes


def test_multimnist_pairs(digits: ImageSet, refuses) -> None:
    index = torch.arange(300).repeat(10)
    pairs = multimnist(digits, index, seeded())
    assert pairs.images.shape == (3000, 1, 36, 36) and pairs.images.dtype == torch.uint8
    assert pairs.digits.shape == (3000, 2, 1, 36, 36)
    assert torch.equal(pairs.labels[:, 0], digits.labels[index])
    assert (pairs.labels[:, 0] != pairs.labels[:, 1]).all()
    total = pairs.digits.int().sum(1)
    assert torch.equal(pairs.images.int(), total.clamp(max=255))
    assert (total > 255).any()
    # Each digit is a digit of the set, whole, somewhere within ±4 pixels of the centre.
    known = {image.numpy().tobytes(): int(label) for image, label in zip(
        digits.images, digits.labels, strict=True)}  # fmt: skip
    for i in range(40):
        for which in range(2):
            digit = pairs.digits[i, which]
            found = [
                known.get(digit[:, y : y + 28, x : x + 28].numpy().tobytes())
                for y in range(9)
                for x in range(9)
            ]
            assert int(pairs.labels[i, which]) in found
    again = multimnist(digits, index, seeded())
    assert all(torch.equal(a, b) for a, b in zip(pairs, again, strict=True))
    assert not torch.equal(pairs.images, multimnist(digits, index, seeded(1)).images)
    assert len(multimnist(digits, generator=seeded()).images) == 300
    with refuses("at least two classes"):
        multimnist(digits.subset((digits.labels == 3).nonzero().flatten()))


def test_the_second_digit_is_uniform_over_the_others(digits: ImageSet) -> None:
    small = digits.subset(torch.tensor([0, 1, 2, 3, 4, 5]))  # 5, 0, 4, 1, 9, 2: all different
    pairs = multimnist(small, torch.zeros(10_000, dtype=torch.int64), seeded())
    counts = Counter(pairs.labels[:, 1].tolist())
    assert set(counts) == {0, 4, 1, 9, 2}
    assert all(abs(count - 2000) < 200 for count in counts.values())


def test_affine_without_change_is_the_centred_image(digits: ImageSet) -> None:
    still = affine(digits.images[:20], degrees=0, shear=0, scale=(1, 1))
    assert still.shape == (20, 1, 40, 40) and still.dtype == torch.uint8
    assert torch.equal(still[:, :, 6:34, 6:34], digits.images[:20])
    assert still[:, :, :6].eq(0).all() and still[:, :, :, 34:].eq(0).all()


def affine_by_loops(image: Tensor, angle: float, k: float, sx: float, sy: float) -> Tensor:
    """Where each pixel's centre goes under rotation · shear · scaling, solved for each pixel."""
    size = image.shape[-1]
    rotation = torch.tensor(
        [[torch.tensor(angle).cos(), -torch.tensor(angle).sin()],
         [torch.tensor(angle).sin(), torch.tensor(angle).cos()]]
    ).double()  # fmt: skip
    matrix = rotation @ torch.tensor([[1, k], [0, 1]]).double() @ torch.diag(
        torch.tensor([sx, sy]).double()
    )  # fmt: skip
    inverse = torch.linalg.inv(matrix)
    out = torch.zeros(size, size, dtype=torch.float64)
    middle = (size - 1) / 2
    for y in range(size):
        for x in range(size):
            sx_, sy_ = inverse @ torch.tensor([x - middle, y - middle]).double() + middle
            x0, y0 = int(sx_.floor()), int(sy_.floor())
            for yy, wy in ((y0, 1 - (sy_ - y0)), (y0 + 1, sy_ - y0)):
                for xx, wx in ((x0, 1 - (sx_ - x0)), (x0 + 1, sx_ - x0)):
                    if 0 <= yy < size and 0 <= xx < size:
                        out[y, x] += wy * wx * image[yy, xx]
    return out


def test_affine_is_rotation_times_shear_times_scaling(digits: ImageSet) -> None:
    images = digits.images[:2]
    bent = affine(images, seeded(3))
    # The same numbers in the same order: angle, shear, width's and height's factor.
    uniform = torch.rand(2, 4, generator=seeded(3))
    canvas = torch.zeros(2, 40, 40)
    canvas[:, 6:34, 6:34] = images[:, 0]
    for i in range(2):
        angle = (2 * float(uniform[i, 0]) - 1) * 20 * torch.pi / 180
        k = (2 * float(uniform[i, 1]) - 1) * 0.2
        sx, sy = (0.8 + 0.4 * float(uniform[i, j]) for j in (2, 3))
        expected = affine_by_loops(canvas[i], angle, k, sx, sy)
        assert (bent[i, 0].double() - expected).abs().max() < 1
    assert torch.equal(bent, affine(images, seeded(3)))
    assert not torch.equal(bent, affine(images, seeded(4)))


def test_affine_refuses(digits: ImageSet, refuses) -> None:
    with refuses("uint8", "float32"):
        affine(to_float(digits.images))
    for bad in ({"degrees": -1.0}, {"shear": -0.1}, {"scale": (0.0, 1.0)}, {"scale": (1.2, 0.8)}):
        with refuses("at least 0"):
            affine(digits.images, **bad)
    with refuses("28 × 28", "20 × 20"):
        affine(digits.images, size=20)


# --- folders


def picture(path: Path, value: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L", (28, 28), value).save(path)


def values(image_set: ImageSet) -> list[int]:
    return sorted(image_set.images[:, 0, 14, 14].tolist())


def test_every_sixth_picture_of_a_class_is_a_test_picture(tmp_path: Path) -> None:
    for i in range(12):
        picture(tmp_path / "ä b" / f"{i:02}.png", 10 + i)
        picture(tmp_path / "c" / f"{i:02}.png", 100 + i)
    (tmp_path / "c" / ".hidden.png").write_bytes(b"")
    training, test = (load(f"folder:{tmp_path}", train=train) for train in (True, False))
    assert training.classes == test.classes == ("c", "ä b")
    assert values(test) == [15, 21, 105, 111]
    assert len(training) == 20
    assert set(values(training)).isdisjoint(values(test))
    for image_set in (training, test):
        for image, label in zip(image_set.images, image_set.labels, strict=True):
            assert image_set.classes[int(label)] == ("c" if image[0, 14, 14] >= 100 else "ä b")
    # Mixed, so that the held-out last sixth is: neither class stands in one run.
    assert training.labels.unique_consecutive().numel() > 4
    again = load(f"folder:{tmp_path}")
    assert torch.equal(again.images, training.images)


def test_train_and_test_folders_are_the_splits(tmp_path: Path, refuses) -> None:
    for split, count in (("train", 4), ("test", 2)):
        for kind in ("a", "b"):
            for i in range(count):
                picture(tmp_path / split / kind / f"{i}.png", 1)
    folder = f"folder:{tmp_path}"
    colour = load(folder, image_shape=(3, 20, 24))
    assert colour.images.shape == (8, 3, 20, 24)
    assert len(load(folder, train=False)) == 4
    picture(tmp_path / "test" / "odd" / "0.png", 1)
    with refuses("same classes", "odd"):
        load(folder)


def test_folders_that_are_no_data_set(tmp_path: Path, refuses) -> None:
    with pytest.raises(FileNotFoundError, match="no such folder"):
        load(f"folder:{tmp_path / 'nowhere'}")
    picture(tmp_path / "only" / "0.png", 1)
    with pytest.raises(NotADirectoryError, match="not a folder"):
        load(f"folder:{tmp_path / 'only' / '0.png'}")
    with refuses("two or more", "only"):
        load(f"folder:{tmp_path}")
    (tmp_path / "second").mkdir()
    with refuses("no pictures in", "second"):
        load(f"folder:{tmp_path}")
    picture(tmp_path / "second" / "0.png", 1)
    with refuses("two or more pictures"):
        load(f"folder:{tmp_path}", train=False)
    (tmp_path / "second" / "1.png").write_text("no picture")
    (tmp_path / "second" / "0.png").rename(tmp_path / "second" / "2.png")
    with refuses("1.png"):
        load(f"folder:{tmp_path}")
        load(f"folder:{tmp_path}", train=False)
