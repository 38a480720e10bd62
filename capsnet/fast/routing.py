"""The routed layer on a few images at a time, with its own gradient.

Two identities carry it. With V_j, the sum of v_j over all earlier iterations, the logits and the
gradient of the predictions are

    F1    b_ij = prior_ij + û_{j|i} · V_j
    F2    ∂L/∂û_{j|i} = Σ (c_ij ∂L/∂s_j + ∂L/∂b_ij V_j), a sum over the iterations

So nothing is kept between iterations but V: each iteration computes agreement, softmax and weighted
sum from û and V. The predictions û of a few images fit into the processor's cache; the backward
pass computes them anew instead of reading them from memory. :func:`routed_capsules_plainly` is F1
and no more, and stands between :func:`capsnet.functional.dynamic_routing` and what is run.

Everything is laid out with the images last, [in_capsules, out_capsules, out_dim, n]: neighbours in
memory are the same number of different images, and every loop is one over whole vectors.
"""

import functools
import importlib.metadata
import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from capsnet.checks import as_int
from capsnet.functional import squash

LANES = 16  # float32 numbers that one instruction works on (AVX-512)
CACHE = 6 * 2**20  # bytes of û to work on at a time
TRITON = (3, 4)  # the first version with tuples such as ours
Squash = Callable[[Tensor, int], Tensor]  # s, and the dimension that holds its components


def routed_capsules(
    u: Tensor,
    weight: Tensor,
    iterations: int = 3,
    prior: Tensor | None = None,
    *,
    squash: Squash = squash,
    compile: bool = False,
) -> Tensor:
    """Predictions and routing by agreement: eq. 2 and Procedure 1.

    Gradients are those of the full computation, to first order. Shapes are those of a
    :class:`capsnet.CapsuleLayer`, which checks them.

    Args:
        u: the children, [n, in_capsules, in_dim]; û is computed in their dtype.
        weight: W_ij, [in_capsules, out_capsules, in_dim, out_dim].
        iterations: r, at least 1; else ValueError.
        prior: initial logits b_ij, [in_capsules, out_capsules]; zeros where not given.
        squash: of s_j, along a dimension.
        compile: use torch.compile for the loops over û. On CUDA there are kernels of our own in
            their place (:mod:`capsnet.fast.fused`), where those can do what is asked.

    Returns:
        v_j, [n, out_capsules, out_dim], float32 or wider.
    """
    iterations = as_int("iterations", iterations)
    gradients = torch.is_grad_enabled()  # within the Function they are never enabled
    # The dtypes are chosen here, for the backward pass too.
    with torch.autocast(u.device.type, enabled=False):
        v: Tensor
        if u.device.type == "cuda" and has_triton():
            from capsnet.fast import fused

            if fused.is_supported(u, weight):
                v = fused.FusedRouting.apply(u, weight, prior, iterations, squash, gradients)
                return v
        v = RoutedCapsules.apply(u, weight, prior, iterations, squash, compile, gradients)
    return v


def routed_capsules_plainly(
    u: Tensor, weight: Tensor, iterations: int, prior: Tensor | None = None
) -> Tensor:
    """:func:`routed_capsules` by F1 alone: no chunks, and autograd's gradient in place of F2.

    For readers and tests, which find it equal to ``dynamic_routing`` and to what is run.
    """
    u_hat = torch.einsum("nik,ijkd->nijd", u, weight)  # eq. 2
    v_sum = u.new_zeros(len(u), *weight.shape[1::2])  # V: [n, j, d]
    for _ in range(iterations):
        b = torch.einsum("nijd,njd->nij", u_hat, v_sum)  # F1
        if prior is not None:
            b = b + prior
        c = b.softmax(2)  # eq. 3
        v = squash(torch.einsum("nij,nijd->njd", c, u_hat))  # eq. 2 and 1
        v_sum = v_sum + v
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
        squash: Squash,
        compile: bool,
        gradients: bool,
    ) -> Tensor:
        learn = gradients and any(ctx.needs_input_grad)
        weighted_sum_fn = compile_once(weighted_predictions) if compile else weighted_predictions
        matrices = weight.transpose(2, 3).flatten(1, 2).to(u.dtype).contiguous()  # [i, j · d, k]
        size = chunk_size(len(u), weight, u.dtype)
        u_hat = empty_predictions(u, weight, size)
        chunks, inputs, outputs = [], [], []
        for chunk in u.split(size):
            # The last chunk is filled up: one shape, which is compiled once. Of ones: not every
            # squash has a gradient at 0 (tests/lab/wild: bare-norm).
            chunk = F.pad(chunk.permute(1, 2, 0), (0, size - len(chunk)), value=1.0).contiguous()
            torch.bmm(matrices, chunk, out=u_hat.flatten(1, 2))  # û_{j|i} = W_ij u_i (eq. 2)
            v_sum = None  # V of F1, [j, d, n]
            s_of_iterations = []
            for _ in range(iterations):
                s = weighted_sum_fn(u_hat, v_sum, prior)
                v = squash(s, 1)
                v_sum = v if v_sum is None else v_sum + v
                if learn:
                    s_of_iterations.append(s)
            outputs.append(v)
            if learn:
                chunks.append(chunk)
                inputs.append(torch.stack(s_of_iterations))  # [iterations, j, d, n]
        if learn:
            ctx.save_for_backward(weight, matrices, prior, *chunks, *inputs)
            ctx.squash, ctx.compile = squash, compile
        return torch.cat(outputs, dim=2)[..., : len(u)].permute(2, 0, 1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        refuse_second_derivatives()
        weight, matrices, prior, *saved = ctx.saved_tensors
        chunks, inputs = saved[: len(saved) // 2], saved[len(saved) // 2 :]
        size = chunks[0].shape[2]
        wide = inputs[0].dtype
        # Laid out as the products that are added to it, or the sum is a slow one.
        grad_matrices = matrices.new_zeros(matrices.transpose(1, 2).shape, dtype=wide)
        grad_prior = None if prior is None else torch.zeros_like(prior, dtype=wide)
        grad_chunks: list[Tensor] = []
        u_hat = empty_predictions(matrices, weight, size)
        for chunk, s, grad_v in zip(chunks, inputs, grad.split(size), strict=True):
            grad_v = F.pad(grad_v.permute(1, 2, 0), (0, size - len(grad_v))).to(wide)
            torch.bmm(matrices, chunk, out=u_hat.flatten(1, 2))
            grad_u_hat, grad_b = chunk_backward(u_hat, s, prior, grad_v, ctx.squash, ctx.compile)
            if grad_prior is not None:
                grad_prior += grad_b.sum(dim=2)
            grad_u_hat = grad_u_hat.flatten(1, 2)
            grad_chunks.append(torch.bmm(matrices.transpose(1, 2), grad_u_hat))
            grad_matrices += torch.bmm(chunk, grad_u_hat.transpose(1, 2))
        grad_u = torch.cat(grad_chunks, dim=2)[..., : len(grad)].permute(2, 0, 1)
        grad_weight = grad_matrices.unflatten(2, weight.shape[1::2]).transpose(1, 2)
        # Autograd rounds these to the dtypes of their tensors and drops those that nothing needs.
        return grad_u, grad_weight, grad_prior, None, None, None, None


def refuse_second_derivatives() -> None:
    """Raise RuntimeError in a backward pass that would be differentiated."""
    # PyTorch's once_differentiable does so in the second pass, and in autograd.grad often not.
    if torch.is_grad_enabled():
        raise RuntimeError('the fast arrangement has no second derivatives: arrange it "plain"')


def chunk_backward(
    u_hat: Tensor, s: Tensor, prior: Tensor | None, grad_v: Tensor, squash: Squash, compile: bool
) -> tuple[Tensor, Tensor]:
    """The gradients of û and, summed over iterations, of the logits, from that of the last v."""
    loops = squash_backward, weighted_predictions_backward, sum_of_outer_products
    squash_back, predictions_back, sum_outer = map(compile_once, loops) if compile else loops
    v_sums = squash(s[:-1], 2).cumsum(0)  # V of every iteration but the first
    terms: list[tuple[Tensor | None, Tensor]] = []
    grad_sum = torch.zeros_like(grad_v)  # each v is part of the sums of all later iterations
    grad_logits: Any = 0.0  # a tensor, if there is a prior
    for t in reversed(range(len(s))):
        grad_s = squash_back(s[t], grad_v, squash)
        v_sum = v_sums[t - 1] if t > 0 else None
        if v_sum is None and prior is None:  # all coupling coefficients are 1 / out_capsules
            terms.append((None, grad_s / len(grad_s)))
            continue
        c, grad_b, grad_v = predictions_back(u_hat, v_sum, prior, grad_s)
        terms.append((c, grad_s))  # F2, first product
        if v_sum is not None:
            terms.append((grad_b, v_sum))  # F2, second product
            grad_v = grad_sum = grad_sum + grad_v
        if prior is not None:
            grad_logits = grad_logits + grad_b
    return sum_outer(terms, u_hat), grad_logits


@functools.cache
def has_triton() -> bool:
    """Whether Triton is installed, in a version that compiles our kernels, and works."""
    try:
        version = importlib.metadata.version("triton").split(".")
    except importlib.metadata.PackageNotFoundError:
        return False
    if tuple(map(int, version[:2])) < TRITON:
        return False
    from capsnet.fast import fused

    return fused.triton_works()


@functools.cache
def compile_once(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function through torch.compile, anew for each of the first eight shapes (its limit)."""
    return torch.compile(function, dynamic=False)


def empty_predictions(like: Tensor, weight: Tensor, size: int) -> Tensor:
    """An empty û, [i, j, d, n]: all chunks use the same, which is then still in the cache."""
    i, j, _, d = weight.shape
    return like.new_empty(i, j, d, size)


def weighted_predictions(u_hat: Tensor, v_sum: Tensor | None, prior: Tensor | None) -> Tensor:
    """s_j = Σ_i c_ij û_{j|i} (eq. 2): [j, d, n]."""
    if v_sum is None and prior is None:
        return weighted_sum(None, u_hat) / u_hat.shape[1]
    return weighted_sum(routing_logits(u_hat, v_sum, prior).softmax(1), u_hat)  # eq. 3


def weighted_predictions_backward(
    u_hat: Tensor, v_sum: Tensor | None, prior: Tensor | None, grad_s: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """c_ij, and the gradients of b_ij and of the sum of v, from that of s_j."""
    c, back, *_ = torch.func.vjp(lambda b: b.softmax(1), routing_logits(u_hat, v_sum, prior))
    (grad_b,) = back((u_hat * grad_s).sum(2))
    return c, grad_b, weighted_sum(grad_b, u_hat)


def routing_logits(u_hat: Tensor, v_sum: Tensor | None, prior: Tensor | None) -> Tensor:
    """b_ij by F1, [i, j, n], float32 or wider."""
    i, j, _, n = u_hat.shape
    if v_sum is None:
        wide = torch.promote_types(u_hat.dtype, torch.float32)
        b = torch.zeros(i, j, n, dtype=wide, device=u_hat.device)
    else:
        b = (u_hat * v_sum).sum(2)  # F1: û_{j|i} · V_j
    return b if prior is None else b + prior.unsqueeze(2)


def weighted_sum(c: Tensor | None, u_hat: Tensor) -> Tensor:
    """Σ_i c_ij û_{j|i}, or Σ_i û_{j|i}: [j, d, n], float32 or wider."""
    wide = torch.promote_types(u_hat.dtype, torch.float32)
    terms = u_hat.to(wide) if c is None else c.unsqueeze(2) * u_hat
    group = math.gcd(len(terms), 32)  # pragma: no mutate
    if group < 4:  # pragma: no mutate
        return terms.sum(0)
    # In two stages: each thread reads neighbours in memory, and every thread has work. The group
    # makes no other difference.
    return terms.unflatten(0, (-1, group)).sum(1).sum(0)


def sum_of_outer_products(terms: list[tuple[Tensor | None, Tensor]], u_hat: Tensor) -> Tensor:
    """The sum of outer products of [i, j, n] (1 where None) and [j, d, n], written over û."""
    total: Any = 0.0
    for c, v in terms:
        total = total + (v if c is None else c.unsqueeze(2) * v)
    return u_hat.copy_(total)


def squash_backward(s: Tensor, grad_v: Tensor, squash: Squash) -> Tensor:
    """The gradient of s from that of v = squash(s), along dimension 1."""
    (grad_s,) = torch.func.vjp(lambda s: squash(s, 1), s)[1](grad_v)
    return grad_s


def chunk_size(n: int, weight: Tensor, dtype: torch.dtype) -> int:
    """Images to work on at a time, of n: whole vectors, and û within a processor's cache."""
    i, j, _, d = weight.shape
    if weight.device.type == "cuda":
        return n
    fits = CACHE // (i * j * d * dtype.itemsize)
    return LANES * max(1, min(fits // LANES, -(-n // LANES)))
