"""Anybody's pictures, one or many: what is read, answered, printed and written."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from capsnet import predict as answers
from capsnet.checkpoint import load_weights, save_weights
from capsnet.cli import main
from capsnet.data import to_float
from capsnet.data.pictures import read_picture
from capsnet_book import ledger
from experiments import threshold
from helpers import Refuses
from helpers.tiny import mnist, tiny_model

Captured = pytest.CaptureFixture[str]
NAMES = ("a, b.png", "one.png", "sub/deeper/two.png", "sub/three.png", "zero.png")


@pytest.fixture(scope="module")
def weights() -> Path:
    return ledger.path("mnist/weights.safetensors")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """MNIST's first test images, 7 2 1 0 4, at several depths, and hidden files beside them."""
    for name, image in zip(NAMES, mnist(train=False).images, strict=False):
        path = tmp_path / "pictures" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image[0].numpy()).save(path)
    hidden = tmp_path / "pictures" / ".cache"
    hidden.mkdir()
    for path in (hidden / "x.png", hidden.parent / "sub" / ".DS_Store"):
        path.write_text("no picture")
    return hidden.parent


def test_the_files_of_folders(folder: Path, tmp_path: Path, refuses: Refuses) -> None:
    files = [folder / name for name in NAMES]
    assert answers.find_pictures([folder]) == files
    assert answers.find_pictures([files[3], folder, files[3]]) == [files[3], *files, files[3]]
    assert answers.find_pictures([folder / "sub"]) == files[2:4]
    hidden = folder / ".cache"  # a hidden folder that is asked for
    assert answers.find_pictures([hidden]) == [hidden / "x.png"]
    (tmp_path / "empty").mkdir()
    with refuses("no pictures in", tmp_path / "empty"):
        answers.find_pictures([folder, tmp_path / "empty"])
    with pytest.raises(FileNotFoundError, match=r"no such file: nowhere\.png"):
        answers.find_pictures([folder, Path("nowhere.png")])


def test_many_pictures(
    weights: Path, folder: Path, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "BATCH", 2)
    monkeypatch.setattr(answers, "SHEET", 3)
    (folder / "sub" / "blank.png").write_bytes(white())
    written = [tmp_path / "out" / name for name in ("a.json", "a.csv", "a.svg")]
    words = ["predict", str(weights), str(folder)]
    options = zip(("--json", "--csv", "--sheet"), map(str, written), strict=True)
    assert main([*words, *sum(options, ())]) == 0
    out, err = capsys.readouterr()
    assert err == ""

    images = torch.stack([read_picture(folder / name, style="digit") for name in NAMES])
    with torch.no_grad():  # all at once
        lengths = load_weights(weights)[0](to_float(images)).lengths
    order = [*NAMES[:2], "sub/blank.png", *NAMES[2:]]
    records = json.loads(written[0].read_text())
    assert [record["picture"] for record in records] == [str(folder / name) for name in order]
    blank = records.pop(2)
    assert (blank["answer"], blank["length"], blank["lengths"]) == ("blank", None, {})
    found = [list(record["lengths"].values()) for record in records]
    torch.testing.assert_close(torch.tensor(found), lengths, atol=1e-4, rtol=0)
    assert [record["answer"] for record in records] == list("72104")
    assert [record["length"] for record in records] == [max(row) for row in found]

    lines = [f"{r['picture']}: {r['answer']}  {r['length']:.3f}" for r in records]
    lines.insert(2, f"{blank['picture']}: blank")
    told = [f"written: {path}" for path in (written[2], *written[:2])]
    told[0] += " (3 of 6 pictures)"
    assert out.splitlines() == lines + told
    assert written[2].read_text().count(".png -->") == 3

    with written[1].open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["picture", "answer", "length", *"0123456789"]
    assert rows.pop(2) == [blank["picture"], "blank", "", *[""] * 10]
    for row, record in zip(rows, records, strict=True):
        values = [record["length"], *record["lengths"].values()]
        assert row == [record["picture"], record["answer"], *map(str, values)]

    assert main([*words, "--top", "2"]) == 0
    for line, record in zip(capsys.readouterr().out.splitlines()[3:], records[2:], strict=True):
        (best, first), (other, second) = sorted(
            record["lengths"].items(), key=lambda item: -item[1]
        )[:2]
        assert line == f"{record['picture']}: {best}  {best} {first:.3f}, {other} {second:.3f}"


def white() -> bytes:
    """A picture with nothing on it."""
    return b"P5 2 2 255 " + bytes([255] * 4)


def test_a_batch_is_answered_before_the_next_is_read(
    weights: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "BATCH", 2)
    model, metadata = load_weights(weights)
    files = [folder / name for name in NAMES[:3]]
    files[2].rename(folder / "elsewhere.png")
    found = answers.predict(model, metadata["classes"], files, "digit")
    assert [next(found).answer, next(found).answer] == ["7", "2"]
    (folder / "elsewhere.png").rename(files[2])
    assert [one.answer for one in found] == ["1"]


def test_pictures_that_cannot_be_read_among_many(
    weights: Path, folder: Path, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Path(folder.name)  # a line is cut off at 1,000 characters
    words = ["predict", str(weights), str(folder), "--csv", str(tmp_path / "a.csv")]
    (folder / "notes.txt").write_text("no picture")
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert [line.split(": ")[1][0] for line in out.splitlines()] == list("72104")
    note, bad = "(--skip-unreadable leaves them out; no file is written)", folder / "notes.txt"
    assert err.startswith(f"capsnet predict: 1 of 6 pictures cannot be read {note}: {bad}; the ")
    assert err.endswith(f"first: {bad} is not a picture, or not of a known format\n")
    assert not (tmp_path / "a.csv").exists()

    for i in range(11):
        (folder / f"cut {i:02}.png").write_bytes((folder / NAMES[0]).read_bytes()[:60])
    assert main([*words, "--skip-unreadable"]) == 0
    err = capsys.readouterr().err
    assert err.startswith("left out: 12 of 17 pictures cannot be read: ") and err.count("\n") == 1
    assert f"{folder / 'cut 09.png'} and 2 more; the first: {folder / 'cut 00.png'} is" in err
    assert len((tmp_path / "a.csv").read_text().splitlines()) == 1 + 5
    bad = [str(folder / f"cut {i:02}.png") for i in range(2)]
    assert main(["predict", str(weights), *bad, "--skip-unreadable"]) == 2  # nothing is answered
    assert "2 of 2 pictures cannot be read" in capsys.readouterr().err


def test_no_class_where_no_capsule_is_long(
    weights: Path, folder: Path, tmp_path: Path, capsys: Captured
) -> None:
    digit, none = folder / NAMES[0], tmp_path / "none.png"
    dots = torch.zeros(1, 28, 28, dtype=torch.uint8)
    dots[:, 4::6, 4::6] = 255
    Image.fromarray(dots[0].numpy()).save(none)
    drawn = tmp_path / "drawn.svg"
    words = ["predict", str(weights), str(none)]
    assert main([*words, str(digit), "--sheet", str(drawn)]) == 0
    first, second, _ = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{none}: no digit  0.")
    assert second.startswith(f"{digit}: 7  0.9")
    assert main([*words, "--save", str(drawn)]) == 0
    assert capsys.readouterr().out.startswith(f"{none}: no digit\n  0  0.")
    assert main([*words, str(digit), "--threshold", "0"]) == 0
    assert capsys.readouterr().out.split(": ")[1][0] in "0123456789"
    assert main([*words, str(digit), "--threshold", "1"]) == 0
    assert capsys.readouterr().out.count(": no digit  0.") == 2
    other = tmp_path / "other.safetensors"
    save_weights(other, tiny_model(num_classes=2), {"classes": ["cat", "dog"]})
    assert main(["predict", str(other), str(digit), "--threshold", "1"]) == 0
    assert capsys.readouterr().out.startswith(f"{digit}: none of its classes\n  cat  0.")


def test_the_threshold_is_the_measured_one() -> None:
    record = ledger.read("pictures/threshold.json")
    assert record["threshold"] == answers.THRESHOLD
    digits = record["validation"]
    assert record["share"] / 2 < digits["refused"] / digits["images"] <= record["share"]


@pytest.mark.parametrize(("kind", "blank"), [("letters", 0), ("stars", 0), ("noise", 3)])
def test_pictures_without_a_digit_are_counted(kind: str, blank: int) -> None:
    dice = np.random.default_rng(0)
    drawn = [threshold.KINDS[kind](dice) for _ in range(3)]
    for least, refused in ((1.0, 3), (0.0, 0)):
        found = threshold.refused(tiny_model(), drawn, least)
        counts = {"pictures": 3, "blank": blank, "no digit": max(refused - blank, 0)}
        assert found == {**counts, "raw": refused}


def test_all_pictures_blank(weights: Path, tmp_path: Path, capsys: Captured) -> None:
    blank = tmp_path / "blank.pgm"
    blank.write_bytes(white())
    words = ["predict", str(weights), str(blank)]
    assert main(words) == 2  # one picture: an error
    assert capsys.readouterr().err.endswith("no digit found, the picture is blank\n")
    assert main([*words, str(blank)]) == 0
    assert capsys.readouterr().out == f"{blank}: blank\n" * 2
    assert main([*words, str(blank), "--sheet", str(tmp_path / "sheet.png")]) == 2
    assert "there is no picture to draw" in capsys.readouterr().err
