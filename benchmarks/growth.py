"""How the routed layer's cost grows with batch, children, parents and iterations."""

import json
import statistics
import sys
import time
from typing import Any

import torch

from benchmarks.contestants import DEVICE, HEADLINE, OURS, finished, possible, routed_layer
from benchmarks.memory import process_peak, run_alone, tensor_peak
from capsnet.bench import measure

# From the paper's size, one number at a time.
AXES = {
    "batch_size": (16, 32, 64, 128, 256),
    "children": (1152, 2304, 4608, 8192),
    "parents": (10, 20, 50, 100),
    "iterations": (1, 3, 5, 10),
}
LARGEST = {"batch_size": 128, "children": 8192, "parents": 100}
REPEATS = 3


def names() -> list[str]:
    """The common published approach, û kept whole, as labml renders it; and ours."""
    ours = [name for name in OURS if name.startswith("capsnet fast") and possible(name)]
    return ["labml", HEADLINE if HEADLINE in ours else ours[-1]]


def grow(name: str) -> list[dict[str, Any]]:
    """One row for each size: milliseconds and peak bytes, training and inference."""
    rows = []
    for axis, values in AXES.items():
        for value in values:
            row: dict[str, Any] = {"name": name, "axis": axis, "value": value}
            for use in ("train", "infer"):
                torch.compiler.reset()
                call = routed_layer(name, **{axis: value}, train=use == "train")
                row[f"{use}_ms"] = measure(call, DEVICE, REPEATS)["median"]
                row[f"{use}_bytes"] = tensor_peak(call)
            rows.append(row)
    return rows


def train_the_largest(name: str) -> dict[str, Any]:
    """Training steps with Adam of the largest layer, in a process of its own."""
    return run_alone("benchmarks.growth", name)


def largest(name: str) -> dict[str, Any]:
    from capsnet import CapsuleLayer
    from capsnet.routing import routed_capsules

    layer = CapsuleLayer(LARGEST["children"], 8, LARGEST["parents"], 16).to(DEVICE)
    optimizer = torch.optim.Adam(layer.parameters(), fused=True)
    u = 0.3 * torch.randn(LARGEST["batch_size"], LARGEST["children"], 8, device=DEVICE)
    if OURS[name].precision == "bf16":
        u = u.bfloat16()
    times = []
    for _ in range(1 + REPEATS):
        start = time.perf_counter()
        optimizer.zero_grad()
        v = routed_capsules(u, layer.weight, compile=OURS[name].compile)
        v.square().sum().backward()
        finished(optimizer.step)()
        times.append(time.perf_counter() - start)
    seconds = statistics.median(times[1:])  # the first compiles
    return {**LARGEST, "name": name, "seconds": seconds, "process": process_peak()}


if __name__ == "__main__":
    print(json.dumps(largest(sys.argv[1])))
