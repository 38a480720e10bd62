"""Weights files: whole or not there, and never another network's."""

import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import safetensors.torch
import torch

from capsnet import CapsNet
from capsnet.checkpoint import (
    SCALE,
    in_8_bits,
    load_weights,
    read_tensors,
    save_weights,
    write_tensors,
)
from capsnet.data import load, to_float
from capsnet.files import write_atomically, write_json
from capsnet_book import ledger
from helpers import Refuses

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


@pytest.mark.parametrize("dtype", [torch.float16, torch.int8])
def test_whole_numbers_stay_what_they_are(tmp_path: Path, dtype: torch.dtype) -> None:
    model, path = make(), tmp_path / "w.safetensors"
    model.register_buffer("seen", torch.tensor([[70_001, 3]]))
    save_weights(path, model, dtype=dtype)
    tensors, _ = read_tensors(path)
    torch.testing.assert_close(tensors["seen"], model.seen, rtol=0, atol=0)
    assert tensors["conv.weight"].dtype == dtype


@pytest.mark.parametrize("shape", [(5, 300), (4, 3, 9, 9), (6, 10, 8, 16)])
def test_8_bits_are_off_by_half_a_scale_at_most(shape: tuple[int, ...]) -> None:
    tensor = torch.randn(shape) * torch.logspace(-9, 3, shape[0]).reshape(-1, *[1] * len(shape[1:]))
    tensor[1] = 0
    whole, scale = in_8_bits(tensor)
    assert whole.dtype == torch.int8 and scale.dtype == torch.float16
    assert scale.shape == shape[: max(1, len(shape) - 2)]  # a row, a kernel, a W_ij
    each = scale.double().reshape(scale.shape + (1,) * (len(shape) - scale.dim()))
    error = (whole * each - tensor).abs()
    assert bool((error <= 0.5001 * each).all())
    assert bool((error[1] == 0).all())
    rows = tensor.flatten(scale.dim()).abs().amax(-1).double()
    expected = (rows / 127).clamp(min=2**-14)
    torch.testing.assert_close(scale.double(), expected, rtol=1e-3, atol=0)


def test_8_bits_quarter_the_file_and_come_back_as_float32(tmp_path: Path) -> None:
    model = CapsNet((1, 28, 28), 3, conv_channels=16, capsule_types=4, learn_prior=True)
    save_weights(tmp_path / "full.safetensors", model)
    save_weights(tmp_path / "w.safetensors", model, {"classes": ["a"]}, torch.int8)
    full, eighth = ((tmp_path / f"{name}.safetensors").stat().st_size for name in ("full", "w"))
    assert eighth < 0.27 * full
    assert "conv.weight" in read_tensors(tmp_path / "w.safetensors")[1]["int8"]
    loaded, metadata = load_weights(tmp_path / "w.safetensors")
    assert metadata == {"classes": ["a"], "model": model.config}  # nothing of how it was stored
    assert {parameter.dtype for parameter in loaded.parameters()} == {torch.float32}
    assert torch.equal(loaded.conv.bias, model.conv.bias)
    torch.testing.assert_close(loaded.digits.weight, model.digits.weight, rtol=0, atol=1e-3)
    save_weights(tmp_path / "again.safetensors", loaded, metadata, torch.int8)  # and stay
    again, _ = load_weights(tmp_path / "again.safetensors")
    torch.testing.assert_close(again.state_dict(), loaded.state_dict(), rtol=1e-3, atol=1e-6)


def test_8_bits_see_the_same_digits(tmp_path: Path) -> None:
    model, metadata = load_weights(ledger.path("mnist/weights.safetensors"))
    save_weights(tmp_path / "w.safetensors", model, metadata, torch.int8)
    loaded, _ = load_weights(tmp_path / "w.safetensors")
    images = to_float(load("mnist", train=False).images[:100])
    with torch.no_grad():
        before, after = model(images), loaded(images)
    assert torch.equal(before.lengths.argmax(1), after.lengths.argmax(1))
    torch.testing.assert_close(after.lengths, before.lengths, rtol=0, atol=0.03)


def test_8_and_16_bits_refuse_what_they_cannot_hold(tmp_path: Path, refuses: Refuses) -> None:
    path, model = tmp_path / "w.safetensors", make()
    for bad in (float("nan"), float("inf"), 1e9):
        torch.nn.init.constant_(model.decoder.fc2.weight, bad)  # type: ignore[union-attr]
        with refuses("cannot store decoder.fc2.weight in 8 bits: expected finite numbers"):
            save_weights(path, model, dtype=torch.int8)
        with refuses("cannot store decoder.fc2.weight in torch.float16: expected finite numbers"):
            save_weights(path, model, dtype=torch.float16)
    assert not path.exists()
    save_weights(path, make(), dtype=torch.int8)
    tensors, document = read_tensors(path)
    scale = "conv.weight" + SCALE
    for damaged in (
        {name: tensor for name, tensor in tensors.items() if name != scale},
        {name: tensor for name, tensor in tensors.items() if name != "conv.weight"},
        tensors | {scale: tensors[scale][:-1]},
    ):
        write_tensors(path, damaged, document)
        with refuses(path, "damaged: conv.weight and its scales do not fit together"):
            load_weights(path)


@pytest.mark.parametrize("names", [None, 3, "conv.weight", [1], [["conv.weight"]]])
def test_8_bits_of_no_names_are_refused(names: object, tmp_path: Path, refuses: Refuses) -> None:
    path, model = tmp_path / "w.safetensors", make()
    save_weights(path, model, {"int8": names})
    with refuses(path, f"damaged: int8 should be a list of names, it is {names}"):
        load_weights(path)


def test_channels_last_weights_are_saved(tmp_path: Path) -> None:
    model = make().to(memory_format=torch.channels_last)
    save_weights(tmp_path / "w.safetensors", model)
    loaded, _ = load_weights(tmp_path / "w.safetensors")
    assert torch.equal(loaded.primary.conv.weight, model.primary.conv.weight)


def test_what_is_no_networks_file_is_refused(tmp_path: Path, refuses: Refuses) -> None:
    path = tmp_path / "w.safetensors"
    save_weights(path, make())
    whole = path.read_bytes()
    torch.save({"weights": torch.zeros(2)}, path)  # a pickle
    for bad in (b"", whole[:4], whole[:100], whole[:-1], path.read_bytes()):
        path.write_bytes(bad)
        with refuses(path, "not a whole safetensors file"):
            load_weights(path)
    with pytest.raises(FileNotFoundError, match=r"no such file: .*nowhere"):
        load_weights(tmp_path / "nowhere")
    with refuses("folder", tmp_path):
        load_weights(tmp_path)


def test_what_is_no_finite_number_is_refused(tmp_path: Path, refuses: Refuses) -> None:
    path, model = tmp_path / "w.safetensors", make()
    whole = {"model": model.config}
    for told, change in (
        ("expected conv.bias in torch.float32, got torch.int32", lambda bias: bias.int()),
        ("expected finite weights, conv.bias holds NaN", lambda bias: bias * float("nan")),
    ):
        tensors = model.state_dict()
        tensors["conv.bias"] = change(tensors["conv.bias"])
        write_tensors(path, tensors, whole)
        with refuses(path, told):
            load_weights(path)
    metadata = {"capsnet": "[" * 100_000}
    safetensors.torch.save_file(model.state_dict(), path, metadata)
    with refuses(path, "its description is no JSON object"):
        load_weights(path)


def test_weights_of_another_architecture_are_refused(tmp_path: Path, refuses: Refuses) -> None:
    path = tmp_path / "w.safetensors"
    other = {"model": make(capsule_dim=5).config}
    for metadata, *told in (
        (None, "not written by capsnet"),
        ({"capsnet": "{}"}, "does not say which network"),
        ({"capsnet": '{"model": {"colour": "red"}}'}, "does not know", "colour"),
        (
            {"capsnet": json.dumps(other)},
            "another architecture: expected decoder.fc1.weight [8, 15], got [8, 12]",
        ),
    ):
        safetensors.torch.save_file(make().state_dict(), path, metadata)
        with refuses(path, *told):
            load_weights(path)


def test_writing_replaces_whole_files_only(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    write_atomically(path, b"first")
    write_atomically(path, b"second")
    assert path.read_bytes() == b"second"
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]


@pytest.mark.parametrize(
    "name",
    ["字" * 80, "a" + "é" * 120, "a" * 255, "\udcff" * 250],
    ids=["of three bytes", "of two bytes", "of one byte", "not UTF-8"],
)
def test_any_name_that_the_file_system_allows(name: str, tmp_path: Path) -> None:
    write_atomically(tmp_path / name, b"whole")
    assert [(entry.name, entry.read_bytes()) for entry in tmp_path.iterdir()] == [(name, b"whole")]


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


def test_two_writers_of_one_file(tmp_path: Path) -> None:
    path, enough = tmp_path / "file", threading.Event()

    def write(letter: bytes) -> None:
        while not enough.is_set():
            write_atomically(path, letter * 500_000)

    seen, end = [], time.monotonic() + 60
    with ThreadPoolExecutor() as pool:
        writers = [pool.submit(write, letter) for letter in (b"a", b"b")]
        try:
            while (len(seen) < 30 or len({*seen}) < 2) and time.monotonic() < end:
                if path.exists():
                    data = path.read_bytes()
                    assert len(data) == 500_000 and data.count(data[:1]) == len(data)  # no mixture
                    seen.append(data[:1])
        finally:
            enough.set()
    assert [writer.exception() for writer in writers] == [None, None]
    assert {*seen} == {b"a", b"b"}
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_written_file_is_as_readable_as_any_other(tmp_path: Path) -> None:
    write_json(tmp_path / "ours", {"a": [1, 2]})
    (tmp_path / "theirs").write_text("")
    modes = [(tmp_path / name).stat().st_mode for name in ("ours", "theirs")]
    assert modes[0] == modes[1]
    assert (tmp_path / "ours").read_text() == '{\n "a": [\n  1,\n  2\n ]\n}\n'
    write_json(tmp_path / "ours", {"a": [1, 2]}, indent=None)
    assert (tmp_path / "ours").read_text() == '{"a": [1, 2]}\n'


def test_read_tensors_keeps_the_document(tmp_path: Path) -> None:
    model = make()
    save_weights(tmp_path / "w.safetensors", model, {"dataset": "mnist", "ünïcode": [1, 2.5]})
    tensors, document = read_tensors(tmp_path / "w.safetensors")
    assert tensors.keys() == model.state_dict().keys()
    assert document["ünïcode"] == [1, 2.5]
