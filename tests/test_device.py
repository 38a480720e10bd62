"""The machine: its device and processes, whether it compiles, and how a record describes it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from capsnet.device import can_compile, describe_machine, make_fabric
from helpers import Refuses


def test_outside_of_torchrun_there_is_one_process() -> None:
    fabric = make_fabric("cpu")
    assert fabric.device == torch.device("cpu")
    assert (fabric.world_size, fabric.global_rank) == (1, 0)


def test_a_device_that_is_not_there(refuses: Refuses) -> None:
    with refuses("device must be auto", "got abacus"):
        make_fabric("abacus")


def test_a_machine_is_described_in_plain_values() -> None:
    found = describe_machine(torch.device("cpu"), processes=2)
    assert found == json.loads(json.dumps(found))
    assert found["threads"] == torch.get_num_threads()
    assert found["processes"] == 2
    assert found["torch"] == torch.__version__
    assert describe_machine(torch.device("cpu"))["processes"] == 1


@pytest.mark.slow
def test_can_compile_finds_no_compiler(inductor: None, tmp_path: Path) -> None:
    assert can_compile(torch.device("cpu"))
    code = (
        "import torch; from capsnet.device import can_compile as c; print(c(torch.device('cpu')))"
    )
    without = os.environ | {"PATH": "", "CXX": "no-such-compiler"}
    without |= {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=without, capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
