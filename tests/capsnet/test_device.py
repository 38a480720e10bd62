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


def test_fp32_has_all_bits_inside_the_block_alone() -> None:
    cudnn: Any = torch.backends.cudnn

    def rounds() -> bool:
        return cudnn.conv.fp32_precision == "tf32" if hasattr(cudnn, "conv") else cudnn.allow_tf32

    for precision in ("bf16", "fp32"):
        assert rounds()
        with contextlib.suppress(KeyError), ieee_float32(torch.device("cuda"), precision):
            assert rounds() == (precision == "bf16")
            raise KeyError
    assert rounds()


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
