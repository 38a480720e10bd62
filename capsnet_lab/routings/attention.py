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

from capsnet.checks import check_predictions
from capsnet.functional import RoutingStep
from capsnet.layers import CapsuleLayer


def attention_routing(
    votes: Tensor,
    norm: Callable[[Tensor], Tensor],
    iterations: int = 2,
    trace: list[RoutingStep] | None = None,
) -> Tensor:
    """Inverted dot-product attention routing (Procedure 1), one layer after the other.

    a_ij = p_j · v_ij / √d (eq. 2; only the released code divides by √d), r_ij = softmax of a_i over
    the parents (eq. 3), p_j = norm(Σ_i r_ij v_ij). Poses start at 0, so all shares start equal.
    Agreements replace those of the iteration before, where dynamic routing adds them up.

    In a stack, the paper updates all layers once an iteration. Here a layer is done before the next
    begins, as in the released code's sequential routing.

    Args:
        votes: v_ij, [batch, in_capsules, out_capsules, out_dim].
        norm: layer normalisation of the last dimension.
        iterations: at least 1; a single one computes no agreement.
        trace: a list that receives one :class:`RoutingStep` an iteration.

    Returns:
        p_j, the parents' poses, [batch, out_capsules, out_dim].

    Raises:
        ValueError: as :func:`capsnet.functional.dynamic_routing`.
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

    Sizes, shapes and errors are those of :class:`CapsuleLayer`; votes are v_ij = W_ij p_i (eq. 1).
    Layer normalisation makes all parents about equally long, so that the paper uses a linear map of
    a class's pose, the same for all classes, as its score. ``norm`` is shared by the parents.
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
