"""Products by oneDNN against torch's own in float64: results, derivatives, layouts, tracing."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from capsnet.fast import products
from capsnet.fast.products import product, products_of_parts

Product = Callable[[Tensor, Tensor], Tensor]
LAYOUTS: list[Callable[[Tensor], Tensor]] = [
    lambda x: x.contiguous(),
    lambda x: x.mT.contiguous().mT,
    lambda x: x.repeat_interleave(2, dim=-1)[..., ::2],
]
needs_onednn = pytest.mark.skipif(
    not products.ONEDNN_IS_QUICK, reason="oneDNN takes float32 products with AVX-512 alone"
)


def each_with_each(w: Tensor, x: Tensor, parts: int) -> Tensor:
    """The definition of :func:`products_of_parts`, part by part."""
    found = [w_i @ x_i.mT for w_i in w.chunk(parts, dim=1) for x_i in x.chunk(parts, dim=1)]
    return torch.stack(found, dim=1).flatten(2).flatten(0, 1)


def in_parts(function: Callable[..., Tensor], parts: int) -> Product:
    return lambda w, x: function(w, x, parts)


ONE, PAIR = (
    (in_parts(products_of_parts, parts), in_parts(each_with_each, parts)) for parts in (1, 2)
)
CASES = [
    (product, torch.matmul, (7, 5), (5, 9)),
    (product, torch.matmul, (7, 5), (5, 0)),
    (*PAIR, (3, 4, 5), (3, 6, 5)),
    (*ONE, (3, 4, 5), (3, 7, 5)),
    (*PAIR, (3, 4, 5), (3, 0, 5)),
]


@pytest.mark.parametrize("onednn", [pytest.param(True, marks=needs_onednn), False])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("ours", "theirs", "a", "b"), CASES)
def test_they_are_the_products(
    onednn: bool,
    ours: Product,
    theirs: Product,
    a: tuple[int, ...],
    b: tuple[int, ...],
    layout: Callable[[Tensor], Tensor],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(products, "ONEDNN", onednn)
    exact = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in (a, b)]
    given = [layout(x.detach().float()).requires_grad_() for x in exact]
    expected, c = theirs(*exact), ours(*given)
    assert c.dtype == torch.float32
    assert_close(c.double(), expected, rtol=1e-5, atol=1e-5)
    grad = torch.randn_like(expected)
    wanted = torch.autograd.grad(expected, exact, grad)
    found = torch.autograd.grad(c, given, layout(grad.float()))
    assert_close([x.double() for x in found], list(wanted), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("ours", "theirs", "a", "b"), CASES)
def test_other_precisions_are_left_to_torch(
    ours: Product, theirs: Product, a: tuple[int, ...], b: tuple[int, ...]
) -> None:
    first, second = torch.randn(a, dtype=torch.float64), torch.randn(b, dtype=torch.float64)
    assert_close(ours(first, second), theirs(first, second), rtol=1e-12, atol=1e-12)


def test_the_gradients_of_rows_by_rows_are_laid_out_as_the_rows() -> None:
    w, x = torch.randn(3, 4, 5, requires_grad=True), torch.randn(3, 6, 5, requires_grad=True)
    for grad in torch.autograd.grad(products.RowsByRows.apply(w, x).square().sum(), (w, x)):
        assert grad.is_contiguous()


@needs_onednn
def test_they_are_well_behaved_operators() -> None:
    """Shapes while tracing, autograd, no writing to arguments: PyTorch's own checks."""
    a, b = torch.randn(7, 5, requires_grad=True), torch.randn(5, 9, requires_grad=True)
    torch.library.opcheck(products.onednn_product, (a, b))
    w, x = torch.randn(3, 4, 5, requires_grad=True), torch.randn(3, 6, 5, requires_grad=True)
    for parts in (1, 2):
        torch.library.opcheck(products.onednn_products_of_parts, (w, x, parts))
        grad = torch.randn(3 * parts**2, 24 // parts**2)
        torch.library.opcheck(
            products.onednn_products_of_parts_backward, (grad, w.detach(), x.detach(), parts)
        )
