"""Verdicts on deviations, and the measurements that several probes of a network share.

A probe is a generator of names and verdicts. The deviations that it does not name are absent if it
ends, and stay open if it raises :class:`Unclear`.
"""

import contextlib
import copy
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from capsnet.fast.routing import Squash
from capsnet.text import reason

FLOAT64_ERROR = 1e-9  # two float64 computations of the same quantity agree to this relative error


class NotExamined(NamedTuple):
    """Why it is open whether a network has a deviation."""

    why: str
    unnamed: bool = False  # what was measured is not the paper's, but is no named deviation


# Evidence; or why it is open; or None: the network has no such deviation.
Verdict = str | NotExamined | None
Verdicts = dict[str, Verdict]  # by the deviation's name
Findings = Iterator[tuple[str, Verdict]]


class Unclear(Exception):
    """A probe ends here: what it has not named stays open."""

    def __init__(self, why: str, unnamed: bool = False) -> None:
        super().__init__(why)
        self.verdict = NotExamined(why, unnamed)


class UserCodeError(ValueError):
    """Somebody's network raises an error, or what it returns cannot be examined."""


@contextlib.contextmanager
def user_code(what: str = "") -> Iterator[None]:
    """Turn all that the code of somebody's network raises into a :class:`UserCodeError`.

    Put nothing but calls of that code into the block: a fault of ours would be reported as theirs.
    """
    try:
        yield
    except UserCodeError:
        raise
    except SystemExit as error:
        raise UserCodeError(f"{what}it calls sys.exit") from error
    except Exception as error:
        name, text = type(error).__name__, reason(error)
        raise UserCodeError(what + (name if text == name else f"{name}: {text}")) from error


def copied(model: nn.Module) -> nn.Module:
    """A deep copy; not every network can be copied after it was called."""
    with user_code("it cannot be copied: "):
        return copy.deepcopy(model)


def gradients(value: Tensor, inputs: Sequence[Tensor]) -> Sequence[Tensor | None]:
    """The gradients of the sum of ``value``; None for what it does not depend on."""
    with user_code():  # it may have a backward of its own
        return torch.autograd.grad(value.sum(), inputs, retain_graph=True, allow_unused=True)


def tensors_in(value: Any) -> list[Tensor]:
    """All tensors in a nested structure, in order."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, str) or not isinstance(value, Iterable):
        return []
    parts = value.values() if isinstance(value, dict) else value
    return [tensor for part in parts for tensor in tensors_in(part)]


def without_ones(tensor: Tensor) -> Tensor:
    """The tensor without dimensions of size 1; the batch dimension stays."""
    return tensor.reshape(len(tensor), *(side for side in tensor.shape[1:] if side > 1))


def relative_error(values: Tensor, reference: Tensor) -> float:
    """The largest difference, relative to the largest of ``reference``; NaN counts as 0."""
    values, reference = values.detach().nan_to_num(), reference.detach().nan_to_num()
    return float((values - reference).abs().max() / reference.abs().max().clamp(min=1e-300))


def sums_to_one(rows: Tensor) -> bool:
    """Whether every row sums to 1."""
    sums = rows.sum(dim=1)
    return relative_error(sums, torch.ones_like(sums)) < FLOAT64_ERROR


def depends_on(value: Tensor, model: nn.Module) -> list[nn.Parameter]:
    """The parameters of ``model`` that ``value`` is computed from."""
    if not value.requires_grad:
        raise UserCodeError(f"a tensor {list(value.shape)} has no gradient")
    parameters = list(model.parameters())
    pairs = zip(parameters, gradients(value, parameters), strict=True)
    return [parameter for parameter, gradient in pairs if gradient is not None]


@torch.no_grad()
def scale_weights(model: nn.Module, factor: float) -> None:
    """Multiply all weights by a factor; biases, which have one dimension, stay."""
    for parameter in model.parameters():
        if parameter.dim() > 1:
            parameter.mul_(factor)


def unsquash(v: Tensor, squash: Squash, axis: int) -> Tensor:
    """The s, from 1e-12 to 1e6 long, that was squashed to v, [n, capsules, dim], by bisection."""
    length = torch.linalg.vector_norm(v.unsqueeze(3), dim=axis)
    low, high = torch.full_like(length, -12), torch.full_like(length, 6)
    for _ in range(40):
        middle = (low + high) / 2
        above = squash(10 ** middle.unsqueeze(-1), -1).squeeze(-1) > length
        low, high = torch.where(above, low, middle), torch.where(above, middle, high)
    ratio = 10**high / length.clamp(min=1e-300)
    return v * (ratio if axis == 3 else ratio.reshape_as(v.narrow(axis, 0, 1)))
