"""The machine: its device and processes, whether it compiles, and how a record describes it."""

import contextlib
import json
from typing import Any

import pytest
import torch
from lightning_fabric.utilities import rank_zero

from capsnet.device import (
    PRECISIONS,
    autocast,
    describe_machine,
    ieee_float32,
    make_fabric,
    pick_device,
    resolve_compile,
    resolve_precision,
)
from helpers import Refuses


@pytest.mark.parametrize("scheduled", [False, True])
def test_outside_of_torchrun_there_is_one_process(
    scheduled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where a scheduler names more, which nobody has started."""
    if scheduled:
        monkeypatch.setenv("WORLD_SIZE", "2")
        monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    fabric = make_fabric("cpu")
    assert fabric.device == torch.device("cpu")
    assert (fabric.world_size, fabric.global_rank) == (1, 0)


def test_devices(refuses: Refuses) -> None:
    assert pick_device("cpu") == torch.device("cpu")
    best = "cuda" if torch.cuda.is_available() else "cpu"
    assert pick_device().type == best
    for pick in (pick_device, make_fabric):
        with refuses("device must be auto, cpu, cuda, mps", "got 'abacus'"):
            pick("abacus")
    if best == "cpu":
        with refuses("device cuda was asked for, but there is none here"):
            pick_device("cuda")


def test_lightnings_hints_are_dropped(caplog: pytest.LogCaptureFixture) -> None:
    """On a GPU that of TF32 would stand on stderr, where a chapter's run is refused."""
    make_fabric("cpu")
    rank_zero.rank_zero_info("You are using a device that has Tensor Cores.")
    rank_zero.rank_zero_module.log.warning("something else")
    assert [record.message for record in caplog.records] == ["something else"]


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_fp32_is_ieee_float32_inside_the_block_alone(kind: str) -> None:
    """Also where a program has allowed rounding, by PyTorch's older switches or its newer one."""
    backends: Any = torch.backends
    device, newer = torch.device(kind), hasattr(torch.backends, "fp32_precision")
    switches = [torch.backends.cudnn] if kind == "cuda" else []
    if newer:
        cuda, cpu = [backends.cudnn.conv, backends.cuda.matmul], backends.mkldnn
        switches = cuda if kind == "cuda" else [cpu.conv, cpu.matmul]

    def settings() -> list[object]:
        return [getattr(each, "fp32_precision" if newer else "allow_tf32") for each in switches]

    def check(*before: object) -> None:
        assert settings() == [*before]
        with ieee_float32(device, "bf16"):
            assert settings() == [*before]
        with contextlib.suppress(KeyError), ieee_float32(device, "fp32"):
            assert set(settings()) <= {"ieee", "none", False}
            assert newer or torch.get_float32_matmul_precision() == "highest"
            raise KeyError
        assert settings() == [*before]

    original = settings()
    try:
        torch.set_float32_matmul_precision("high")
        check(*settings())
        assert torch.get_float32_matmul_precision() == "high"
        if newer:
            backends.fp32_precision = "tf32"
            check("tf32", "tf32")
    finally:
        torch.set_float32_matmul_precision("highest")
        if newer:
            backends.fp32_precision = "none"
            for switch, setting in zip(switches, original, strict=True):
                switch.fp32_precision = setting


def test_precisions(refuses: Refuses, device: torch.device) -> None:
    for precision in PRECISIONS:
        resolved = resolve_precision(device, precision)
        assert resolved == precision or precision == "auto"
        with autocast(device, precision):
            product = torch.ones(2, 2, device=device) @ torch.ones(2, 2, device=device)
        assert product.dtype == (torch.bfloat16 if resolved == "bf16" else torch.float32)
    with refuses("auto, bf16, fp32", "got fp64"):
        resolve_precision(device, "fp64")


def test_a_machine_is_described_in_plain_values() -> None:
    found = describe_machine(torch.device("cpu"), processes=2)
    assert found == json.loads(json.dumps(found))
    known = {"threads": torch.get_num_threads(), "processes": 2, "torch": torch.__version__}
    assert known.items() <= found.items()
    assert describe_machine(torch.device("cpu"))["processes"] == 1


@pytest.mark.slow
@pytest.mark.usefixtures("inductor")
def test_compile_as_wished_or_where_a_compiler_is_found() -> None:
    cpu = torch.device("cpu")
    assert resolve_compile(True, cpu) and not resolve_compile(False, cpu)
    assert resolve_compile(None, cpu)
    assert not resolve_compile(None, torch.device("cuda"))  # its steps are graphs
