"""Minutes of this machine to an accuracy, and seconds to the first batch.

The recipes were chosen on the validation split (the last 10,000 training images); each is then run
once from a fresh process, start-up and compilation included, and counted on the test set. A run
that is in ``results`` from such a machine is not run again: delete its folder to have it anew.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from capsnet.checkpoint import write_json
from capsnet.device import describe_machine
from experiments.running import same_machine

RUNS = Path("results") / "time-to-accuracy"
# What each recipe was to reach on the test set, in percent, and its options.
RECIPES: dict[str, tuple[float, list[str]]] = {
    "99.0": (99.0, ["--epochs", "2", "--learning-rate", "3e-3"]),
    "99.5": (99.5, ["--epochs", "8", "--learning-rate", "3e-3"]),
    "longer": (99.6, ["--epochs", "20", "--learning-rate", "3e-3"]),
    "99.6": (
        99.6,
        ["--epochs", "16", "--learning-rate", "1.5e-3", "--average", "0.998", "--all"],
    ),
    # Beside XifengGuo's 50 epochs.
    "longest": (
        99.6,
        ["--epochs", "32", "--learning-rate", "1.5e-3", "--average", "0.999", "--all"],
    ),
}


def run(device: torch.device) -> dict[str, Any]:
    """Every recipe's figures, running those that are missing, and how soon a training begins."""
    return {
        "runs": [one(name, *recipe, device) for name, recipe in RECIPES.items()],
        "first_batch": statistics.median(first_batch(device) for _ in range(3)),
    }


def one(name: str, goal: float, options: list[str], device: torch.device) -> dict[str, Any]:
    summary = RUNS / name / "summary.json"
    train = ["capsnet", "train", "--dataset", "mnist", *options]
    if summary.exists():
        document: dict[str, Any] = json.loads(summary.read_text())
        here = same_machine(document["weights"]["machine"], describe_machine(device))
        if here and document["command"] == " ".join(train):
            return {"name": name, "goal": goal, **document}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        start = time.perf_counter()
        subprocess.run(capsnet(*train[1:], "--device", device.type, "--out", str(out)), check=True)
        seconds = time.perf_counter() - start
        evaluation = out / "evaluation.json"
        weights = str(out / "weights.safetensors")
        subprocess.run(
            capsnet("evaluate", weights, "--json", str(evaluation)), check=True, stdout=sys.stderr
        )
        counted = json.loads(evaluation.read_text())
        document = {
            "command": " ".join(train),
            "seconds": seconds,
            "correct": counted["correct"],
            "total": counted["total"],
            "errors": counted["errors"],
            "weights": counted["weights"],
        }
        summary.parent.mkdir(parents=True, exist_ok=True)
        (summary.parent / "metrics.jsonl").write_text((out / "metrics.jsonl").read_text())
    write_json(summary, document, indent=None)
    return {"name": name, "goal": goal, **document}


def first_batch(device: torch.device) -> float:
    """Seconds from the call of ``capsnet train`` to its first batch, which is not compiled."""
    with tempfile.TemporaryDirectory() as out:
        start = time.perf_counter()
        process = subprocess.Popen(
            capsnet("train", "--dataset", "mnist", "--device", device.type, "--out", out),
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        assert process.stderr is not None
        lines = []
        try:
            for line in process.stderr:
                lines.append(line)
                if "first batch" in line:
                    return time.perf_counter() - start
        finally:
            process.kill()
            process.wait()
            process.stderr.close()
    raise RuntimeError(f"capsnet train ended before its first batch:\n{''.join(lines)}")


def capsnet(*words: str) -> list[str]:
    return [sys.executable, "-m", "capsnet", *words]
