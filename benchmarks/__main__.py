"""``make bench``: measure, print the tables, write ``results/bench/*.json``.

``python -m benchmarks [speed] [floor] [growth] [accuracy]`` does a part of it. Leave the machine
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
from benchmarks.contestants import BATCH, DEVICE, HALF_WAY, NAMES, possible
from benchmarks.tables import TABLES
from capsnet import CapsNet
from capsnet.checkpoint import write_atomically
from capsnet.machine import describe_machine

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
    if sys.platform.startswith("linux"):
        result["times_keeping_freed_memory"] = time_all(keep=True)
    result["memory"] = {
        group: {name: memory.in_own_process(group, name) for name in names(group)}
        for group in memory.GROUPS
    }
    result["start_up"] = accuracy.start_up()
    return result


def names(group: str) -> list[str]:
    """Who takes part in a group."""
    extra = [HALF_WAY] if group == "training step" else []
    return [name for name in [*NAMES, *extra] if possible(name)]


def grow() -> dict[str, Any]:
    contestants = growth.names()
    return {
        "rows": [row for name in contestants for row in growth.grow(name)],
        "largest": growth.train_the_largest(contestants[-1]),
    }


def floor() -> dict[str, Any]:
    return memory.run_alone("benchmarks.memory", "floor")


PARTS = {"speed": speed, "floor": floor, "growth": grow, "accuracy": accuracy.run}


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
