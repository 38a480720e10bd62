"""What CUDA runs for :mod:`capsnet.fast.fused`: the language is Triton's, a dialect of Python.

J, K and D are W's sizes: parents, components of a child and of a parent; DP is the power of 2 that
holds D, and what lies beyond is 0. A parent's components of some images are a block, [images, DP].
All parents are a tuple of such blocks: so a thread has the same components of each, and the softmax
over parents is its own work.
"""

import triton
import triton.language as tl


@triton.jit
def of_parent(pointer, image, n, j, J: tl.constexpr, D: tl.constexpr, DP: tl.constexpr):
    """Where these images' components of a parent lie, and which there are: [images, DP]."""
    d = tl.arange(0, DP)[None, :]
    # In groups of four, for Triton to see no longer ones: it would give a thread eight numbers of
    # 16 bits, and then half of the threads nothing.
    place = d // 4 * 4 + d % 4
    return pointer + (image[:, None] * J + j) * D + place, (image < n)[:, None] & (d < D)


@triton.jit
def load(pointer, image, n, J: tl.constexpr, D: tl.constexpr, DP: tl.constexpr):
    """These images' components of all parents."""
    blocks = ()
    for j in tl.static_range(J):
        pointers, mask = of_parent(pointer, image, n, j, J, D, DP)
        blocks = blocks + (tl.load(pointers, mask, 0.0),)
    return blocks


@triton.jit
def zeros(J: tl.constexpr, DP: tl.constexpr, IMAGES: tl.constexpr):
    """A block of zeros for each parent, in float32."""
    blocks = ()
    for _ in tl.static_range(J):
        blocks = blocks + (tl.zeros((IMAGES, DP), tl.float32),)
    return blocks


@triton.jit
def predict(
    u, weight, image, n, i, children,
    J: tl.constexpr, K: tl.constexpr, D: tl.constexpr, DP: tl.constexpr, IMAGES: tl.constexpr,
):  # fmt: skip
    """û_{j|i} = W_ij u_i (eq. 2) of all parents, in float32."""
    d = tl.arange(0, DP)[None, :]
    # With the images as a dimension each thread reads what it needs, and nothing changes hands.
    w_pointers = weight + i * J * K * D + d + 0 * image[:, None]
    u_pointers = u + (image * children + i) * K
    u_i = ()
    for k in tl.static_range(K):
        u_i = u_i + (tl.load(u_pointers + k, image < n, 0.0).to(tl.float32)[:, None],)
    u_hat = ()
    for j in tl.static_range(J):
        total = tl.zeros((IMAGES, DP), tl.float32)
        for k in tl.static_range(K):
            total += u_i[k] * tl.load(w_pointers + (j * K + k) * D, d < D, 0.0).to(tl.float32)
        u_hat = u_hat + (total,)
    return u_hat


@triton.jit
def products(u_hat, v, J: tl.constexpr):
    """û_{j|i} · v_j of each parent: [images]."""
    dots = ()
    for j in tl.static_range(J):
        dots = dots + (tl.sum(u_hat[j] * v[j], 1),)
    return dots


@triton.jit
def coupling(u_hat, v_sum, prior, i, J: tl.constexpr):
    """c_ij of each parent, the softmax over j of prior_ij + û_{j|i} · Σ v_j (eq. 3): [images]."""
    agreement = products(u_hat, v_sum, J)  # F1 of capsnet.fast.routing
    b = ()
    for j in tl.static_range(J):
        if prior is not None:
            b = b + (agreement[j] + tl.load(prior + i * J + j).to(tl.float32),)
        else:
            b = b + (agreement[j],)
    most = b[0]
    for j in tl.static_range(1, J):
        most = tl.maximum(most, b[j])
    e = ()
    for j in tl.static_range(J):
        e = e + (tl.exp(b[j] - most),)
    total = e[0]
    for j in tl.static_range(1, J):
        total += e[j]
    c = ()
    for j in tl.static_range(J):
        c = c + (e[j] / total,)
    return c


@triton.jit
def grad_of_logits(u_hat, c, grad_s, J: tl.constexpr):
    """The gradient of b_ij of each parent from that of s_j: [images]."""
    grad_c = products(u_hat, grad_s, J)
    mean = c[0] * grad_c[0]
    for j in tl.static_range(1, J):
        mean += c[j] * grad_c[j]
    grad_b = ()
    for j in tl.static_range(J):
        grad_b = grad_b + (c[j] * (grad_c[j] - mean),)
    return grad_b


@triton.jit(do_not_specialize=["n"])  # batches differ
def sum_kernel(
    u, weight, prior, v_sum, grad_s, sums, n, children,
    J: tl.constexpr, K: tl.constexpr, D: tl.constexpr, DP: tl.constexpr,
    IMAGES: tl.constexpr, CHILDREN: tl.constexpr,
):  # fmt: skip
    """Some children's part of s_j; or, given the gradient of s_j, of that of the sum of v."""
    image = tl.program_id(0) * IMAGES + tl.arange(0, IMAGES)
    first = tl.program_id(1) * CHILDREN
    v = load(v_sum, image, n, J, D, DP)
    if grad_s is not None:
        grad = load(grad_s, image, n, J, D, DP)
    total = zeros(J, DP, IMAGES)
    for i in range(first, tl.minimum(first + CHILDREN, children)):
        u_hat = predict(u, weight, image, n, i, children, J, K, D, DP, IMAGES)
        factor = coupling(u_hat, v, prior, i, J)
        if grad_s is not None:
            factor = grad_of_logits(u_hat, factor, grad, J)
        updated = ()
        for j in tl.static_range(J):
            updated = updated + (total[j] + factor[j][:, None] * u_hat[j],)
        total = updated
    for j in tl.static_range(J):
        pointers, mask = of_parent(sums + tl.program_id(1) * n * J * D, image, n, j, J, D, DP)
        tl.store(pointers, total[j], mask)


@triton.jit(do_not_specialize=["n"])  # batches differ
def grad_kernel(
    u, weight, prior, v_sums, grads_s, grad_u_hat, grad_prior, n, children,
    J: tl.constexpr, K: tl.constexpr, D: tl.constexpr, DP: tl.constexpr,
    IMAGES: tl.constexpr, CHILDREN: tl.constexpr, ITERATIONS: tl.constexpr,
):  # fmt: skip
    """Some children's gradients of û and, each image block's part, of the prior, from all
    iterations.
    """
    block = tl.program_id(0)
    image = block * IMAGES + tl.arange(0, IMAGES)
    first = tl.program_id(1) * CHILDREN
    for i in range(first, tl.minimum(first + CHILDREN, children)):
        u_hat = predict(u, weight, image, n, i, children, J, K, D, DP, IMAGES)
        total = zeros(J, DP, IMAGES)
        for t in tl.static_range(ITERATIONS):
            grad = load(grads_s + t * n * J * D, image, n, J, D, DP)
            updated = ()
            if t == 0 and prior is None:  # c_ij are equal, and the sum of v is 0
                for j in tl.static_range(J):
                    updated = updated + (grad[j] / J,)
            else:
                v = load(v_sums + t * n * J * D, image, n, J, D, DP)
                c = coupling(u_hat, v, prior, i, J)
                grad_b = grad_of_logits(u_hat, c, grad, J)
                for j in tl.static_range(J):
                    part = c[j][:, None] * grad[j] + grad_b[j][:, None] * v[j]  # F2
                    updated = updated + (total[j] + part,)
                    if prior is not None:
                        row = (t * tl.num_programs(0) + block) * children + i
                        tl.store(grad_prior + row * J + j, tl.sum(grad_b[j], 0))
            total = updated
        for j in tl.static_range(J):
            pointers, mask = of_parent(grad_u_hat + i * n * J * D, image, n, j, J, D, DP)
            tl.store(pointers, total[j].to(u.dtype.element_ty), mask)


@triton.jit
def one_kernel(number):
    """Shows that a kernel can be compiled and launched."""
    tl.store(number, 1.0)
