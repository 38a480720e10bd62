"""Weights files: whole or not there, and never another network's."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import safetensors.torch
import torch

from capsnet import CapsNet
from capsnet.checkpoint import (
    load_weights,
    read_tensors,
    save_weights,
    write_atomically,
    write_json,
)

SMALL = {
    "conv_channels": 8,
    "capsule_types": 2,
    "primary_dim": 4,
    "capsule_dim": 4,
    "hidden": (8, 8),
}


def make(**changes: object) -> CapsNet:
    return CapsNet((1, 17, 18), 3, **{**SMALL, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize("changes", [{}, {"learn_prior": True}, {"reconstruct": False}])
def test_weights_come_back_bit_for_bit(tmp_path: Path, changes: dict[str, object]) -> None:
    model = make(**changes)
    save_weights(tmp_path / "w.safetensors", model, {"classes": ["a", "b", "c"]})
    loaded, metadata = load_weights(tmp_path / "w.safetensors")
    assert metadata["classes"] == ["a", "b", "c"]
    assert loaded.config == model.config
    assert not loaded.training
    for (name, left), (other, right) in zip(
        model.state_dict().items(), loaded.state_dict().items(), strict=True
    ):
        assert name == other
        assert torch.equal(left, right)


def test_half_precision_halves_the_file_and_comes_back_as_float32(tmp_path: Path) -> None:
    model = CapsNet((1, 28, 28), 3, conv_channels=16, capsule_types=4)
    save_weights(tmp_path / "full.safetensors", model)
    save_weights(tmp_path / "half.safetensors", model, dtype=torch.float16)
    full, half = ((tmp_path / f"{name}.safetensors").stat().st_size for name in ("full", "half"))
    assert half < 0.51 * full
    loaded, _ = load_weights(tmp_path / "half.safetensors")
    for left, right in zip(model.parameters(), loaded.parameters(), strict=True):
        assert right.dtype == torch.float32
        assert torch.equal(left.half().float(), right)


def test_channels_last_weights_are_saved(tmp_path: Path) -> None:
    model = make().to(memory_format=torch.channels_last)
    save_weights(tmp_path / "w.safetensors", model)
    loaded, _ = load_weights(tmp_path / "w.safetensors")
    assert torch.equal(loaded.primary.conv.weight, model.primary.conv.weight)


@pytest.mark.parametrize("keep", [0, 4, 100, -1])
def test_a_file_that_was_cut_short_is_refused(tmp_path: Path, keep: int, refuses) -> None:
    path = tmp_path / "w.safetensors"
    save_weights(path, make())
    path.write_bytes(path.read_bytes()[:keep])
    with refuses(path, "not a whole safetensors file"):
        load_weights(path)


def test_a_pickle_is_refused_and_not_run(tmp_path: Path, refuses) -> None:
    path = tmp_path / "w.pt"
    torch.save({"weights": torch.zeros(2)}, path)
    with refuses(path, "not a whole safetensors file"):
        load_weights(path)


def test_somebody_elses_safetensors_file_is_refused(tmp_path: Path, refuses) -> None:
    path = tmp_path / "w.safetensors"
    safetensors.torch.save_file({"weight": torch.zeros(2)}, path)
    with refuses(path, "not written by capsnet"):
        load_weights(path)


def test_missing_file_and_folder(tmp_path: Path, refuses) -> None:
    with pytest.raises(FileNotFoundError, match=r"no such file: .*nowhere"):
        load_weights(tmp_path / "nowhere")
    with refuses("folder", tmp_path):
        load_weights(tmp_path)


def test_weights_of_another_architecture_are_refused(tmp_path: Path, refuses) -> None:
    path = tmp_path / "w.safetensors"
    tensors, _ = {k: v.clone() for k, v in make().state_dict().items()}, None
    document = {"model": make(capsule_dim=5).config}
    safetensors.torch.save_file(tensors, path, {"capsnet": json.dumps(document)})
    with refuses(path, "another architecture", "decoder.fc1.weight", [8, 15], [8, 12]):
        load_weights(path)
    document = {"model": {"colour": "red"}}
    safetensors.torch.save_file(tensors, path, {"capsnet": json.dumps(document)})
    with refuses(path, "does not know", "colour"):
        load_weights(path)
    safetensors.torch.save_file(tensors, path, {"capsnet": "{}"})
    with refuses(path, "does not say which network"):
        load_weights(path)


def test_writing_replaces_whole_files_only(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    write_atomically(path, b"first")
    write_atomically(path, b"second")
    assert path.read_bytes() == b"second"
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]


def test_a_link_is_followed_and_a_special_file_refused(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    write_atomically(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(OSError, match="fifo: it is no ordinary file"):
        write_atomically(tmp_path / "fifo", b"new")
    assert (tmp_path / "fifo").is_fifo()


WRITE_OFTEN = """
import sys
from capsnet.checkpoint import write_atomically
for _ in range(60):
    write_atomically(sys.argv[1], sys.argv[2].encode() * 500_000)
"""


def test_two_processes_write_one_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITE_OFTEN, path, letter]) for letter in "ab"
    ]
    seen = set()
    while any(writer.poll() is None for writer in writers):
        if path.exists():
            data = path.read_bytes()
            assert len(data) == 500_000 and data.count(data[:1]) == len(data)  # no mixture
            seen.add(data[:1])
    assert [writer.returncode for writer in writers] == [0, 0]
    assert seen == {b"a", b"b"}
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_written_file_is_as_readable_as_any_other(tmp_path: Path) -> None:
    write_json(tmp_path / "ours", {"a": [1, 2]})
    (tmp_path / "theirs").write_text("")
    modes = [(tmp_path / name).stat().st_mode for name in ("ours", "theirs")]
    assert modes[0] == modes[1]
    assert (tmp_path / "ours").read_text() == '{\n "a": [\n  1,\n  2\n ]\n}\n'
    write_json(tmp_path / "ours", {"a": [1, 2]}, indent=None)
    assert (tmp_path / "ours").read_text() == '{"a": [1, 2]}\n'


FULL_DISK = """
import resource, sys
from pathlib import Path
from capsnet.checkpoint import write_atomically
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_atomically(sys.argv[1], b"x" * 5000)
except OSError as error:
    print(error)
"""


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"good")
    # The system's own limit on a file's size, hit half-way through the write.
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, path], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"cannot write {path}: File too large\n"
    assert path.read_bytes() == b"good"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_read_tensors_keeps_the_document(tmp_path: Path) -> None:
    model = make()
    save_weights(tmp_path / "w.safetensors", model, {"dataset": "mnist", "ünïcode": [1, 2.5]})
    tensors, document = read_tensors(tmp_path / "w.safetensors")
    assert tensors.keys() == model.state_dict().keys()
    assert document["ünïcode"] == [1, 2.5]
