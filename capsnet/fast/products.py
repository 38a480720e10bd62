"""Large matrix products in float32, with all of a processor's vector instructions.

PyTorch gives float32 products to MKL, which keeps AVX-512 for Intel's processors, and convolutions
and bfloat16 to oneDNN, which uses it on any. Here oneDNN takes the float32 products too, by an
operator that torch.compile uses itself: PyTorch has no public name for it. Its results go straight
to where the next product reads them.
"""

from typing import Any

import torch
from torch import Tensor

ONEDNN = (
    torch.backends.mkldnn.is_available() and torch.backends.cpu.get_cpu_capability() == "AVX512"
)


def product(a: Tensor, b: Tensor) -> Tensor:
    """``a @ b`` of two matrices."""
    return onednn_product(a, b) if is_for_onednn(a, b) else a @ b


def products_of_parts(w: Tensor, x: Tensor) -> Tensor:
    """Real times real, real times imaginary part and so on: all four products, for every wave.

    [waves, 2 · m, k] and [waves, 2 · n, k] → [4 · waves, m · n].
    """
    if is_for_onednn(w, x):
        return onednn_products_of_parts(w, x)
    return parts_apart(w @ x.transpose(1, 2)).flatten(2).flatten(0, 1)


def parts_apart(products: Tensor) -> Tensor:
    """[…, 2 · m, 2 · n] → […, 4, m, n]."""
    products = products.unflatten(-1, (2, -1)).unflatten(-3, (2, -1))
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
def onednn_products_of_parts(w: Tensor, x: Tensor) -> Tensor:
    (waves, twice_m, _), twice_n = w.shape, x.shape[1]
    y = w.new_empty(waves, 4, twice_m // 2, twice_n // 2)
    for w_i, x_i, y_i in zip(w, x, y, strict=True):
        y_i.copy_(parts_apart(linear(w_i, x_i)))
    return y.view(4 * waves, -1)


@onednn_products_of_parts.register_fake
def _(w: Tensor, x: Tensor) -> Tensor:
    return w.new_empty(4 * len(w), w.shape[1] * x.shape[1] // 4)


@torch.library.custom_op("capsnet::products_of_parts_backward", mutates_args=())
def onednn_products_of_parts_backward(grad: Tensor, w: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    m, n = w.shape[1] // 2, x.shape[1] // 2
    grad_w, grad_x = torch.empty_like(w), torch.empty_like(x)
    for i, grad_i in enumerate(grad.reshape(-1, 2, 2, m, n)):
        grad_i = grad_i.transpose(1, 2).reshape(2 * m, 2 * n)
        grad_w[i] = linear(grad_i, x[i].t())
        grad_x[i] = linear(grad_i.t(), w[i].t())
    return grad_w, grad_x


@onednn_products_of_parts_backward.register_fake
def _(grad: Tensor, w: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    return torch.empty_like(w), torch.empty_like(x)


def keep_both(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def product_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    a, b = ctx.saved_tensors
    of_a, of_b = ctx.needs_input_grad
    return product(grad, b.t()) if of_a else None, product(a.t(), grad) if of_b else None


def products_of_parts_backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
    return onednn_products_of_parts_backward(grad, *ctx.saved_tensors)


onednn_product.register_autograd(product_backward, setup_context=keep_both)
onednn_products_of_parts.register_autograd(products_of_parts_backward, setup_context=keep_both)
