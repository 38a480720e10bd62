"""Data sets of the command line: folders of pictures, and those with a name."""

import shutil
from pathlib import Path

import pytest
import torch
from PIL import Image

from capsnet import data
from capsnet.data import ImageSet, hold_out
from capsnet_lab.folders import find, load_split

Captured = pytest.CaptureFixture[str]


def picture(path: Path, value: int | tuple[int, ...], size: tuple[int, int] = (28, 28)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L" if isinstance(value, int) else "RGB", size, value).save(path)


def values(image_set: ImageSet) -> list[int]:
    return sorted(image_set.images[:, 0, 14, 14].tolist())


def two_classes(folder: Path, count: int, value: int = 1) -> None:
    for kind in ("a", "b"):
        for i in range(count):
            picture(folder / kind / f"{i}.png", value)


def test_a_folder_without_splits_is_split_by_names(tmp_path: Path) -> None:
    for i in range(100):
        picture(tmp_path / "ä b" / f"{i:02}.png", i)
        if i < 25:
            picture(tmp_path / "c" / "inside" / f"{i:02}.png", 100 + i)  # a folder in a class
    name = f"folder:{tmp_path}"
    training, test, everything = (load_split(name, part) for part in ("train", "test", "all"))
    assert training.classes == test.classes == ("c", "ä b")
    assert test.labels.bincount().tolist() == [4, 25]  # by these names
    assert sorted(values(training) + values(test)) == values(everything) == [*range(125)]
    held = [value for value in values(test) if value < 100]
    assert held != [*range(5, 100, 6)] and held[0] < 20 and held[-1] > 80
    for image_set in (training, test, everything):
        names = [image_set.classes[label] for label in image_set.labels]
        assert names == ["c" if v >= 100 else "ä b" for v in image_set.images[:, 0, 14, 14]]
    cuts = find(name).read(["train", "validation"])
    assert [cut.labels.bincount().tolist() for cut in cuts.values()] == [[17, 60], [4, 15]]
    assert torch.equal(load_split(name, "validation").images, cuts["validation"].images)


def test_what_was_learned_from_stays_so_when_the_folder_grows_and_moves(tmp_path: Path) -> None:
    def split(folder: Path) -> dict[str, set[str]]:
        parts: dict[str, set[str]] = {"learned": set(), "test": set()}
        for part, found in find(f"folder:{folder}").pictures.items():
            names = {str(path.relative_to(folder)) for path, _ in found}
            parts["test" if part == "test" else "learned"] |= names
        return parts

    two_classes(tmp_path / "old", 12)
    before = split(tmp_path / "old")
    (tmp_path / "old").rename(tmp_path / "new")
    assert split(tmp_path / "new") == before
    two_classes(tmp_path / "new", 60)
    after = split(tmp_path / "new")
    assert before["learned"] < after["learned"] and before["test"] < after["test"]


def test_what_is_no_picture_is_passed_over(tmp_path: Path, refuses) -> None:
    two_classes(tmp_path, 3)
    (tmp_path / "a" / "0.png").rename(tmp_path / "a" / "without a suffix")
    (tmp_path / "a" / "1.png").rename(tmp_path / "a" / "1.PNG")
    (tmp_path / "b" / ".thumbnails").mkdir()
    others = "Thumbs.db", "notes.pdf", "features.h5", "clip.mpeg", "0.psd", ".hidden.png"
    for name in (*others, "../b/.thumbnails/0.png"):
        (tmp_path / "a" / name).write_text("no picture")
    assert len(load_split(f"folder:{tmp_path}", "all")) == 6
    phone = tmp_path / "b" / "IMG_0001.HEIC"  # to be refused, and not passed over
    phone.write_bytes(b"\0\0\0\x18ftypheic" + bytes(64))
    with refuses("1 of 7 pictures cannot be read", "IMG_0001.HEIC", "export it as JPEG"):
        load_split(f"folder:{tmp_path}", "all")


def test_links_and_a_macs_archive_are_no_classes(tmp_path: Path) -> None:
    folder = tmp_path / "shapes"
    two_classes(folder, 3)
    picture(folder / "__MACOSX" / "a" / "0.png", 1)
    (folder / "a" / "all").symlink_to(folder)
    (folder / "b").rename(tmp_path / "elsewhere")
    (folder / "a\nb").symlink_to(tmp_path / "elsewhere")  # this one is meant
    found = load_split(f"folder:{folder}", "all")
    assert found.classes == ("a", "a\\nb") and found.labels.bincount().tolist() == [3, 3]


@pytest.mark.parametrize("negative", [False, True])
def test_pictures_of_mnists_kind_are_figures(tmp_path: Path, negative: bool) -> None:
    """So a network that learns from them reads photographs; other pictures stay as they are."""
    digits = data.load("mnist", train=False, download=False).images[:20, 0]
    for i, digit in enumerate(digits):
        path = tmp_path / "ab"[i % 2] / f"{i}.png"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray((255 - digit if negative else digit).numpy()).save(path)
    assert find(f"folder:{tmp_path}").preparation == "figure"
    Image.fromarray(digits[0].numpy()).resize((60, 60)).save(tmp_path / "a" / "0.png")
    assert find(f"folder:{tmp_path}").preparation == "picture"


def test_folders_of_splits(tmp_path: Path, refuses) -> None:
    for part, count in (("train", 6), ("Valid", 3), ("test", 2)):
        two_classes(tmp_path / part, count, count)
    source = find(f"folder:{tmp_path}")
    sets = source.read(source.parts_of("all"))
    assert [*sets] == ["train", "validation", "test"]
    each = [6] * 12, [3] * 6, [2] * 4  # of Valid/ nothing is learned
    assert [values(images) for images in sets.values()] == [*each]
    assert source.parts_of("train") == ("train",)
    shutil.rmtree(tmp_path / "test")
    with refuses("no 'test' images", "its splits are: train, validation, all"):
        load_split(f"folder:{tmp_path}", "test")
    shutil.rmtree(tmp_path / "Valid")  # train/ alone: about a sixth of it is held out
    lengths = [len(load_split(source.name, part)) for part in ("train", "validation")]
    assert lengths == [12, 2]
    two_classes(tmp_path / "test", 1)
    picture(tmp_path / "test" / "odd" / "0.png", 1)
    with refuses("test/ must hold the classes ['a', 'b'], got ['a', 'b', 'odd']"):
        load_split(f"folder:{tmp_path}")
    shutil.rmtree(tmp_path / "test")
    shutil.rmtree(tmp_path / "train")
    two_classes(tmp_path, 6)
    (tmp_path / "b").rename(tmp_path / "train")  # a class may have such a name
    assert load_split(f"folder:{tmp_path}").classes == ("a", "train")


@pytest.mark.parametrize(
    ("pictures", "expected"),
    [
        ([(9, (40, 30))], (1, 30, 40)),
        ([((9, 9, 9), (32, 32))], (1, 32, 32)),  # grey, though kept as RGB
        ([((9, 9, 9), (32, 32)), ((200, 9, 9), (32, 32))], (3, 32, 32)),
        ([(9, (64, 64))], (1, 28, 28)),
        ([(9, (16, 16))], (1, 28, 28)),
        ([((200, 9, 9), (32, 32)), ((200, 9, 9), (32, 33))], (3, 32, 32)),
    ],
)
def test_shape_and_colour_are_found(tmp_path: Path, pictures, expected) -> None:
    for kind in ("a", "b"):
        for i, (value, size) in enumerate(pictures * 4):
            picture(tmp_path / kind / f"{i}.jpg", value, size)
    assert load_split(f"folder:{tmp_path}").images.shape[1:] == expected
    asked = find(f"folder:{tmp_path}", (3, 20, 24)).read(["test"])["test"]
    held = {1: 1, 2: 5}[len(pictures)]  # of 8 and of 16, by these names
    assert asked.images.shape == (held, 3, 20, 24)


def test_what_is_read_is_said(tmp_path: Path, capsys: Captured) -> None:
    for part, counts in (("train", (12, 1)), ("test", (2, 2)), ("spare", (1, 1))):
        for kind, count in zip("ab", counts, strict=True):
            for i in range(count):
                picture(tmp_path / part / kind / f"{i}.png", 1)
    source = find(f"folder:{tmp_path}")
    source.read(["train", "validation"], progress=True)
    assert capsys.readouterr().out == (
        f"folder:{tmp_path}: 2 classes, split by train/, test/, without spare/, validation by "
        "file names\n"
        "preparation: picture\n"
        "13 images of 1 × 28 × 28\n"
        "  train: 11 (a: 10; b: 1)\n"
        "  validation: 2 (a: 2; b: 0)\n"
        "  warning: 12 of 13 images are copies of others\n"
    )
    source.classes = tuple(f"class {i:02}" for i in range(30))
    assert source.describe({"train": [*range(30)]}).endswith("\n  train: 30")


def test_unreadable_pictures(tmp_path: Path, refuses) -> None:
    two_classes(tmp_path, 40)
    names = [f"a/{name}.png" for name in (1, *range(10, 20))]
    for name in names:
        (tmp_path / name).write_text("no picture")
    source = find(f"folder:{tmp_path}")
    with refuses("11 of 80 pictures cannot be read: ", *names, "; the first: "):
        source.read(source.parts)
    for path in tmp_path.glob("*/*.png"):
        path.write_text("no picture")
    assert find(f"folder:{tmp_path}").preparation == "picture"


def test_folders_that_are_no_data_set(tmp_path: Path, refuses) -> None:
    with pytest.raises(FileNotFoundError, match="no such folder"):
        load_split(f"folder:{tmp_path / 'nowhere'}")
    picture(tmp_path / "a" / "0.png", 1)
    with refuses("two or more class folders", "got a"):
        load_split(f"folder:{tmp_path}")
    with refuses("two or more class folders", "got none"):
        load_split(f"folder:{tmp_path / 'a'}")
    picture(tmp_path / "b" / "0.png", 1)
    for split in ("test", "validation"):  # it is too small
        with refuses(f"no {split!r} images; its splits are: train, all"):
            load_split(f"folder:{tmp_path}", split)
    for name in ("a/0.png", "b/photo.png"):  # the latter is for the test, by its name
        picture(tmp_path / "few" / name, 1)
    with refuses("too few pictures of b: all of them are held out"):
        load_split(f"folder:{tmp_path / 'few'}")


def test_a_data_set_by_name(refuses) -> None:
    learned, held = hold_out(data.load("mnist", download=False))
    found = find("mnist", (1, 28, 28)).read(["train", "validation"])
    for part, expected in zip(found.values(), (learned, held), strict=True):
        assert torch.equal(part.images, expected.images)
        assert torch.equal(part.labels, expected.labels)
    everything = load_split("mnist", "all")
    assert len(everything) == 70_000 and everything.name == "mnist"
    with refuses("no 'half' images", "train, validation, test, all"):
        load_split("mnist", "half")
    with refuses("unknown data set 'mnits'; expected one of: mnist,", "cifar-10, folder:PATH"):
        find("mnits")
    with refuses("the images of mnist are (1, 28, 28)", "not (1, 28, 27)"):
        find("mnist", (1, 28, 27))
