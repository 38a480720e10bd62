"""Times of the training step, of its parts and of the evaluation, each beside its peers'.

``python -m benchmarks.speed DEVICE [keep]`` prints them as JSON. With ``keep`` the process keeps
the memory that it frees (:mod:`capsnet.fast.allocator`), which a process cannot take back.
"""

import json
import subprocess
import sys
from typing import Any

import torch

from benchmarks import contestants
from benchmarks.contestants import BATCH, Call
from benchmarks.memory import GROUPS, run_alone
from capsnet.bench import measure
from capsnet.device import bfloat16_is_fast
from capsnet.fast.allocator import keep_freed_memory

REPEATS = 7
DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}


def run(device: torch.device) -> dict[str, Any]:
    """All times, as a process starts and with an allocator that keeps freed memory."""
    result: dict[str, Any] = {
        "batch_size": BATCH,
        "flop_per_image": flop_per_image(),
        "times": run_alone("benchmarks.speed", device.type),
    }
    allocator = "from capsnet.fast import allocator; exit(not allocator.keep_freed_memory())"
    if subprocess.run([sys.executable, "-c", allocator], check=False).returncode == 0:
        result["times_keeping_freed_memory"] = run_alone("benchmarks.speed", device.type, "keep")
    return result


def flop_per_image() -> int:
    """Floating-point operations of one training step of the paper's network, for one image."""
    from torch.utils.flop_counter import FlopCounterMode

    from capsnet import CapsNet

    model, image = CapsNet(), torch.rand(1, 1, 28, 28)
    with FlopCounterMode(display=False) as counter:
        out = model(image, torch.zeros(1, dtype=torch.int64))
        (out.lengths.sum() + out.reconstruction.sum()).backward()
    return counter.get_total_flops()


def time_all(
    device: torch.device, batch_size: int = BATCH, repeats: int = REPEATS
) -> dict[str, dict[str, Any]]:
    """{group: {name: seconds of a call, and the images in it}}, all in this process."""

    def seconds(call: Call) -> dict[str, Any]:
        times = measure(call, device, repeats)
        spread = {key: 1e-3 * times[key] for key in ("median", "min", "max")}
        return spread | {"rounds": repeats, "images": batch_size}

    times: dict[str, dict[str, Any]] = {"matrix product": {}, "convolution": {}}
    for name, dtype in DTYPES.items():
        product, flop = contestants.matrix_product(dtype, device)
        times["matrix product"][name] = seconds(product) | {"flop": flop}
        for way in ("direct", "Fourier"):
            if name == "fp32" or bfloat16_is_fast(device):
                torch.compiler.reset()
                call = contestants.convolution(way, dtype, device, batch_size)
                times["convolution"][f"{way}-{name}"] = seconds(call)
    for group, make in GROUPS.items():
        times[group] = {}
        for name in contestants.names(group, device):
            print(f"{group}: {name}", file=sys.stderr, flush=True)
            torch.compiler.reset()
            times[group][name] = seconds(make(name, device, batch_size=batch_size))
    return times


if __name__ == "__main__":
    device, *keep = sys.argv[1:]
    if keep:
        keep_freed_memory()
    print(json.dumps(time_all(torch.device(device))))
