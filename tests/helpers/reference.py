"""The paper's equations in NumPy, float64, with written loops: what ``capsnet`` is compared with.

Each function is a literal transcription for a single image, slow on purpose, and uses nothing of
``capsnet``. Indices are the paper's: i runs over the children, j over the parents, k over classes.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Step(NamedTuple):
    """What one iteration of :func:`procedure_1` computed."""

    b: Array  # logits before the iteration, [i, j]
    c: Array  # coupling coefficients, [i, j]
    s: Array  # [j, d]
    v: Array  # [j, d]


def length(vector: Array) -> float:
    """‖vector‖."""
    total = 0.0
    for x in vector:
        total += float(x) * float(x)
    return math.sqrt(total)


def squash(s: Array) -> Array:
    """Eq. 1 for one vector: v = ‖s‖² / (1 + ‖s‖²) · s / ‖s‖."""
    norm = length(s)
    v = np.zeros(len(s))
    if norm == 0:
        return v  # the limit of eq. 1, which reads 0 / 0 here
    for d in range(len(s)):
        v[d] = norm**2 / (1 + norm**2) * s[d] / norm
    return v


def predictions(weight: Array, u: Array) -> Array:
    """Eq. 2, right: û_{j|i} = W_ij u_i. ``weight`` [i, j, n, d], ``u`` [i, n] → [i, j, d]."""
    children, parents, in_dim, out_dim = weight.shape
    u_hat = np.zeros((children, parents, out_dim))
    for i in range(children):
        for j in range(parents):
            for d in range(out_dim):
                for n in range(in_dim):
                    u_hat[i, j, d] += weight[i, j, n, d] * u[i, n]
    return u_hat


def total_input(c: Array, u_hat: Array) -> Array:
    """Eq. 2, left: s_j = Σ_i c_ij û_{j|i}. ``c`` [i, j], ``u_hat`` [i, j, d] → [j, d]."""
    children, parents, out_dim = u_hat.shape
    s = np.zeros((parents, out_dim))
    for j in range(parents):
        for i in range(children):
            for d in range(out_dim):
                s[j, d] += c[i, j] * u_hat[i, j, d]
    return s


def coupling(b: Array) -> Array:
    """Eq. 3: c_ij = exp(b_ij) / Σ_k exp(b_ik), where k runs over the parents. [i, j] → [i, j]."""
    children, parents = b.shape
    c = np.zeros((children, parents))
    for i in range(children):
        denominator = 0.0
        for k in range(parents):
            denominator += math.exp(b[i, k])
        for j in range(parents):
            c[i, j] = math.exp(b[i, j]) / denominator
    return c


def procedure_1(u_hat: Array, r: int, prior: Array | None = None) -> list[Step]:
    """Procedure 1, routing: ``u_hat`` [i, j, d] → every iteration's variables; the last v counts.

    ``prior`` [i, j] are the initial logits, 0 in Procedure 1.
    """
    children, parents, out_dim = u_hat.shape
    b = np.zeros((children, parents))
    if prior is not None:
        b = prior.astype(np.float64)
    steps = []
    for _ in range(r):
        c = coupling(b)
        s = total_input(c, u_hat)
        v = np.zeros((parents, out_dim))
        for j in range(parents):
            v[j] = squash(s[j])
        steps.append(Step(b.copy(), c, s, v))
        for i in range(children):
            for j in range(parents):
                for d in range(out_dim):
                    b[i, j] += u_hat[i, j, d] * v[j, d]
    return steps


def margin_loss(
    lengths: Array,
    present: Array,
    m_pos: float = 0.9,
    m_neg: float = 0.1,
    down_weight: float = 0.5,
) -> float:
    """Eq. 4, summed over the classes k of one image. ``lengths`` ‖v_k‖, ``present`` T_k."""
    total = 0.0
    for k in range(len(lengths)):
        total += present[k] * max(0.0, m_pos - lengths[k]) ** 2
        total += down_weight * (1 - present[k]) * max(0.0, lengths[k] - m_neg) ** 2
    return total


def reconstruction_loss(reconstruction: Array, image: Array) -> float:
    """Section 4.1: the sum of squared differences of one image's pixels."""
    total = 0.0
    for x, y in zip(reconstruction.ravel(), image.ravel(), strict=True):
        total += (float(x) - float(y)) ** 2
    return total


def convolution(images: Array, weight: Array, bias: Array, stride: int = 1) -> Array:
    """A convolution without padding: ``images`` [c, h, w], ``weight`` [o, c, m, m] → [o, ·, ·]."""
    out_channels, _, side, _ = weight.shape
    rows = (images.shape[1] - side) // stride + 1
    columns = (images.shape[2] - side) // stride + 1
    maps = np.zeros((out_channels, rows, columns))
    for o in range(out_channels):
        for y in range(rows):
            for x in range(columns):
                top, left = y * stride, x * stride
                patch = images[:, top : top + side, left : left + side]
                maps[o, y, x] = bias[o] + (patch * weight[o]).sum()
    return maps


def primary_capsules(maps: Array, capsule_dim: int) -> Array:
    """Section 4: feature ``maps`` [types · dim, h, w] read as capsules → [types · h · w, dim].

    Component n of type t is channel t · dim + n; capsules are ordered by type, row, column.
    """
    channels, rows, columns = maps.shape
    capsules = []
    for t in range(channels // capsule_dim):
        for y in range(rows):
            for x in range(columns):
                s = np.zeros(capsule_dim)
                for n in range(capsule_dim):
                    s[n] = maps[t * capsule_dim + n, y, x]
                capsules.append(squash(s))
    return np.stack(capsules)


def decoder(
    capsules: Array, chosen: int, layers: list[tuple[Array, Array]], image_shape: tuple[int, ...]
) -> Array:
    """Section 4.1: ``capsules`` [k, d], all but ``chosen`` set to 0, through ReLU, ReLU, sigmoid.

    ``layers`` holds the weight [out, in] and the bias [out] of each fully connected layer.
    """
    masked = np.zeros_like(capsules)
    masked[chosen] = capsules[chosen]
    x = masked.ravel()
    for number, (weight, bias) in enumerate(layers):
        x = weight @ x + bias
        x = np.maximum(x, 0) if number < len(layers) - 1 else 1 / (1 + np.exp(-x))
    return x.reshape(image_shape)
