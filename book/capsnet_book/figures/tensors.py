"""The network in one picture; which channels make a capsule, and what it sees."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap, ListedColormap
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike, NDArray
from torchvision.utils import make_grid

from capsnet_book.figures.helpers import U_HAT, U, V, arrow, styled
from capsnet_lab.figures.style import FAINT, INK, PAPER, Figure, array, show

SIDE, GAP = 0.97, 0.5  # inches: a box, and the room for an arrow behind it


class _Box(NamedTuple):
    """What the network holds between two of its layers."""

    name: str
    shape: Sequence[int]
    colour: str
    draw: Callable[[Axes], None]
    then: str = ""  # the operation that makes the next box of it


@styled
def network(
    image: ArrayLike,
    features: ArrayLike,
    u: ArrayLike,
    u_hat: ArrayLike,
    v: ArrayLike,
    reconstruction: ArrayLike,
    grid: tuple[int, int],
) -> Figure:
    """The network in one picture: what it computes of one image, each tensor drawn as it is.

    `image` and `features` (of which the 16 fullest are drawn) are [channels, height, width]; the
    primary capsules `u` [types · rows · columns, dim] are drawn as each type's mean length; of the
    votes `u_hat` [children, parents, dim] some for the longest parent are drawn, without their
    signs; the digit capsules `v` are [parents, dim]. `grid` is (rows, columns) of the primary
    capsules' places.
    """
    picture, maps, children, votes, parents, decoded = map(
        array, (image, features, u, u_hat, v, reconstruction)
    )
    lengths = np.linalg.norm(parents, axis=1)
    longest = int(lengths.argmax())
    by_type = np.linalg.norm(children, axis=1).reshape(-1, grid[0] * grid[1]).mean(axis=1)
    sample = np.abs(votes[:: max(1, len(votes) // 48), longest].T)
    greys = sheet(fullest(maps, 16), 4)
    masked = np.zeros_like(parents)
    masked[longest] = np.abs(parents[longest]) / np.abs(parents[longest]).max()
    on_faint = _fading(V, FAINT, 0.4)
    boxes = [
        _Box("image", picture.shape, INK, lambda a: show(a, picture), "conv"),
        _Box("feature maps", maps.shape, INK, lambda a: _cells(a, greys, "gray"), "conv"),
        _Box("primary capsules u", children.shape, U, lambda a: _tiles(a, by_type, grid), "$W$"),
        _Box("votes û", votes.shape, U_HAT, lambda a: _cells(a, sample, _fading(U_HAT)), "routing"),
        _Box("digit capsules v", parents.shape, V, lambda a: _bars(a, lengths), "mask"),
        _Box("one is kept", [parents.size], V, lambda a: _cells(a, masked, on_faint), "decode"),
        _Box("reconstruction", decoded.shape, INK, lambda a: show(a, decoded)),
    ]  # fmt: skip
    return _flow(boxes, across=4)


def fullest(maps: NDArray[Any], count: int) -> NDArray[Any]:
    """The maps with the largest sums, in their order."""
    return maps[np.sort(np.argsort(-maps.sum(axis=(1, 2)), kind="stable")[:count])]


def sheet(maps: NDArray[Any], across: int, gap: int = 1) -> NDArray[Any]:
    """Maps [n, height, width] in rows as one, with lines of nan between them."""
    tiles = torch.from_numpy(maps.astype(float)).unsqueeze(1)
    mosaic = make_grid(tiles, across, gap, pad_value=np.nan)[0].numpy()
    return mosaic[gap:-gap, gap:-gap] if len(maps) > 1 else mosaic


def _flow(boxes: Sequence[_Box], across: int) -> Figure:
    """Boxes in rows, each with its name above and its shape below, and an arrow to the next."""
    rows, pitch, band = -(-len(boxes) // across), SIDE + GAP, SIDE + 0.82
    figure = Figure(rows * band - 0.2, 0.2 + across * pitch - GAP)
    figure.set_layout_engine("none")  # everything is placed by hand
    width, height = figure.get_size_inches()
    page = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
    page.set_axis_off()
    first = 0.1 + SIDE / 2
    for i, box in enumerate(boxes):
        row, column = divmod(i, across)
        left, top = 0.1 + column * pitch, 0.26 + row * band
        bottom, centre, middle = top + SIDE, left + SIDE / 2, top + SIDE / 2
        axes = figure.add_axes((left / width, 1 - bottom / height, SIDE / width, SIDE / height))
        box.draw(axes)
        label: dict[str, Any] = {"ha": "center", "size": 9, "color": box.colour}
        page.text(centre, top - 0.06, box.name, va="bottom", weight="bold", **label)
        below = bottom + (0.2 if axes.get_xticks().size else 0.06)
        page.text(centre, below, " × ".join(map(str, box.shape)), va="top", **label)
        if i + 1 == len(boxes):
            break
        if column + 1 < across:
            start, end = left + SIDE + 0.06, left + pitch - 0.06
            arrow(page, (start, middle), (end, middle), FAINT)
            place = (start + end) / 2, middle - 0.06
        else:  # to the next row, and back to its start
            turn = top + band - 0.42
            page.plot([centre, centre, first], [turn - 0.12, turn, turn], color=FAINT, linewidth=1)
            arrow(page, (first, turn), (first, turn + 0.18), FAINT)
            place = (centre + first) / 2, turn - 0.04
        page.text(*place, box.then, ha="center", va="bottom", size=9)
    return figure


def _cells(axes: Axes, values: NDArray[Any], colours: str | Colormap) -> None:
    """Numbers from 0 to their largest as cells of colour."""
    axes.imshow(values, colours, vmin=0, interpolation="nearest", aspect="auto")
    axes.set_xticks([])
    axes.set_axis_off()


def _tiles(axes: Axes, lengths: NDArray[Any], grid: tuple[int, int]) -> None:
    """A grid for each type of capsule, the fuller of colour the longer its capsules are."""
    tiles = sheet(np.broadcast_to(lengths[:, None, None], (len(lengths), *grid)), 6)
    _cells(axes, tiles, _fading(U))
    axes.images[0].set_clim(0, 1)
    for number, line in zip(tiles.shape, (axes.axhline, axes.axvline), strict=True):
        for edge in range(1, number):
            line(edge - 0.5, color=PAPER, linewidth=0.3)


def _fading(colour: str, ground: str = "", alpha: float = 0.0) -> Colormap:
    """From a transparent ground, by default of the colour itself, to the colour."""
    ends = [(ground or colour, alpha), (colour, 1.0)]
    return LinearSegmentedColormap.from_list("", ends)


def _bars(axes: Axes, lengths: NDArray[Any]) -> None:
    """The length of each digit capsule, the longest lit."""
    longest, count = int(lengths.argmax()), len(lengths)
    axes.bar(range(count), lengths, color=[V if j == longest else FAINT for j in range(count)])
    axes.set(ylim=(0, 1), xticks=range(count), yticks=[])
    axes.tick_params(axis="x", length=0, pad=2)
    axes.spines["left"].set_visible(False)
    side, align = (-0.7, "right") if longest > count / 2 else (0.7, "left")
    number = f"{lengths[longest]:.2f}"
    axes.text(longest + side, lengths[longest], number, ha=align, va="top", size=9)


@styled
def capsule_members(members: Mapping[str, ArrayLike], grid: tuple[int, int]) -> Figure:
    """Where a vector's components come from, under several ways to reshape the tensor.

    `members` are the [channel, row, column] of each component, [dim, 3]; `grid` is the (rows,
    columns) of the feature map.
    """
    places = {name: array(where) for name, where in members.items()}
    channels = sorted({int(channel) for where in places.values() for channel in where[:, 0]})
    figure = Figure(1.25 * len(places))
    bands = figure.subfigures(len(places), 1, squeeze=False)[:, 0]
    for (name, where), band in zip(places.items(), bands, strict=True):
        band.suptitle(name, size=10)
        panels = band.subplots(1, len(channels), squeeze=False)[0]
        for channel, axes in zip(channels, panels, strict=True):
            cells = np.zeros(grid)
            _, rows, columns = where[where[:, 0] == channel].T
            cells[rows, columns] = 1
            look = {"cmap": ListedColormap([PAPER, U]), "vmin": 0, "vmax": 1, "clip_on": False}
            axes.pcolormesh(cells, edgecolors=FAINT, linewidth=0.3, **look)
            axes.set(ylim=(grid[0], 0), aspect="equal")
            axes.set_axis_off()
            axes.set_title(str(channel), size=9, pad=3)
    return figure


@styled
def receptive_fields(image: ArrayLike, fields: Mapping[str, tuple[int, int, int, int]]) -> Figure:
    """An image, and in frames the pixels that some units (three at most) see.

    `fields` are (first row, last row, first column, last column) by the unit's name.
    """
    figure, axes = Figure.single(3.7)
    show(axes, array(image))
    lines = ("-", "--", ":")[: len(fields)]
    for (name, (top, bottom, left, right)), line in zip(fields.items(), lines, strict=True):
        frame = Rectangle((left - 0.5, top - 0.5), right - left + 1, bottom - top + 1, fill=False)
        frame.set(edgecolor=U, linestyle=line, linewidth=2.5, clip_on=False, label=name)
        axes.add_patch(frame)
    height, width = array(image).shape[1:]
    axes.set_xticks([0, *range(4, width - 3, 4), width - 1])
    axes.set_yticks([0, *range(4, height - 3, 4), height - 1])
    axes.set(xlabel="column, pixels", ylabel="row, pixels")
    figure.legend(loc="outside right center")
    return figure
