"""Votes: what each child predicts of each parent."""

import torch
from torch import Tensor

from capsnet.functional import require_floating


def matrix_votes(poses: Tensor, weight: Tensor, rows: int) -> Tensor:
    """V_ij = M_i W_ij, the poses M_i being matrices, kept row by row; of 1 row, they are vectors.

    Args:
        poses: [batch, in_capsules, rows · columns].
        weight: W_ij, [in_capsules, out_capsules, columns, out_columns].
        rows: of each pose.

    Returns:
        the votes, [batch, in_capsules, out_capsules, rows · out_columns].

    Raises:
        ValueError: ``poses`` has another shape.
    """
    in_capsules, _, columns, _ = weight.shape
    if poses.shape[1:] != (in_capsules, rows * columns):
        raise ValueError(
            f"capsules must be [batch, {in_capsules}, {rows * columns}], got shape "
            f"{list(poses.shape)}"
        )
    matrices = poses.unflatten(2, (rows, columns))
    return torch.einsum("nirk,ijkm->nijrm", matrices, weight).flatten(3)


def check_votes(votes: Tensor, iterations: int = 1) -> None:
    """See that votes can be routed, so many times.

    Raises:
        ValueError: they are no 4-D floating-point tensor, or ``iterations`` is below 1.
    """
    require_floating("votes", votes)
    if votes.dim() != 4:
        raise ValueError(
            "votes must be [batch, in_capsules, out_capsules, out_dim], got shape "
            f"{list(votes.shape)}"
        )
    if iterations < 1:
        raise ValueError(f"iterations must be at least 1, got {iterations}")
