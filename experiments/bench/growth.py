"""How the routed layer's memory grows with the batch and the iterations.

Each size is measured in a process of its own, so that nothing is left of another.
"""

from typing import Any

import torch

from experiments.bench.contestants import BATCH, CONTESTANTS, names, routed_layer
from experiments.bench.memory import run_alone, tensor_peak

# From the paper's sizes, one number at a time.
PAPER = {"batch_size": BATCH, "iterations": 3}
AXES = {"batch_size": (16, 32, 64, 128, 256), "iterations": (1, 3, 5, 10)}


def run(device: torch.device) -> dict[str, Any]:
    """A row for each size: the common published approach, û kept whole, as labml renders it; and
    our fast layer.
    """
    ours = [n for n in names("routed layer", device) if CONTESTANTS[n].network == "fast"][-1]
    return {
        "rows": [
            {"name": name, "axis": axis, "value": value}
            | run_alone(peak_bytes, name, PAPER | {axis: value}, device)
            for name in ("labml", ours)
            for axis, values in AXES.items()
            for value in values
        ]
    }


def peak_bytes(name: str, sizes: dict[str, int], device: torch.device) -> dict[str, int]:
    """Bytes that a call with its gradients takes at most."""
    call = routed_layer(name, device, **sizes)
    for _ in range(3):
        call()
    return {"train_bytes": tensor_peak(call, device)}
