"""Others' networks trained with their own recipes, compared with what was published."""

import statistics
from collections.abc import Mapping

from capsnet.text import columns
from capsnet_book.ledger import missed, trainings
from capsnet_book.statistics import Records
from capsnet_lab.wild import IMPLEMENTATIONS


def published_trainings() -> dict[str, Records]:
    """The ledger's runs of the experiment "published", by row and seed.

    Both budgets train equally long. Where a seed has a run of each, the one on a GPU counts.
    """
    on_cpu, on_gpu = (trainings("published", budget) for budget in ("cpu", "gpu"))
    return {row: on_cpu.get(row, {}) | on_gpu.get(row, {}) for row in on_cpu | on_gpu}


def accuracy_table(runs: Mapping[str, Records]) -> str:
    """A table of test accuracies in percent: those published, those of the same network here after
    some or all of its epochs, and those of our network after as many epochs.

    `runs` are those of :func:`published_trainings`.
    """
    rows: list[tuple[str, ...]] = [
        ("", "published", "epochs", "their recipe, repeated", "this book's recipe")
    ]
    for name, network in IMPLEMENTATIONS.items():
        if name not in runs:
            continue
        results = network.published
        last = [result.accuracy for result in results if result.what == results[-1].what]
        published = "/".join(f"{percent:.2f}" for percent in last)
        epochs, all_epochs = runs[name][0]["records"][-1]["epoch"], network.recipe["epochs"]
        here = accuracy(runs[name])
        ours = accuracy(runs.get(f"ours, {epochs} epochs", {})) or "·"
        share = str(epochs) if epochs == all_epochs else f"{epochs}/{all_epochs}"
        rows.append((name, published or "·", share, here, ours))
    return columns(rows)


def mean_accuracy(runs: Records) -> float:
    """The mean test accuracy of a row's runs in percent."""
    return 100 - statistics.mean(missed(record, "test") for record in runs.values())


def accuracy(runs: Records) -> str:
    """A row's mean test accuracy in percent, with the range if there are several; "" if none."""
    shares = [100 - missed(record, "test") for record in runs.values()]
    several = f" ({min(shares):.2f}–{max(shares):.2f})" if len(shares) > 1 else ""
    return f"{mean_accuracy(runs):.2f}{several}" if shares else ""
