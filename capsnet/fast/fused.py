"""The routed layer on CUDA, in kernels of its own: û is computed where it is used, never stored.

A program holds a block of images and goes through children one by one: û_{j|i} = W_ij u_i, its
agreement with the sum of v, the softmax over the parents, and what the child adds to s_j. All of
that fits into registers, so that memory sees only u, W and v; and, in the backward pass, the
gradient of û, from which two products of matrices make those of u and W. Each program writes a sum
of its own, and these are added up in a fixed order: the same numbers each time.

The mathematics is F1 and F2 of :mod:`capsnet.fast.routing`; numbers are added up in float32. Triton
compiles the kernels when they are first called, and its interpreter runs them without a GPU.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from capsnet.fast.kernels import grad_kernel, one_kernel, sum_kernel
from capsnet.fast.routing import refuse_second_derivatives

MOST_PARENTS = 16  # with more a thread would have too few registers
MOST_PRODUCTS = 160  # J · K, which are written out: with more, compiling takes minutes
MOST_COMPONENTS = 128  # D: four for each thread of a warp
CHILDREN_PER_PROGRAM = 18
LAUNCH = {"num_warps": 4, "num_stages": 1}


def power_of_2(n: int) -> int:
    """The smallest power of two ≥ n."""
    return 1 << (n - 1).bit_length()


def sizes(weight: Tensor) -> dict[str, int]:
    """The sizes of W, D padded to a power of 2 (DP), and the images of a block."""
    _, j, k, d = weight.shape
    padded = power_of_2(d)
    images = min(16, MOST_COMPONENTS // padded)  # of a warp
    return {"J": j, "K": k, "D": d, "DP": padded, "IMAGES": LAUNCH["num_warps"] * images}


def shape_is_supported(weight: Tensor) -> bool:
    """Whether weights of this shape fit into the registers of one program."""
    _, j, k, d = weight.shape
    return j <= MOST_PARENTS and j * k <= MOST_PRODUCTS and d <= MOST_COMPONENTS


def is_supported(u: Tensor, weight: Tensor) -> bool:
    """Whether the kernels support this dtype, this shape, and as many predictions."""
    supported = u.dtype in (torch.float32, torch.bfloat16, torch.float16)
    predictions = len(u) * weight[:, :, 0].numel()
    in_range = predictions > 0 and max(predictions, u.numel()) < 2**31  # offsets have 32 bits
    return supported and in_range and shape_is_supported(weight)


@functools.cache
def triton_works() -> bool:
    """Whether Triton can compile and launch a kernel here; it needs a C compiler, say."""
    try:
        one_kernel[1,](number := torch.zeros(1, device="cuda"))
        return number.item() == 1
    except Exception:  # compilers, headers and caches can be missing in many ways
        return False


@torch.library.custom_op("capsnet::sum_over_children", mutates_args=())
def sum_over_children(
    u: Tensor, weight: Tensor, prior: Tensor | None, v_sum: Tensor, grad_s: Tensor | None
) -> Tensor:
    """s_j, or from its gradient that of the sum of v: [n, out_capsules, out_dim], float32."""
    n, children, _ = u.shape
    size = sizes(weight)
    grid = -(-n // size["IMAGES"]), -(-children // CHILDREN_PER_PROGRAM)
    sums = v_sum.new_empty(grid[1], *v_sum.shape)
    with torch.cuda.device_of(u):
        sum_kernel[grid](
            u, weight, prior, v_sum, grad_s, sums, n, children,
            **size, CHILDREN=CHILDREN_PER_PROGRAM, **LAUNCH,
        )  # fmt: skip
    return sums.sum(0)


@sum_over_children.register_fake
def _(u: Any, weight: Any, prior: Any, v_sum: Tensor, grad_s: Any) -> Tensor:
    return torch.empty_like(v_sum)


@torch.library.custom_op("capsnet::grad_of_predictions", mutates_args=())
def grad_of_predictions(
    u: Tensor, weight: Tensor, prior: Tensor | None, v_sums: Tensor, grads_s: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients of û, [in_capsules, n, out_capsules · out_dim] in the dtype of u, and of the
    prior, float32, from those of every iteration's s_j.
    """
    n, children, _ = u.shape
    size = sizes(weight)
    grid = -(-n // size["IMAGES"]), -(-children // CHILDREN_PER_PROGRAM)
    grad_u_hat = u.new_empty(children, n, size["J"] * size["D"])
    parts = 0 if prior is None else len(v_sums) * grid[0]  # an iteration's, a block's
    grad_prior = v_sums.new_empty(parts, children, size["J"])
    with torch.cuda.device_of(u):
        grad_kernel[grid](
            u, weight, prior, v_sums, grads_s, grad_u_hat, grad_prior, n, children,
            **size, CHILDREN=CHILDREN_PER_PROGRAM, ITERATIONS=len(v_sums), **LAUNCH,
        )  # fmt: skip
    return grad_u_hat, grad_prior.sum(0)


@grad_of_predictions.register_fake
def _(u: Tensor, weight: Tensor, prior: Any, v_sums: Tensor, grads_s: Any) -> Any:
    children, j, _, d = weight.shape
    return u.new_empty(children, len(u), j * d), v_sums.new_empty(children, j)


class FusedRouting(torch.autograd.Function):
    """:func:`capsnet.fast.routing.routed_capsules` where :func:`is_supported` is true."""

    @staticmethod
    def forward(
        ctx: Any,
        u: Tensor,
        weight: Tensor,
        prior: Tensor | None,
        iterations: int,
        squash: Callable[[Tensor, int], Tensor],
        gradients: bool,
    ) -> Tensor:
        u, weight = u.contiguous(), weight.contiguous()
        prior = None if prior is None else prior.contiguous()
        _, j, _, d = weight.shape
        learn = gradients and any(ctx.needs_input_grad)
        v_sum = u.new_zeros(len(u), j, d, dtype=torch.float32)
        inputs, v_sums = [], []
        for _ in range(iterations):
            s = sum_over_children(u, weight, prior, v_sum, None)
            v = squash(s, 2)
            if learn:
                inputs.append(s)
                v_sums.append(v_sum)
            v_sum = v_sum + v
        if learn:
            ctx.save_for_backward(u, weight, prior, torch.stack(v_sums), torch.stack(inputs))
            ctx.squash = squash
        return v

    @staticmethod
    def backward(ctx: Any, grad_v: Tensor) -> tuple[Tensor | None, ...]:
        refuse_second_derivatives()
        u, weight, prior, v_sums, inputs = ctx.saved_tensors
        grads_s, grad_sum = torch.empty_like(inputs), torch.zeros_like(inputs[0])
        for t in reversed(range(len(inputs))):
            back = torch.func.vjp(lambda s: ctx.squash(s, 2), inputs[t])[1]
            (grads_s[t],) = back(grad_v.to(inputs.dtype))
            if t > 0:  # each v is part of the sums of all later iterations
                grad_term = sum_over_children(u, weight, prior, v_sums[t], grads_s[t])
                grad_v = grad_sum = grad_sum + grad_term
        grad_u_hat, grad_prior = grad_of_predictions(u, weight, prior, v_sums, grads_s)
        matrices = weight.to(u.dtype).transpose(2, 3).flatten(1, 2)  # [i, j · d, k]
        grad_u = torch.bmm(grad_u_hat, matrices).transpose(0, 1)
        grad_weight = torch.bmm(u.permute(1, 2, 0), grad_u_hat)  # [i, k, j · d]
        grad_weight = grad_weight.unflatten(2, weight.shape[1::2]).transpose(1, 2)
        return grad_u, grad_weight, None if prior is None else grad_prior, None, None, None
