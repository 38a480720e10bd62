"""Learning curves: a training by epochs, its loss by steps, and one image through it."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from capsnet_book.figures.axes import logarithmic
from capsnet_lab.figures.style import FAINT, INK, PAPER, QUANTITIES, STYLE, Figure, array


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
def loss_curves(
    records: Sequence[Mapping[str, float]], mean_image: float, span: int = 20
) -> Figure:
    """The two losses of a training against its step, on a logarithmic axis: raw, and averaged.

    Args:
        records: one for each step, with "step", "margin" and the weighted "reconstruction".
        mean_image: what a decoder would pay that always draws the mean image, a dotted line.
        span: steps over which the bold lines average.
    """
    curves = {
        "margin": ("margin loss", QUANTITIES["v"].colour),
        "reconstruction": ("0.0005 × reconstruction loss", INK),
    }
    steps = [record["step"] for record in records]
    figure, axes = Figure.single(3.2)
    for key, (name, colour) in curves.items():
        values = np.array([record[key] for record in records])
        axes.plot(steps, values, color=colour, linewidth=0.6, alpha=0.4)
        mean = np.convolve(values, np.full(span, 1 / span), "valid")
        middle = (span - 1) // 2
        axes.plot(steps[middle : middle + len(mean)], mean, color=colour, linewidth=1.8, label=name)
    axes.axhline(mean_image, color=FAINT, linestyle=":", label="if the mean image were drawn")
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


@mpl.rc_context(STYLE)
def watched(
    steps: Sequence[int],
    drawings: ArrayLike,
    image: ArrayLike,
    lengths: ArrayLike,
    shares: ArrayLike,
    pulls: ArrayLike,
    label: int,
) -> Figure:
    """One image through a training: what is drawn, all lengths, shares, and the decoder's pull.

    Args:
        steps: when the network was looked at, [m]; the columns.
        drawings: from the true class's capsule, [m, channels, height, width], and
        image: what it should be, [channels, height, width].
        lengths: ‖v‖ of every class's capsule, [m, classes].
        shares: each child's share to the true class, [m, children].
        pulls: the drawing's gradient over the margin loss's, [m].
        label: the true class.
    """
    columns = np.arange(len(steps))
    figure = Figure(5.2)
    heights = [0.36, 1.4, 1.1, 1]
    seen, long, given, pulled = figure.subplots(4, 1, sharex=True, height_ratios=heights)
    for column, picture in enumerate([*array(drawings), array(image)]):
        extent = (column - 0.45, column + 0.45, 0, 1)
        seen.imshow(picture[0], cmap="gray", vmin=0, vmax=1, extent=extent, aspect="auto")
    seen.set_yticks([])
    seen.tick_params(length=0)
    seen.spines[:].set_visible(False)
    seen.set_ylabel("drawing", rotation=0, ha="right", va="center")
    seen.text(len(steps), 1.15, "image", ha="center", fontsize=9)

    values = array(lengths)
    long.plot(columns, np.delete(values, label, axis=1), "-", color=FAINT, linewidth=0.9)
    long.plot(columns, values[:, label], "o-", color=QUANTITIES["v"].colour, ms=4, linewidth=1.5)
    for name, height in (
        (f"the {label}", values[-1, label]),
        ("others", np.delete(values[-1], label).mean()),
    ):
        long.text(len(steps) - 0.75, height, name, va="center", fontsize=9)
    long.set_ylim(0, 1)
    long.set_ylabel("length ‖v‖")

    least, low, middle, high, most = np.quantile(array(shares), [0, 0.05, 0.5, 0.95, 1], axis=1)
    colour = QUANTITIES["c"].colour
    given.axhline(1 / values.shape[1], color=FAINT, linestyle=":", linewidth=1)
    given.vlines(columns, least, most, color=colour, linewidth=1)
    given.vlines(columns, low, high, color=colour, linewidth=4)
    given.plot(columns, middle, "o", color=colour, markerfacecolor=PAPER, markersize=4)
    given.set_ylabel(f"shares c\nto the {label}")

    pulled.plot(columns, 100 * array(pulls), "o-", color=INK, ms=4, linewidth=1.3)
    pulled.set_ylim(bottom=0)
    pulled.set_ylabel("drawing's pull,\n% of margin's")
    pulled.set_xticks(columns, [str(step) for step in steps])
    pulled.set_xlim(-0.5, len(steps) + 0.5)
    pulled.set_xlabel("training step")
    figure.align_ylabels([long, given, pulled])
    return figure
