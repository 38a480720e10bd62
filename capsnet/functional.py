"""The equations of *Dynamic Routing Between Capsules* as pure functions of tensors.

Source: S. Sabour, N. Frosst, G. E. Hinton, NeurIPS 2017, arXiv:1710.09829. Equation and section
numbers are that paper's.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from capsnet.checks import check_predictions, check_prior, class_mask, require_floating


class RoutingStep(NamedTuple):
    """What one iteration of :func:`dynamic_routing` computed, for looking inside."""

    b: Tensor  # logits b_ij before the iteration, [batch, in_capsules, out_capsules]
    c: Tensor  # coupling coefficients c_ij, same shape; they sum to 1 over out_capsules
    s: Tensor  # total inputs s_j, [batch, out_capsules, out_dim]
    v: Tensor  # outputs v_j, [batch, out_capsules, out_dim]


def squash(s: Tensor, dim: int = -1) -> Tensor:
    """Shrink each vector to a length below 1 and keep its direction (eq. 1).

    v = ‖s‖² / (1 + ‖s‖²) · s / ‖s‖

    Args:
        s: floating point, any shape; the vectors lie along ``dim``.
        dim: the dimension that holds a vector's components.

    Returns:
        v, shaped like ``s``. The value and the gradient are finite for every finite s: at s = 0
        both are 0, and ‖s‖² may overflow or underflow the dtype.

    Raises:
        ValueError: ``s`` is not floating point.
    """
    require_floating("s", s)
    if s.numel() == 0:  # no component is the largest
        return s
    # `peak` cancels, so no gradient is owed through it. It keeps ‖s‖² in
    # range; where no component exceeds 1, it is 1.
    peak = s.detach().abs().amax(dim, keepdim=True).clamp(min=1)
    unit = s / peak
    # ‖s‖ / peak; its subgradient at 0 is 0
    norm = torch.linalg.vector_norm(unit, dim=dim, keepdim=True)
    return unit * (norm / (peak.reciprocal().square() + norm.square()))


def dynamic_routing(
    u_hat: Tensor,
    iterations: int = 3,
    prior: Tensor | None = None,
    trace: list[RoutingStep] | None = None,
) -> Tensor:
    """Routing by agreement (Procedure 1, with eq. 2 and eq. 3).

    Gradients flow through every iteration, the updates of the logits included. The logits are kept
    and added up in float32 or wider, also where ``u_hat`` is narrower and under autocast. Only s_j
    is in the dtype of ``u_hat``: in float16 one beyond 65,504 overflows, and v_j is NaN.

    Args:
        u_hat: the predictions û_{j|i}, [batch, in_capsules, out_capsules, out_dim].
        iterations: r, at least 1. With one iteration no agreement counts: the predictions are
            added up, weighted by the softmax of the prior over the parents, and squashed.
        prior: initial logits b_ij, [in_capsules, out_capsules]; zeros where not given.
        trace: a list that receives one :class:`RoutingStep` per iteration.

    Returns:
        v_j, the parents' outputs, [batch, out_capsules, out_dim].

    Raises:
        ValueError: ``u_hat`` is not a 4-D floating-point tensor, ``iterations`` is not an
            integer ≥ 1, or ``prior`` has another shape than [in_capsules, out_capsules].
    """
    check_predictions("u_hat", u_hat, iterations)
    if prior is None:
        prior = u_hat.new_zeros(u_hat.shape[1:3])
    check_prior(prior, u_hat)

    # Float32 or wider: in half precision a small agreement would vanish in a large sum.
    prior = prior.to(torch.promote_types(prior.dtype, torch.float32))
    b = prior.repeat(u_hat.shape[0], 1, 1)  # the same for every image
    for iteration in range(1, iterations + 1):
        c = F.softmax(b, dim=2)  # eq. 3: over the parents j
        s = torch.einsum("nij,nijd->njd", c.to(u_hat.dtype), u_hat)  # eq. 2
        v = squash(s)  # eq. 1
        if trace is not None:
            trace.append(RoutingStep(b, c, s, v))
        if iteration < iterations:  # nothing would read the last update
            b = b + torch.einsum("nijd,njd->nij", u_hat, v)  # û_{j|i} · v_j
    return v


def margin_loss(
    lengths: Tensor,
    targets: Tensor,
    m_pos: float = 0.9,
    m_neg: float = 0.1,
    down_weight: float = 0.5,
) -> Tensor:
    """Separate margin loss of every class (eq. 4), summed over classes, averaged over the batch.

    L_k = T_k max(0, m⁺ − ‖v_k‖)² + λ (1 − T_k) max(0, ‖v_k‖ − m⁻)²

    Args:
        lengths: ‖v_k‖, [batch, classes].
        targets: class indices, integer [batch], or T_k itself, 0 or 1, [batch, classes]: several
            classes may be present at once.
        m_pos: m⁺, the length below which a present class is penalised.
        m_neg: m⁻, the length above which an absent class is penalised.
        down_weight: λ, the weight of absent classes.

    Returns:
        the loss, a scalar; NaN for an empty batch, like the losses of torch.nn.functional.

    Raises:
        ValueError: ``lengths`` is not floating point, shapes do not fit, or class indices are not
            integers or are out of range (as :func:`capsnet.checks.class_mask` checks them).
    """
    require_floating("lengths", lengths)
    if lengths.dim() != 2:
        raise ValueError(f"lengths must be [batch, classes], got shape {list(lengths.shape)}")
    present = class_mask(targets, *lengths.shape).to(lengths.dtype)  # T_k
    too_short = F.relu(m_pos - lengths).square()
    too_long = F.relu(lengths - m_neg).square()
    # L_k, [batch, classes]
    loss = present * too_short + down_weight * (1 - present) * too_long
    return loss.sum(dim=1).mean()


def reconstruction_loss(reconstruction: Tensor, images: Tensor) -> Tensor:
    """Sum of squared pixel differences of an image, averaged over the batch (section 4.1).

    The paper adds 0.0005 times this *sum* to the margin loss.

    Args:
        reconstruction: the decoder's output, [batch, ...], intensities in 0 … 1.
        images: what it should have been, the same shape.

    Returns:
        the loss, a scalar, unscaled; NaN for an empty batch, as above.

    Raises:
        ValueError: the shapes differ or are of less than two dimensions, or one of the two is not
            floating point.
    """
    require_floating("reconstruction", reconstruction)
    require_floating("images", images)
    if reconstruction.shape != images.shape or images.dim() < 2:
        raise ValueError(
            "reconstruction and images must have one shape [batch, ...], got "
            f"{list(reconstruction.shape)} and {list(images.shape)}"
        )
    return (reconstruction - images).square().flatten(1).sum(dim=1).mean()
