"""The ledger's benchmarks as text, for the terminal and for the book."""

from collections.abc import Callable
from typing import Any

from benchmarks.contestants import HEADLINE
from capsnet.figures import columns

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


def speed_group(document: Document, group: str, which: str) -> str:
    times, memory = document[which][group], document["memory"][group]
    ours = times[HEADLINE]["median"] if HEADLINE in times else None
    rows = [
        [
            "",
            "ms",
            "least",
            "most",
            "images/s",
            "60,000 in",
            "slower by",
            "tensors",
            "of theirs",
            "process",
            "of theirs",
            "above rest",
        ]
    ]
    for name, stats in times.items():
        rows.append([
            name,
            *(f"{1e3 * stats[key]:.4g}" for key in ("median", "min", "max")),
            f"{stats['images'] / stats['median']:.0f}",
            f"{60_000 * stats['median'] / stats['images']:.3g} s",
            f"{stats['median'] / ours:.1f} ×" if ours else "",
            f"{memory[name]['tensors'] / 1e6:.0f} MB",
            share_of_theirs(memory, name, "tensors"),
            f"{memory[name]['process'] / 1e9:.2f} GB",
            share_of_theirs(memory, name, "process"),
            f"{(memory[name]['process'] - memory[name]['process_at_rest']) / 1e9:.2f} GB",
        ])  # fmt: skip
    return f"{group}\n{columns(rows)}"


def share_of_theirs(memory: Document, name: str, key: str) -> str:
    """What ours takes of another's; empty where one of the two was not measured (memory.py)."""
    ours, theirs = memory.get(HEADLINE, {}).get(key), memory[name][key]
    return f"{ours / theirs:.2f} ×" if ours and theirs else ""


def speed(document: Document) -> str:
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
        parts += [speed_group(document, group, which) for group in document["memory"]]
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
    start = document["start_up"]
    parts.append(
        f"capsnet train: first batch after {start['cold']:.0f} s, {start['warm']:.0f} s with what "
        "torch.compile kept"
    )
    return "\n\n".join(parts)


def floor(document: Document) -> str:
    return (
        f"{machine_line(document)}\n"
        f"a process takes {document['import'] / 1e9:.2f} GB with torch imported, and "
        f"{document['optimizer'] / 1e9:.2f} GB with the network and one step of Adam, before any "
        "arithmetic of the network"
    )


def growth(document: Document) -> str:
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
                cells += [f"{row[f'{use}_ms']:.0f} ms", f"{row[f'{use}_bytes'] / 1e6:.0f} MB"]
        rows.append([f"{axis.replace('_', ' ')} {value}", *cells])
    big = document["largest"]
    return (
        f"{machine_line(document)}\n{columns(rows)}\n\n"
        f"{big['children']} children, {big['parents']} parents, batch {big['batch_size']}: "
        f"{big['seconds']:.1f} s a step, the process takes {big['process'] / 1e9:.1f} GB"
    )


def accuracy(document: Document) -> str:
    rows = [["goal", "minutes", "test accuracy", "command"]]
    rows += [
        [
            f"{run['goal']} %",
            f"{run['seconds'] / 60:.1f}",
            f"{run['correct'] / run['total']:.2%}",
            run["command"],
        ]
        for run in document["runs"]
    ]
    return columns(rows)


TABLES: dict[str, Callable[[Document], str]] = {
    "speed": speed,
    "floor": floor,
    "growth": growth,
    "accuracy": accuracy,
}
