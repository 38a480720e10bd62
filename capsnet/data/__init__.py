"""Data sets and augmentation as tensors: uint8 images [n, c, h, w] that may live on any device.

All randomness comes from the ``torch.Generator`` that is passed in (PyTorch's own when it is
None): a generator with the same seed on the same kind of device gives the same result. Numbers
are drawn on the generator's device and then moved, so a CPU generator gives the same result for
images on any device.
"""

import gzip
import hashlib
import math
import os
import shutil
import socket
import tempfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

# What `load` knows: our name for the data set -> torchvision's name for it.
TORCHVISION_NAMES = {"mnist": "MNIST", "fashion-mnist": "FashionMNIST"}
DEBIAN_FASHION_MNIST = Path("/usr/share/datasets/fashion-mnist")  # package dataset-fashion-mnist
# Debian packs Fashion-MNIST's files anew, so its archives have other MD5s than the official ones;
# these are the MD5s of what is inside both.
FASHION_MNIST_UNPACKED = {
    "train-images-idx3-ubyte.gz": "f4a8712d7a061bf5bd6d2ca38dc4d50a",
    "train-labels-idx1-ubyte.gz": "9018921c3c673c538a1fc5bad174d6f9",
    "t10k-images-idx3-ubyte.gz": "8181f5470baa50b63fa0f6fddb340f0a",
    "t10k-labels-idx1-ubyte.gz": "15d484375f8d13e6eb1aabb0c3f46965",
}
DOWNLOAD_TIMEOUT = 30.0  # seconds without an answer


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Labelled images that fit in memory; a batch is ``images[index], labels[index]``.

    images: uint8 [n, c, h, w]; labels: int64 [n], 0 <= label < len(classes).
    Raises ValueError when the shapes, types or labels do not fit together.
    """

    images: Tensor
    labels: Tensor
    classes: tuple[str, ...]
    name: str

    def __post_init__(self) -> None:
        if self.images.dtype != torch.uint8 or self.images.dim() != 4:
            raise ValueError(f"images must be uint8 [n, c, h, w], not {_kind(self.images)}")
        if self.labels.dtype != torch.int64 or self.labels.shape != self.images.shape[:1]:
            expected = f"int64 [{len(self.images)}]"
            raise ValueError(f"labels must be {expected}, not {_kind(self.labels)}")
        if len(self.labels):
            low, high = (int(bound) for bound in self.labels.aminmax())
            if low < 0 or high >= len(self.classes):
                expected = f"0..{len(self.classes) - 1}"
                raise ValueError(f"labels must lie in {expected}, but reach from {low} to {high}")

    def __len__(self) -> int:
        return len(self.images)

    def to(self, device: torch.device | str) -> "ImageSet":
        """The same images and labels on another device."""
        return ImageSet(self.images.to(device), self.labels.to(device), self.classes, self.name)

    def subset(self, index: slice | Tensor | Sequence[int]) -> "ImageSet":
        """The images that a slice, an index tensor or a list of indices selects."""
        if not isinstance(index, slice | Tensor):
            index = torch.as_tensor(index, dtype=torch.int64)
        return ImageSet(self.images[index], self.labels[index], self.classes, self.name)


def load(
    name: str,
    train: bool = True,
    *,
    image_shape: tuple[int, int, int] | None = None,
    download: bool = True,
) -> ImageSet:
    """The training images (train=True) or the test images of a data set.

    name: "mnist", "fashion-mnist" or "folder:PATH".
    image_shape: (c, h, w) of a folder's images, (1, 28, 28) when None.

    **mnist, fashion-mnist.** The four official .gz archives are looked for in
    ``$CAPSNET_DATA/<MNIST|FashionMNIST>/raw``, ``data/<...>/raw`` of the working directory, then
    of the repository, and for Fashion-MNIST where Debian's package dataset-fashion-mnist puts
    them. They are verified by MD5 and nothing is written beside them. Only where they are nowhere
    does torchvision download them (download=True), into ``$CAPSNET_DATA`` or ``./data``.

    **folder:PATH.** torchvision's ImageFolder layout, ``PATH/class/picture``. Where PATH has both
    a folder train/ and a folder test/, each of them has that layout; otherwise every sixth picture
    of a class, in sorted order, is a test image (the last one of a class of 2 to 5). Training
    images come in a fixed shuffled order, so that :func:`hold_out` gets a mixture of the classes.
    See :func:`capsnet.data.pictures.read_picture`, style "plain", for what becomes of a picture.

    Raises ValueError for an unknown name, a damaged archive, a file that is no image or a folder
    that is no data set; FileNotFoundError where the data are not to be had.
    """
    if name.startswith("folder:"):
        return _load_folder(name, train, image_shape or (1, 28, 28))
    if name not in TORCHVISION_NAMES:
        known = ", ".join([*TORCHVISION_NAMES, "folder:PATH"])
        raise ValueError(f"unknown data set {name!r}; expected one of: {known}")
    if image_shape not in (None, (1, 28, 28)):
        raise ValueError(f"the images of {name} are (1, 28, 28), not {tuple(image_shape)}")
    return _load_torchvision(name, train, download)


def hold_out(image_set: ImageSet) -> tuple[ImageSet, ImageSet]:
    """(training, validation): validation is the last sixth, the last 10,000 images of 60,000.

    Raises ValueError for fewer than 6 images.
    """
    held = len(image_set) // 6
    if held == 0:
        raise ValueError(f"holding out a sixth takes at least 6 images, not {len(image_set)}")
    return image_set.subset(slice(None, -held)), image_set.subset(slice(-held, None))


def to_float(images: Tensor) -> Tensor:
    """uint8 images (0..255) as float32 in 0..1. Raises ValueError for images of another type."""
    if images.dtype != torch.uint8:
        raise ValueError(f"images must be uint8, not {_kind(images)}")
    return images.to(torch.float32) / 255


# ------------------------------------------------------------------------------- shifts


def random_offsets(
    n: int,
    max_shift: int = 2,
    generator: torch.Generator | None = None,
    device: torch.device | str | None = None,
) -> Tensor:
    """Offsets (dy, dx) in pixels, int64 [n, 2], uniform in -max_shift..max_shift and independent.

    Raises ValueError for a negative max_shift.
    """
    if max_shift < 0:
        raise ValueError(f"max_shift must be at least 0 pixels, not {max_shift}")
    return _randint(2 * max_shift + 1, (n, 2), generator, device) - max_shift


def shift(images: Tensor, offsets: Tensor) -> Tensor:
    """Moves each image down by offsets[:, 0] and right by offsets[:, 1] pixels, padding with zeros.

    images: [n, c, h, w] of any type, which is kept; offsets: int64 [n, 2]. Raises ValueError when
    the shapes do not fit together.
    """
    if images.dim() != 4 or offsets.shape != (images.shape[0], 2):
        raise ValueError(
            f"expected images [n, c, h, w] and offsets [n, 2], not {_kind(images)} "
            f"and {_kind(offsets)}"
        )
    n, c, h, w = images.shape
    source_y = torch.arange(h, device=images.device) - offsets[:, :1]  # [n, h]
    source_x = torch.arange(w, device=images.device) - offsets[:, 1:]  # [n, w]
    inside_y = (source_y >= 0) & (source_y < h)
    inside_x = (source_x >= 0) & (source_x < w)
    moved = images[
        torch.arange(n, device=images.device)[:, None, None, None],
        torch.arange(c, device=images.device)[:, None, None],
        source_y.clamp(0, h - 1)[:, None, :, None],
        source_x.clamp(0, w - 1)[:, None, None, :],
    ]  # [n, c, h, w]
    inside = inside_y[:, None, :, None] & inside_x[:, None, None, :]  # [n, 1, h, w]
    return moved.masked_fill(~inside, 0)


def random_shift(
    images: Tensor, max_shift: int = 2, generator: torch.Generator | None = None
) -> Tensor:
    """Moves each image by its own random offset of up to max_shift pixels in each direction.

    The paper's only augmentation on MNIST (section 5): up to 2 pixels, padded with zeros.
    images: [n, c, h, w] of any type, which is kept. max_shift=0 returns the images themselves.
    """
    if max_shift == 0:
        return images
    return shift(images, random_offsets(len(images), max_shift, generator, images.device))


def shifted(
    image_set: ImageSet, index: Tensor, max_shift: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """A batch to learn from, of the images at some indices, each moved by up to max_shift pixels.

    index: int64 [n]. Returns (images, float32 [n, c, h, w] in 0..1; labels, int64 [n]).
    """
    images = random_shift(image_set.images[index], max_shift, generator)
    return to_float(images), image_set.labels[index]


def overlaid(
    image_set: ImageSet, index: Tensor, max_shift: int, generator: torch.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """A batch of pairs to learn from: :func:`multimnist` on the set's own canvas, as float32.

    index: int64 [n], the first image of each pair. Returns (images [n, c, h, w], labels [n, 2],
    each image alone [n, 2, c, h, w]). Enlarge the canvas with :func:`centred` first, so that
    nothing is moved beyond its edge. Raises ValueError as :func:`multimnist`.
    """
    size = image_set.images.shape[-1]
    pairs = multimnist(image_set, index, generator, max_shift=max_shift, size=size)
    return to_float(pairs.images), pairs.labels, to_float(pairs.digits)


def place_in(images: Tensor, size: int, generator: torch.Generator | None = None) -> Tensor:
    """Places each image at random, all of it inside, on zeros of size × size pixels.

    [n, c, h, w] -> [n, c, size, size], type kept. With size=40 this is the paper's expanded MNIST
    (section 5.2). Raises ValueError when an image does not fit.
    """
    h, w = images.shape[-2:]
    corner = _on_canvas(images, size, top=0, left=0)
    down = _randint(size - h + 1, (len(images), 1), generator, images.device)
    right = _randint(size - w + 1, (len(images), 1), generator, images.device)
    return shift(corner, torch.cat([down, right], dim=1))


def centred(image_set: ImageSet, size: int) -> ImageSet:
    """The same set with each image in the middle of size × size pixels of zeros.

    Raises ValueError when the images do not fit.
    """
    return replace(image_set, images=_in_the_middle(image_set.images, size))


# ------------------------------------------------------------- images made from images


class MultiMNIST(NamedTuple):
    """Pairs of overlapping digits, made by :func:`multimnist`."""

    images: Tensor  # uint8 [n, c, size, size], the two digits of a pair overlaid
    labels: Tensor  # int64 [n, 2], their classes, which differ
    digits: Tensor  # uint8 [n, 2, c, size, size], each digit alone: the decoder's two targets


def multimnist(
    image_set: ImageSet,
    index: Tensor | None = None,
    generator: torch.Generator | None = None,
    *,
    max_shift: int = 4,
    size: int | None = None,
) -> MultiMNIST:
    """The paper's MultiMNIST (section 6), on the fly: two digits of different classes, overlaid.

    Each digit moves by up to max_shift pixels in each direction, from the middle of a canvas of
    size × size pixels, and the sum of the two is cut off at 255. When size is None, the canvas just
    holds all of the images (28 + 2 · 4 = 36); on a smaller one, what is moved beyond its edge is
    lost.

    index: int64 [n], the first digit of each pair; every image once, in order, when None. The
    second digit is drawn uniformly from all images of the set that are of another class. The paper
    makes 1,000 pairs of each digit: draw as many as you need with
    ``torch.arange(len(image_set)).repeat(times)``, or a batch of random ones with
    ``torch.randint(len(image_set), (batch,))``.

    Raises ValueError when the images are not square, are all of one class, or do not fit.
    """
    h, w = image_set.images.shape[-2:]
    if h != w:
        raise ValueError(f"multimnist takes square images, not {h} × {w}")
    if index is None:
        index = torch.arange(len(image_set))
    index = index.to(image_set.labels.device)
    pair = torch.stack([index, _of_another_class(image_set, index, generator)], dim=1)  # [n, 2]
    size = h + 2 * max_shift if size is None else size
    middle = _in_the_middle(image_set.images[pair].flatten(0, 1), size)
    digits = random_shift(middle, max_shift, generator).unflatten(0, (len(index), 2))
    first, second = digits.unbind(1)
    overlaid = first + torch.minimum(second, 255 - first)  # a uint8 sum that stops at 255
    return MultiMNIST(overlaid, image_set.labels[pair], digits)


def affine(
    images: Tensor,
    generator: torch.Generator | None = None,
    *,
    degrees: float = 20.0,
    shear: float = 0.2,
    scale: tuple[float, float] = (0.8, 1.2),
    size: int = 40,
) -> Tensor:
    """Images in the manner of affNIST (section 5.2): random affine changes on a size × size canvas.

    Each image is centred, scaled by two factors (width, height) uniform in `scale`, sheared
    (x += k · y) by k uniform in ±shear, and rotated by an angle uniform in ±degrees; what is
    outside is zero. It stays centred; compose with :func:`random_shift` to move it as well.

    uint8 [n, c, h, w] -> uint8 [n, c, size, size], bilinear. Raises ValueError when an image does
    not fit, is not uint8, or a range is not one.
    """
    if images.dtype != torch.uint8:
        raise ValueError(f"images must be uint8, not {_kind(images)}")
    low, high = scale
    if degrees < 0 or shear < 0 or not 0 < low <= high:
        raise ValueError(
            "degrees and shear must be at least 0 and 0 < scale[0] <= scale[1], "
            f"not {degrees}, {shear}, {scale}"
        )
    canvas = _in_the_middle(images, size)
    source = images.device if generator is None else generator.device
    uniform = torch.rand(len(images), 4, generator=generator, device=source).to(images.device)
    angle, k = ((2 * uniform[:, :2] - 1) * uniform.new_tensor([math.radians(degrees), shear])).T
    scale_x, scale_y = (low + (high - low) * uniform[:, 2:]).T
    # The sampler asks, for each pixel of the result, where it comes from: the inverse of
    # rotation · shear · scaling.
    cos, sin, zero = angle.cos(), angle.sin(), torch.zeros_like(angle)
    row_x = torch.stack([(cos + k * sin) / scale_x, (sin - k * cos) / scale_x, zero], dim=1)
    row_y = torch.stack([-sin / scale_y, cos / scale_y, zero], dim=1)
    inverse = torch.stack([row_x, row_y], dim=1)  # [n, 2, 3]
    grid = F.affine_grid(inverse, list(canvas.shape), align_corners=False)
    sampled = F.grid_sample(canvas.float(), grid, padding_mode="zeros", align_corners=False)
    return sampled.round().to(torch.uint8)


def moved_whole(images: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Moves each image to a place drawn uniformly from all at which none of its ink is cut off.

    So affNIST moves its digits (section 5.2), by whole pixels. [n, c, h, w] of any type, which is
    kept; an image without ink stays as it is.
    """
    ink = images.ne(0).any(dim=1)  # [n, h, w]
    offsets = []
    for has_ink in (ink.any(dim=2), ink.any(dim=1)):  # of the rows, of the columns
        before = has_ink.int().argmax(dim=1)  # free pixels above, or to the left
        after = has_ink.flip(1).int().argmax(dim=1)
        # 2^53 is so large that the remainder is as good as uniform.
        place = _randint(2**53, (len(images),), generator, images.device) % (before + after + 1)
        offsets.append(place - before)
    return shift(images, torch.stack(offsets, dim=1))


def _of_another_class(
    image_set: ImageSet, index: Tensor, generator: torch.Generator | None
) -> Tensor:
    """For each image an index drawn uniformly from the images of all the other classes, [n]."""
    labels = image_set.labels
    sizes = labels.bincount(minlength=len(image_set.classes))
    if int((sizes > 0).sum()) < 2:
        raise ValueError("pairs of different classes take images of at least two classes")
    by_class = labels.argsort(stable=True)  # class 0's images first, then class 1's, ...
    own = labels[index]
    first = (sizes.cumsum(0) - sizes)[own]  # where the image's own class begins in by_class
    others = len(labels) - sizes[own]
    # 2^53 is so large that the remainder is as good as uniform.
    place = _randint(2**53, (len(index),), generator, labels.device) % others
    return by_class[torch.where(place < first, place, place + sizes[own])]


def _in_the_middle(images: Tensor, size: int) -> Tensor:
    h, w = images.shape[-2:]
    return _on_canvas(images, size, top=(size - h) // 2, left=(size - w) // 2)


def _on_canvas(images: Tensor, size: int, top: int, left: int) -> Tensor:
    h, w = images.shape[-2:]
    if size < h or size < w:
        raise ValueError(f"images of {h} × {w} pixels do not fit in {size} × {size}")
    return F.pad(images, (left, size - w - left, top, size - h - top))


def _randint(
    high: int,
    shape: tuple[int, ...],
    generator: torch.Generator | None,
    device: torch.device | str | None,
) -> Tensor:
    """Integers uniform in 0..high-1, drawn where the generator is, then moved to `device`."""
    source = device if generator is None else generator.device
    drawn = torch.randint(high, shape, generator=generator, device=source)
    if device is not None and torch.device(device).type == "cuda" and not drawn.is_cuda:
        return drawn.pin_memory().to(device, non_blocking=True)  # does not wait for the device
    return drawn.to(device)


def _kind(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"


# ----------------------------------------------------------- MNIST and Fashion-MNIST


def _load_torchvision(name: str, train: bool, download: bool) -> ImageSet:
    from torchvision import datasets

    dataset: Any = getattr(datasets, TORCHVISION_NAMES[name])
    archives: dict[str, str] = dict(dataset.resources)  # file name -> MD5
    places = _places(name)
    for place in places:
        if all((place / archive).is_file() for archive in archives):
            break
    else:
        place = _download(name, dataset, places, download)

    # torchvision unpacks beside the archives; they may be shared or read-only, so unpack elsewhere.
    with tempfile.TemporaryDirectory() as temporary:
        raw = Path(temporary, dataset.__name__, "raw")
        raw.mkdir(parents=True)
        for archive, md5 in archives.items():
            unpacked_md5 = FASHION_MNIST_UNPACKED[archive] if name == "fashion-mnist" else ""
            content = _unpack(place / archive, md5, unpacked_md5)
            (raw / archive.removesuffix(".gz")).write_bytes(content)
        data = dataset(temporary, train=train)
    classes = data.classes if name == "fashion-mnist" else [str(digit) for digit in range(10)]
    return ImageSet(data.data[:, None], data.targets, tuple(classes), name)


def data_folders() -> list[Path]:
    """``$CAPSNET_DATA``, ``data``, and the one beside the package: tried in this order."""
    roots = [Path("data")]
    if os.environ.get("CAPSNET_DATA"):
        roots.insert(0, Path(os.environ["CAPSNET_DATA"]).expanduser())
    beside_the_package = Path(__file__).resolve().parents[2] / "data"
    if beside_the_package.is_dir() and beside_the_package != Path("data").resolve():
        roots.append(beside_the_package)
    return roots


def _places(name: str) -> list[Path]:
    """The folders where the data set's archives may be, in the order in which they are tried."""
    places = [root / TORCHVISION_NAMES[name] / "raw" for root in data_folders()]
    return [*places, DEBIAN_FASHION_MNIST] if name == "fashion-mnist" else places


def _unpack(archive: Path, md5: str, unpacked_md5: str) -> bytes:
    """The content of a .gz file that is, or holds, exactly what the MD5 says."""
    packed = archive.read_bytes()
    found = hashlib.md5(packed, usedforsecurity=False).hexdigest()
    try:
        content = gzip.decompress(packed)
    except (OSError, EOFError, zlib.error):
        content = b""
    if found != md5 and hashlib.md5(content, usedforsecurity=False).hexdigest() != unpacked_md5:
        raise ValueError(f"{archive} is damaged: its MD5 should be {md5}, but is {found}")
    return content


def _download(name: str, dataset: Any, places: list[Path], allowed: bool) -> Path:
    """Lets torchvision download the archives; returns the folder that then holds them.

    Only complete, verified archives ever stand in that folder. Raises FileNotFoundError.
    """
    trouble = "not downloaded, as download=False"
    with tempfile.TemporaryDirectory() as temporary:
        if allowed:
            timeout = socket.getdefaulttimeout()
            socket.setdefaulttimeout(DOWNLOAD_TIMEOUT)  # torchvision would wait for ever
            try:
                dataset(temporary, download=True)
            except (RuntimeError, OSError, HTTPException) as error:
                trouble = f"the download failed: {' '.join(str(error).split())}"
            else:
                return _keep(Path(temporary, dataset.__name__, "raw"), places[0], dataset)
            finally:
                socket.setdefaulttimeout(timeout)
    looked = ", ".join(str(place) for place in places)
    archives = ", ".join(archive for archive, _ in dataset.resources)
    raw = f"{TORCHVISION_NAMES[name]}/raw"
    ways = f"set CAPSNET_DATA to a folder that has {archives} in {raw}, or put them into data/{raw}"
    if name == "fashion-mnist":
        ways += ", or install Debian's package dataset-fashion-mnist"
    raise FileNotFoundError(f"{name} not found: looked in {looked}; {trouble}; {ways}")


def _keep(raw: Path, folder: Path, dataset: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for archive, _ in dataset.resources:
        part = folder / f".{archive}.{os.getpid()}"
        try:
            shutil.copyfile(raw / archive, part)
            part.replace(folder / archive)
        finally:
            part.unlink(missing_ok=True)
    return folder


# --------------------------------------------------------------- folders of pictures


def _load_folder(name: str, train: bool, image_shape: tuple[int, int, int]) -> ImageSet:
    from capsnet.data.pictures import read_picture

    if name == "folder:":
        raise ValueError("expected folder:PATH, but PATH is empty")
    folder = Path(name.removeprefix("folder:")).expanduser()
    pictures = _split_pictures(folder, train)
    classes = tuple(pictures)
    paths = [path for files in pictures.values() for path in files]
    labels = torch.tensor([classes.index(kind) for kind, files in pictures.items() for _ in files])
    if train:
        order = torch.randperm(len(paths), generator=torch.Generator().manual_seed(0))
        paths, labels = [paths[i] for i in order], labels[order]
    images = torch.stack([read_picture(path, image_shape, "plain") for path in paths])
    return ImageSet(images, labels, classes, name)


def _split_pictures(folder: Path, train: bool) -> dict[str, list[Path]]:
    """The training or the test pictures of a folder, by class."""
    if (folder / "train").is_dir() and (folder / "test").is_dir():
        splits = _find_pictures(folder / "train"), _find_pictures(folder / "test")
        if splits[0].keys() != splits[1].keys():
            odd = ", ".join(sorted(splits[0].keys() ^ splits[1].keys()))
            raise ValueError(f"{folder}: train/ and test/ must hold the same classes, not {odd}")
        return splits[0 if train else 1]
    chosen = {}
    for kind, files in _find_pictures(folder).items():
        test = set(files[5::6] if len(files) >= 6 else files[1:][-1:])
        chosen[kind] = [path for path in files if (path in test) != train]
    if not any(chosen.values()):
        raise ValueError(f"{folder}: a test picture takes a class of two or more pictures")
    return chosen


def _find_pictures(folder: Path) -> dict[str, list[Path]]:
    """The files of each class folder, sorted; hidden files and folders do not count."""
    from torchvision.datasets.folder import make_dataset

    if not folder.exists():
        raise FileNotFoundError(f"no such folder: {folder}")
    if not folder.is_dir():
        raise NotADirectoryError(f"not a folder: {folder}")
    classes = sorted(p.name for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))
    if len(classes) < 2:
        found = f"only {classes[0]}/" if classes else "none"
        raise ValueError(f"{folder} must hold two or more class folders of pictures; found {found}")
    pictures: dict[str, list[Path]] = {kind: [] for kind in classes}
    for path, label in make_dataset(
        folder,
        {kind: i for i, kind in enumerate(classes)},
        is_valid_file=lambda path: not Path(path).name.startswith("."),
        allow_empty=True,
    ):
        pictures[classes[label]].append(Path(path))
    if empty := [str(folder / kind) for kind, files in pictures.items() if not files]:
        raise ValueError(f"no pictures in {', '.join(empty)}")
    return pictures
