"""Folders of pictures as data sets."""

from pathlib import Path

import pytest
import torch
from PIL import Image

from capsnet.data import ImageSet, load


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
