"""Training step by step: the losses, and one image."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from capsnet_book.figures.helpers import C, V, logarithmic, stacked, styled
from capsnet_lab.figures.style import FAINT, INK, PAPER, Figure, array

SPAN = 20  # steps that a point of a bold line averages


@styled
def loss_curves(records: Sequence[Mapping[str, float]], mean_image: float) -> Figure:
    """The two losses of a training run against its step, logarithmic: raw, and averaged.

    `records` have "step", "margin" and the weighted "reconstruction"; the bold lines average over
    SPAN steps. The dotted line is the loss of a decoder that always returns the mean image.
    """
    curves = {
        "margin": ("margin loss", V),
        "reconstruction": ("0.0005 × reconstruction loss", INK),
    }
    steps = [record["step"] for record in records]
    figure, axes = Figure.single(3.2)
    for key, (name, colour) in curves.items():
        values = np.array([record[key] for record in records])
        axes.plot(steps, values, color=colour, linewidth=0.6, alpha=0.4)
        mean = np.convolve(values, np.full(SPAN, 1 / SPAN), "valid")
        middle = (SPAN - 1) // 2
        axes.plot(steps[middle : middle + len(mean)], mean, color=colour, linewidth=1.8, label=name)
    axes.axhline(mean_image, color=FAINT, linestyle=":", label="loss of the mean image")
    logarithmic(axes, "y")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set(xlabel="training step (batches seen)", ylabel="loss per image")
    axes.legend()
    return figure


@styled
def image_in_training(
    steps: Sequence[int],
    reconstructions: ArrayLike,
    image: ArrayLike,
    lengths: ArrayLike,
    shares: ArrayLike,
    ratios: ArrayLike,
    label: int,
) -> Figure:
    """One image through training: reconstruction, lengths, coupling coefficients, gradients.

    The columns are the m `steps` at which the network was looked at, with the reconstruction of the
    true class's capsule [m, channels, height, width], the lengths ‖v‖ of all capsules [m, classes],
    each child's coupling coefficient to the true class [m, children], and the reconstruction loss's
    gradient over the margin loss's [m].
    """
    columns, values = np.arange(len(steps)), array(lengths)
    figure, panels = stacked(5.2, 4, height_ratios=[0.36, 1.4, 1.1, 1])
    picture_axes, length_axes, coupling_axes, gradient_axes = panels
    for column, picture in enumerate([*array(reconstructions), array(image)]):
        extent = (column - 0.45, column + 0.45, 0, 1)
        picture_axes.imshow(picture[0], cmap="gray", vmin=0, vmax=1, extent=extent, aspect="auto")
    picture_axes.set_yticks([])
    picture_axes.tick_params(length=0)
    picture_axes.spines[:].set_visible(False)
    picture_axes.set_ylabel("reconstruction", rotation=0, ha="right", va="center")
    picture_axes.text(len(steps), 1.15, "image", ha="center", fontsize=9)

    others = np.delete(values, label, axis=1)
    length_axes.plot(columns, others, "-", color=FAINT, linewidth=0.9)
    length_axes.plot(columns, values[:, label], "o-", color=V, ms=4, linewidth=1.5)
    right_of_lines = len(steps) - 0.75
    length_axes.text(right_of_lines, values[-1, label], f"the {label}", va="center", fontsize=9)
    length_axes.text(right_of_lines, others[-1].mean(), "others", va="center", fontsize=9)
    length_axes.set(ylim=(0, 1), ylabel="length ‖v‖")

    lowest, low, middle, high, highest = np.quantile(array(shares), [0, 0.05, 0.5, 0.95, 1], axis=1)
    coupling_axes.axhline(1 / values.shape[1], color=FAINT, linestyle=":", linewidth=1)
    coupling_axes.vlines(columns, lowest, highest, color=C, linewidth=1)
    coupling_axes.vlines(columns, low, high, color=C, linewidth=4)
    coupling_axes.plot(columns, middle, "o", color=C, markerfacecolor=PAPER, markersize=4)
    coupling_axes.set_ylabel(f"shares c\nto the {label}")

    gradient_axes.plot(columns, 100 * array(ratios), "o-", color=INK, ms=4, linewidth=1.3)
    gradient_axes.set(ylim=(0, None), ylabel="gradient,\n% of margin's")
    gradient_axes.set_xticks(columns, [str(step) for step in steps])
    gradient_axes.set(xlim=(-0.5, len(steps) + 0.5), xlabel="training step")
    figure.align_ylabels([length_axes, coupling_axes, gradient_axes])
    return figure
