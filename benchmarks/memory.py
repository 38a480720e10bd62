"""Peak memory of a call: of its tensors, and of a process that does nothing else.

Freed memory goes back to the system, as it does where nobody calls ``keep_freed_memory``.
``python -m benchmarks.memory DEVICE GROUP NAME`` prints a process's figures as JSON, and
``python -m benchmarks.memory DEVICE floor`` what a process takes before any arithmetic of a
network.
"""

import itertools
import json
import operator
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

from benchmarks import contestants
from benchmarks.contestants import Call

GROUPS = {
    "training step": contestants.training_step,
    "evaluation": contestants.evaluation,
    "routed layer": contestants.routed_layer,
}


def run(device: torch.device) -> dict[str, Any]:
    """Every contestant's figures, and what none goes below."""
    return {
        "batch_size": contestants.BATCH,
        "peaks": {
            group: {
                name: run_alone("benchmarks.memory", device.type, group, name)
                for name in contestants.names(group, device)
            }
            for group in GROUPS
        },
        "floor": run_alone("benchmarks.memory", device.type, "floor"),
    }


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


def run_alone(*words: str) -> dict[str, Any]:
    """The JSON that a module prints last, run in a fresh interpreter; its stderr is ours.

    Raises:
        CalledProcessError: it failed.
    """
    print(*words, file=sys.stderr, flush=True)
    command = [sys.executable, "-m", *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def measure(device: torch.device, group: str, name: str) -> dict[str, Any]:
    at_rest = process_peak()
    call = GROUPS[group](name, device)
    for _ in range(3):
        call()
    process = process_peak()
    transient = tensor_peak(call, device)
    kept = 0
    if group == "training step":
        # Parameters and the optimiser's two averages outlive the call. Gradients do too, but the
        # next call frees them before it makes its own, which tensor_peak sees on a GPU only.
        kept = (16 if device.type == "cuda" else 12) * parameters(name)
    return {
        "tensors": transient + kept,
        "process": process,
        "process_at_rest": at_rest,
    }


def floor() -> dict[str, int]:
    """What a process that trains cannot go below, however little memory its arithmetic needs.

    Returns:
        bytes: "import", with torch imported; "optimizer", when one step of Adam has been made with
        the paper's network and gradients of zero.
    """
    from capsnet import CapsNet
    from capsnet.training import TrainingConfig, make_optimizer

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


def parameters(name: str) -> int:
    from benchmarks import peers
    from capsnet import CapsNet

    network = CapsNet() if name.startswith("capsnet") else peers.PEERS[name.split(",")[0]]()
    return sum(parameter.numel() for parameter in network.parameters())


if __name__ == "__main__":
    device, *words = sys.argv[1:]
    print(json.dumps(floor() if words == ["floor"] else measure(torch.device(device), *words)))
