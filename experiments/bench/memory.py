"""Peak memory of a call's tensors, in a process that does nothing else; and how it grows.

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

from experiments.bench.contestants import (
    BATCH,
    CONTESTANTS,
    Call,
    Contestant,
    contestants,
    routed_layer,
    training_step,
)

# Sizes of the routed layer: the paper's, one number at a time.
DEFAULTS = {"batch_size": BATCH, "iterations": 3}
AXES = {"batch_size": (16, 32, 64, 128, 256), "iterations": (1, 3, 5, 10)}


def run(device: torch.device) -> dict[str, Any]:
    """Every contestant's figures, of a training step."""
    peaks = {
        str(contestant): in_fresh_process(step_peak, contestant, device)
        for contestant in contestants("training step", device)
    }
    return {"batch_size": BATCH, "peaks": {"training step": peaks}}


def in_fresh_process(function: Callable[..., dict[str, Any]], *arguments: object) -> dict[str, Any]:
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


def warm_peak(call: Call, device: torch.device) -> int:
    """:func:`tensor_peak` of a fourth call, because the first ones also make what is made once."""
    for _ in range(3):
        call()
    return tensor_peak(call, device)


def step_peak(contestant: Contestant, device: torch.device) -> dict[str, int]:
    """Bytes of a training step, where this process has done nothing else."""
    tensors = warm_peak(training_step(contestant, device), device)
    # Parameters and the optimiser's two averages outlive the call. Gradients do too, but the next
    # call frees them before it makes its own, which tensor_peak sees on a GPU only.
    parameters = sum(p.numel() for p in contestant.make().parameters())
    return {"tensors": tensors + (16 if device.type == "cuda" else 12) * parameters}


def growth(device: torch.device) -> dict[str, Any]:
    """The routed layer's peak at each size: labml's, which keeps all of û, and our fast one."""
    fast = [c for c in contestants("routed layer", device) if c.network == "fast"]
    rows = [
        {"name": str(contestant), "axis": axis, "value": value}
        | in_fresh_process(layer_peak, contestant, DEFAULTS | {axis: value}, device)
        for contestant in (CONTESTANTS["labml"], fast[-1])
        for axis, values in AXES.items()
        for value in values
    ]
    return {"rows": rows}


def layer_peak(
    contestant: Contestant, sizes: dict[str, int], device: torch.device
) -> dict[str, int]:
    """Bytes that a call of the routed layer with its gradients takes at most."""
    return {"train_bytes": warm_peak(routed_layer(contestant, device, **sizes), device)}
