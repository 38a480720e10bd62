"""Minutes of this machine to an accuracy.

The recipes were chosen on the validation split (the last 10,000 training images); each is then run
once from a fresh process, start-up and compilation included, and counted on the test set.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from capsnet.files import write_json
from experiments.running import LEDGER

# What each recipe was to reach on the test set, in percent, and its options.
RECIPES = {
    "99.0": (99.0, "--epochs 2 --learning-rate 3e-3"),
    "99.5": (99.5, "--epochs 8 --learning-rate 3e-3"),
    "longer": (99.6, "--epochs 20 --learning-rate 3e-3"),
    "99.6": (99.6, "--epochs 16 --learning-rate 1.5e-3 --average 0.998 --all"),
    # To compare with XifengGuo's 50 epochs.
    "longest": (99.6, "--epochs 32 --learning-rate 1.5e-3 --average 0.999 --all"),
}


def run(device: torch.device) -> dict[str, Any]:
    """Every recipe's figures."""
    return {"runs": [train_and_test(name, *recipe, device) for name, recipe in RECIPES.items()]}


def runs_folder(device: torch.device) -> Path:
    """Where the ledger keeps the runs of a kind of device; a CPU's folder has no suffix."""
    return LEDGER / ("time-to-accuracy" + f"-{device.type}" * (device.type != "cpu"))


def train_and_test(name: str, goal: float, options: str, device: torch.device) -> dict[str, Any]:
    """Make a recipe's run, and write its summary and metrics into the ledger."""
    run = runs_folder(device) / name
    command = f"capsnet train --dataset mnist {options}"
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        capsnet(*command.split()[1:], "--device", device.type, "--out", folder)
        seconds = time.perf_counter() - start
        evaluation = Path(folder, "evaluation.json")
        capsnet("evaluate", f"{folder}/weights.safetensors", "--json", str(evaluation))
        counted = json.loads(evaluation.read_text())
        document = {"command": command, "seconds": seconds}
        document |= {key: counted[key] for key in ("correct", "total", "errors", "weights")}
        write_json(run / "summary.json", document, indent=None)
        shutil.copy(Path(folder, "metrics.jsonl"), run)
    return {"name": name, "goal": goal, **document}


def capsnet(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "capsnet", *words], check=True, stdout=sys.stderr)
