"""EM routing: every parent is a Gaussian, and the children's votes are the data that it explains.

Source: G. E. Hinton, S. Sabour, N. Frosst, *Matrix capsules with EM routing*, ICLR 2018. Equation
and procedure numbers are that paper's.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from capsnet.checks import as_int, check_predictions, class_mask, require_floating
from capsnet.functional import RoutingStep
from capsnet.layers import check_capsules

ROWS = 4  # of a pose, a matrix: 16 numbers are 4 × 4, 8 are 4 × 2
MIN_VARIANCE = 1e-6  # because a single vote has none; the authors' released code adds 5e-4
MIN_ACTIVATION = 1e-12  # because its logarithm is needed


def inverse_temperature_at(final: float, iteration: int) -> float:
    """λ of an iteration, counted from 1: final · (1 − 0.95^iteration), the authors' schedule."""
    return float(final * (1 - 0.95**iteration))


def em_routing(
    votes: Tensor,
    activations: Tensor,
    beta_u: Tensor,
    beta_a: Tensor,
    iterations: int = 3,
    inverse_temperature: float = 0.01,
    min_variance: float = MIN_VARIANCE,
    trace: list[RoutingStep] | None = None,
) -> tuple[Tensor, Tensor]:
    """EM routing (Procedure 1), with logarithms of the shares R_ij, in float32 or wider.

    M-step, for each parent j, with R_ij ← R_ij a_i:
    μ_j = Σ_i R_ij V_ij / Σ_i R_ij, σ_j² = Σ_i R_ij (V_ij − μ_j)² / Σ_i R_ij,
    cost_j = Σ_h (β_u + log σ_j^h) Σ_i R_ij, a_j = logistic(λ (β_a − cost_j)).
    E-step, for each child i: R_ij ∝ a_j N(V_ij; μ_j, σ_j²), with Σ_j R_ij = 1.

    Args:
        votes: V_ij, [batch, in_capsules, out_capsules, numbers h].
        activations: a_i in 0 … 1, [batch, in_capsules].
        beta_u: β_u, [out_capsules]; Procedure 1 adds it for each h, eq. 2 once for all.
        beta_a: β_a, [out_capsules].
        iterations: at least 1.
        inverse_temperature: final λ, see :func:`inverse_temperature_at`.
        min_variance: is added to every σ²; Procedure 1 has 0.
        trace: a list that receives a :class:`RoutingStep` an iteration: log R_ij and R_ij before
            it, the means μ_j, and these scaled to the length a_j.

    Returns:
        the parents' poses μ_j, [batch, out_capsules, numbers], and activations a_j, [batch,
        out_capsules].

    Raises:
        ValueError: ``votes`` is not a 4-D floating-point tensor, ``activations``, ``beta_u`` or
            ``beta_a`` does not fit it, or ``iterations`` is not an integer ≥ 1.
    """
    check_predictions("votes", votes, iterations)
    for name, tensor, expected in (
        ("activations", activations, votes.shape[:2]),
        ("beta_u", beta_u, votes.shape[2:3]),
        ("beta_a", beta_a, votes.shape[2:3]),
    ):
        if tensor.shape != expected:
            raise ValueError(f"{name} must be of shape {list(expected)}, got {list(tensor.shape)}")
    narrow, wide = votes.dtype, torch.promote_types(votes.dtype, torch.float32)
    with torch.autocast(votes.device.type, enabled=False):
        votes = votes.to(wide)
        log_active = activations.to(wide).clamp(min=MIN_ACTIVATION).log().unsqueeze(2)
        log_r = F.log_softmax(votes.new_zeros(votes.shape[:3]), dim=2)  # 1 / parents
        for iteration in range(1, iterations + 1):
            weights = log_r + log_active  # M 2
            mass = weights.logsumexp(1).exp()  # Σ_i R_ij, [batch, out_capsules]
            share = F.softmax(weights, dim=1)  # R_ij / Σ_i R_ij: never 0 / 0
            mean = torch.einsum("nij,nijh->njh", share, votes)  # M 3
            distance = (votes - mean.unsqueeze(1)).square()
            variance = torch.einsum("nij,nijh->njh", share, distance) + min_variance  # M 4
            log_sigma = variance.log() / 2
            cost = (beta_u.unsqueeze(1) + log_sigma).sum(dim=2) * mass  # M 5
            logit = inverse_temperature_at(inverse_temperature, iteration) * (beta_a - cost)  # M 6
            if trace is not None:
                v = F.normalize(mean, dim=2) * logit.sigmoid().unsqueeze(2)
                trace.append(RoutingStep(log_r, log_r.exp(), mean, v))
            if iteration < iterations:  # the last shares would not be used
                # E 2, without the power of 2π, which is the same for all parents
                log_p = torch.einsum("nijh,njh->nij", distance, -0.5 / variance)
                log_p = log_p - log_sigma.sum(dim=2).unsqueeze(1)
                log_r = F.log_softmax(F.logsigmoid(logit).unsqueeze(1) + log_p, dim=2)  # E 3
        return mean.to(narrow), logit.sigmoid()


class EMCapsules(nn.Module):
    """Capsules with a pose and an activation, by EM routing; every child votes for every parent.

    Arguments are those of :class:`CapsuleLayer`. Poses are matrices of 4 rows, stored as vectors,
    so that ``in_dim`` and ``out_dim`` are multiples of 4.

    Attributes:
        weight: W_ij, [in_capsules, out_capsules, in_dim / 4, out_dim / 4].
        beta_u: β_u, [out_capsules].
        beta_a: λ β_a at the last iteration, [out_capsules]; β_a would have to move by hundreds.
        inverse_temperature: final λ, parents / children, which is the authors' 0.01 at 100 children
            a parent: costs grow with the children, and λ compensates.

    Shape:
        a pair of poses [batch, in_capsules, in_dim] and activations [batch, in_capsules], in 0 … 1,
        → such a pair, [batch, out_capsules, out_dim] and [batch, out_capsules].

    Raises:
        ValueError: as :class:`CapsuleLayer`, or a dimension is no multiple of 4.
    """

    def __init__(
        self,
        in_capsules: int,
        in_dim: int,
        out_capsules: int,
        out_dim: int,
        routing_iterations: int = 3,
    ) -> None:
        super().__init__()
        self.routing_iterations = as_int("routing_iterations", routing_iterations)
        in_capsules, in_dim = as_int("in_capsules", in_capsules), as_int("in_dim", in_dim)
        out_capsules, out_dim = as_int("out_capsules", out_capsules), as_int("out_dim", out_dim)
        if in_dim % ROWS or out_dim % ROWS:
            raise ValueError(f"poses must be multiples of {ROWS} numbers, got {in_dim}, {out_dim}")
        self.inverse_temperature = out_capsules / in_capsules
        columns = in_dim // ROWS, out_dim // ROWS
        self.weight = nn.Parameter(torch.empty(in_capsules, out_capsules, *columns))
        self.beta_u = nn.Parameter(torch.empty(out_capsules))
        self.beta_a = nn.Parameter(torch.empty(out_capsules))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw W anew; the paper does not say how. With these β, parents start half active."""
        nn.init.normal_(self.weight)
        nn.init.constant_(self.beta_u, 2)  # because votes for a parent start with σ ≈ e^−2
        nn.init.zeros_(self.beta_a)

    def predict(self, poses: Tensor) -> Tensor:
        """The votes V_ij = M_i W_ij, the poses M_i being matrices, kept row by row."""
        in_capsules, _, columns, _ = self.weight.shape
        check_capsules(poses, in_capsules, ROWS * columns, self.weight.dtype)
        matrices = poses.unflatten(2, (ROWS, columns))
        return torch.einsum("nirk,ijkm->nijrm", matrices, self.weight).flatten(3)

    def forward(
        self, children: tuple[Tensor, Tensor], trace: list[RoutingStep] | None = None
    ) -> tuple[Tensor, Tensor]:
        poses, activations = children
        final, iterations = self.inverse_temperature, self.routing_iterations
        beta_a = self.beta_a / inverse_temperature_at(final, iterations)
        votes = self.predict(poses)
        return em_routing(votes, activations, self.beta_u, beta_a, iterations, final, trace=trace)


def spread_loss(activations: Tensor, targets: Tensor, margin: float = 0.9) -> Tensor:
    """Spread loss (eq. 3), L = Σ_{i ≠ t} max(0, m − (a_t − a_i))², averaged over the batch.

    Args:
        activations: a_i, [batch, classes].
        targets: t, the index of the one class that is present, integer [batch].
        margin: m; in the paper it grows from 0.2 to 0.9 during the training.

    Raises:
        ValueError: ``activations`` is not 2-D floating point, or ``targets`` are no indices of its
            classes.
    """
    require_floating("activations", activations)
    if activations.dim() != 2 or targets.dim() != 1:
        raise ValueError(
            "activations must be [batch, classes] and targets class indices [batch], got shapes "
            f"{list(activations.shape)} and {list(targets.shape)}"
        )
    present = class_mask(targets, *activations.shape)
    target = activations.masked_fill(~present, 0).sum(dim=1, keepdim=True)  # a_t, [batch, 1]
    loss = F.relu(margin - (target - activations)).square()
    return loss.masked_fill(present, 0).sum(dim=1).mean()
