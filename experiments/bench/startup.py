"""How much processor time a program has used before its own work begins."""

import os
import statistics
import subprocess
import sys
from typing import Any

import torch

ROUNDS = 5
PROGRAMS = {
    "import torch": ["-c", "import torch"],
    "import capsnet": ["-c", "import capsnet"],
    "import capsnet.fast": ["-c", "import capsnet.fast"],
    "capsnet --help": ["-m", "capsnet_lab.cli", "--help"],
    "capsnet predict, missing file": ["-m", "capsnet_lab.cli", "predict", "missing", "missing.png"],
}


def run(device: torch.device) -> dict[str, Any]:
    """{"user_seconds": {program: median}, "ratio": to `import torch`}, the programs in turn."""
    times: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for _ in range(ROUNDS):
        for name, words in PROGRAMS.items():
            times[name].append(user_seconds([sys.executable, *words]))
    medians = {name: round(statistics.median(of), 3) for name, of in times.items()}
    ratios = {name: round(of / medians["import torch"], 3) for name, of in medians.items()}
    return {"rounds": ROUNDS, "user_seconds": medians, "ratio": ratios}


def user_seconds(command: list[str]) -> float:
    """User time of a process and of those that it waited for, whatever its exit code."""
    before = os.times().children_user
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return os.times().children_user - before
