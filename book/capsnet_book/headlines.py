"""Others' networks trained with their own recipes, compared with what was published."""

import statistics
from collections.abc import Mapping

from capsnet.text import columns
from capsnet_book.ledger import missed, trainings
from capsnet_book.statistics import Records
from capsnet_lab.wild import IMPLEMENTATIONS


def published_trainings() -> dict[str, Records]:
    """The ledger's runs of the experiment "published", by row and seed.

    The two budgets train for as long; of a seed that has both, the run on a GPU.
    """
    on_cpu, on_gpu = (trainings("published", budget) for budget in ("cpu", "gpu"))
    return {row: on_cpu.get(row, {}) | on_gpu.get(row, {}) for row in on_cpu | on_gpu}


def accuracy_table(runs: Mapping[str, Records]) -> str:
    """Test accuracies in percent: published; the same network here, after so many of the published
    epochs; and ours after as many. `runs` are those of :func:`published_trainings`.
    """
    rows: list[tuple[str, ...]] = [("", "published", "epochs", "here", "ours")]
    for name, made in IMPLEMENTATIONS.items():
        if name not in runs:
            continue
        last = [of.accuracy for of in made.published if of.what == made.published[-1].what]
        published = "/".join(f"{percent:.2f}" for percent in last)
        epochs = runs[name][0]["records"][-1]["epoch"]
        here = accuracy(runs[name])
        ours = accuracy(runs.get(f"ours, {epochs} epochs", {}))
        of_all = made.recipe["epochs"]
        share = str(of_all) if epochs == of_all else f"{epochs}/{of_all}"
        rows.append((name, published, share, here, ours))
    return columns([[row[0], *(cell or "·" for cell in row[1:])] for row in rows])


def mean_accuracy(runs: Records) -> float:
    """The mean test accuracy of a row's runs in percent."""
    return 100 - statistics.mean(missed(record, "test") for record in runs.values())


def accuracy(runs: Records) -> str:
    """The mean of a row's test accuracies in percent and, of several, their range; "" of none."""
    shares = [100 - missed(record, "test") for record in runs.values()]
    several = f" ({min(shares):.2f}–{max(shares):.2f})" if len(shares) > 1 else ""
    return f"{mean_accuracy(runs):.2f}{several}" if shares else ""
