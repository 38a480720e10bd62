"""Others' networks trained their own way, beside what was published, for *In the wild*."""

import statistics
from collections.abc import Mapping

from capsnet.text import columns
from capsnet_book.compare import Records
from capsnet_book.ledger import missed, trainings
from capsnet_lab.wild import IMPLEMENTATIONS


def trained_their_way() -> dict[str, Records]:
    """The ledger's trainings of the experiment "published", by seed.

    Those of both budgets, which are as long; of a seed that has both, the one on a GPU.
    """
    on_cpu, on_gpu = (trainings("published", budget) for budget in ("cpu", "gpu"))
    return {row: on_cpu.get(row, {}) | on_gpu.get(row, {}) for row in on_cpu | on_gpu}


def table(published: Mapping[str, Records]) -> str:
    """Test accuracies in percent: what was published, the same network here, after so many of the
    published training's epochs, and ours after as many.

    Args:
        published: as of :func:`trained_their_way`.
    """
    rows: list[tuple[str, ...]] = [("", "published", "epochs", "here", "ours")]
    for name, made in IMPLEMENTATIONS.items():
        if not (made.published or name in published):
            continue
        last = [of.accuracy for of in made.published if of.what == made.published[-1].what]
        told = "/".join(f"{percent:.2f}" for percent in last)
        epochs, here, ours = 0, "", ""
        if name in published:
            epochs = published[name][0]["records"][-1]["epoch"]
            here = accuracy(published[name])
            ours = accuracy(published.get(f"ours, {epochs} epochs", {}))
        whole = made.recipe["epochs"]
        share = str(whole) if epochs == whole else f"{epochs}/{whole}"
        rows.append((name, told, share, here, ours))
    return columns([[row[0], *(cell or "·" for cell in row[1:])] for row in rows])


def commands(published: Mapping[str, Records], *names: str) -> str:
    """What trains each of these networks, with what was published of it and what came of it here.

    Args:
        published: as of :func:`trained_their_way`.
        names: of implementations.
    """
    lines = []
    for name in names:
        made, records = IMPLEMENTATIONS[name], published[name]
        told = f"{made.published[-1].accuracy:.2f} %" if made.published else "nothing"
        epochs = f"after {records[0]['records'][-1]['epoch']} of {made.recipe['epochs']} epochs"
        if records[0]["config"]["precision"] != made.recipe["precision"]:
            epochs += ", in bfloat16"
        if made.recipe["schedule"] == "plateau":  # --as has no rate that the test set leads
            epochs += ", its rate led by the test images"
        lines += [made.command, f"    published: {told}; here: {accuracy(records)} % {epochs}"]
    return "\n".join(lines)


def accuracy(records: Records) -> str:
    """The mean of a row's trainings and, of several, their range, in percent; "" of none."""
    shares = [100 - missed({"test": record["test"]}) for record in records.values()]
    several = f" ({min(shares):.2f}–{max(shares):.2f})" if len(shares) > 1 else ""
    return f"{statistics.mean(shares):.2f}{several}" if shares else ""
