"""Peak memory of a call's tensors, in a process that does nothing else.

Freed memory goes back to the system, as it does where nobody calls ``keep_freed_memory``.
"""

import itertools
import json
import operator
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

from experiments.bench.contestants import BATCH, CONTESTANTS, GROUPS, Call, names


def run(device: torch.device) -> dict[str, Any]:
    """Every contestant's figures."""
    return {
        "batch_size": BATCH,
        "peaks": {
            group: {name: run_alone(peaks, device, group, name) for name in names(group, device)}
            for group in GROUPS
        },
    }


def run_alone(function: Callable[..., dict[str, Any]], *arguments: object) -> dict[str, Any]:
    """What a function returns in a fresh process; its stderr is ours."""
    print(function.__name__, *arguments, file=sys.stderr, flush=True)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:
        return fresh.submit(function, *arguments).result()


def tensor_peak(call: Call, device: torch.device) -> int:
    """Bytes that a call's tensors take on a device at most, beyond what was there before it.

    On a CPU, what was there before it and is freed in it makes no difference; on a GPU it leaves
    its place to what comes after.
    """
    if device.type == "cuda":
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        call()
        return torch.cuda.max_memory_allocated() - before
    with torch.profiler.profile(profile_memory=True) as profile:
        call()
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder, "trace.json")
        profile.export_chrome_trace(str(trace))
        events = json.loads(trace.read_bytes())["traceEvents"]
    memory = [event for event in events if event["name"] == "[memory]"]
    memory.sort(key=operator.itemgetter("ts"))
    sizes = [0, *(event["args"]["Bytes"] for event in memory)]  # negative where it is freed
    return max(itertools.accumulate(sizes))


def peaks(device: torch.device, group: str, name: str) -> dict[str, int]:
    """A contestant's figures, in bytes, where this process has done nothing else."""
    call = GROUPS[group](name, device)
    for _ in range(3):
        call()
    tensors = tensor_peak(call, device)
    if group == "training step":
        # Parameters and the optimiser's two averages outlive the call. Gradients do too, but the
        # next call frees them before it makes its own, which tensor_peak sees on a GPU only.
        parameters = sum(p.numel() for p in CONTESTANTS[name].make().parameters())
        tensors += (16 if device.type == "cuda" else 12) * parameters
    return {"tensors": tensors}
