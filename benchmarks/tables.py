"""The ledger's benchmarks as text, for the terminal."""

from collections.abc import Callable
from typing import Any

import torch

from benchmarks.contestants import headline
from capsnet.text import columns

Document = dict[str, Any]


def rate(times: Document, dtype: str) -> float:
    """FLOP a second of the matrix product measured in the same run."""
    product = times["matrix product"][dtype]
    return product["flop"] / product["median"]


def share_of_the_rate(document: Document, name: str, which: str = "times") -> float:
    """The network's arithmetic over the step's time, as a share of the matrix product's rate."""
    times = document[which]
    step = times["training step"][name]
    dtype = "bf16" if "bf16" in name else "fp32"
    return document["flop_per_image"] * step["images"] / step["median"] / rate(times, dtype)


def machine_line(document: Document) -> str:
    """What it was measured on."""
    machine = document["machine"]
    return (
        f"{machine['device']}, {machine['processor']}, {machine['threads']} threads, "
        f"torch {machine['torch']}"
    )


def speed_group(times: Document, device: torch.device) -> str:
    ours = times[headline(times, device)]["median"]
    rows = [["", "ms", "least", "most", "images/s", "60,000 in", "slower by"]]
    for name, stats in times.items():
        rows.append([
            name,
            *(f"{1e3 * stats[key]:.4g}" for key in ("median", "min", "max")),
            f"{stats['images'] / stats['median']:.0f}",
            f"{60_000 * stats['median'] / stats['images']:.3g} s",
            f"{stats['median'] / ours:.1f} ×",
        ])  # fmt: skip
    return columns(rows)


def speed(document: Document, device: torch.device) -> str:
    parts = [f"{machine_line(document)}, batch {document['batch_size']}"]
    titles = {
        "times": "As a process starts",
        "times_keeping_freed_memory": "With an allocator that keeps freed memory, for all",
    }
    for which, title in titles.items():
        if which not in document:
            continue
        product = ", ".join(
            f"{dtype} {rate(document[which], dtype) / 1e9:.0f} GFLOP/s"
            for dtype in ("bf16", "fp32")
        )
        parts.append(f"{title}. Matrix product: {product}")
        groups = ("training step", "evaluation", "routed layer")
        parts += [f"{group}\n{speed_group(document[which][group], device)}" for group in groups]
        names = document[which]["training step"]
        parts.append(
            "plain network's arithmetic over time, against the matrix product's rate (over 100 % "
            "where fewer multiplications do)\n"
            + columns([[n, f"{share_of_the_rate(document, n, which):.0%}"] for n in names])
        )
        parts.append(
            "second convolution alone, with both gradients\n"
            + columns(
                [
                    [name, f"{1e3 * stats['median']:.0f} ms"]
                    for name, stats in document[which]["convolution"].items()
                ]
            )
        )
    return "\n\n".join(parts)


def memory(document: Document, device: torch.device) -> str:
    parts = [f"{machine_line(document)}, batch {document['batch_size']}"]
    for group, peaks in document["peaks"].items():
        ours = peaks[headline(peaks, device)]
        rows = [["", "tensors", "ours", "process", "ours", "above rest"]]
        for name, peak in peaks.items():
            rows.append([
                name,
                f"{peak['tensors'] / 1e6:.0f} MB",
                f"{ours['tensors'] / peak['tensors']:.2f} ×",
                gigabytes(peak["process"]),
                f"{ours['process'] / peak['process']:.2f} ×" if peak["process"] else "",
                gigabytes(peak["process"] - peak["process_at_rest"]),
            ])  # fmt: skip
        parts.append(f"{group}\n{columns(rows)}")
    floor = document["floor"]
    rows = [
        ["torch imported", gigabytes(floor["import"])],
        ["and one step of Adam with gradients of zero", gigabytes(floor["optimizer"])],
    ]
    parts.append(f"before any arithmetic of the network\n{columns(rows)}")
    return "\n\n".join(parts)


def gigabytes(count: int) -> str:
    """Empty where the system does not tell (memory.py)."""
    return f"{count / 1e9:.2f} GB" if count else ""


def growth(document: Document, device: torch.device) -> str:
    names = list(dict.fromkeys(row["name"] for row in document["rows"]))
    rows = [
        ["", *(f"{n}: {what}" for n in names for what in ("train", "memory", "infer", "memory"))]
    ]
    of = {(row["name"], row["axis"], row["value"]): row for row in document["rows"]}
    for axis, value in dict.fromkeys((row["axis"], row["value"]) for row in document["rows"]):
        cells = []
        for name in names:
            row = of[name, axis, value]
            for use in ("train", "infer"):
                least, most = row[f"{use}_least"], row[f"{use}_most"]
                cells.append(f"{row[f'{use}_ms']:.0f} ({least:.0f}–{most:.0f}) ms")
                cells.append(f"{row[f'{use}_bytes'] / 1e6:.0f} MB")
        rows.append([f"{axis.replace('_', ' ')} {value}", *cells])
    big = document["largest"]
    product = ", ".join(f"{k} {rate / 1e9:.0f} GFLOP/s" for k, rate in document["product"].items())
    return (
        f"{machine_line(document)}. Matrix product: {product}\n{columns(rows)}\n\n"
        f"{big['children']} children, {big['parents']} parents, batch {big['batch_size']}: "
        f"{big['seconds']:.1f} s a step, {gigabytes(big['process'])} the process"
    )


def accuracy(document: Document, device: torch.device) -> str:
    rows = [["goal", "", "minutes", "test accuracy", "command"]]
    rows += [
        [
            f"{run['goal']} %",
            "reached" if 100 * run["correct"] >= run["goal"] * run["total"] else "missed",
            f"{run['seconds'] / 60:.1f}",
            f"{run['correct'] / run['total']:.2%}",
            run["command"],
        ]
        for run in document["runs"]
    ]
    start = f"capsnet train: first batch, not compiled, after {document['first_batch']:.1f} s"
    return f"{machine_line(document)}\n{columns(rows)}\n\n{start}"


TABLES: dict[str, Callable[[Document, torch.device], str]] = {
    "speed": speed,
    "memory": memory,
    "growth": growth,
    "accuracy": accuracy,
}
