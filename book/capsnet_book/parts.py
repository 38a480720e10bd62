"""The scene of *Parts and a whole*: six parts, two wholes that they may make, and their votes.

A pose is [x, y, p, q]: where the middle of a thing is, and the arrow of length 1 that points to its
top. A prediction is a matrix times such a vector, as in the paper's equation 2.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor


class Part(NamedTuple):
    """A part of the scene, as an eye that finds parts would report it."""

    kind: str
    x: float
    y: float
    turn: float  # degrees, counter-clockwise; 0 is upright
    sure: float  # how sure the eye is that it is there: the length of its capsule


PAIR = ("triangle", "rectangle")
# Outlines around (0, 0), top up.
OUTLINES = {
    "triangle": [(-0.4, -0.2), (0.4, -0.2), (0, 0.2)],
    "rectangle": [(-0.25, -0.4), (0.25, -0.4), (0.25, 0.4), (-0.25, 0.4)],
    "small triangle": [(-0.2, -0.1), (0.2, -0.1), (0, 0.1)],
    "small rectangle": [(-0.09, -0.17), (0.09, -0.17), (0.09, 0.17), (-0.09, 0.17)],
}
# What a part says of a whole: its middle is so far to my right, so far up, it is turned by so much.
SEEN = {
    ("triangle", "house"): (0, -0.4, 0),  # a roof
    ("rectangle", "house"): (0, 0.2, 0),  # a wall
    ("small triangle", "house"): (0, 0.16, 0),  # a porch
    ("small rectangle", "house"): (0, 0.43, 0),  # a door
    ("triangle", "boat"): (0.25, -0.1, 90),  # a sail
    ("rectangle", "boat"): (0.4, 0, -90),  # a hull
    ("small triangle", "boat"): (0, -0.75, 180),  # a keel
    ("small rectangle", "boat"): (0.31, -0.02, 0),  # a cabin
}
WHOLES = ("house", "boat")
# Four are a house, built by an amateur. Two lie about.
SCENE = (
    Part("triangle", -0.44, 0.40, -28, 0.95),
    Part("rectangle", -0.68, -0.17, -14, 0.95),
    Part("small rectangle", -0.77, -0.40, -22, 0.85),
    Part("small triangle", -0.65, -0.17, -8, 0.80),
    Part("triangle", 1.05, 0.55, -120, 0.90),
    Part("small rectangle", 0.75, -0.55, 105, 0.85),
)


def pose(x: float, y: float, turn: float) -> Tensor:
    """[x, y, p, q] of a thing that is turned counter-clockwise by so many degrees."""
    angle = math.radians(turn)
    return torch.tensor([x, y, -math.sin(angle), math.cos(angle)])


def matrix(right: float, up: float, turn: float) -> Tensor:
    """W: the pose of a whole from the pose of a part, [4, 4].

    Args:
        right: how far the whole's middle is to the part's right.
        up: how far it is towards the part's top.
        turn: by how many degrees the whole is turned against the part, counter-clockwise.
    """
    cos, sin = math.cos(math.radians(turn)), math.sin(math.radians(turn))
    return torch.tensor(
        [
            [1, 0, up, right],
            [0, 1, -right, up],
            [0, 0, cos, -sin],
            [0, 0, sin, cos],
        ]
    )


def build(whole: str, where: Tensor, kinds: Sequence[str] = PAIR) -> list[tuple[str, Tensor]]:
    """The parts of a whole at a pose, each with its own pose: W, inverted."""
    return [(kind, torch.linalg.solve(matrix(*SEEN[kind, whole]), where.float())) for kind in kinds]


def scene() -> list[tuple[str, Tensor]]:
    """The six parts, each with its pose."""
    return [(part.kind, pose(part.x, part.y, part.turn)) for part in SCENE]


def predictions() -> Tensor:
    """The pose of each whole as each part of the scene predicts it, [6, 2, 4]."""
    rows = [
        torch.stack([matrix(*SEEN[kind, whole]) @ where for whole in WHOLES])
        for kind, where in scene()
    ]
    return torch.stack(rows)


def votes() -> Tensor:
    """û of the scene: the arrows to the tops, as long as their parts are sure, [1, 6, 2, 2]."""
    sure = torch.tensor([part.sure for part in SCENE])
    return (sure[:, None, None] * predictions()[..., 2:]).unsqueeze(0)
