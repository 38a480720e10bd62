"""How the routed layer's cost grows with batch, children, parents and iterations.

Each size is measured in a process of its own: what the allocator kept of earlier sizes would
make the later ones faster. ``python -m benchmarks.growth NAME SIZES`` prints one as JSON.
"""

import functools
import json
import statistics
import sys
import time
from typing import Any

import torch

from benchmarks.contestants import (
    DEVICE,
    OURS,
    finished,
    headline,
    matrix_product,
    possible,
    routed_layer,
)
from benchmarks.memory import process_peak, run_alone, tensor_peak
from capsnet.bench import measure

PAPER = {"batch_size": 128, "children": 1152, "parents": 10, "iterations": 3}
# From there, one number at a time.
AXES = {
    "batch_size": (16, 32, 64, 128, 256),
    "children": (1152, 2304, 4608, 8192),
    "parents": (10, 20, 50, 100),
    "iterations": (1, 3, 5, 10),
}
LARGEST = {"batch_size": 128, "children": 8192, "parents": 100}
REPEATS = 5


def names() -> list[str]:
    """The common published approach, û kept whole, as labml renders it; and ours."""
    return ["labml", headline(filter(possible, OURS), "fast")]


def run() -> dict[str, Any]:
    """A row for each size of each, the largest layer, and the rate of matrix products."""
    contestants = names()
    return {
        "product": {
            name: product_rate(dtype)
            for name, dtype in {"bf16": torch.bfloat16, "fp32": torch.float32}.items()
        },
        "rows": [row for name in contestants for row in grow(name)],
        "largest": run_alone("benchmarks.growth", contestants[-1], "largest"),
    }


def product_rate(dtype: torch.dtype) -> float:
    """FLOP a second, to tell this machine from another."""
    product, flop = matrix_product(dtype)
    return flop / (1e-3 * measure(product, DEVICE, 7)["median"])


def grow(name: str) -> list[dict[str, Any]]:
    """One row for each size: milliseconds and peak bytes, training and inference."""

    @functools.cache  # the paper's size is on every axis
    def point(sizes: str) -> dict[str, Any]:
        return run_alone("benchmarks.growth", name, sizes)

    return [
        {"name": name, "axis": axis, "value": value, **point(json.dumps(PAPER | {axis: value}))}
        for axis, values in AXES.items()
        for value in values
    ]


def one(name: str, sizes: dict[str, int]) -> dict[str, Any]:
    """The figures of one size."""
    row: dict[str, Any] = {}
    for use in ("train", "infer"):
        torch.compiler.reset()
        call = routed_layer(name, **sizes, train=use == "train")
        times = measure(call, DEVICE, REPEATS)
        row |= {f"{use}_ms": times["median"], f"{use}_least": times["min"]}
        row |= {f"{use}_most": times["max"], f"{use}_bytes": tensor_peak(call)}
    return row


def largest(name: str) -> dict[str, Any]:
    """Training steps of the largest layer with Adam, and what this process took."""
    from capsnet import CapsuleLayer
    from capsnet.fast.routing import routed_capsules

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
    times = times[1:]  # the first compiles
    return {
        **LARGEST,
        "name": name,
        "seconds": statistics.median(times),
        "least": min(times),
        "most": max(times),
        "process": process_peak(),
    }


if __name__ == "__main__":
    name, what = sys.argv[1:]
    print(json.dumps(largest(name) if what == "largest" else one(name, json.loads(what))))
