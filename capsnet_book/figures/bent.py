"""Pictures of what becomes of a network's answers when its digits are bent."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.ticker import MaxNLocator, MultipleLocator

from capsnet.figures.style import FAINT, INK, QUANTITIES, STYLE, Figure, name_rows


class Sweep(NamedTuple):
    """What a network makes of digits that are changed in one way, more and more."""

    amounts: Sequence[float]
    accuracy: Sequence[float]  # share read rightly at each amount, 0 … 1
    length: Sequence[float]  # mean ‖v‖ of the true digit's capsule at each amount
    usual: tuple[float, float]  # a range of amounts to be shaded


@mpl.rc_context(STYLE)
def against_amount(sweeps: Mapping[str, Sweep]) -> Figure:
    """Accuracy above, length of the true digit's capsule below, a column for each change.

    Args:
        sweeps: of each change, by its name with its unit.
    """
    if not sweeps:
        raise ValueError("sweeps must hold at least one change, got none")
    for name, sweep in sweeps.items():
        if not 0 < len(sweep.amounts) == len(sweep.accuracy) == len(sweep.length):
            raise ValueError(
                f"{name}: accuracy and length must be one for each amount, got "
                f"{len(sweep.accuracy)} and {len(sweep.length)} for {len(sweep.amounts)}"
            )
    figure = Figure(4.1)
    grid = figure.subplots(2, len(sweeps), sharex="col", sharey="row", squeeze=False)
    for column, (name, sweep) in zip(grid.T, sweeps.items(), strict=True):
        shares = 100 * np.array(sweep.accuracy)
        for axes, values, colour in zip(
            column, (shares, sweep.length), (INK, QUANTITIES["v"].colour), strict=True
        ):
            axes.axvspan(*sweep.usual, color=FAINT, alpha=0.25, linewidth=0)
            axes.plot(
                sweep.amounts, values, "-o", color=colour, markersize=4, linewidth=1.5,
                clip_on=False,
            )  # fmt: skip
        column[1].set_xlabel(name)
        column[1].xaxis.set_major_locator(MaxNLocator(4))
    above, below = grid[:, 0]
    above.set_ylabel("read correctly, %")
    above.set_ylim(0, 100)
    below.set_ylabel("mean length ‖v‖ of\nthe true digit's capsule")
    below.set_ylim(0, 1)
    below.yaxis.set_major_locator(MultipleLocator(0.2))
    figure.align_ylabels(grid[:, 0])
    return figure


@mpl.rc_context(STYLE)
def moved_and_bent(
    accuracies: Mapping[str, Sequence[float | None]], reported: Collection[str] = ()
) -> Figure:
    """Each network's accuracies: a dot for moved digits, a triangle for placed, a square for bent.

    Args:
        accuracies: on digits moved as in training, put anywhere, and bent, in percent, by the name
            of the network, from top to bottom; None for what is not known.
        reported: names of those that the paper reports; they are drawn hollow.
    """
    if not accuracies:
        raise ValueError("accuracies must hold at least one network, got none")
    for name, shares in accuracies.items():
        if len(shares) != 3 or all(share is None for share in shares):
            raise ValueError(f"{name}: expected three accuracies, one known, got {list(shares)}")
    if unknown := set(reported) - accuracies.keys():
        raise ValueError(f"reported names no network: {', '.join(sorted(unknown))}")
    figure = Figure(1.2 + 0.36 * len(accuracies))
    axes = figure.subplots()
    kinds = {"as in training": "o", "anywhere": "^", "bent": "s"}
    lowest = 100.0
    for height, (name, shares) in enumerate(accuracies.items()):
        known = [share for share in shares if share is not None]
        lowest = min(lowest, *known)
        axes.plot([min(known), max(known)], [height] * 2, color=FAINT, linewidth=1.2, zorder=1)
        filled = "white" if name in reported else INK
        for share, marker in zip(shares, kinds.values(), strict=True):
            if share is not None:
                axes.plot(
                    [share], [height], marker, color=INK, markerfacecolor=filled, markersize=6,
                    clip_on=False,
                )  # fmt: skip
    for kind, marker in kinds.items():
        axes.plot([], [], marker, color=INK, markersize=6, label=kind)
    if reported:
        axes.plot(
            [], [], "o", color=INK, markerfacecolor="white", markersize=6, label="hollow: the paper"
        )
    figure.legend(loc="outside upper center", ncols=2)
    name_rows(axes, list(accuracies))
    axes.set_xlim(max(0.0, 10 * np.floor((lowest - 2) / 10)), 100)
    axes.set_xlabel("images read correctly, %")
    return figure
