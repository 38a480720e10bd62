"""Capsules without routing: every child gives every parent the same share."""

import torch
from torch import Tensor

from capsnet.functional import RoutingStep, squash
from capsnet.layers import CapsuleLayer, check_capsules


class UniformCapsules(CapsuleLayer):
    """What :class:`CapsuleLayer` computes in a single iteration: c_ij = 1 / parents.

    v_j = squash(Σ_i W_ij u_i / parents): a linear map and a squash, so that the predictions need
    not be formed. Sizes and shapes are those of :class:`CapsuleLayer`.

    Args:
        positions: neighbouring children that share one W, such as all of one type of primary
            capsule; ``weight`` is [in_capsules / positions, out_capsules, in_dim, out_dim].

    Raises:
        ValueError: as :class:`CapsuleLayer`, or ``in_capsules`` is not a multiple of ``positions``.
    """

    def __init__(
        self, in_capsules: int, in_dim: int, out_capsules: int, out_dim: int, positions: int = 1
    ) -> None:
        if positions < 1 or in_capsules % positions:
            raise ValueError(
                f"in_capsules must be a multiple of positions = {positions}, got {in_capsules}"
            )
        super().__init__(in_capsules // positions, in_dim, out_capsules, out_dim, 1)
        self.positions = positions

    def forward(self, u: Tensor, trace: list[RoutingStep] | None = None) -> Tensor:
        types, parents, in_dim, _ = self.weight.shape
        children = types * self.positions
        check_capsules(u, children, in_dim, self.weight.dtype)
        summed = u.unflatten(1, (types, self.positions)).sum(dim=2)
        s = torch.einsum("nik,ijkd->njd", summed, self.weight) / parents
        v = squash(s)
        if trace is not None:
            logits = u.new_zeros(len(u), children, parents)
            trace.append(RoutingStep(logits, logits + 1 / parents, s, v))
        return v
