"""What CUDA runs for :mod:`capsnet.fast.fused`: the language is Triton's, a dialect of Python.

J, K and D are W's sizes: parents, numbers of a child, numbers of a parent. Blocks have powers of 2,
JP, KP and DP; what lies beyond the sizes is 0.
"""

import triton
import triton.language as tl


@triton.jit
def of_parents(
    pointer, image, n, J: tl.constexpr, D: tl.constexpr, JP: tl.constexpr, DP: tl.constexpr
):
    """Where these images' numbers of each parent lie, and which there are: [images, JP, DP]."""
    image = image[:, None, None]
    j, d = tl.arange(0, JP)[None, :, None], tl.arange(0, DP)[None, None, :]
    return pointer + (image * J + j) * D + d, (image < n) & (j < J) & (d < D)


@triton.jit
def of_matrix(
    pointer,
    i,
    J: tl.constexpr,
    K: tl.constexpr,
    D: tl.constexpr,
    JP: tl.constexpr,
    KP: tl.constexpr,
    DP: tl.constexpr,
):
    """Where a child's matrices lie, and which numbers there are: [KP, JP · DP]."""
    k = tl.arange(0, KP)[:, None]
    j, d = (tl.arange(0, JP * DP) // DP)[None, :], (tl.arange(0, JP * DP) % DP)[None, :]
    return pointer + ((i * J + j) * K + k) * D + d, (k < K) & (j < J) & (d < D)


@triton.jit
def of_child(pointer, image, n, i, children, K: tl.constexpr, KP: tl.constexpr):
    """Where a child's capsules lie, and which numbers there are: [images, KP]."""
    image, k = image[:, None], tl.arange(0, KP)[None, :]
    return pointer + (image * children + i) * K + k, (image < n) & (k < K)


@triton.jit
def share(u_hat, v_sum, prior, i, J: tl.constexpr, JP: tl.constexpr):
    """c_ij, the softmax over j of prior_ij + û_{j|i} · Σ v_j (eq. 3): [images, JP]."""
    j = tl.arange(0, JP)
    b = tl.sum(u_hat * v_sum, 2)
    if prior is not None:
        b += tl.load(prior + i * J + j, j < J, 0.0).to(tl.float32)[None, :]
    b = tl.where((j < J)[None, :], b, float("-inf"))
    c = tl.exp(b - tl.max(b, 1)[:, None])
    return c / tl.sum(c, 1)[:, None]


@triton.jit
def grad_of_logits(u_hat, c, grad_s):
    """The gradient of b_ij from that of s_j, [images, JP]."""
    grad_c = tl.sum(u_hat * grad_s, 2)
    return c * (grad_c - tl.sum(c * grad_c, 1)[:, None])


@triton.jit
def sum_kernel(
    u, weight, prior, v_sum, grad_s, sums, n, children,
    J: tl.constexpr, K: tl.constexpr, D: tl.constexpr,
    JP: tl.constexpr, KP: tl.constexpr, DP: tl.constexpr,
    IMAGES: tl.constexpr, CHILDREN: tl.constexpr,
):  # fmt: skip
    """Some children's part of s_j; or, given the gradient of s_j, of that of the sum of v."""
    image = tl.program_id(0) * IMAGES + tl.arange(0, IMAGES)
    first = tl.program_id(1) * CHILDREN
    v_at, v_known = of_parents(v_sum, image, n, J, D, JP, DP)
    v = tl.load(v_at, v_known, 0.0)
    if grad_s is not None:
        g_at, g_known = of_parents(grad_s, image, n, J, D, JP, DP)
        grad = tl.load(g_at, g_known, 0.0)
    total = tl.zeros((IMAGES, JP, DP), tl.float32)
    for i in range(first, tl.minimum(first + CHILDREN, children)):
        u_at, u_known = of_child(u, image, n, i, children, K, KP)
        u_i = tl.load(u_at, u_known, 0.0)
        w_at, w_known = of_matrix(weight, i, J, K, D, JP, KP, DP)
        w_i = tl.load(w_at, w_known, 0.0).to(u_i.dtype)
        u_hat = tl.dot(u_i, w_i, input_precision="ieee").reshape(IMAGES, JP, DP)
        factor = share(u_hat, v, prior, i, J, JP)
        if grad_s is not None:
            factor = grad_of_logits(u_hat, factor, grad)
        total += factor[:, :, None] * u_hat
    s_at, s_known = of_parents(sums + tl.program_id(1) * n * J * D, image, n, J, D, JP, DP)
    tl.store(s_at, total, s_known)


@triton.jit
def grad_kernel(
    u, weight, prior, v_sums, grads_s, grad_u, grad_weight, grad_prior, n, children,
    J: tl.constexpr, K: tl.constexpr, D: tl.constexpr,
    JP: tl.constexpr, KP: tl.constexpr, DP: tl.constexpr,
    IMAGES: tl.constexpr, ITERATIONS: tl.constexpr,
):  # fmt: skip
    """One child's gradients, of u_i, W_ij and its prior, from all images and iterations."""
    i = tl.program_id(0)
    w_at, w_known = of_matrix(weight, i, J, K, D, JP, KP, DP)
    w_i = tl.load(w_at, w_known, 0.0).to(u.dtype.element_ty)
    of_weight = tl.zeros((KP, JP * DP), tl.float32)
    of_prior = tl.zeros((JP,), tl.float32)
    for start in range(0, n, IMAGES):
        image = start + tl.arange(0, IMAGES)
        u_at, u_known = of_child(u, image, n, i, children, K, KP)
        u_i = tl.load(u_at, u_known, 0.0)
        u_hat = tl.dot(u_i, w_i, input_precision="ieee").reshape(IMAGES, JP, DP)
        of_u_hat = tl.zeros((IMAGES, JP, DP), tl.float32)
        for t in tl.static_range(ITERATIONS):
            v_at, v_known = of_parents(v_sums + t * n * J * D, image, n, J, D, JP, DP)
            v = tl.load(v_at, v_known, 0.0)
            g_at, g_known = of_parents(grads_s + t * n * J * D, image, n, J, D, JP, DP)
            grad = tl.load(g_at, g_known, 0.0)
            c = share(u_hat, v, prior, i, J, JP)
            of_b = grad_of_logits(u_hat, c, grad)
            of_u_hat += c[:, :, None] * grad + of_b[:, :, None] * v
            of_prior += tl.sum(of_b, 0)
        flat = of_u_hat.reshape(IMAGES, JP * DP).to(u_i.dtype)
        of_weight = tl.dot(tl.trans(u_i), flat, of_weight, input_precision="ieee")
        gu_at, gu_known = of_child(grad_u, image, n, i, children, K, KP)
        tl.store(gu_at, tl.dot(flat, tl.trans(w_i), input_precision="ieee"), gu_known)
    gw_at, gw_known = of_matrix(grad_weight, i, J, K, D, JP, KP, DP)
    tl.store(gw_at, of_weight, gw_known)
    j = tl.arange(0, JP)
    tl.store(grad_prior + i * J + j, of_prior, j < J)
