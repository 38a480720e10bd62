"""A picture of how much a network learns from few labels."""

import statistics
from collections.abc import Mapping, Sequence

import matplotlib as mpl
from matplotlib.ticker import LogLocator, NullFormatter, NullLocator

from capsnet.figures.style import FAINT, INK, QUANTITIES, STYLE, Figure

# The first is what it is about, the others are what it is compared with.
LINES = ((QUANTITIES["v"].colour, "-", "o"), (INK, "--", "s"), (FAINT, ":", "^"))


@mpl.rc_context(STYLE)
def errors_by_labels(curves: Mapping[str, Mapping[int, Sequence[float]]]) -> Figure:
    """Error on the test set against labels per class, both axes logarithmic.

    The mean of the draws is a point of the curve; the lowest and the highest are the ends of an
    upright line. The curves stand a little beside each other, so that these lines do not overlap.

    Args:
        curves: at most three; by name, the errors in percent of all draws by labels per class.
    """
    if not 0 < len(curves) <= len(LINES):
        raise ValueError(f"curves must be 1 to {len(LINES)}, got {len(curves)}")
    figure = Figure(3.4)
    axes = figure.subplots()
    for k, (name, draws) in enumerate(curves.items()):
        colour, line, marker = LINES[k]
        counts = sorted(draws)
        places = [count * 1.07 ** (k - 1) for count in counts]
        axes.plot(
            places, [statistics.mean(draws[count]) for count in counts], line, color=colour,
            marker=marker, markersize=5, linewidth=1.5, label=name,
        )  # fmt: skip
        lowest, highest = ([end(draws[count]) for count in counts] for end in (min, max))
        axes.vlines(places, lowest, highest, color=colour, linewidth=1.2, zorder=1)
    counts = sorted({count for draws in curves.values() for count in draws})
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
