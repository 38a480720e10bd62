"""The kernels under Triton's interpreter, for a process that is started with TRITON_INTERPRET=1."""

import os

import torch
from torch import Tensor

from capsnet.functional import squash


def routed(
    u: Tensor, weight: Tensor, prior: Tensor | None, iterations: int, grad: Tensor
) -> list[Tensor]:
    """v, and the gradients of u, W and the prior, if there is one."""
    assert u.is_cuda or os.environ["TRITON_INTERPRET"] == "1"
    from capsnet.fast import fused

    assert fused.is_supported(u, weight)
    inputs = [x.requires_grad_() for x in (u, weight, prior) if x is not None]
    v = fused.FusedRouting.apply(u, weight, prior, iterations, squash, True)
    return [v.detach(), *torch.autograd.grad(v, inputs, grad)]
