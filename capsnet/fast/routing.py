"""The routed layer on a few images at a time, with its own gradient.

The logits after t iterations are b_ij = prior_ij + û_{j|i} · (v_j of iteration 1 + … + v_j of
iteration t). So nothing is kept between iterations but a sum of v: each iteration computes
agreement, softmax and weighted sum from û and that sum. The predictions û of a few images fit into
the processor's cache; the backward pass computes them anew instead of reading them from memory.

Everything is laid out with the images last, [in_capsules, out_capsules, out_dim, n]: neighbours in
memory are the same number of different images, and every loop is one over whole vectors.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from capsnet.functional import require_floating, squash

LANES = 16  # float32 numbers that one instruction works on (AVX-512)
CACHE = 6 * 2**20  # bytes of û to work on at a time


def routed_capsules(
    u: Tensor,
    weight: Tensor,
    iterations: int = 3,
    prior: Tensor | None = None,
    *,
    compile: bool = False,
) -> Tensor:
    """Predictions and routing by agreement: eq. 2 and Procedure 1.

    Gradients are those of the full computation, to first order.

    Args:
        u: the children, [n, in_capsules, in_dim]; û is computed in their dtype.
        weight: W_ij, [in_capsules, out_capsules, in_dim, out_dim].
        iterations: r, at least 1.
        prior: initial logits b_ij, [in_capsules, out_capsules]; zeros where not given.
        compile: use torch.compile for the loops over û.

    Returns:
        v_j, [n, out_capsules, out_dim], float32 or wider.

    Raises:
        ValueError: ``iterations`` is below 1, a shape does not fit, or ``u`` is not floating point.
    """
    require_floating("u", u)
    in_capsules, out_capsules, in_dim, _ = weight.shape
    if iterations < 1:
        raise ValueError(f"iterations must be at least 1, got {iterations}")
    if u.dim() != 3 or u.shape[1:] != (in_capsules, in_dim):
        raise ValueError(
            f"capsules must be [batch, {in_capsules}, {in_dim}], got shape {list(u.shape)}"
        )
    if prior is not None and prior.shape != (in_capsules, out_capsules):
        raise ValueError(
            f"prior must be [in_capsules, out_capsules] = {[in_capsules, out_capsules]}, got shape "
            f"{list(prior.shape)}"
        )
    learn = torch.is_grad_enabled() and any(
        tensor is not None and tensor.requires_grad for tensor in (u, weight, prior)
    )
    # What is computed in which dtype is said here, for the backward pass too.
    with torch.autocast(u.device.type, enabled=False):
        v: Tensor = RoutedCapsules.apply(u, weight, prior, iterations, compile, learn)
    return v


class RoutedCapsules(torch.autograd.Function):
    """:func:`routed_capsules` and its gradient, chunk by chunk."""

    @staticmethod
    def forward(
        ctx: Any,
        u: Tensor,
        weight: Tensor,
        prior: Tensor | None,
        iterations: int,
        compile: bool,
        learn: bool,
    ) -> Tensor:
        loops = Loops(compile)
        rows = weight.transpose(2, 3).flatten(1, 2).to(u.dtype).contiguous()  # [i, j · d, k]
        chunk = chunk_size(len(u), weight, u.dtype)
        u_hat = predictions_of(rows, weight, chunk)
        chunks, sums, outputs = [], [], []
        for part in u.split(chunk):
            # The last chunk is filled up with zeros: one shape, which is compiled once.
            part = F.pad(part.permute(1, 2, 0), (0, chunk - len(part))).contiguous()
            torch.bmm(rows, part, out=u_hat.flatten(1, 2))  # û_{j|i} = W_ij u_i (eq. 2)
            v_sum = None  # of all iterations so far, [j, d, n]
            s_of = []
            for _ in range(iterations):
                s = loops.attend(u_hat, v_sum, prior)
                v = squash(s, 1)
                v_sum = v if v_sum is None else v_sum + v
                if learn:
                    s_of.append(s)
            outputs.append(v)
            if learn:
                chunks.append(part)
                sums.append(torch.stack(s_of))  # [iterations, j, d, n]
        if learn:
            ctx.save_for_backward(weight, rows, prior, *chunks, *sums)
            ctx.loops = loops
        return torch.cat(outputs, dim=2)[..., : len(u)].permute(2, 0, 1)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        weight, rows, prior, *saved = ctx.saved_tensors
        chunks, sums = saved[: len(saved) // 2], saved[len(saved) // 2 :]
        need_u, need_weight, need_prior = ctx.needs_input_grad[:3]
        chunk, wide = chunks[0].shape[2], sums[0].dtype
        grad_u: list[Tensor] = []
        grad_rows = grad_prior = None
        if need_weight:
            # Laid out as the products that are added to it, or the sum is a slow one.
            grad_rows = rows.new_zeros(rows.transpose(1, 2).shape, dtype=wide)
        if need_prior:
            grad_prior = torch.zeros_like(prior, dtype=wide)
        u_hat = predictions_of(rows, weight, chunk)
        for part, s_of, grad_v in zip(chunks, sums, grad.split(chunk), strict=True):
            grad_v = F.pad(grad_v.permute(1, 2, 0), (0, chunk - len(grad_v))).to(s_of.dtype)
            torch.bmm(rows, part, out=u_hat.flatten(1, 2))
            grad_u_hat, grad_b = chunk_backward(ctx.loops, u_hat, s_of, prior, grad_v)
            if grad_prior is not None:
                grad_prior += grad_b.sum(dim=2)
            grad_u_hat = grad_u_hat.flatten(1, 2)
            if need_u:
                grad_u.append(torch.bmm(rows.transpose(1, 2), grad_u_hat))
            if grad_rows is not None:
                grad_rows += torch.bmm(part, grad_u_hat.transpose(1, 2))
        of_u = of_weight = of_prior = None
        if need_u:
            of_u = torch.cat(grad_u, dim=2)[..., : len(grad)].permute(2, 0, 1)
        if grad_rows is not None:
            of_weight = grad_rows.unflatten(2, weight.shape[1::2]).transpose(1, 2)
            of_weight = of_weight.to(weight.dtype)
        if grad_prior is not None:
            of_prior = grad_prior.to(prior.dtype)
        return of_u, of_weight, of_prior, None, None, None


def chunk_backward(
    loops: "Loops", u_hat: Tensor, s_of: Tensor, prior: Tensor | None, grad_v: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients of û and, summed over iterations, of the logits, from that of the last v.

    û's takes the place of û.

    û's is a sum of outer products of coefficients [i, j] and vectors [j, d]: of c_ij and the
    gradient of s_j, and of the gradient of b_ij and the sum of v, for every iteration.
    """
    v_sums = squash(s_of[:-1], 2).cumsum(0).unbind() if len(s_of) > 1 else ()
    coefficients: list[Tensor | None] = []
    vectors: list[Tensor] = []
    grad_sum = torch.zeros_like(grad_v)  # each v is part of the sums of all later iterations
    all_b = torch.zeros((), dtype=grad_v.dtype, device=grad_v.device)
    for t in reversed(range(len(s_of))):
        grad_s = loops.squash_backward(s_of[t], grad_v)
        v_sum = v_sums[t - 1] if t > 0 else None
        if v_sum is None and prior is None:  # the first iteration: c is 1 / out_capsules
            coefficients.append(None)
            vectors.append(grad_s / len(grad_s))
            continue
        c, grad_b, grad_v = loops.attend_backward(u_hat, v_sum, prior, grad_s)
        coefficients.append(c)
        vectors.append(grad_s)
        if v_sum is not None:
            coefficients.append(grad_b)
            vectors.append(v_sum)
            grad_v = grad_sum = grad_sum + grad_v
        if prior is not None:
            all_b = all_b + grad_b
    return loops.outer(coefficients, vectors, u_hat), all_b


class Loops:
    """The loops over û, compiled or not."""

    attend: Callable[..., Tensor]
    attend_backward: Callable[..., tuple[Tensor, Tensor, Tensor]]
    outer: Callable[..., Tensor]
    squash_backward: Callable[..., Tensor]

    def __init__(self, compile: bool) -> None:
        for loop in (attend, attend_backward, outer, squash_backward):
            setattr(self, loop.__name__, compiled(loop) if compile else loop)


@functools.cache
def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function through torch.compile, anew for every shape: its loops are best when fixed.

    After torch's limit of shapes (eight) the others run uncompiled.
    """
    return torch.compile(function, dynamic=False)


def predictions_of(rows: Tensor, weight: Tensor, chunk: int) -> Tensor:
    """Room for û, [i, j, d, n]: all chunks use the same, which is then still in the cache."""
    i, j, _, d = weight.shape
    return rows.new_empty(i, j, d, chunk)


def attend(u_hat: Tensor, v_sum: Tensor | None, prior: Tensor | None) -> Tensor:
    """s_j = Σ_i c_ij û_{j|i} (eq. 2): [j, d, n]."""
    if v_sum is None and prior is None:  # the first iteration: c is 1 / out_capsules
        return weighted_sum(None, u_hat) / u_hat.shape[1]
    return weighted_sum(coupling(u_hat, v_sum, prior), u_hat)


def attend_backward(
    u_hat: Tensor, v_sum: Tensor | None, prior: Tensor | None, grad_s: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """c_ij, and the gradients of b_ij and of the sum of v, from that of s_j."""
    c = coupling(u_hat, v_sum, prior)
    grad_c = (u_hat * grad_s).sum(2)
    grad_b = c * (grad_c - (c * grad_c).sum(1, keepdim=True))
    return c, grad_b, weighted_sum(grad_b, u_hat)


def coupling(u_hat: Tensor, v_sum: Tensor | None, prior: Tensor | None) -> Tensor:
    """c_ij, the softmax over j of b_ij (eq. 3): [i, j, n], float32 or wider."""
    i, j, _, n = u_hat.shape
    if v_sum is None:
        wide = torch.promote_types(u_hat.dtype, torch.float32)
        b = torch.zeros(i, j, n, dtype=wide, device=u_hat.device)
    else:
        b = (u_hat * v_sum).sum(2)  # û_{j|i} · Σ v_j
    if prior is not None:
        b = b + prior.unsqueeze(2)
    return b.softmax(1)


def weighted_sum(c: Tensor | None, u_hat: Tensor) -> Tensor:
    """Σ_i c_ij û_{j|i}, or Σ_i û_{j|i}: [j, d, n], float32 or wider."""
    wide = torch.promote_types(u_hat.dtype, torch.float32)
    terms = u_hat.to(wide) if c is None else c.unsqueeze(2) * u_hat
    group = math.gcd(len(terms), 32)
    if group < 4:
        return terms.sum(0)
    # In two stages: each thread reads neighbours in memory, and every thread has work.
    return terms.unflatten(0, (-1, group)).sum(1).sum(0)


def outer(coefficients: list[Tensor | None], vectors: list[Tensor], u_hat: Tensor) -> Tensor:
    """The sum of outer products of [i, j, n] (1 where None) and [j, d, n], written over û."""
    total = torch.zeros((), dtype=vectors[0].dtype, device=u_hat.device)
    for c, v in zip(coefficients, vectors, strict=True):
        total = total + (v if c is None else c.unsqueeze(2) * v)
    return u_hat.copy_(total)


def squash_backward(s: Tensor, grad_v: Tensor) -> Tensor:
    """The gradient of s from that of v = squash(s), along dimension 1."""
    vjp = torch.func.vjp(lambda s: squash(s, 1), s)[1]
    (grad_s,) = vjp(grad_v)
    return grad_s


def chunk_size(n: int, weight: Tensor, dtype: torch.dtype) -> int:
    """Images to work on at a time, of n: whole vectors, and û within the cache."""
    i, j, _, d = weight.shape
    fits = CACHE // (i * j * d * dtype.itemsize)
    return LANES * max(1, min(fits // LANES, -(-n // LANES)))
