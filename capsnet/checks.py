"""Checks of arguments, and class labels as a mask. Errors say what was expected and what came."""

import operator
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn


def as_int(name: str, value: Any, minimum: int = 1) -> int:
    """Return ``value`` as an int: any integer of at least ``minimum``, such as NumPy's.

    Raise ValueError if it is anything else, such as 2.0 or True.
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = minimum - 1
    if number < minimum or getattr(value, "dtype", type(value)) in (bool, torch.bool):
        got = " ".join(repr(value).split())  # a tensor has several lines
        raise ValueError(f"{name} must be a whole number of at least {minimum}, got {got}")
    return number


def as_sizes(name: str, value: Any, count: int, meaning: str) -> list[int]:
    """Return a sequence of ``count`` integers ≥ 1 as ints.

    Raise ValueError if ``value`` is something else; the message says that it must be ``meaning``.
    """
    sizes = list(value) if isinstance(value, Iterable) else []
    if len(sizes) != count:
        raise ValueError(f"{name} must be {meaning}, got {value!r}")
    return [as_int(f"{name}[{i}]", size) for i, size in enumerate(sizes)]


def as_image_shape(image_shape: Any) -> list[int]:
    """:func:`as_sizes` of an image's shape."""
    return as_sizes("image_shape", image_shape, 3, "[channels, height, width]")


def require_bool(name: str, value: Any) -> None:
    """Raise ValueError if ``value`` is neither True nor False."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False, got {value!r}")


def require_tensor(name: str, value: Any) -> None:
    """Raise ValueError if ``value`` is not a tensor."""
    if not isinstance(value, Tensor):
        raise ValueError(f"{name} must be a torch.Tensor, got {type(value).__name__}")


def require_floating(name: str, tensor: Any) -> None:
    """Raise ValueError if ``tensor`` is not a tensor of floating-point numbers."""
    require_tensor(name, tensor)
    if not tensor.is_floating_point():
        raise ValueError(f"{name} must be floating point, got {tensor.dtype}")


def device_of(network: nn.Module) -> torch.device:
    """The device of a network's parameters. Raise ValueError if it has none."""
    for parameter in network.parameters():
        return parameter.device
    raise ValueError(f"the network must have parameters, {type(network).__name__} has none")


def check_predictions(name: str, u_hat: Tensor, iterations: int = 1) -> None:
    """Raise ValueError if ``u_hat`` is no 4-D float tensor, or ``iterations`` no integer ≥ 1."""
    require_floating(name, u_hat)
    if u_hat.dim() != 4:
        raise ValueError(
            f"{name} must be [batch, in_capsules, out_capsules, out_dim], got shape "
            f"{list(u_hat.shape)}"
        )
    as_int("iterations", iterations)


def check_prior(prior: Tensor, u_hat: Tensor) -> None:
    """Raise ValueError if ``prior`` is not floating, [in_capsules, out_capsules] of ``u_hat``."""
    require_floating("prior", prior)
    if prior.shape != u_hat.shape[1:3]:
        raise ValueError(
            f"prior must be [in_capsules, out_capsules] = {list(u_hat.shape[1:3])}, got shape "
            f"{list(prior.shape)}"
        )


def check_dtype(name: str, tensor: Tensor, dtype: torch.dtype | None) -> None:
    """Raise ValueError if ``tensor`` is not floating point, or not of the weights' ``dtype``.

    Where ``dtype`` is None, or autocast converts both, any floating-point dtype will do.
    """
    require_floating(name, tensor)
    if dtype is None or tensor.dtype == dtype:
        return
    # Autocast converts all floating-point numbers but those of float64.
    converted = torch.float64 not in (tensor.dtype, dtype)
    if not (converted and torch.is_autocast_enabled(tensor.device.type)):
        raise ValueError(f"{name} must be {dtype}, as the weights are, got {tensor.dtype}")


def class_mask(targets: Tensor, batch: int, classes: int) -> Tensor:
    """Targets as a mask: class indices [batch] become one-hot, a mask passes unchanged.

    Args:
        targets: integer class indices [batch], or a mask [batch, classes] of zeros and ones, or of
            numbers in between, such as mixup's.
        batch: the expected number of rows.
        classes: the number of classes.

    Returns:
        the mask [batch, classes]; bool where it was made from indices.

    Raises:
        ValueError: no tensor, another shape, complex numbers, indices that are not integers, an
            index outside 0 … classes − 1, or a mask's value outside 0 … 1. The values are looked at
            on the CPU only, and not under torch.compile, torch.export and vmap; elsewhere an index
            out of range gives a row of zeros.
    """
    require_tensor("targets", targets)
    if targets.is_complex():
        raise ValueError(f"targets must be class indices or a mask, got {targets.dtype}")
    # Reading a value on a GPU would wait for everything before it.
    readable = targets.device.type == "cpu" and not torch.compiler.is_compiling()
    if targets.shape == (batch, classes):
        if readable and batch > 0:
            check_range("a mask's values", targets.double(), 1)
        return targets
    if targets.shape != (batch,):
        raise ValueError(
            f"targets must be class indices [{batch}] or a mask [{batch}, {classes}], got shape "
            f"{list(targets.shape)}"
        )
    if targets.is_floating_point() or targets.dtype == torch.bool:
        raise ValueError(f"class indices must be integers, got {targets.dtype}")
    indices = targets.long()  # there is no minimum of uint16
    if readable and batch > 0:
        check_range("class indices", indices, classes - 1)
    return one_hot(indices, classes)


def check_range(name: str, values: Tensor, last: int) -> None:
    """Raise ValueError if a value is outside 0 … ``last``, or NaN."""
    bounds = values.detach().aminmax()
    try:
        low, high = bounds.min.item(), bounds.max.item()
    except RuntimeError:  # under vmap, and of fake tensors, there are no values to read
        return
    if not (low >= 0 and high <= last):
        got = high if low >= 0 else low
        raise ValueError(f"{name} must lie in 0 … {last}, got {got}")


def one_hot(indices: Tensor, classes: int) -> Tensor:
    """Class indices [batch] → a mask [batch, classes]; an index out of range is a row of zeros."""
    # A comparison instead of F.one_hot: static shapes, and no read of the values.
    return indices.unsqueeze(1) == torch.arange(classes, device=indices.device)
