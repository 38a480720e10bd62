"""Minutes of this machine to an accuracy.

The recipes were chosen on the validation split (the last 10,000 training images); each is then run
once from a fresh process, start-up and compilation included, and counted on the test set. A run
that is in ``results`` from such a machine is not run again: delete its folder to have it anew.
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

from capsnet.device import describe_machine
from capsnet.files import write_json
from experiments.running import LEDGER

RUNS = LEDGER / "time-to-accuracy"
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
    """Every recipe's figures, running those that are missing."""
    return {"runs": [train_and_test(name, *recipe, device) for name, recipe in RECIPES.items()]}


def train_and_test(name: str, goal: float, options: str, device: torch.device) -> dict[str, Any]:
    """A recipe's figures, of the ledger where they are of such a machine."""
    summary = RUNS / name / "summary.json"
    command = f"capsnet train --dataset mnist {options}"
    if summary.exists():
        document: dict[str, Any] = json.loads(summary.read_text())
        here = document["weights"]["machine"].items() <= describe_machine(device).items()
        if here and document["command"] == command:
            return {"name": name, "goal": goal, **document}
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        train = *command.split()[1:], "--device", device.type, "--out", folder
        subprocess.run(capsnet(*train), check=True)
        seconds = time.perf_counter() - start
        evaluation = Path(folder, "evaluation.json")
        evaluate = "evaluate", f"{folder}/weights.safetensors", "--json", str(evaluation)
        subprocess.run(capsnet(*evaluate), check=True, stdout=sys.stderr)
        counted = json.loads(evaluation.read_text())
        document = {"command": command, "seconds": seconds}
        document |= {key: counted[key] for key in ("correct", "total", "errors", "weights")}
        summary.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(Path(folder, "metrics.jsonl"), summary.parent)
    write_json(summary, document, indent=None)
    return {"name": name, "goal": goal, **document}


def capsnet(*words: str) -> list[str]:
    return [sys.executable, "-m", "capsnet", *words]
