"""The book's colours, shown where each quantity stands in the routing."""

import matplotlib as mpl
from matplotlib.patches import FancyBboxPatch

from capsnet_book.figures.axes import arrow
from capsnet_lab.figures.style import FAINT, PAPER, QUANTITIES, STYLE, Figure

# Where each box stands, (column, row), and what it is called.
PLACES = {
    "u": (0, 1, "child’s output"),
    "u_hat": (1, 1, "prediction"),
    "s": (2, 1, "total input"),
    "v": (3, 1, "parent’s output"),
    "b": (1, 0, "routing logit"),
    "c": (2, 0, "coupling"),
}
STEPS = (
    ("u", "u_hat", r"$W_{ij}$"),
    ("u_hat", "s", "sum over\nchildren"),
    ("s", "v", "squash"),
    ("b", "c", "softmax over\nparents"),
    ("c", "s", "weights"),
    ("u_hat", "b", "agreement"),
)
WIDE, HIGH = 0.2, 0.17  # half of a box
ARROW = {"linewidth": 1.2, "shrinkA": 1, "shrinkB": 1}


@mpl.rc_context(STYLE)
def palette() -> Figure:
    """The six quantities of the routing as boxes of their colours, arrows for what makes which."""
    figure, axes = Figure.single(3.1)
    axes.set_axis_off()
    for name, (x, y, said) in PLACES.items():
        quantity = QUANTITIES[name]
        box = FancyBboxPatch(
            (x - WIDE, y - HIGH), 2 * WIDE, 2 * HIGH,
            boxstyle="round,pad=0,rounding_size=0.06",
            facecolor=quantity.colour, edgecolor="none", gid=name,
        )  # fmt: skip
        axes.add_patch(box)
        axes.text(x, y, f"${quantity.latex}$", color=PAPER, fontsize=15, ha="center", va="center")
        above = y == 1
        axes.text(
            x, y + (HIGH + 0.05 if above else -HIGH - 0.06), said,
            ha="center", va="bottom" if above else "top",
        )  # fmt: skip
    for start, end, said in STEPS:
        (x0, y0, _), (x1, y1, _) = PLACES[start], PLACES[end]
        if y0 == y1:
            arrow(axes, (x0 + WIDE, y0), (x1 - WIDE, y1), FAINT, **ARROW)
            side = -0.05 if y0 else 0.05  # below in the row above, above in the row below
            axes.text(
                (x0 + x1) / 2, y0 + side, said,
                ha="center", va="top" if y0 else "bottom", fontsize=9,
            )  # fmt: skip
        else:
            down = 1 if y1 < y0 else -1
            arrow(axes, (x0, y0 - down * HIGH), (x1, y1 + down * HIGH), FAINT, **ARROW)
            left = start == "u_hat"
            axes.text(
                x0 + (-0.06 if left else 0.06), 0.5, said,
                ha="right" if left else "left", va="center", fontsize=9,
            )  # fmt: skip
    # What v does to b goes round below: the next iteration.
    low = -0.5
    axes.plot([3, 3, 1], [1 - HIGH, low, low], color=FAINT, linewidth=1.2)
    arrow(axes, (1, low), (1, -HIGH - 0.21), FAINT, **ARROW)
    axes.text(2, low - 0.04, "next iteration", ha="center", va="top", fontsize=9)
    axes.set_xlim(-0.42, 3.42)
    axes.set_ylim(-0.7, 1.42)
    return figure
