"""Several ways to route, side by side: who gives what to whom, and what each costs."""

from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from capsnet.text import columns
from capsnet_book.ledger import missed
from capsnet_lab.figures.style import INK, QUANTITIES, STYLE, Figure, array


@mpl.rc_context(STYLE)
def shares_by_routing(shares: Mapping[str, ArrayLike], parent: str) -> Figure:
    """What each child gives to one parent, a panel for each way to route.

    Args:
        shares: to that parent, [children], by the routing's name.
        parent: its name.
    """
    figure = Figure(2.3)
    panels = figure.subplots(1, len(shares), squeeze=False, sharey=True)[0]
    for axes, (name, values) in zip(panels, shares.items(), strict=True):
        row = array(values)
        axes.barh(np.arange(1, len(row) + 1), row, color=QUANTITIES["c"].colour, height=0.7)
        axes.axvline(0.5, color=INK, linewidth=0.8, linestyle=":")
        axes.set_title(name)
        axes.set_xlim(0, 1)
        axes.set_xticks([0, 0.5, 1], ["0", "½", "1"])
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    panels[0].invert_yaxis()
    panels[0].set_ylabel("child")
    figure.supxlabel(f"share c that goes to {parent}", fontsize=10)
    return figure


def budget_table(
    trainings: Mapping[str, Mapping[int, Mapping[str, Any]]],
    costs: Mapping[str, Mapping[str, float]],
) -> str:
    """Networks that were trained on one budget, and what each costs, as text.

    Args:
        trainings: the ledger's records of each network, by its name and by seed.
        costs: "step_ms" and "tensors_mib" of each.
    """
    table = [("", "wrong, %", "parameters", "ms a step", "MiB")]
    for name, records in trainings.items():
        wrong = ", ".join(f"{missed(record):.2f}" for record in records.values())
        spent = [f"{costs[name][key]:.0f}" for key in ("step_ms", "tensors_mib")]
        table.append((name, wrong, f"{records[0]['parameters']:,}", spent[0], spent[1]))
    return columns(table)
