"""Inverted dot-product attention routing.

Source: Y.-H. H. Tsai, N. Srivastava, H. Goh, R. Salakhutdinov, *Capsules with inverted dot-product
attention routing*, ICLR 2020 (arXiv:2002.04764), and the code that its authors released. Equation
and procedure numbers are that paper's.
"""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from capsnet.functional import RoutingStep, check_predictions
from capsnet.layers import CapsuleLayer


def attention_routing(
    votes: Tensor,
    norm: Callable[[Tensor], Tensor],
    iterations: int = 2,
    trace: list[RoutingStep] | None = None,
) -> Tensor:
    """Inverted dot-product attention routing (Procedure 1), one layer after the other.

    a_ij = p_j · v_ij / √d (eq. 2, but for √d), r_ij = softmax of a_i over the parents (eq. 3),
    p_j = norm(Σ_i r_ij v_ij). Poses start at 0, and shares so at 1 / parents. Agreements replace
    those of the iteration before, where dynamic routing adds them up.

    The released code divides by √d. In a stack, the paper's schedule is concurrent:
    an iteration updates every layer once, from the poses that the layer below had before it. Here
    a layer is done before the next begins (the released code's sequential routing).

    Args:
        votes: v_ij, [batch, in_capsules, out_capsules, out_dim].
        norm: layer normalisation of the last dimension.
        iterations: at least 1; a single one reads no agreement.
        trace: a list that receives one :class:`RoutingStep` an iteration.

    Returns:
        p_j, the parents' poses, [batch, out_capsules, out_dim].

    Raises:
        ValueError: ``votes`` is not a 4-D floating-point tensor, or ``iterations`` is below 1.
    """
    check_predictions("votes", votes, iterations)
    wide = torch.promote_types(votes.dtype, torch.float32)
    logits = votes.new_zeros(votes.shape[:3], dtype=wide)
    for iteration in range(1, iterations + 1):
        r = F.softmax(logits, dim=2)  # eq. 3, line 4
        s = torch.einsum("nij,nijd->njd", r.to(votes.dtype), votes)  # line 5
        poses = norm(s)  # line 6
        if trace is not None:
            trace.append(RoutingStep(logits, r, s, poses))
        if iteration < iterations:
            agreement = torch.einsum("nijd,njd->nij", votes, poses.to(votes.dtype))  # eq. 2, line 3
            logits = agreement.to(wide) / math.sqrt(votes.shape[3])
    return poses


class AttentionCapsules(CapsuleLayer):
    """:class:`CapsuleLayer` with :func:`attention_routing`.

    Layer normalisation makes all parents about equally long: whether a class is there, the paper
    asks a linear map of its pose, the same for all classes.

    Args:
        in_capsules: children i.
        in_dim: numbers of a child.
        out_capsules: parents j.
        out_dim: numbers of a parent.
        routing_iterations: at least 1.

    Attributes:
        weight: W_ij of v_ij = W_ij p_i (eq. 1), [in_capsules, out_capsules, in_dim, out_dim].
        norm: layer normalisation, its gain and shift shared by the parents.

    Shape:
        [batch, in_capsules, in_dim] → [batch, out_capsules, out_dim].

    Raises:
        ValueError: as :class:`CapsuleLayer`.
    """

    def __init__(
        self,
        in_capsules: int,
        in_dim: int,
        out_capsules: int,
        out_dim: int,
        routing_iterations: int = 2,
    ) -> None:
        super().__init__(in_capsules, in_dim, out_capsules, out_dim, routing_iterations)
        self.norm = nn.LayerNorm(out_dim)

    def reset_parameters(self) -> None:
        """Draw W as the released code does."""
        children, parents, in_dim, _ = self.weight.shape
        nn.init.normal_(self.weight, std=math.sqrt(parents / (in_dim * children)))

    def forward(self, u: Tensor, trace: list[RoutingStep] | None = None) -> Tensor:
        return attention_routing(self.predict(u), self.norm, self.routing_iterations, trace)
