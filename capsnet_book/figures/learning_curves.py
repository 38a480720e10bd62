"""Learning curves: a training by epochs, and its loss by steps."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.ticker import MaxNLocator

from capsnet.figures.style import INK, QUANTITIES, STYLE, Figure, logarithmic


@mpl.rc_context(STYLE)
def course(records: Sequence[Mapping[str, Any]]) -> Figure:
    """A training epoch by epoch: its loss, its learning rate, and its accuracy where known.

    Args:
        records: the lines of ``metrics.jsonl``, one for each epoch, with "epoch", "loss" and
            "learning_rate". "validation_loss" and "validation_accuracy" are drawn where every
            record has them.
    """
    accuracy = known(records, "validation_accuracy")
    panels = 3 if accuracy else 2
    figure = Figure(1.2 + 1.45 * panels)
    heights = [1.6, 1, 1][:panels]
    losses, rates, *more = figure.subplots(panels, 1, sharex=True, height_ratios=heights)
    epochs = [record["epoch"] for record in records]
    training: dict[str, Any] = {"color": INK, "linewidth": 1.3, "ms": 3}
    validation = training | {"color": QUANTITIES["u"].colour}
    losses.plot(epochs, known(records, "loss"), "o-", label="training images", **training)
    if held := known(records, "validation_loss"):
        losses.plot(epochs, held, "o--", label="validation images", **validation)
        losses.legend()
    logarithmic(losses)
    losses.set_ylabel("loss per image")
    rates.plot(epochs, [1000 * record["learning_rate"] for record in records], "o-", **training)
    rates.set_ylim(bottom=0)
    rates.set_ylabel("learning rate\n× 1000")
    if accuracy:
        more[0].plot(epochs, [100 * value for value in accuracy], "o--", **validation)
        more[0].set_ylabel("validation\naccuracy, %")
    last = figure.axes[-1]
    last.xaxis.set_major_locator(MaxNLocator(integer=True))
    last.set_xlabel("epoch (pass over the training images)")
    figure.align_ylabels()
    return figure


@mpl.rc_context(STYLE)
def loss_curves(records: Sequence[Mapping[str, Any]]) -> Figure:
    """Loss against training step, on a logarithmic axis.

    Args:
        records: one for each point, with "step" and "loss". Its parts "margin" and
            "reconstruction" (weighted) and "validation_loss" are drawn too where every record
            has them.
    """
    curves = {
        "loss": ("total", INK, "-"),
        "margin": ("margin loss alone", QUANTITIES["v"].colour, "-"),
        "reconstruction": ("0.0005 × reconstruction loss", INK, ":"),
        "validation_loss": ("total, validation images", QUANTITIES["u"].colour, "--"),
    }
    steps = [record["step"] for record in records]
    marker = "o" if len(records) < 30 else None
    figure, axes = Figure.single(3.2)
    for key, (name, colour, line) in curves.items():
        if values := known(records, key):
            axes.plot(steps, values, line, color=colour, marker=marker, ms=4, lw=1.3, label=name)
    logarithmic(axes)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("training step (batches seen)")
    axes.set_ylabel("loss per image")
    axes.legend()
    return figure


def known(records: Sequence[Mapping[str, Any]], key: str) -> list[float]:
    """An entry of all records; empty where one lacks it."""
    values = [record.get(key) for record in records]
    return [] if None in values else values  # type: ignore[return-value]
