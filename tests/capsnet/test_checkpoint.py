"""Weights files: whole or not there, and never another network's."""

import functools
import json
import os
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import nn
from torch.nn.utils import prune
from torch.optim.swa_utils import AveragedModel

from capsnet import CapsNet
from capsnet.checkpoint import (
    REGISTERED,
    SCALE,
    load_weights,
    quantized,
    read_tensors,
    register,
    save_weights,
)
from capsnet.files import write_atomically, write_json
from capsnet_lab.routings import EfficientCapsNet, RoutedCapsNet
from capsnet_lab.wild import WildCapsNet
from helpers import Refuses

SMALL: dict[str, Any] = {
    "conv_channels": 8, "capsule_types": 2, "primary_dim": 4, "capsule_dim": 4, "hidden": (8, 8),
}  # fmt: skip


def make(kind: type[CapsNet] = CapsNet, **changes: Any) -> CapsNet:
    return kind((1, 17, 18), 3, **{**SMALL, **changes})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "w.safetensors"


@pytest.mark.parametrize(
    "model",
    [
        make(),
        make(learn_prior=True),
        make(reconstruct=False).to(memory_format=torch.channels_last),
        make(RoutedCapsNet, routing="em", stack=[4]),
        make(RoutedCapsNet, routing="shared"),
        make(WildCapsNet, deviations=["shared-w", "leak"]),
        EfficientCapsNet((1, 28, 28), 3, reconstruct=False),
    ],
    ids=lambda model: type(model).__name__,
)
def test_any_network_comes_back_bit_for_bit(path: Path, model: CapsNet) -> None:
    """With its class, so that nobody needs to know it who reads the file."""
    save_weights(path, model, {"classes": ["a", "b", "c"], "ünïcode": [1, 2.5]})
    loaded, metadata = load_weights(path)
    assert (metadata["classes"], metadata["ünïcode"]) == (["a", "b", "c"], [1, 2.5])
    assert type(loaded) is type(model) and loaded.config == model.config
    assert not loaded.training
    torch.testing.assert_close(loaded.state_dict(), model.state_dict(), rtol=0, atol=0)
    assert list(loaded.state_dict()) == list(model.state_dict())


@pytest.mark.parametrize(
    "wrap",
    [
        functools.partial(torch.compile, backend="eager"),
        nn.DataParallel,
        AveragedModel,
        lambda model: AveragedModel(nn.DataParallel(model)),
    ],
)
def test_a_wrapped_network_is_saved_as_the_network_inside(path: Path, wrap: Any) -> None:
    model = make()
    save_weights(path, wrap(model))
    torch.testing.assert_close(load_weights(path)[0].state_dict(), model.state_dict())


@pytest.mark.parametrize(
    "change",
    [
        lambda m: setattr(m, "decoder", None),
        lambda m: m.arguments.update(colour="red"),
        lambda m: m.arguments.update(hidden={8, 9}),  # which JSON does not have
        lambda m: prune.random_unstructured(m.conv, "weight", 1),
        lambda m: nn.utils.parametrizations.spectral_norm(m.primary.conv),
    ],
)
def test_what_could_not_be_loaded_again_is_not_saved(
    path: Path, change: Any, refuses: Refuses
) -> None:
    model = make()
    change(model)
    with refuses("this CapsNet could not be loaded again from its config: "):
        save_weights(path, model)
    assert not path.exists()


@pytest.mark.parametrize("key", ["class", "model", "int8"])
def test_metadata_leaves_the_formats_own_keys_alone(path: Path, key: str, refuses: Refuses) -> None:
    with refuses("metadata must not use the keys class, model, int8", key):
        save_weights(path, make(), {key: "mine"})
    with refuses("could not be loaded again", "Tensor is not JSON serializable"):
        save_weights(path, make(), {"mean": torch.ones(2)})


def test_a_class_with_arguments_of_its_own_and_tied_weights(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Tied(CapsNet):
        def __init__(self) -> None:
            super().__init__((1, 17, 18), 3, **SMALL)
            self.arguments = {}
            self.again = self.conv

    monkeypatch.setattr("capsnet.checkpoint.REGISTERED", {**REGISTERED})
    model = register(Tied)()
    save_weights(path, model)
    before = torch.get_rng_state()
    loaded, _ = load_weights(path)
    assert loaded.again is loaded.conv
    assert torch.equal(torch.get_rng_state(), before)
    torch.testing.assert_close(loaded.state_dict(), model.state_dict())


def test_a_class_of_ones_own(path: Path, monkeypatch: pytest.MonkeyPatch, refuses: Refuses) -> None:
    """A class that has the name of ours is known by its module."""
    monkeypatch.setattr("capsnet.checkpoint.REGISTERED", {**REGISTERED})
    mine = type("CapsNet", (CapsNet,), {"__module__": "elsewhere"})
    save_weights(path, make(mine))
    with refuses(path, "holds a elsewhere.CapsNet, which is not registered: import", "register"):
        load_weights(path)
    assert register(mine) is mine
    assert type(load_weights(path)[0]) is mine
    save_weights(path, make())
    assert type(load_weights(path)[0]) is CapsNet
    with refuses("this Linear could not be loaded again", "must be a mapping, not NoneType"):
        save_weights(path, nn.Linear(2, 2))


@pytest.mark.parametrize(("dtype", "size"), [(torch.float16, 0.51), (torch.int8, 0.27)])
def test_fewer_bits_make_a_smaller_file_and_come_back_as_float32(
    tmp_path: Path, dtype: torch.dtype, size: float
) -> None:
    model = CapsNet((1, 28, 28), 3, conv_channels=16, capsule_types=4, learn_prior=True)
    full, path = tmp_path / "full", tmp_path / "small"
    save_weights(full, model)
    save_weights(path, model, {"classes": ["a"]}, dtype)
    assert path.stat().st_size < size * full.stat().st_size
    assert read_tensors(path)[0]["conv.weight"].dtype == dtype
    loaded, metadata = load_weights(path)
    assert metadata == {"classes": ["a"]}  # nothing of how it was stored
    assert {parameter.dtype for parameter in loaded.parameters()} == {torch.float32}
    torch.testing.assert_close(loaded.state_dict(), model.state_dict(), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("shape", [(5, 300), (4, 3, 9, 9), (6, 10, 8, 16)])
def test_8_bits_are_off_by_half_a_scale_at_most(shape: tuple[int, ...]) -> None:
    tensor = torch.randn(shape) * torch.logspace(-9, 3, shape[0]).reshape(-1, *[1] * len(shape[1:]))
    tensor[1] = 0
    stored, names = quantized({"w": tensor})
    whole, scale = stored["w"], stored["w" + SCALE]
    assert names == ["w"] and whole.dtype == torch.int8 and scale.dtype == torch.float16
    assert scale.shape == shape[: max(1, len(shape) - 2)]  # a row, a kernel, a W_ij
    each = scale.double().reshape(scale.shape + (1,) * (len(shape) - scale.dim()))
    error = (whole * each - tensor).abs()
    assert bool((error <= 0.5001 * each).all())
    assert bool((error[1] == 0).all())
    rows = tensor.flatten(scale.dim()).abs().amax(-1).double()
    expected = (rows / 127).clamp(min=2**-14)
    torch.testing.assert_close(scale.double(), expected, rtol=1e-3, atol=0)


@pytest.mark.parametrize("dtype", [torch.int8, torch.float16])
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 1e9])
def test_fewer_bits_refuse_what_they_cannot_hold(
    path: Path, refuses: Refuses, dtype: torch.dtype, bad: float
) -> None:
    model = make()
    nn.init.constant_(model.decoder.fc2.weight, bad)  # type: ignore[union-attr]
    with refuses(path, "is not written: expected finite weights, decoder.fc2.weight"):
        save_weights(path, model, dtype=dtype)
    assert not path.exists()


@pytest.mark.parametrize("dtype", [torch.int32, torch.bool, torch.float8_e4m3fn, torch.complex64])
def test_another_dtype_is_refused(path: Path, refuses: Refuses, dtype: torch.dtype) -> None:
    """In int32 or bool all weights would come back as zeros or ones."""
    with refuses("dtype must be one of torch.float64, ", f"torch.int8, got {dtype}"):
        save_weights(path, make(), dtype=dtype)
    assert not path.exists()


def document(**changes: Any) -> dict[str, str]:
    return {"capsnet": json.dumps({"model": make().config} | changes)}


WEIGHTS = make().state_dict()
BIAS, SCALES = "conv.bias", "conv.weight" + SCALE
DAMAGED = "holds no network that it describes"
EIGHT, NAMES = quantized(WEIGHTS)
REFUSED = [  # tensors, the file's metadata, and what is said of them
    (WEIGHTS, None, "not written by capsnet"),
    (WEIGHTS, {"capsnet": "[1]"}, "not written by capsnet"),
    (WEIGHTS, {"capsnet": "{"}, "not a whole safetensors file"),
    (WEIGHTS, {"capsnet": "{}"}, "holds no network that it describes: .* not NoneType"),
    (WEIGHTS, {"capsnet": '{"model": {"colour": "red"}}'}, "it describes: .*colour"),
    (WEIGHTS, document(**{"class": [7]}), "not registered"),
    (WEIGHTS, document(model=make(capsule_dim=5).config),
     r"it describes: expected decoder.fc1.weight \[8, 15\], got \[8, 12\]"),
    (WEIGHTS | {BIAS: WEIGHTS[BIAS] * float("nan")}, document(),
     "expected finite weights, conv.bias holds NaN"),
    (WEIGHTS, document(int8=None), DAMAGED),
    ({n: x for n, x in EIGHT.items() if n != SCALES}, document(int8=NAMES), DAMAGED),
    (EIGHT | {SCALES: EIGHT[SCALES][:-1]}, document(int8=NAMES), DAMAGED),
]  # fmt: skip


@pytest.mark.parametrize(("tensors", "metadata", "message"), REFUSED)
def test_a_file_of_another_kind_is_refused(
    path: Path, tensors: Any, metadata: dict[str, str] | None, message: str
) -> None:
    safetensors.torch.save_file(dict(tensors), path, metadata)
    with pytest.raises(ValueError, match=message) as caught:
        load_weights(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_what_is_no_safetensors_file_is_refused(path: Path, refuses: Refuses) -> None:
    save_weights(path, make())
    whole = path.read_bytes()
    torch.save({"weights": torch.zeros(2)}, path)  # a pickle
    for bad in (b"", whole[:4], whole[:100], whole[:-1], path.read_bytes()):
        path.write_bytes(bad)
        with refuses(path, "not a whole safetensors file"):
            load_weights(path)
    with pytest.raises(FileNotFoundError, match=r"no such file: .*nowhere"):
        load_weights(path.with_name("nowhere"))
    with refuses("expected a safetensors file, got a folder", path.parent):
        load_weights(path.parent)


def test_a_link_is_followed_and_a_special_file_refused(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(OSError, match=f"cannot write {tmp_path}: it is a folder"):
        write_atomically(tmp_path, b"new")
    write_atomically(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"
    if not hasattr(os, "mkfifo"):
        return  # on Windows
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(OSError, match="fifo: it is a device or a pipe"):
        write_atomically(tmp_path / "fifo", b"new")
    assert (tmp_path / "fifo").is_fifo()


def test_a_written_file_is_as_readable_as_any_other(tmp_path: Path) -> None:
    write_json(tmp_path / "ours", {"a": [1, 2]})
    (tmp_path / "theirs").write_text("")
    modes = [(tmp_path / name).stat().st_mode for name in ("ours", "theirs")]
    assert modes[0] == modes[1]
    assert json.loads((tmp_path / "ours").read_text()) == {"a": [1, 2]}
