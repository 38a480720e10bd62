"""The routed layer on CUDA, in kernels of its own: û is computed where it is used, never stored.

A program holds a block of images and goes through children one by one: û_{j|i} = W_ij u_i, its
agreement with the sum of v, the softmax over the parents, and what the child adds to s_j. All of
that fits into registers, so that memory sees only u, W and v. Each program writes a sum of its own,
and these are added up in a fixed order: the same numbers each time.

The mathematics is that of :mod:`capsnet.fast.routing`; numbers are added up in float32. Triton
compiles the kernels when they are first called, and its interpreter runs them without a GPU.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from capsnet.fast.kernels import grad_kernel, sum_kernel

IMAGES = 16  # of a program; a tensor core multiplies no fewer
CHILDREN = 48  # that a program goes through
HELD = 2**12  # numbers of û and of W that it holds at most; with more, a T4's memory is too small
# Loading ahead, as more stages do, takes more shared memory than a GPU has; fewer warps, more
# registers than a thread has.
LAUNCH = {"num_warps": 8, "num_stages": 1}


def power_of_2(n: int) -> int:
    """The least of them that is not less."""
    return 1 << (n - 1).bit_length()


def sizes(weight: Tensor) -> dict[str, int]:
    """The shape as it is and, as blocks want it, in powers of 2; and the images of a block."""
    _, j, k, d = weight.shape
    padded = {"JP": power_of_2(j), "KP": max(16, power_of_2(k)), "DP": power_of_2(d)}
    return {"J": j, "K": k, "D": d, **padded, "IMAGES": IMAGES}


def fits(u: Tensor, weight: Tensor) -> bool:
    """Whether a program can multiply these numbers, and hold what it makes of them."""
    known = u.dtype in (torch.float32, torch.bfloat16, torch.float16)
    size = sizes(weight)
    parents = size["JP"] * size["DP"]
    return known and u.numel() > 0 and parents >= 16 and size["KP"] * parents <= HELD


@torch.library.custom_op("capsnet::sum_over_children", mutates_args=())
def sum_over_children(
    u: Tensor, weight: Tensor, prior: Tensor | None, v_sum: Tensor, grad_s: Tensor | None
) -> Tensor:
    """s_j, or from its gradient that of the sum of v: [n, out_capsules, out_dim], float32."""
    n, children, _ = u.shape
    blocks = -(-children // CHILDREN)
    sums = v_sum.new_empty(blocks, *v_sum.shape)
    with torch.cuda.device_of(u):
        sum_kernel[-(-n // IMAGES), blocks](
            u, weight, prior, v_sum, grad_s, sums, n, children,
            **sizes(weight), CHILDREN=CHILDREN, **LAUNCH,
        )  # fmt: skip
    return sums.sum(0)


@sum_over_children.register_fake
def _(u: Any, weight: Any, prior: Any, v_sum: Tensor, grad_s: Any) -> Tensor:
    return torch.empty_like(v_sum)


@torch.library.custom_op("capsnet::grad_of_children", mutates_args=())
def grad_of_children(
    u: Tensor, weight: Tensor, prior: Tensor | None, v_sums: Tensor, grads_s: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of u, W and the prior from those of every iteration's s_j, float32."""
    n, children, _ = u.shape
    found = like_inputs(u, weight, v_sums)
    with torch.cuda.device_of(u):
        grad_kernel[children,](
            u, weight, prior, v_sums, grads_s, *found, n, children,
            **sizes(weight), ITERATIONS=len(v_sums), **LAUNCH,
        )  # fmt: skip
    return found


@grad_of_children.register_fake
def _(u: Tensor, weight: Tensor, prior: Any, v_sums: Tensor, grads_s: Any) -> Any:
    return like_inputs(u, weight, v_sums)


def like_inputs(u: Tensor, weight: Tensor, v_sums: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Room for the gradients of u, W and the prior."""
    like = v_sums.new_empty
    return like(u.shape), like(weight.shape), like(weight.shape[:2])


class FusedRouting(torch.autograd.Function):
    """:func:`capsnet.fast.routing.routed_capsules` where :func:`fits` says so."""

    @staticmethod
    def forward(
        ctx: Any,
        u: Tensor,
        weight: Tensor,
        prior: Tensor | None,
        iterations: int,
        squash: Callable[[Tensor, int], Tensor],
    ) -> Tensor:
        u, weight = u.contiguous(), weight.contiguous()
        prior = None if prior is None else prior.contiguous()
        _, j, _, d = weight.shape
        inputs, v_sums = [], [u.new_zeros(len(u), j, d, dtype=torch.float32)]
        for _ in range(iterations):
            inputs.append(sum_over_children(u, weight, prior, v_sums[-1], None))
            v = squash(inputs[-1], 2)
            v_sums.append(v_sums[-1] + v)
        ctx.save_for_backward(u, weight, prior, torch.stack(v_sums[:-1]), torch.stack(inputs))
        ctx.squash = squash
        return v

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad_v: Tensor) -> tuple[Tensor | None, ...]:
        u, weight, prior, v_sums, inputs = ctx.saved_tensors
        grads_s, grad_sum = torch.empty_like(inputs), torch.zeros_like(inputs[0])
        for t in reversed(range(len(inputs))):
            back = torch.func.vjp(lambda s: ctx.squash(s, 2), inputs[t])[1]
            (grads_s[t],) = back(grad_v.to(inputs.dtype))
            if t > 0:  # each v is part of the sums of all later iterations
                more = sum_over_children(u, weight, prior, v_sums[t], grads_s[t])
                grad_v = grad_sum = grad_sum + more
        grad_u, grad_weight, grad_prior = grad_of_children(u, weight, prior, v_sums, grads_s)
        return grad_u, grad_weight, None if prior is None else grad_prior, None, None
