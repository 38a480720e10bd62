"""The network in one picture; which channels make a capsule, and what it sees."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike, NDArray

from capsnet_book.figures.axes import arrow
from capsnet_lab.figures.style import FAINT, INK, PAPER, QUANTITIES, STYLE, Figure, array, show

SIDE, GAP = 0.97, 0.5  # inches: a box, and the room for an arrow behind it


class _Box(NamedTuple):
    """What the network holds between two of its layers."""

    name: str
    shape: str
    colour: str
    draw: Callable[[Axes], None]
    then: str = ""  # what makes the next box of it


@mpl.rc_context(STYLE)
def network(
    image: ArrayLike,
    features: ArrayLike,
    u: ArrayLike,
    u_hat: ArrayLike,
    v: ArrayLike,
    drawing: ArrayLike,
    grid: tuple[int, int],
) -> Figure:
    """The network in one picture: what it computes of one image, each tensor drawn as it is.

    Args:
        image: [channels, height, width].
        features: of the first convolution, [channels, height, width]; drawn are the 16 with most
            in them.
        u: the primary capsules, [types · rows · columns, dim]; drawn are their lengths, the mean of
            each type.
        u_hat: the votes, [children, parents, dim]; drawn are some of those for the longest parent,
            without their signs.
        v: the digit capsules, [parents, dim].
        drawing: what the decoder makes of the longest, shaped like the image.
        grid: rows and columns of the primary capsules' places.
    """
    picture, maps, children, votes, parents, drawn = map(
        array, (image, features, u, u_hat, v, drawing)
    )
    lengths = np.linalg.norm(parents, axis=1)
    longest = int(lengths.argmax())
    by_type = np.linalg.norm(children, axis=1).reshape(-1, grid[0] * grid[1])
    some = np.abs(votes[:: max(1, len(votes) // 48), longest].T)
    grey, u_, u_hat_, v_ = INK, *(QUANTITIES[name].colour for name in ("u", "u_hat", "v"))
    fading = LinearSegmentedColormap.from_list("", [(u_hat_, 0.0), (u_hat_, 1.0)])
    boxes = [
        _Box("image", _sizes(picture), grey, lambda axes: show(axes, picture), "conv"),
        _Box(
            "feature maps", _sizes(maps), grey,
            lambda axes: _cells(axes, sheet(fullest(maps, 16), 4), "gray"), "conv",
        ),
        _Box(
            "primary capsules u", _sizes(children), u_,
            lambda axes: _tiles(axes, by_type, grid, 6), "$W$",
        ),
        _Box(
            "votes û", _sizes(votes), u_hat_,
            lambda axes: _cells(axes, some, fading), "routing",
        ),
        _Box(
            "digit capsules v", _sizes(parents), v_,
            lambda axes: _bars(axes, lengths, longest), "mask",
        ),
        _Box(
            "one is kept", str(parents.size), v_,
            lambda axes: _kept(axes, parents, longest), "decode",
        ),
        _Box("drawing", _sizes(drawn), grey, lambda axes: show(axes, drawn)),
    ]  # fmt: skip
    return _flow(boxes, 4)


def fullest(maps: NDArray[Any], count: int) -> NDArray[Any]:
    """The maps with most in them, in their order."""
    return maps[np.sort(np.argsort(-maps.sum(axis=(1, 2)), kind="stable")[:count])]


def sheet(maps: NDArray[Any], across: int) -> NDArray[Any]:
    """Maps in rows as one, with a line of nan between them."""
    count, height, width = maps.shape
    across = min(across, count)
    whole = np.full((-(-count // across) * (height + 1) - 1, across * (width + 1) - 1), np.nan)
    for i, tile in enumerate(maps):
        row, column = i // across * (height + 1), i % across * (width + 1)
        whole[row : row + height, column : column + width] = tile
    return whole


def _sizes(tensor: NDArray[Any]) -> str:
    return " × ".join(map(str, tensor.shape))


def _flow(boxes: Sequence[_Box], columns: int) -> Figure:
    """Boxes in rows, each with its name above and its shape below, and an arrow to the next."""
    rows, pitch, band = -(-len(boxes) // columns), SIDE + GAP, SIDE + 0.82
    margin = max(0.1, (3.3 - columns * pitch + GAP) / 2)  # a name may be wider than its box
    figure = Figure(rows * band - 0.2, 2 * margin + columns * pitch - GAP)
    figure.set_layout_engine("none")  # everything is placed by hand
    width, height = figure.get_size_inches()
    page = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
    page.set_axis_off()
    first = margin + SIDE / 2
    for i, box in enumerate(boxes):
        row, column = divmod(i, columns)
        left, top = margin + column * pitch, 0.26 + row * band
        bottom, centre, middle = top + SIDE, left + SIDE / 2, top + SIDE / 2
        axes = figure.add_axes((left / width, 1 - bottom / height, SIDE / width, SIDE / height))
        box.draw(axes)
        label: dict[str, Any] = {"ha": "center", "size": 9, "color": box.colour}
        page.text(centre, top - 0.06, box.name, va="bottom", weight="bold", **label)
        below = bottom + (0.2 if axes.get_xticks().size else 0.06)
        page.text(centre, below, box.shape, va="top", **label)
        if i + 1 == len(boxes):
            break
        then: dict[str, Any] = {"ha": "center", "va": "bottom", "size": 9}
        if column + 1 < columns:
            start, end = left + SIDE + 0.06, left + pitch - 0.06
            page.text((start + end) / 2, middle - 0.06, box.then, **then)
            arrow(page, (start, middle), (end, middle), FAINT)
        else:  # to the next row, and back to its start
            turn = top + band - 0.42
            page.plot([centre, centre, first], [turn - 0.12, turn, turn], color=FAINT, linewidth=1)
            arrow(page, (first, turn), (first, turn + 0.18), FAINT)
            page.text((centre + first) / 2, turn - 0.04, box.then, **then)
    return figure


def _cells(axes: Axes, values: NDArray[Any], colours: str | Colormap) -> None:
    axes.imshow(values, colours, vmin=0, interpolation="nearest", aspect="auto")
    axes.set_xticks([])
    axes.set_axis_off()


def _tiles(axes: Axes, lengths: NDArray[Any], grid: tuple[int, int], across: int) -> None:
    """A grid for each type of capsule, the fuller of colour the longer its capsules are."""
    rows, columns = grid
    down = -(-len(lengths) // across)
    for i, length in enumerate(lengths.mean(axis=1)):
        corner = (i % across * (columns + 1), i // across * (rows + 1))
        axes.add_patch(Rectangle(corner, columns, rows, color=QUANTITIES["u"].colour, alpha=length))
    high, wide = down * (rows + 1) - 1, across * (columns + 1) - 1
    axes.hlines(range(1, high), 0, wide, color=PAPER, linewidth=0.3)
    axes.vlines(range(1, wide), 0, high, color=PAPER, linewidth=0.3)
    axes.set(xlim=(0, wide), ylim=(high, 0), xticks=[])
    axes.set_axis_off()


def _kept(axes: Axes, capsules: NDArray[Any], one: int) -> None:
    """All numbers of all capsules as one sheet, which is empty but for those of one."""
    colour = QUANTITIES["v"].colour
    count, dim = capsules.shape
    axes.add_patch(Rectangle((0, 0), dim, count, color=FAINT, alpha=0.4))
    for d, full in enumerate(np.abs(capsules[one]) / np.abs(capsules[one]).max()):
        axes.add_patch(Rectangle((d, one), 1, 1, color=colour, alpha=full))
    axes.set(xlim=(0, dim), ylim=(count, 0), xticks=[])
    axes.set_axis_off()


def _bars(axes: Axes, lengths: NDArray[Any], longest: int) -> None:
    """The length of each digit capsule, the longest lit."""
    colours = [FAINT] * len(lengths)
    colours[longest] = QUANTITIES["v"].colour
    axes.bar(range(len(lengths)), lengths, color=colours)
    axes.set_ylim(0, 1)
    axes.set_xticks(range(len(lengths)))
    axes.tick_params(axis="x", length=0, pad=2)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    beside = (longest - 0.7, "right") if longest > len(lengths) / 2 else (longest + 0.7, "left")
    axes.text(
        beside[0], lengths[longest], f"{lengths[longest]:.2f}", ha=beside[1], va="top", size=9
    )


def _empty(axes: Axes, grid: tuple[int, int], title: str) -> None:
    """An empty feature map."""
    rows, columns = grid
    axes.set_xlim(0, columns)
    axes.set_ylim(rows, 0)
    axes.set_aspect("equal")
    axes.hlines(range(rows + 1), 0, columns, color=FAINT, linewidth=0.5, clip_on=False)
    axes.vlines(range(columns + 1), 0, rows, color=FAINT, linewidth=0.5, clip_on=False)
    axes.set_axis_off()
    axes.set_title(title, size=9, pad=3)


@mpl.rc_context(STYLE)
def capsule_members(members: Mapping[str, ArrayLike], grid: tuple[int, int]) -> Figure:
    """Where the numbers of one vector come from, under several ways to read it.

    Args:
        members: by name, the [channel, row, column] of each component, [dim, 3].
        grid: rows and columns of the feature map.
    """
    read = {name: array(where) for name, where in members.items()}
    channels = sorted({int(channel) for where in read.values() for channel in where[:, 0]})
    figure = Figure(1.25 * len(read))
    bands = np.atleast_1d(np.array(figure.subfigures(len(read), 1), dtype=object))
    for (name, where), band in zip(read.items(), bands, strict=True):
        band.suptitle(name, size=10)
        panels = np.atleast_1d(band.subplots(1, len(channels)))
        for channel, axes in zip(channels, panels, strict=True):
            _empty(axes, grid, str(channel))
            for _, row, column in where[where[:, 0] == channel]:
                axes.add_patch(Rectangle((column, row), 1, 1, color=QUANTITIES["u"].colour))
    return figure


@mpl.rc_context(STYLE)
def receptive_fields(image: ArrayLike, fields: Mapping[str, tuple[int, int, int, int]]) -> Figure:
    """An image, and in frames the pixels that some units see.

    Args:
        image: [channels, height, width], uint8 or floating point in 0 … 1.
        fields: by the unit's name (three at most), its first and last row, first and last column.
    """
    picture = array(image)
    lines = ("-", "--", ":")[: len(fields)]
    figure, axes = Figure.single(3.7)
    show(axes, picture)
    height, width = picture.shape[1:]
    for (name, (top, bottom, left, right)), line in zip(fields.items(), lines, strict=True):
        frame = Rectangle((left - 0.5, top - 0.5), right - left + 1, bottom - top + 1, fill=False)
        frame.set(edgecolor=QUANTITIES["u"].colour, linestyle=line, linewidth=2.5, clip_on=False)
        frame.set_label(name)
        axes.add_patch(frame)
    axes.set_xticks([0, *range(4, width - 3, 4), width - 1])
    axes.set_yticks([0, *range(4, height - 3, 4), height - 1])
    axes.set_xlabel("column, pixels")
    axes.set_ylabel("row, pixels")
    figure.legend(loc="outside right center")
    return figure
