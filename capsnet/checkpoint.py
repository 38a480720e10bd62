"""Weights and checkpoints as safetensors files.

A file holds tensors and one JSON document (its safetensors metadata under the key "capsnet"), which
names the network's class and the arguments that make it again. Nothing is pickled or unpickled.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim.swa_utils import AveragedModel

from capsnet.files import write_atomically
from capsnet.model import CapsNet

SCALE = ".scale"  # ends the name of the scales of a tensor that is stored in 8 bits
REGISTERED: dict[str, Any] = {}  # the classes that `load_weights` makes, by module and name
STORED = (torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.int8)
RESERVED_KEYS = ("class", "model", "int8")  # of a file's document: metadata must not use them
Network = TypeVar("Network", bound=type[nn.Module])


def full_name(network: type[nn.Module]) -> str:
    """Module and name of a network's class: what a file stores."""
    return f"{network.__module__}.{network.__qualname__}"


def register(network: Network) -> Network:
    """Let :func:`load_weights` make networks of this class; a decorator.

    A network has a ``config``, the arguments that make it again. It is known by the module and the
    name of its class.
    """
    REGISTERED[full_name(network)] = network
    return network


register(CapsNet)


def write_tensors(path: str | Path, tensors: Mapping[str, Tensor], document: Mapping) -> None:
    """Write named tensors and a JSON document atomically."""
    # Clones, because safetensors refuses tensors that share memory, as tied weights do.
    plain = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    write_atomically(path, safetensors.torch.save(plain, {"capsnet": json.dumps(document)}))


def read_tensors(path: str | Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what :func:`write_tensors` wrote; raise what :func:`load_weights` raises."""
    if not Path(path).exists():
        raise FileNotFoundError(f"no such file: {path}")
    if Path(path).is_dir():
        raise ValueError(f"expected a safetensors file, got a folder: {path}")
    if not Path(path).is_file():
        raise ValueError(f"expected a safetensors file, got a device or a pipe: {path}")
    try:
        with safe_open(path, framework="pt") as file:
            document = json.loads((file.metadata() or {}).get("capsnet", "null"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, RuntimeError, ValueError) as error:
        raise ValueError(
            f"{path} is not a whole safetensors file (damaged, cut short or of another kind): "
            f"{error}"
        ) from error
    if not isinstance(document, dict):
        raise ValueError(f"{path} was not written by capsnet: it does not say which network it is")
    return tensors, document


def save_weights(
    path: str | Path,
    model: nn.Module,
    metadata: Mapping[str, Any] | None = None,
    dtype: torch.dtype | None = None,
) -> None:
    """Write a model's weights and what is needed to make the same network again.

    Args:
        path: the file; its folder is made if it is missing.
        model: the network, with its ``config``, also in what :func:`unwrapped` takes off.
        metadata: JSON-able facts to store with the weights, such as the names of the classes.
        dtype: store floating-point numbers in this type, one of float64, float32, bfloat16, float16
            and int8. Float16 halves the file, int8 quarters it (:func:`quantized`); None stores
            them as they are.

    Raises:
        OSError: the file cannot be written; what was there is untouched.
        ValueError: as :func:`check_savable`, another ``dtype``, or a weight is not finite in it.
    """
    if dtype is not None and dtype not in STORED:
        raise ValueError(f"dtype must be one of {', '.join(map(str, STORED))}, got {dtype}")
    model = unwrapped(model)
    metadata = metadata or {}
    check_savable(model, metadata)
    document: dict[str, Any] = dict(metadata)
    document |= {"class": full_name(type(model)), "model": cast(Any, model).config}
    tensors = model.state_dict()
    if dtype == torch.int8:
        tensors, document["int8"] = quantized(tensors)
    elif dtype is not None:
        for name, tensor in tensors.items():
            if tensor.is_floating_point():
                tensors[name] = tensor.to(dtype)
    check_finite(tensors, f"{path} is not written")
    write_tensors(path, tensors, document)


def unwrapped(model: nn.Module) -> nn.Module:
    """The network inside what torch.compile, DataParallel and AveragedModel make of it."""
    if "_orig_mod" in model._modules:  # torch.compile's, whose class is not public
        return unwrapped(cast(nn.Module, model._orig_mod))
    if isinstance(model, nn.DataParallel | DistributedDataParallel | AveragedModel):
        return unwrapped(model.module)
    return model


def check_savable(model: nn.Module, metadata: Mapping[str, Any]) -> None:
    """Check that a network's class and ``config`` make a network with the same tensors.

    Raises:
        ValueError: they do not; or ``metadata`` uses one of the format's own keys, or is not
            JSON-able.
    """
    if taken := [key for key in RESERVED_KEYS if key in metadata]:
        raise ValueError(f"metadata must not use the keys {', '.join(RESERVED_KEYS)}, got {taken}")
    try:
        json.dumps(dict(metadata))
        config = json.loads(json.dumps(getattr(model, "config", None)))
        check_state(make(type(model), config).state_dict(), model.state_dict())
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"this {type(model).__name__} could not be loaded again from its config: {error}"
        ) from error


def make(network: type[nn.Module], config: Any) -> nn.Module:
    """A new network; its random weights leave the process's generator as it is."""
    with torch.random.fork_rng(devices=[]):
        return network(**config)


def quantized(tensors: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], list[str]]:
    """Tensors with matrices in 8 bits and the scales of these, and the names of the matrices.

    A matrix becomes integers −127 … 127, int8, times float16 scales. Each row of a matrix has a
    scale. In a tensor with more dimensions, each slice of the last two has one: the kernel from one
    channel to another, or the W_ij of a child and a parent. A scale is 1/127 of the largest number
    that it belongs to, and what :func:`load_weights` reads differs by at most half of it.
    """
    stored = dict(tensors)
    names = [name for name, x in tensors.items() if x.is_floating_point() and x.dim() > 1]
    for name in names:
        tensor = tensors[name].detach().float()
        scale = tensor.flatten(max(1, tensor.dim() - 2)).abs().amax(dim=-1) / 127
        # Below it float16 gets coarse, and a row of zeros would be divided by 0.
        scale = scale.clamp(min=torch.finfo(torch.float16).tiny).half()
        stored[name] = (tensor / broadcastable(scale, tensor)).round().to(torch.int8)
        stored[name + SCALE] = scale
    return stored, names


def broadcastable(scale: Tensor, tensor: Tensor) -> Tensor:
    """Reshape ``scale`` to broadcast against ``tensor``, in float32."""
    return scale.float().reshape(scale.shape + (1,) * (tensor.dim() - scale.dim()))


def load_weights(path: str | Path) -> tuple[Any, dict[str, Any]]:
    """Make the network that :func:`save_weights` wrote, in float32 and in evaluation mode.

    Returns:
        the model, of the class that the file names, and the metadata.

    Raises:
        OSError: there is no such file, or it cannot be read.
        ValueError: the file is damaged or of another kind, its class is not registered, or its
            tensors are not those of the network that it describes, or not finite.
    """
    tensors, metadata = read_tensors(path)
    class_name = str(metadata.pop("class", full_name(CapsNet)))
    if class_name not in REGISTERED:
        raise ValueError(
            f"{path} holds a {class_name}, which is not registered: import its module first, and "
            "see capsnet.checkpoint.register"
        )
    try:
        for name in metadata.pop("int8", []):
            scale = tensors.pop(name + SCALE)
            tensors[name] = tensors[name] * broadcastable(scale, tensors[name])
        model = make(REGISTERED[class_name], metadata.pop("model", None))
        check_state(model.state_dict(), tensors)
    except (TypeError, LookupError, ValueError, RuntimeError) as error:
        raise ValueError(f"{path} holds no network that it describes: {error}") from error
    check_finite(tensors, str(path))
    model.load_state_dict(tensors)
    return model.eval(), metadata


def check_finite(tensors: Mapping[str, Tensor], place: str) -> None:
    """Raise ValueError, which begins with a place, if a number is NaN or infinite."""
    for name, tensor in tensors.items():
        if not tensor.isfinite().all():
            raise ValueError(f"{place}: expected finite weights, {name} holds NaN or infinity")


def check_state(expected: Mapping[str, Tensor], got: Mapping[str, Tensor]) -> None:
    """Raise ValueError if tensors have other names or shapes than expected."""
    for name in sorted(expected.keys() | got.keys()):
        shapes = [list(t[name].shape) if name in t else "absent" for t in (expected, got)]
        if shapes[0] != shapes[1]:
            raise ValueError(f"expected {name} {shapes[0]}, got {shapes[1]}")
