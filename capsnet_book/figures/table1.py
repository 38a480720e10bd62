"""Pictures of a table of trainings: what a change is worth, and which images are missed by many."""

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.ticker import MaxNLocator

from capsnet.figures.style import FAINT, INK, MISTAKE, QUANTITIES, STYLE, Figure, name_rows

Difference = tuple[float, float]  # of two errors, and the half-width of its 95 % interval


@mpl.rc_context(STYLE)
def effects(here: Mapping[str, Difference], paper: Mapping[str, Difference]) -> Figure:
    """What each change saves, here as a dot and in the paper as a diamond, each on its interval.

    Args:
        here: of each change the difference.
        paper: of each change the paper's, under the same names.
    """
    if not paper or here.keys() != paper.keys():
        raise ValueError(f"here must be of the paper's changes, {list(paper)}, got {list(here)}")
    figure = Figure(1.1 + 0.5 * len(paper))
    axes = figure.subplots()
    axes.axvline(0, color=FAINT, linewidth=0.9)
    kinds = (
        (here, -0.13, QUANTITIES["v"].colour, "o", "full", "trainings here"),
        (paper, 0.13, INK, "D", "none", "the paper"),
    )
    for values, shift, colour, marker, fill, name in kinds:
        for row, change in enumerate(paper):
            difference, half = values[change]
            ends = difference - half, difference + half
            axes.hlines(row + shift, *ends, color=colour, linewidth=1.6)
            axes.plot([difference], [row + shift], marker, color=colour, fillstyle=fill, ms=5)
        axes.plot([], [], marker, color=colour, fillstyle=fill, ms=5, label=name)
    figure.legend(loc="outside upper center", ncols=2)
    name_rows(axes, list(paper))
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.set_xlabel("error saved, percentage points")
    return figure


@mpl.rc_context(STYLE)
def missed_by(images: Sequence[int], by_chance: Sequence[float]) -> Figure:
    """How many images are missed by one network, by two, …, by all, on a logarithmic axis.

    Args:
        images: so many images are missed by 1, 2, … networks.
        by_chance: so many would be if all images were equally hard; drawn as a stroke.
    """
    if not images or len(images) != len(by_chance):
        raise ValueError(
            "images and by_chance must have one number for each count of networks, got "
            f"{len(images)} and {len(by_chance)}"
        )
    figure = Figure(2.8)
    axes = figure.subplots()
    networks = np.arange(1, len(images) + 1)
    axes.bar(networks, images, color=MISTAKE, width=0.7, label="missed here")
    axes.hlines(
        by_chance, networks - 0.45, networks + 0.45, color=INK, linewidth=2,
        label="if all images were equally hard",
    )  # fmt: skip
    axes.set_yscale("log")
    axes.set_ylim(0.5, 2 * max(*images, *by_chance))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_xticks(networks)
    axes.set_xlabel("networks that miss the image")
    axes.set_ylabel("test images")
    axes.legend()
    return figure
