"""Pictures of a training from beginning to end."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from capsnet.figures.style import INK, QUANTITIES, STYLE, Figure


@mpl.rc_context(STYLE)
def course(records: Sequence[Mapping[str, Any]]) -> Figure:
    """A training epoch by epoch: its loss, its learning rate, and its accuracy where known.

    Args:
        records: what ``metrics.jsonl`` holds, one mapping an epoch with "epoch", "loss" and
            "learning_rate"; "validation_loss" and "validation_accuracy" are drawn where every
            record has them.
    """
    if not records:
        raise ValueError("records must hold at least one epoch, got none")

    def column(key: str) -> list[float] | None:
        values = [record.get(key) for record in records]
        return None if None in values else values  # type: ignore[return-value]

    accuracy = column("validation_accuracy")
    panels = 2 if accuracy is None else 3
    figure = Figure(1.2 + 1.45 * panels)
    losses, rates, *more = figure.subplots(
        panels, 1, sharex=True, height_ratios=[1.6, *[1.0] * (panels - 1)]
    )
    epochs = [record["epoch"] for record in records]

    def draw(axes: Any, values: Sequence[float], name: str, colour: str, line: str) -> None:
        axes.plot(
            epochs, values, line, color=colour, label=name, linewidth=1.3, marker="o", markersize=3
        )

    draw(losses, [record["loss"] for record in records], "training images", INK, "-")
    held = column("validation_loss")
    if held is not None:
        draw(losses, held, "validation images", QUANTITIES["u"].colour, "--")
        losses.legend()
    losses.set_yscale("log")
    losses.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    losses.yaxis.set_major_formatter("{x:g}")
    losses.yaxis.set_minor_formatter(NullFormatter())
    losses.set_ylabel("loss per image")
    draw(rates, [1000 * record["learning_rate"] for record in records], "", INK, "-")
    rates.set_ylim(bottom=0)
    rates.set_ylabel("learning rate\n× 1000")
    if accuracy is not None:
        draw(more[0], [100 * v for v in accuracy], "", QUANTITIES["u"].colour, "--")
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
        records: one mapping a point with "step" and "loss"; its parts "margin" and
            "reconstruction" (weighted) and "validation_loss" are drawn too where every record
            has them.
    """
    if not records:
        raise ValueError("records must hold at least one point, got none")
    curves = {
        "loss": ("total", INK, "-"),
        "margin": ("margin loss alone", QUANTITIES["v"].colour, "-"),
        "reconstruction": ("0.0005 × reconstruction loss", INK, ":"),
        "validation_loss": ("total, validation images", QUANTITIES["u"].colour, "--"),
    }
    steps = [record["step"] for record in records]
    marker = "o" if len(records) < 30 else None
    figure = Figure(3.2)
    axes = figure.subplots()
    for key, (name, colour, line) in curves.items():
        if all(record.get(key) is not None for record in records):
            values = [record[key] for record in records]
            axes.plot(
                steps, values, line, color=colour, label=name, linewidth=1.3,
                marker=marker, markersize=4,
            )  # fmt: skip
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("training step (batches seen)")
    axes.set_ylabel("loss per image")
    axes.legend()
    return figure
