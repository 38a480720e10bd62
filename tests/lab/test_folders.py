"""Data sets of the command line: folders of pictures, and those with a name."""

import shutil
from pathlib import Path

import pytest
import torch
from PIL import Image

from capsnet import data
from capsnet.data import ImageSet, hold_out
from capsnet_lab.folders import DataSource, find, load_split

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


def test_a_class_of_few_pictures_has_one_to_learn_from(tmp_path: Path) -> None:
    for kind in range(24):
        for i in range(2):
            picture(tmp_path / f"{kind:02}" / f"{i}.png", kind)
    sets = find(f"folder:{tmp_path}").read(["train", "validation", "test"])
    assert len(sets["train"].labels.unique()) == 24
    assert [len(images) for images in sets.values()] == [36, 5, 7]


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
    for path in (phone, *tmp_path.glob("b/*.png")):
        path.unlink()
    with refuses("no pictures in", tmp_path / "b"):
        load_split(f"folder:{tmp_path}")


def test_links_and_a_macs_archive_are_no_classes(tmp_path: Path, refuses) -> None:
    folder = tmp_path / "shapes"
    two_classes(folder, 3)
    picture(folder / "__MACOSX" / "a" / "0.png", 1)
    picture(tmp_path / "elsewhere" / "0.png", 2)
    (folder / "self").symlink_to(folder)
    (folder / "a" / "all").symlink_to(folder)
    (folder / "b" / "more").symlink_to(tmp_path / "elsewhere")  # this one is meant
    found = load_split(f"folder:{folder}", "all")
    assert found.classes == ("a", "b") and found.labels.bincount().tolist() == [3, 4]
    archive = tmp_path / "shapes.zip"
    archive.write_bytes(b"PK")
    with refuses(archive, "is a file, expected a folder"):
        load_split(f"folder:{archive}")
    (folder / "a").rename(folder / "a\nb")
    assert load_split(f"folder:{folder}", "all").classes == ("a\\nb", "b")


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


@pytest.mark.parametrize("name", ["val", "valid", "Validation"])
def test_folders_of_splits(tmp_path: Path, refuses, name: str) -> None:
    for part, count in (("train", 6), (name, 3), ("test", 2)):
        two_classes(tmp_path / part, count, count)
    source = find(f"folder:{tmp_path}")
    sets = source.read(source.parts_of("all"))
    assert [*sets] == ["train", "validation", "test"]
    each = [6] * 12, [3] * 6, [2] * 4  # of val/ nothing is learned
    assert [values(images) for images in sets.values()] == [*each]
    assert source.parts_of("train") == ("train",)
    shutil.rmtree(tmp_path / "test")
    with refuses("no 'test' images", "its splits are: train, validation, all"):
        load_split(f"folder:{tmp_path}", "test")
    shutil.rmtree(tmp_path / name)  # train/ alone: a sixth of it is held out
    lengths = [len(load_split(source.name, part)) for part in ("train", "validation")]
    assert lengths == [12, 3]
    two_classes(tmp_path / "test", 1)
    picture(tmp_path / "test" / "odd" / "0.png", 1)
    with refuses("train/ and test/ must hold the same classes", "odd"):
        load_split(f"folder:{tmp_path}")
    (tmp_path / "train").rename(tmp_path / "val")
    with refuses("test/ and val/ but no train/"):
        load_split(f"folder:{tmp_path}")
    (tmp_path / "test").rename(tmp_path / "valid")
    with refuses("val/ and valid/: which of them is for validation?"):
        load_split(f"folder:{tmp_path}")
    two_classes(tmp_path, 2)  # a class may have such a name
    (tmp_path / "val").rename(tmp_path / "train")
    shutil.rmtree(tmp_path / "valid")
    assert load_split(f"folder:{tmp_path}").classes == ("a", "b", "train")
    two_classes(tmp_path / "dev", 1)
    with refuses("train/ and dev/ with the same folders: call dev/ test/ or validation/"):
        load_split(f"folder:{tmp_path}")


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
    find(f"folder:{tmp_path}").read(["train", "validation"], progress=True)
    assert capsys.readouterr().out == (
        f"folder:{tmp_path}: 2 classes, split by train/, test/, without spare/, validation by "
        "names (a class of fewer than 6 pictures may have none for validation)\n"
        "preparation picture: the largest centred crop, with its background\n"
        "13 images of 1 × 28 × 28 (grey pictures of this size), 0.0 MB in memory as uint8\n"
        "  train: 11 (b: 1; a: 10)\n"
        "  warning: unequal classes, from b: 1 to a: 10\n"
        "  validation: 2 (b: 0; a: 2)\n"
        "  test: 4, not read now\n"
        "  warning: 12 of 13 images are copies of others\n"
    )
    names = tuple(f"class {i:02}" for i in range(30))
    many = DataSource("x", names, (1, 1, 1), "by hand", "picture")
    labels = {"train": [*range(30), 29], "test": [0, 0]}
    assert many.describe(["train"], labels).splitlines()[3:] == [
        "  train: 31 (class 00: 1; …; class 29: 2)", "  test: 2, not read now"
    ]  # fmt: skip


def test_unreadable_pictures(tmp_path: Path, refuses, capsys: Captured) -> None:
    for part in ("train", "val"):
        two_classes(tmp_path / part, 20)
    for i in range(12):
        (tmp_path / "train" / "a" / f"{i}.png").write_text("no picture")
    source, parts = find(f"folder:{tmp_path}"), ["train", "validation"]
    with refuses("12 of 80 pictures cannot be read", "and 2 more", "--skip-unreadable"):
        source.read(parts)
    train, _ = source.read(parts, skip_unreadable=True, progress=True).values()
    assert train.labels.bincount().tolist() == [8, 20] and values(train) == [1] * 28
    out = capsys.readouterr().out
    assert "left out: 12 of 80 pictures cannot be read: train/a/" in out
    assert out.count(".png") == 10 + 1  # and the first with its reason
    for path in tmp_path.glob("val/*/*.png"):
        path.write_text("no picture")
    with refuses("not one picture of a, b for validation can be read"):
        source.read(parts, skip_unreadable=True)
    for path in tmp_path.glob("train/*/*.png"):
        path.write_text("no picture")
    assert find(f"folder:{tmp_path}").preparation == "picture"


def test_folders_that_are_no_data_set(tmp_path: Path, refuses) -> None:
    with pytest.raises(FileNotFoundError, match="no such folder"):
        load_split(f"folder:{tmp_path / 'nowhere'}")
    picture(tmp_path / "only" / "0.png", 1)
    with refuses("two or more class folders", "got only only/"):
        load_split(f"folder:{tmp_path}")
    with refuses("two or more class folders", "got none"):
        load_split(f"folder:{tmp_path / 'only'}")
    picture(tmp_path / "second" / "0.png", 1)
    for split in ("test", "validation"):  # it is too small
        with refuses(f"no {split!r} images; its splits are: train, all"):
            load_split(f"folder:{tmp_path}", split)
    with refuses("(1 or 3, height, width)", "got (2, 20, 20)"):  # before it looks at the folder
        find(f"folder:{tmp_path / 'nowhere'}", (2, 20, 20))


def test_a_data_set_by_name(refuses) -> None:
    """Its parts, and of the images the middle."""
    official = data.load("mnist", download=False)
    learned, held = hold_out(official)
    found = find("mnist", (1, 20, 25), download=False).read(["train", "validation"])
    for part, expected in zip(found.values(), (learned, held), strict=True):
        assert torch.equal(part.images, expected.images[:, :, 4:24, 1:26])
        assert torch.equal(part.labels, expected.labels)
    everything = load_split("mnist", "all")
    assert len(everything) == 70_000 and everything.name == "mnist"
    with refuses("no 'half' images", "train, validation, test, all"):
        load_split("mnist", "half")
    with refuses("unknown data set 'mnits'; expected one of: mnist,", "cifar-10, folder:PATH"):
        find("mnits")
    for shape in ((3, 28, 28), (1, 28, 29)):
        with refuses("the images of mnist are (1, 28, 28)", f"not {shape}"):
            find("mnist", shape)
