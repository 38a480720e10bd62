"""How the routed layer's cost grows with batch, children, parents and iterations.

Each size is measured in a process of its own: what the allocator kept of earlier sizes would
make the later ones faster.
"""

from typing import Any

import torch

from benchmarks import peers
from benchmarks.contestants import BATCH, CONTESTANTS, DTYPES, matrix_product, names, routed_layer
from benchmarks.memory import process_peak, run_alone, tensor_peak
from capsnet import CapsuleLayer
from capsnet.bench import measure
from capsnet.fast.routing import routed_capsules

PAPER = {
    "batch_size": BATCH,
    "children": peers.PAPER.in_capsules,
    "parents": peers.PAPER.out_capsules,
    "iterations": 3,
}
# From there, one number at a time.
AXES = {
    "batch_size": (16, 32, 64, 128, 256),
    "children": (1152, 2304, 4608, 8192),
    "parents": (10, 20, 50, 100),
    "iterations": (1, 3, 5, 10),
}
LARGEST = {"batch_size": BATCH, "children": 8192, "parents": 100}
REPEATS = 5


def run(device: torch.device) -> dict[str, Any]:
    """A row for each size of each, the largest layer, and the rate of matrix products.

    The common published approach, û kept whole, as labml renders it; and our fast layer.
    """
    ours = [n for n in names("routed layer", device) if CONTESTANTS[n].network == "fast"][-1]
    product = {}  # FLOP a second, to tell this machine from another
    for precision, dtype in DTYPES.items():
        call, flop = matrix_product(dtype, device)
        product[precision] = flop / (1e-3 * measure(call, device, 7)["median"])
    return {
        "product": product,
        "rows": [row for name in ("labml", ours) for row in grow(name, device)],
        "largest": run_alone(largest, ours, device),
    }


def grow(name: str, device: torch.device) -> list[dict[str, Any]]:
    """One row for each size: milliseconds and peak bytes, training and inference."""
    papers = run_alone(one, name, PAPER, device)  # the paper's size is on every axis
    rows = []
    for axis, values in AXES.items():
        for value in values:
            sizes = PAPER | {axis: value}
            found = papers if sizes == PAPER else run_alone(one, name, sizes, device)
            rows.append({"name": name, "axis": axis, "value": value, **found})
    return rows


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
    layer = CapsuleLayer(LARGEST["children"], 8, LARGEST["parents"], 16).to(device)
    optimizer = torch.optim.Adam(layer.parameters(), fused=True)
    u = 0.3 * torch.randn(LARGEST["batch_size"], LARGEST["children"], 8, device=device)
    u = u.to(DTYPES[CONTESTANTS[name].precision])

    def step() -> None:
        optimizer.zero_grad()
        v = routed_capsules(u, layer.weight, compile=CONTESTANTS[name].compile)
        v.square().sum().backward()
        optimizer.step()

    times = {key: 1e-3 * value for key, value in measure(step, device, REPEATS).items()}
    return {
        **LARGEST,
        "name": name,
        "seconds": times["median"],
        "least": times["min"],
        "most": times["max"],
        "process": process_peak(),
    }
