"""``make bench``: measure, print the tables, write ``results/bench/*.json``.

``python -m benchmarks [speed] [memory] [growth] [accuracy]`` does a part of it. Leave the machine
alone while it runs: ratios of times measured one after the other are only as good as that.
"""

import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

from benchmarks import accuracy, growth, memory
from benchmarks.contestants import BATCH, DEVICE
from benchmarks.tables import TABLES
from capsnet import CapsNet
from capsnet.checkpoint import write_atomically
from capsnet.device import describe_machine

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "results" / "bench"


def machine() -> dict[str, Any]:
    return describe_machine(DEVICE) | {"system": platform.system()}


def flop_per_image() -> int:
    """Floating-point operations of one training step of the paper's network, for one image."""
    from torch.utils.flop_counter import FlopCounterMode

    model, image = CapsNet(), torch.rand(1, 1, 28, 28)
    with FlopCounterMode(display=False) as counter:
        out = model(image, torch.zeros(1, dtype=torch.int64))
        (out.lengths.sum() + out.reconstruction.sum()).backward()
    return counter.get_total_flops()


def time_all(keep: bool) -> dict[str, dict[str, Any]]:
    """{group: {name: times in seconds}} from pytest-benchmark, in one process."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "times.json"
        command = [
            sys.executable, "-m", "pytest", "benchmarks", "-q", "--benchmark-only",
            "--benchmark-disable-gc", "--benchmark-columns=median,min,max", "-p", "no:nbval",
            f"--benchmark-json={report}", *(["--keep-freed-memory"] if keep else []),
        ]  # fmt: skip
        subprocess.run(command, check=True, cwd=ROOT, stdout=sys.stderr)
        benchmarks = json.loads(report.read_text())["benchmarks"]
    times: dict[str, dict[str, Any]] = {}
    for row in benchmarks:
        stats = {key: row["stats"][key] for key in ("median", "min", "max", "rounds")}
        extra = row["extra_info"]
        name = extra.pop("name", None) or row["param"]
        times.setdefault(row["group"], {})[name] = stats | extra
    return times


def speed() -> dict[str, Any]:
    result: dict[str, Any] = {
        "batch_size": BATCH,
        "flop_per_image": flop_per_image(),
        "times": time_all(keep=False),
    }
    allocator = "from capsnet.fast import allocator; exit(not allocator.keep_freed_memory())"
    if subprocess.run([sys.executable, "-c", allocator], check=False).returncode == 0:
        result["times_keeping_freed_memory"] = time_all(keep=True)
    return result


PARTS = {"speed": speed, "memory": memory.run, "growth": growth.run, "accuracy": accuracy.run}


def main(words: list[str]) -> None:
    unknown = set(words) - set(PARTS)
    if unknown:
        sys.exit(f"benchmarks: parts are {', '.join(PARTS)}, got {', '.join(sorted(unknown))}")
    os.chdir(ROOT)
    for part in words or PARTS:
        document = {"machine": machine(), **PARTS[part]()}
        text = json.dumps(document, indent=1) + "\n"
        FOLDER.mkdir(parents=True, exist_ok=True)
        write_atomically(FOLDER / f"{part}-{DEVICE.type}.json", text.encode())
        print(TABLES[part](document), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
