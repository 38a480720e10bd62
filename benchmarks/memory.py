"""Peak memory of a call: of its tensors, and of a process that does nothing else.

Freed memory goes back to the system, as it does where nobody calls ``keep_freed_memory``.
"""

import itertools
import json
import operator
import re
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

from benchmarks.contestants import BATCH, CONTESTANTS, GROUPS, Call, names
from capsnet import CapsNet
from capsnet.training import TrainingConfig, make_optimizer


def run(device: torch.device) -> dict[str, Any]:
    """Every contestant's figures, and what none goes below."""
    return {
        "batch_size": BATCH,
        "peaks": {
            group: {name: run_alone(peaks, device, group, name) for name in names(group, device)}
            for group in GROUPS
        },
        "floor": run_alone(floor),
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
    at_rest = process_peak()
    call = GROUPS[group](name, device)
    for _ in range(3):
        call()
    process = process_peak()
    tensors = tensor_peak(call, device)
    if group == "training step":
        # Parameters and the optimiser's two averages outlive the call. Gradients do too, but the
        # next call frees them before it makes its own, which tensor_peak sees on a GPU only.
        parameters = sum(p.numel() for p in CONTESTANTS[name].make().parameters())
        tensors += (16 if device.type == "cuda" else 12) * parameters
    return {"tensors": tensors, "process": process, "process_at_rest": at_rest}


def floor() -> dict[str, int]:
    """What a process that trains cannot go below, however little memory its arithmetic needs.

    Returns:
        bytes: "import", with torch imported; "optimizer", when one step of Adam has been made with
        the paper's network and gradients of zero.
    """
    imported = process_peak()
    model = CapsNet()
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    make_optimizer(model, TrainingConfig()).step()
    return {"import": imported, "optimizer": process_peak()}


def process_peak() -> int:
    """Bytes of memory that this process has had at most; 0 where /proc does not tell.

    The system's ru_maxrss would count the parent's, if that was larger when it started us.
    """
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return 0
    (kilobytes,) = re.findall(r"VmHWM:\s+(\d+) kB", status)
    return 1024 * int(kilobytes)
