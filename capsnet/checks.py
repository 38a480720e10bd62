"""What arguments must be; and class labels as a mask. All errors say what was expected and got."""

import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


def as_int(name: str, value: Any, minimum: int = 1) -> int:
    """Return ``value`` as an int: any integer, such as NumPy's, but not 2.0.

    Raises:
        ValueError: it is no integer, or less than ``minimum``.
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = minimum - 1
    if number < minimum:
        got = " ".join(repr(value).split())  # a tensor has several lines
        raise ValueError(f"{name} must be a whole number of at least {minimum}, got {got}")
    return number


def as_image_shape(image_shape: Sequence[int]) -> list[int]:
    """Check that ``image_shape`` is three positive integers; return [channels, height, width].

    Raises:
        ValueError: it is not.
    """
    if len(image_shape) != 3:
        raise ValueError(f"image_shape must be [channels, height, width], got {list(image_shape)}")
    return [as_int("a side of image_shape", side) for side in image_shape]


def as_hidden(hidden: Sequence[int]) -> list[int]:
    """Check that ``hidden`` is the units of a decoder's two hidden layers; return them as ints.

    Raises:
        ValueError: it is not.
    """
    if len(hidden) != 2:
        raise ValueError(f"hidden must be the units of two layers, got {list(hidden)}")
    return [as_int(f"hidden[{i}]", units) for i, units in enumerate(hidden)]


def require_floating(name: str, tensor: Tensor) -> None:
    """Raise ValueError if ``tensor`` is not floating point."""
    if not tensor.is_floating_point():
        raise ValueError(f"{name} must be floating point, got {tensor.dtype}")


def check_predictions(name: str, u_hat: Tensor, iterations: int = 1) -> None:
    """Check that ``u_hat`` is a 4-D float tensor and ``iterations`` an integer ≥ 1.

    Raises:
        ValueError: they are not.
    """
    require_floating(name, u_hat)
    if u_hat.dim() != 4:
        raise ValueError(
            f"{name} must be [batch, in_capsules, out_capsules, out_dim], got shape "
            f"{list(u_hat.shape)}"
        )
    as_int("iterations", iterations)


def check_prior(prior: Tensor, u_hat: Tensor) -> None:
    """Raise ValueError if ``prior`` is not [in_capsules, out_capsules] of ``u_hat``."""
    if prior.shape != u_hat.shape[1:3]:
        raise ValueError(
            f"prior must be [in_capsules, out_capsules] = {list(u_hat.shape[1:3])}, got shape "
            f"{list(prior.shape)}"
        )


def check_dtype(images: Tensor, dtype: torch.dtype) -> None:
    """Check that images are of the weights' ``dtype``, or that autocast makes both the same.

    Raises:
        ValueError: they are not.
    """
    if images.dtype == dtype:
        return
    # Autocast converts all floating-point numbers but those of float64.
    converted = torch.float64 not in (images.dtype, dtype)
    if not (converted and torch.is_autocast_enabled(images.device.type)):
        raise ValueError(f"images must be {dtype}, as the weights are, got {images.dtype}")


def class_mask(targets: Tensor, batch: int, classes: int) -> Tensor:
    """Targets as a mask: class indices [batch] become one-hot, a mask passes unchanged.

    Args:
        targets: integer class indices [batch], or a mask of zeros and ones [batch, classes].
        batch: the expected number of rows.
        classes: the number of classes.

    Returns:
        the mask [batch, classes]; bool where it was made from indices.

    Raises:
        ValueError: another shape, complex numbers, indices that are not integers, or an index
            outside 0 … classes − 1. The values are looked at on the CPU only, and not under
            torch.compile, torch.export and vmap; elsewhere an index out of range gives a row of
            zeros.
    """
    if targets.is_complex():
        raise ValueError(f"targets must be class indices or a mask, got {targets.dtype}")
    if targets.shape == (batch, classes):
        return targets
    if targets.shape != (batch,):
        raise ValueError(
            f"targets must be class indices [{batch}] or a mask [{batch}, {classes}], got shape "
            f"{list(targets.shape)}"
        )
    if targets.is_floating_point() or targets.dtype == torch.bool:
        raise ValueError(f"class indices must be integers, got {targets.dtype}")
    indices = targets.long()  # there is no minimum of uint16
    # Reading a value on a GPU would wait for everything before it.
    if indices.device.type == "cpu" and not torch.compiler.is_compiling() and batch > 0:
        check_range(indices, classes)
    return one_hot(indices, classes)


def check_range(indices: Tensor, classes: int) -> None:
    """Raise ValueError if an index is outside 0 … classes − 1."""
    bounds = indices.aminmax()
    try:
        low, high = int(bounds.min), int(bounds.max)
    except RuntimeError:  # under vmap, and of fake tensors, there are no values to read
        return
    if low < 0 or high >= classes:
        got = low if low < 0 else high
        raise ValueError(f"class indices must lie in 0 … {classes - 1}, got {got}")


def one_hot(indices: Tensor, classes: int) -> Tensor:
    """Class indices [batch] → a mask [batch, classes]; an index out of range is a row of zeros."""
    # A comparison instead of F.one_hot: static shapes, and no read of the values.
    return indices.unsqueeze(1) == torch.arange(classes, device=indices.device)
