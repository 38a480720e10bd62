"""Parts, the wholes that they predict, and their votes."""

from collections.abc import Sequence
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.patches import Polygon
from numpy.typing import ArrayLike, NDArray

from capsnet_book.figures.helpers import U_HAT, U, arrow, side_by_side, styled
from capsnet_book.figures.routing import disc
from capsnet_book.parts import OUTLINES, build
from capsnet_lab.figures.style import FAINT, WIDTH, Figure, array

MARGIN = 0.1  # around what is drawn, as all lengths in the unit of the poses
TOP = 0.3  # length of the arrow to a top
LEVEL = {"house": -0.6, "boat": -0.57}  # of the land and of the sea, seen from the whole's middle


class Scene(NamedTuple):
    """Parts, and the wholes that they predict; each with its pose [x, y, p, q]."""

    title: str
    parts: Sequence[tuple[str, ArrayLike]]  # the kind of each
    ghosts: Sequence[tuple[str, ArrayLike]] = ()  # which whole each is
    numbers: bool = False  # beside the parts, from 1
    ground: str = ""  # of which whole, upright at (0, 0), the land or the sea is drawn


@styled
def scenes(drawn: Sequence[Scene]) -> Figure:
    """Scenes side by side, on one scale.

    The parts are filled. The ghosts are transparent: where they coincide, they are dark. Of two
    ghosts, the second is dashed; many are drawn with fine lines. An arrow points to the top of each
    ghost or, where there are neither ghosts nor numbers, of each part.
    """
    boxes = np.array([_box(scene) for scene in drawn])  # [scenes, low and high, x and y]
    widths = boxes[:, 1, 0] - boxes[:, 0, 0]
    bottom, top = boxes[:, 0, 1].min(), boxes[:, 1, 1].max()
    inch = (WIDTH - 0.1 * len(drawn)) / widths.sum()
    figure, row = side_by_side(inch * (top - bottom) + 0.3, len(drawn), width_ratios=widths)
    for axes, scene, box in zip(row, drawn, boxes, strict=True):
        _draw(axes, scene)
        axes.set(xlim=box[:, 0], ylim=(bottom, top))
    return figure


@styled
def scene_and_votes(scene: Scene, u_hat: ArrayLike, titles: Sequence[str]) -> Figure:
    """A scene, and next to it each parent's votes from one point, numbered.

    The votes are [children, parents, 2]; the parts of the scene have numbers.
    """
    box = np.array(_box(scene))
    wide, high = box[1] - box[0]
    ratios = [wide / high, *[1] * len(titles)]
    figure, (first, *rest) = side_by_side(2.05, len(ratios), width_ratios=ratios)
    _draw(first, scene)
    first.set(xlim=box[:, 0], ylim=box[:, 1])
    for axes, title, votes in zip(rest, titles, array(u_hat).swapaxes(0, 1), strict=True):
        disc(axes, votes, np.full(len(votes), 0.5), numbers=True)
        axes.set_title(title)
    return figure


def _draw(axes: Axes, scene: Scene) -> None:
    for kind, pose in scene.parts:
        outline = placed(kind, pose)
        axes.add_patch(Polygon(outline, facecolor=U, alpha=0.22))
        axes.add_patch(Polygon(outline, fill=False, edgecolor=U, linewidth=1.4))
    _draw_ghosts(axes, scene)
    colour, arrows = (U_HAT, scene.ghosts) if scene.ghosts else (U, scene.parts)
    if scene.ghosts or not scene.numbers:
        for _, pose in arrows:
            x, y, p, q = array(pose)
            tip = (x + TOP * p, y + TOP * q)
            arrow(axes, (x, y), tip, colour, linewidth=1.2, mutation_scale=8)
    if scene.numbers:
        for number, (kind, pose) in enumerate(scene.parts, start=1):
            x, y, p, q = array(pose)
            # A rectangle's number leaves its middle to what may stand there.
            off = 0.5 * max(up for _, up in OUTLINES[kind]) if len(OUTLINES[kind]) == 4 else 0
            axes.text(x + off * p, y + off * q, str(number), ha="center", va="center", fontsize=9)
    if scene.ground:
        axes.plot(*_ground(scene.ground, (0, 0, 0, 1)).T, color=FAINT, linewidth=1.4)
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_title(scene.title)


def _draw_ghosts(axes: Axes, scene: Scene) -> None:
    few = len(scene.ghosts) <= 2
    for whole, pose in scene.ghosts:
        if whole == "boat" and few:  # each brings its own sea
            axes.plot(*_ground(whole, pose).T, color=U_HAT, linewidth=1.2, alpha=0.7)
    lines = "-", "--" if len(scene.ghosts) == 2 else "-"
    for ghost, line in zip(_ghosts(scene), cycle(lines), strict=False):
        for outline in ghost:
            axes.add_patch(Polygon(outline, facecolor=U_HAT, alpha=0.13 if few else 0.09))
            edge = Polygon(outline, fill=False, edgecolor=U_HAT, alpha=0.7 if few else 0.35)
            edge.set(linewidth=1.6 if few else 0.8, linestyle=line)
            axes.add_patch(edge)


def _box(scene: Scene) -> tuple[NDArray[Any], NDArray[Any]]:
    """The lowest and the highest x and y of all that is drawn, and a margin."""
    outlines = [placed(kind, pose) for kind, pose in scene.parts]
    points = np.concatenate(outlines + [outline for ghost in _ghosts(scene) for outline in ghost])
    return points.min(axis=0) - MARGIN, points.max(axis=0) + MARGIN


def placed(kind: str, pose: ArrayLike) -> NDArray[Any]:
    """The outline of a part at a pose, [corners, 2]."""
    return _moved(np.array(OUTLINES[kind]), pose)


def _ground(whole: str, pose: ArrayLike) -> NDArray[Any]:
    """The line that a whole stands on or floats in, [points, 2]."""
    x = np.linspace(-0.5, 0.5, 100)
    waves = 0.04 * np.sin(8 * np.pi * x) if whole == "boat" else 0 * x
    return _moved(np.stack([x, LEVEL[whole] + waves], axis=1), pose)


def _moved(points: NDArray[Any], pose: ArrayLike) -> NDArray[Any]:
    """Points around (0, 0), top up, at a pose."""
    x, y, p, q = array(pose)
    right, up = (q, -p), (p, q)
    return points @ np.array([right, up]) + (x, y)


def _ghosts(scene: Scene) -> list[list[NDArray[Any]]]:
    """The outlines of each ghost, made of the kinds of parts that the scene has."""
    kinds = list(dict.fromkeys(kind for kind, _ in scene.parts))
    return [
        [placed(*part) for part in build(whole, torch.as_tensor(array(pose)), kinds)]
        for whole, pose in scene.ghosts
    ]
