"""The allocator's setting, in a process of its own: it cannot be taken back."""

import subprocess
import sys

import pytest

CODE = """
import resource, sys
import torch
from capsnet_lab.cli.allocator import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(2):
        torch.ones(10_000_000)  # 40 MB, freed at once
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

before = faults()
assert keep_freed_memory()
# The heap settles after one call or eight; memory that is given back costs faults in every call.
print(before, min(faults() for _ in range(20)))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a setting of glibc's")
def test_freed_memory_is_kept() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    before, after = map(int, done.stdout.split())
    assert before > 1000  # page faults: each block came anew from the system
    assert after < before / 10
