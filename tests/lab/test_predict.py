"""Anybody's pictures, one or many: what is read, answered, printed and written."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from capsnet.checkpoint import load_weights, save_weights
from capsnet.data import to_float
from capsnet_book import ledger
from capsnet_lab import pictures, predict
from capsnet_lab.cli import BROKEN_PIPE, main, outputs
from helpers import Refuses
from helpers.tiny import mnist, tiny_model

Captured = pytest.CaptureFixture[str]
NAMES = ("a, b.png", "one.png", "sub/deeper/two.png", "sub/three.png", "zero.png")
WHITE = b"P5 2 2 255 " + bytes([255] * 4)  # a picture with nothing on it


@pytest.fixture(scope="module")
def weights() -> str:
    return str(ledger.path("mnist/weights.safetensors"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """MNIST's first test images, 7 2 1 0 4, at several depths, and what is no picture."""
    folder = tmp_path / "pictures"
    (folder / ".cache").mkdir(parents=True)
    (folder / "sub" / "deeper").mkdir(parents=True)
    for name, image in zip(NAMES, mnist(train=False).images, strict=False):
        Image.fromarray(image[0].numpy()).save(folder / name)
    for name in (".cache/x.png", "sub/.DS_Store", "sub/Thumbs.db"):
        (folder / name).write_text("no picture")
    return folder


def run(*words: object) -> int:
    return main(["predict", *map(str, words)])


def test_the_files_of_folders(folder: Path, tmp_path: Path, refuses: Refuses) -> None:
    files = [folder / name for name in NAMES]
    named = [folder / ".cache", folder / "sub" / "Thumbs.db"]  # what is asked for is tried
    found = predict.find_pictures([files[3], folder, *named])
    assert found == [files[3], *files, folder / ".cache" / "x.png", named[1]]
    (tmp_path / "empty").mkdir()
    with refuses("no pictures in", tmp_path / "empty"):
        predict.find_pictures([folder, tmp_path / "empty"])


def test_many_pictures(
    weights: str, folder: Path, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(predict, "BATCH", 2)
    monkeypatch.setattr(outputs, "SHEET", 4)
    (folder / "sub" / "blank").write_bytes(WHITE)
    written = {name: tmp_path / "out" / f"a.{name}" for name in ("svg", "json")}
    files = ["--sheet", written["svg"], "--json", written["json"]]
    assert run(weights, folder, *files) == 0
    out, err = capsys.readouterr()
    assert err == ""

    images = torch.stack(
        [pictures.read_picture(folder / name, preparation="digit") for name in NAMES]
    )
    with torch.no_grad():  # all at once
        lengths = load_weights(weights)[0](to_float(images)).lengths
    order = [*NAMES[:2], "sub/blank", *NAMES[2:]]
    records = json.loads(written["json"].read_text())
    assert [record["picture"] for record in records] == [str(folder / name) for name in order]
    assert [record["answer"] for record in records] == ["7", "2", "blank", "1", "0", "4"]
    blank = records.pop(2)
    assert (blank["length"], blank["lengths"]) == (None, {})
    found = [list(record["lengths"].values()) for record in records]
    torch.testing.assert_close(torch.tensor(found), lengths, atol=1e-4, rtol=0)
    assert [record["length"] for record in records] == [max(row) for row in found]

    lines = [f"{r['picture']}: {r['answer']}  {r['length']:.3f}" for r in records]
    lines.insert(2, f"{blank['picture']}: blank")
    lines += [f"written: {written[name]}" for name in ("json", "svg")]
    assert out == "\n".join(lines) + " (4 of 6 pictures)\n"  # a blank one takes no place
    assert written["svg"].read_text().count(".png -->") == 4


def test_names_of_any_bytes(weights: str, folder: Path, tmp_path: Path) -> None:
    table = tmp_path / "o.json"
    os.rename(folder / "zero.png", folder / "z\udcff.png")
    assert run(weights, folder, "--json", table) == 0
    records = json.loads(table.read_text())
    assert str(folder / "z?.png") in [record["picture"] for record in records]


def test_pictures_that_cannot_be_read_among_many(
    weights: str, folder: Path, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    table = tmp_path / "a.json"
    empty = [f"empty {i:02}.png" for i in range(99)]  # all are named, however many
    for name in empty:
        Path(name).touch()
    assert run(weights, ".", "--json", table) == 2
    out, err = capsys.readouterr()
    assert [line.split(": ")[1][0] for line in out.splitlines()[:-1]] == list("72104")
    names = ", ".join(empty)
    assert err.startswith(f"capsnet predict: 99 of 104 pictures cannot be read: {names}; the first")
    assert len(json.loads(table.read_text())) == 5


def test_no_class_where_no_capsule_is_long(
    weights: str, folder: Path, tmp_path: Path, capsys: Captured
) -> None:
    digit, none, drawn = folder / NAMES[0], tmp_path / "none.png", tmp_path / "drawn.svg"
    crossed = np.zeros((28, 28), np.uint8)
    crossed[[6, 7, 8, 19, 20, 21], 4:24] = 255
    Image.fromarray(crossed | crossed.T).save(none)

    def printed(*words: object) -> str:
        assert run(*words) == 0
        return capsys.readouterr().out

    first, second, _ = printed(weights, none, digit, "--sheet", drawn).splitlines()
    assert first.startswith(f"{none}: no digit  0.") and second.startswith(f"{digit}: 7  0.9")
    assert printed(weights, none).startswith(f"{none}: no digit\n  0  0.")
    assert printed(weights, none, "--threshold", 0).split(": ")[1][0] in "0123456789"
    other = tmp_path / "other.safetensors"
    save_weights(other, tiny_model(num_classes=2), {"classes": ["cat", "dog"]})
    said = printed(other, digit, "--threshold", 1)
    assert said.startswith(f"{digit}: none of its classes\n  cat  0.")


def test_what_is_not_one_digit_is_refused_and_shown(
    weights: str, folder: Path, tmp_path: Path, capsys: Captured
) -> None:
    two, sheet, table = tmp_path / "two.png", tmp_path / "sheet.svg", tmp_path / "a.json"
    pair = [np.asarray(Image.open(folder / name)) for name in NAMES[:2]]
    Image.fromarray(np.hstack(pair)).save(two)
    assert run(weights, two, "--sheet", sheet) == 2
    assert "two.png: 2 figures found where one digit was expected\n" in capsys.readouterr().err
    assert sheet.read_text().count("<image") == 1  # what was found, and no reconstruction
    assert run(weights, two, folder / NAMES[0], "--json", table) == 0
    assert capsys.readouterr().out.startswith(f"{two}: several digits\n")
    assert json.loads(table.read_text())[0]["answer"] == "several digits"
    other = tmp_path / "other.safetensors"
    save_weights(other, tiny_model(num_classes=2), {"preparation": "figure"})
    assert run(other, two, "--threshold", 0) == 0  # a figure may have several parts


def test_where_nobody_reads_the_lines_it_ends_without_a_word(weights: str, folder: Path) -> None:
    words = [sys.executable, "-m", "capsnet", "predict", weights, folder]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == BROKEN_PIPE


def test_blank_pictures(weights: str, tmp_path: Path, capsys: Captured) -> None:
    """Of two the answers are written before anything is drawn, which fails."""
    blank, table = tmp_path / "blank.pgm", tmp_path / "a.json"
    blank.write_bytes(WHITE)
    assert run(weights, blank) == 2  # one picture: an error
    assert capsys.readouterr().err.endswith("the picture is blank\n")
    assert run(weights, blank, blank) == 2  # two are as wrong as one
    assert "none of 2 pictures is classified; the first: " in capsys.readouterr().err
    assert run(weights, blank, blank, "--json", table, "--sheet", tmp_path / "sheet.png") == 2
    out, err = capsys.readouterr()
    assert out == f"{blank}: blank\n" * 2 + f"written: {table}\n"
    assert "there is no picture to draw" in err
    assert [record["answer"] for record in json.loads(table.read_text())] == ["blank"] * 2


def test_the_threshold_is_the_measured_one() -> None:
    record = ledger.read("pictures/threshold.json")
    assert record["threshold"] == predict.THRESHOLD
    digits = record["validation"]
    assert record["share"] / 2 < digits["refused"] / digits["images"] <= record["share"]
