"""The book's colours, shown where each quantity stands in the routing."""

from matplotlib.patches import FancyBboxPatch

from capsnet_book.figures.helpers import arrow, styled
from capsnet_lab.figures.style import FAINT, PAPER, QUANTITIES, Figure

WIDE, HIGH = 0.2, 0.17  # half of a box
# Where each box stands, what it is called, and at which height.
TOP, BOTTOM = 1 + HIGH + 0.05, -HIGH - 0.06
PLACES = {
    "u": (0, 1, "child’s output", TOP),
    "u_hat": (1, 1, "prediction", TOP),
    "s": (2, 1, "total input", TOP),
    "v": (3, 1, "parent’s output", TOP),
    "b": (1, 0, "routing logit", BOTTOM),
    "c": (2, 0, "coupling", BOTTOM),
}
# Arrows from edge to edge, each with the operation: (x, y), how the words stand about that point.
ARROWS = (
    ((0 + WIDE, 1), (1 - WIDE, 1), r"$W_{ij}$", (0.5, 0.95), "center", "top"),
    ((1 + WIDE, 1), (2 - WIDE, 1), "sum over\nchildren", (1.5, 0.95), "center", "top"),
    ((2 + WIDE, 1), (3 - WIDE, 1), "squash", (2.5, 0.95), "center", "top"),
    ((1 + WIDE, 0), (2 - WIDE, 0), "softmax over\nparents", (1.5, 0.05), "center", "bottom"),
    ((2, HIGH), (2, 1 - HIGH), "weights", (2.06, 0.5), "left", "center"),
    ((1, 1 - HIGH), (1, HIGH), "agreement", (0.94, 0.5), "right", "center"),
    # What v does to b goes round below: the next iteration.
    ((1, -0.5), (1, -HIGH - 0.21), "next iteration", (2, -0.54), "center", "top"),
)


@styled
def palette() -> Figure:
    """The six quantities of the routing as boxes of their colours, arrows for what makes which."""
    figure, axes = Figure.single(3.1)
    axes.set_axis_off()
    for key, (x, y, name, height) in PLACES.items():
        quantity = QUANTITIES[key]
        box = FancyBboxPatch(
            (x - WIDE, y - HIGH), 2 * WIDE, 2 * HIGH,
            boxstyle="round,pad=0,rounding_size=0.06",
            facecolor=quantity.colour, edgecolor="none", gid=key,
        )  # fmt: skip
        axes.add_patch(box)
        axes.text(x, y, f"${quantity.latex}$", color=PAPER, fontsize=15, ha="center", va="center")
        axes.text(x, height, name, ha="center", va="bottom" if y else "top")
    for start, end, operation, (left, low), ha, va in ARROWS:
        arrow(axes, start, end, FAINT, linewidth=1.2, shrinkA=1, shrinkB=1)
        axes.text(left, low, operation, ha=ha, va=va, fontsize=9)
    axes.plot([3, 3, 1], [1 - HIGH, -0.5, -0.5], color=FAINT, linewidth=1.2)
    axes.set(xlim=(-0.42, 3.42), ylim=(-0.7, 1.42))
    return figure
