"""A picture of how much a network learns from few labels."""

from collections.abc import Mapping

import matplotlib as mpl
from matplotlib.ticker import LogLocator, NullFormatter, NullLocator

from capsnet.figures.style import FAINT, INK, QUANTITIES, STYLE, Figure

# The first is what it is about, the others are what it is compared with.
LINES = ((QUANTITIES["v"].colour, "-", "o"), (INK, "--", "s"), (FAINT, ":", "^"))


@mpl.rc_context(STYLE)
def errors_by_labels(
    curves: Mapping[str, Mapping[int, float]],
    spreads: Mapping[str, Mapping[int, tuple[float, float]]] | None = None,
) -> Figure:
    """Error on the test set against labels per class, both axes logarithmic.

    Args:
        curves: at most three; by name, the error in percent by labels per class.
        spreads: for some of the curves, the lowest and the highest error by labels per class,
            drawn as upright lines with ends.
    """
    spreads = spreads or {}
    if not 0 < len(curves) <= len(LINES):
        raise ValueError(f"curves must be 1 to {len(LINES)}, got {len(curves)}")
    if unknown := spreads.keys() - curves.keys():
        raise ValueError(f"spreads are of no curve: {', '.join(sorted(unknown))}")
    figure = Figure(3.4)
    axes = figure.subplots()
    for (name, errors), (colour, line, marker) in zip(curves.items(), LINES, strict=False):
        counts = sorted(errors)
        axes.plot(
            counts, [errors[count] for count in counts], line, color=colour, marker=marker,
            markersize=5, linewidth=1.5, label=name,
        )  # fmt: skip
        for count, (low, high) in spreads.get(name, {}).items():
            axes.vlines(count, low, high, color=colour, linewidth=1.2, zorder=1)
            axes.scatter([count, count], [low, high], s=150, marker="_", color=colour, zorder=1)
    counts = sorted({count for errors in curves.values() for count in errors})
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(counts, [f"{count:,}" for count in counts])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("labels of each class")
    axes.set_ylabel("error on the test set, %")
    axes.legend()
    return figure
