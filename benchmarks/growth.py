"""How the routed layer's cost grows with batch, children, parents and iterations.

Each size is measured in a process of its own: what the allocator kept of earlier sizes would
make the later ones faster. ``python -m benchmarks.growth DEVICE NAME SIZES`` prints one as JSON.
"""

import functools
import json
import sys
from typing import Any

import torch

from benchmarks.contestants import OURS, matrix_product, possible, routed_layer
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


def names(device: torch.device) -> list[str]:
    """The common published approach, û kept whole, as labml renders it; and our fast layer."""
    ours = [name for name in OURS if OURS[name].arrangement == "fast" and possible(name, device)]
    return ["labml", ours[-1]]


def run(device: torch.device) -> dict[str, Any]:
    """A row for each size of each, the largest layer, and the rate of matrix products."""
    contestants = names(device)
    return {
        "product": {
            name: product_rate(dtype, device)
            for name, dtype in {"bf16": torch.bfloat16, "fp32": torch.float32}.items()
        },
        "rows": [row for name in contestants for row in grow(name, device)],
        "largest": run_alone("benchmarks.growth", device.type, contestants[-1], "largest"),
    }


def product_rate(dtype: torch.dtype, device: torch.device) -> float:
    """FLOP a second, to tell this machine from another."""
    product, flop = matrix_product(dtype, device)
    return flop / (1e-3 * measure(product, device, 7)["median"])


def grow(name: str, device: torch.device) -> list[dict[str, Any]]:
    """One row for each size: milliseconds and peak bytes, training and inference."""

    @functools.cache  # the paper's size is on every axis
    def point(sizes: str) -> dict[str, Any]:
        return run_alone("benchmarks.growth", device.type, name, sizes)

    return [
        {"name": name, "axis": axis, "value": value, **point(json.dumps(PAPER | {axis: value}))}
        for axis, values in AXES.items()
        for value in values
    ]


def one(name: str, sizes: dict[str, int], device: torch.device) -> dict[str, Any]:
    """The figures of one size."""
    row: dict[str, Any] = {}
    for use in ("train", "infer"):
        torch.compiler.reset()
        call = routed_layer(name, device, **sizes, train=use == "train")
        times = measure(call, device, REPEATS)
        row |= {f"{use}_ms": times["median"], f"{use}_least": times["min"]}
        row |= {f"{use}_most": times["max"], f"{use}_bytes": tensor_peak(call, device)}
    return row


def largest(name: str, device: torch.device) -> dict[str, Any]:
    """Training steps of the largest layer with Adam, and what this process took."""
    from capsnet import CapsuleLayer
    from capsnet.fast.routing import routed_capsules

    layer = CapsuleLayer(LARGEST["children"], 8, LARGEST["parents"], 16).to(device)
    optimizer = torch.optim.Adam(layer.parameters(), fused=True)
    u = 0.3 * torch.randn(LARGEST["batch_size"], LARGEST["children"], 8, device=device)
    if OURS[name].precision == "bf16":
        u = u.bfloat16()

    def step() -> None:
        optimizer.zero_grad()
        v = routed_capsules(u, layer.weight, compile=OURS[name].compile)
        v.square().sum().backward()
        optimizer.step()

    times = measure(step, device, REPEATS)
    return {
        **LARGEST,
        "name": name,
        "seconds": 1e-3 * times["median"],
        "least": 1e-3 * times["min"],
        "most": 1e-3 * times["max"],
        "process": process_peak(),
    }


if __name__ == "__main__":
    device_name, name, sizes = sys.argv[1:]
    device = torch.device(device_name)
    row = largest(name, device) if sizes == "largest" else one(name, json.loads(sizes), device)
    print(json.dumps(row))
