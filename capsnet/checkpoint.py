"""Weights and checkpoints as safetensors files.

A file holds tensors and one JSON document (its safetensors metadata under the key "capsnet").
Nothing is pickled or unpickled.
"""

import contextlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from capsnet.files import write_atomically
from capsnet.model import CapsNet

SCALE = ".scale"  # ends the name of the scales of a tensor that is stored in 8 bits
TOO_LARGE = "expected finite numbers of moderate size"


def write_tensors(path: str | Path, tensors: Mapping[str, Tensor], document: Mapping) -> None:
    """Write named tensors and a JSON document atomically."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_atomically(path, safetensors.torch.save(plain, {"capsnet": json.dumps(document)}))


def read_tensors(path: str | Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what :func:`write_tensors` wrote; errors as of :func:`load_weights`."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"no such file: {path}")
    if not path.is_file():
        kind = "a folder" if path.is_dir() else "no ordinary file"
        raise ValueError(f"expected a safetensors file, got {kind}: {path}")
    try:
        with safe_open(path, framework="pt") as file:
            text = (file.metadata() or {}).get("capsnet")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, RuntimeError) as error:
        raise ValueError(
            f"{path} is not a whole safetensors file (damaged, cut short or of another kind): "
            f"{error}"
        ) from error
    if text is None:
        raise ValueError(f"{path} was not written by capsnet: it does not say which network it is")
    with contextlib.suppress(ValueError, RecursionError):
        if isinstance(document := json.loads(text), dict):
            return tensors, document
    raise ValueError(f"{path} is damaged: its description is no JSON object")


def save_weights(
    path: str | Path,
    model: nn.Module,
    metadata: Mapping[str, Any] | None = None,
    dtype: torch.dtype | None = None,
) -> None:
    """Write a model's weights and what is needed to make the same network again.

    Args:
        path: the file; its folder is made if it is missing.
        model: the network, with its ``config``.
        metadata: JSON-able facts to keep beside the weights, such as the names of the classes.
        dtype: store what is floating point in this type: float16 halves the file, int8 quarters it
            (:func:`in_8_bits`); as it is if None.

    Raises:
        OSError: the file cannot be written; what was there is untouched.
        ValueError: a weight is not finite in another type than its own, for it is too large, say.
    """
    tensors, document = dict(model.state_dict()), {**(metadata or {}), "model": model.config}
    floating = [name for name, tensor in tensors.items() if tensor.is_floating_point()]
    if dtype == torch.int8:
        document["int8"] = [name for name in floating if tensors[name].dim() > 1]
        for name in document["int8"]:
            try:
                tensors[name], tensors[name + SCALE] = in_8_bits(tensors[name])
            except ValueError as error:
                raise ValueError(f"cannot store {name} in 8 bits: {error}") from None
    elif dtype is not None:
        for name in floating:
            tensors[name] = tensors[name].to(dtype)
            if not tensors[name].isfinite().all():
                raise ValueError(f"cannot store {name} in {dtype}: {TOO_LARGE}")
    write_tensors(path, tensors, document)


def in_8_bits(tensor: Tensor) -> tuple[Tensor, Tensor]:
    """A tensor as whole numbers −127 … 127, int8, and the float16 scales that they are times of.

    A row of a matrix has a scale of its own, and of a tensor of more dimensions what lies in its
    last two: the kernel from one channel to another, or the W_ij of a child and a parent. What
    comes back differs by at most half of its scale, which is 1/127 of the largest in the row.

    Raises:
        ValueError: a number is not finite, or too large.
    """
    rows = max(1, tensor.dim() - 2)
    scale = tensor.detach().float().flatten(rows).abs().amax(dim=-1) / 127
    # Below it float16 gets coarse, and a row of zeros would be divided by 0.
    scale = scale.clamp(min=torch.finfo(torch.float16).tiny).half()
    if not scale.isfinite().all():
        raise ValueError(TOO_LARGE)
    return (tensor / spread(scale, tensor)).round().to(torch.int8), scale


def spread(scale: Tensor, tensor: Tensor) -> Tensor:
    """Scales in float32, a dimension of 1 in place of each that they are shared over."""
    return scale.float().reshape(scale.shape + (1,) * (tensor.dim() - scale.dim()))


def load_weights(
    path: str | Path, make: Callable[..., CapsNet] = CapsNet
) -> tuple[CapsNet, dict[str, Any]]:
    """Make the network that :func:`save_weights` wrote, in float32 and in evaluation mode.

    Args:
        path: the file.
        make: makes the network of its ``config``, such as another subclass of :class:`CapsNet`.

    Returns:
        the model and the metadata.

    Raises:
        FileNotFoundError: there is no such file.
        OSError: it cannot be read.
        ValueError: it is no safetensors file, is damaged or cut short, is not capsnet's, or its
            tensors are not those of the network that it names, or no finite numbers.
    """
    tensors, metadata = read_tensors(path)
    if "model" not in metadata:
        raise ValueError(f"{path} does not say which network it holds")
    stored = metadata.pop("int8", [])
    if not isinstance(stored, list) or not all(isinstance(name, str) for name in stored):
        raise ValueError(f"{path} is damaged: int8 should be a list of names, it is {stored}")
    for name in stored:
        whole, scale = tensors.get(name), tensors.pop(name + SCALE, None)
        if whole is None or scale is None or scale.shape != whole.shape[: max(1, whole.dim() - 2)]:
            raise ValueError(f"{path} is damaged: {name} and its scales do not fit together")
        tensors[name] = whole * spread(scale, whole)
    try:
        with torch.device("meta"):  # no memory and no random numbers before the shapes are checked
            model = make(**metadata["model"])
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"{path} describes a network this version does not know: {error}"
        ) from None
    try:
        check_state(model.state_dict(), tensors)
    except ValueError as error:
        raise ValueError(f"{path} holds weights of another architecture: {error}") from None
    for name, expected in model.state_dict().items():
        got = tensors[name]
        if got.is_floating_point() != expected.is_floating_point():
            raise ValueError(f"{path}: expected {name} in {expected.dtype}, got {got.dtype}")
        if not got.isfinite().all():
            raise ValueError(f"{path}: expected finite weights, {name} holds NaN or infinity")
    model.to_empty(device="cpu")
    model.load_state_dict(tensors)
    return model.eval(), metadata


def check_state(expected: Mapping[str, Tensor], got: Mapping[str, Tensor]) -> None:
    """A ValueError where tensors have not the names and shapes that are expected."""
    for name in sorted(expected.keys() | got.keys()):
        shapes = [list(t[name].shape) if name in t else "absent" for t in (expected, got)]
        if shapes[0] != shapes[1]:
            raise ValueError(f"expected {name} {shapes[0]}, got {shapes[1]}")
