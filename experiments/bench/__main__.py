"""``make bench``: measure, and write ``results/bench/*.json``.

``python -m experiments.bench PART …`` does a part of it; "launches" takes a GPU, and "accuracy"
hours. Leave the machine alone while it runs: ratios of times measured one after the other are only
as good as that.
"""

import json
import os
import platform
import sys
from collections.abc import Callable
from typing import Any

import torch

from capsnet.device import describe_machine, pick_device
from capsnet.files import write_json
from experiments.bench import accuracy, counts, memory, routings, speed
from experiments.running import LEDGER, ROOT

FOLDER = LEDGER / "bench"
PARTS: dict[str, Callable[[torch.device], dict[str, Any]]] = {
    "speed": speed.run,
    "launches": speed.time_launches,
    "memory": memory.run,
    "growth": memory.growth,
    "counts": counts.run,
    "accuracy": accuracy.run,
    "routings": routings.run,
}


def main(words: list[str]) -> None:
    unknown = set(words) - set(PARTS)
    if unknown:
        got = ", ".join(sorted(unknown))
        sys.exit(f"experiments.bench: parts are {', '.join(PARTS)}, got {got}")
    os.chdir(ROOT)
    device = pick_device()
    machine = describe_machine(device) | {"system": platform.system()}
    excluded = {"accuracy"} if device.type == "cuda" else {"accuracy", "launches"}
    for part in words or [part for part in PARTS if part not in excluded]:
        try:
            document = {"machine": machine, **PARTS[part](device)}
        except ValueError as error:  # of a part that this machine cannot do
            sys.exit(f"experiments.bench: {error}")
        write_json(FOLDER / f"{part}-{device.type}.json", document)
        print(json.dumps(document, indent=1), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
