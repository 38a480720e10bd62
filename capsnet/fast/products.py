"""Large matrix products in float32, with all of a processor's vector instructions.

PyTorch gives float32 products to MKL, which keeps AVX-512 for Intel's processors, and convolutions
and bfloat16 to oneDNN, which uses it on any. Here oneDNN takes the float32 products too, unless the
processor is Intel's, by an operator that torch.compile uses itself: PyTorch has no public name for
it. Its results go straight to where the next product reads them.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

ONEDNN_IS_QUICK = (
    torch.backends.mkldnn.is_available() and torch.backends.cpu.get_cpu_capability() == "AVX512"
)


def mkl_is_quicker() -> bool:
    """Whether this is a processor for which MKL has all that oneDNN has, and needs fewer copies."""
    # {} where PyTorch is too old to say.
    known: Mapping[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    return torch.backends.mkl.is_available() and "Intel" in known.get("cpu_name", "")


ONEDNN = ONEDNN_IS_QUICK and not mkl_is_quicker()


def product(a: Tensor, b: Tensor) -> Tensor:
    """``a @ b`` of two matrices."""
    return onednn_product(a, b) if is_for_onednn(a, b) else a @ b


def products_of_parts(w: Tensor, x: Tensor, parts: int) -> Tensor:
    """Each part of one times each of the other, for every wave (real times real, real times
    imaginary part, …) or point (of one part).

    [count, parts · m, k] and [count, parts · n, k] → [count · parts², m · n].
    """
    if is_for_onednn(w, x):
        return onednn_products_of_parts(w, x, parts)
    return parts_apart(RowsByRows.apply(w, x), parts).flatten(2).flatten(0, 1)


class RowsByRows(torch.autograd.Function):
    """``w @ x.mT``, whose gradients are laid out as w and x are: autograd would transpose one."""

    @staticmethod
    def forward(ctx: Any, w: Tensor, x: Tensor) -> Tensor:
        ctx.save_for_backward(w, x)
        return w @ x.mT

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
        w, x = ctx.saved_tensors
        of_w, of_x = ctx.needs_input_grad
        return grad @ x if of_w else None, grad.mT @ w if of_x else None


def parts_apart(products: Tensor, parts: int) -> Tensor:
    """[…, parts · m, parts · n] → […, parts², m, n]."""
    products = products.unflatten(-1, (parts, -1)).unflatten(-3, (parts, -1))
    return products.transpose(-3, -2).flatten(-4, -3)


def is_for_onednn(a: Tensor, b: Tensor) -> bool:
    known = a.device.type == "cpu" and a.dtype == b.dtype == torch.float32
    return ONEDNN and known and min(a.numel(), b.numel()) > 0


def linear(x: Tensor, weight: Tensor) -> Tensor:
    """``F.linear`` by oneDNN, of matrices of which rows or columns are neighbours in memory."""
    y: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, None, "none", [], "")
    return y


@torch.library.custom_op("capsnet::product", mutates_args=())
def onednn_product(a: Tensor, b: Tensor) -> Tensor:
    a, b = (x if x.t().is_contiguous() else x.contiguous() for x in (a, b))
    return linear(a, b.t())


@onednn_product.register_fake
def _(a: Tensor, b: Tensor) -> Tensor:
    return a.new_empty(len(a), b.shape[1])


@torch.library.custom_op("capsnet::products_of_parts", mutates_args=())
def onednn_products_of_parts(w: Tensor, x: Tensor, parts: int) -> Tensor:
    count, m, n = len(w), w.shape[1] // parts, x.shape[1] // parts
    y = w.new_empty(count, parts**2, m, n)
    for w_i, x_i, y_i in zip(w, x, y, strict=True):
        y_i.copy_(parts_apart(linear(w_i, x_i), parts))
    return y.view(count * parts**2, -1)


@onednn_products_of_parts.register_fake
def _(w: Tensor, x: Tensor, parts: int) -> Tensor:
    return w.new_empty(parts**2 * len(w), w.shape[1] * x.shape[1] // parts**2)


@torch.library.custom_op("capsnet::products_of_parts_backward", mutates_args=())
def onednn_products_of_parts_backward(
    grad: Tensor, w: Tensor, x: Tensor, parts: int
) -> tuple[Tensor, Tensor]:
    m, n = w.shape[1] // parts, x.shape[1] // parts
    grad_w, grad_x = torch.empty_like(w), torch.empty_like(x)
    for i, grad_i in enumerate(grad.reshape(-1, parts, parts, m, n)):
        grad_i = grad_i.transpose(1, 2).reshape(parts * m, parts * n)
        grad_w[i] = linear(grad_i, x[i].t())
        grad_x[i] = linear(grad_i.t(), w[i].t())
    return grad_w, grad_x


@onednn_products_of_parts_backward.register_fake
def _(grad: Tensor, w: Tensor, x: Tensor, parts: int) -> tuple[Tensor, Tensor]:
    return torch.empty_like(w), torch.empty_like(x)


def keep_both(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    a, b, *ctx.rest = inputs  # the rest: parts, where they are told apart
    ctx.save_for_backward(a, b)


def product_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    a, b = ctx.saved_tensors
    of_a, of_b = ctx.needs_input_grad
    return product(grad, b.t()) if of_a else None, product(a.t(), grad) if of_b else None


def products_of_parts_backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
    return *onednn_products_of_parts_backward(grad, *ctx.saved_tensors, *ctx.rest), None


onednn_product.register_autograd(product_backward, setup_context=keep_both)
onednn_products_of_parts.register_autograd(products_of_parts_backward, setup_context=keep_both)
