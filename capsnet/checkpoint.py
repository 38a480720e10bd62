"""Weights and checkpoints as safetensors files.

A file holds tensors and one JSON document (its safetensors metadata under the key "capsnet"), which
names the network's class and the arguments that make it again. Nothing is pickled or unpickled.
"""

import contextlib
import inspect
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
TOO_LARGE = "expected finite numbers of moderate size"
REGISTERED: dict[str, Any] = {}  # the classes that `load_weights` makes, by module and name
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
        model: the network, with its ``config``; :func:`unwrapped`.
        metadata: JSON-able facts to store with the weights, such as the names of the classes.
        dtype: store floating-point numbers in this type: float16 halves the file, int8 quarters it
            (:func:`quantized`); None stores them as they are.

    Raises:
        OSError: the file cannot be written; what was there is untouched.
        ValueError: as :func:`check_savable`, another ``dtype``, or a weight is not finite in it.
    """
    if dtype not in (None, torch.int8) and not getattr(dtype, "is_floating_point", False):
        raise ValueError(f"dtype must be floating point or torch.int8, got {dtype}")
    model = unwrapped(model)
    metadata = metadata or {}
    check_savable(model, metadata)
    document: dict[str, Any] = dict(metadata)
    document |= {"class": full_name(type(model)), "model": cast(Any, model).config}
    tensors = model.state_dict()
    if dtype == torch.int8:
        tensors, document["int8"] = quantized(tensors)
    else:
        for name, tensor in tensors.items():
            if tensor.is_floating_point():
                stored = tensors[name] = tensor.to(dtype or tensor.dtype)
                if not stored.isfinite().all():
                    raise ValueError(f"cannot store {name} in {stored.dtype}: {TOO_LARGE}")
    write_tensors(path, tensors, document)


def unwrapped(model: nn.Module) -> nn.Module:
    """The network inside what torch.compile, DataParallel and AveragedModel make of it.

    Raise ValueError if ``model`` is no network.
    """
    if not isinstance(model, nn.Module):
        raise ValueError(f"expected a network, a torch.nn.Module; got {type(model).__name__}")
    while True:
        if "_orig_mod" in model._modules:  # torch.compile's, whose class is not public
            model = cast(nn.Module, model._orig_mod)
        elif isinstance(model, nn.DataParallel | DistributedDataParallel | AveragedModel):
            model = model.module
        else:
            return model


def check_savable(model: nn.Module, metadata: Mapping[str, Any]) -> None:
    """Check that a network's class and ``config`` make a network with the same tensors.

    Raises:
        ValueError: it has no dict ``config``, or they do not; or ``metadata`` uses one of the
            format's own keys, or is not JSON-able.
    """
    if taken := [key for key in RESERVED_KEYS if key in metadata]:
        raise ValueError(f"metadata must not use the keys {', '.join(RESERVED_KEYS)}, got {taken}")
    try:
        json.dumps({**metadata})
    except (TypeError, ValueError) as error:
        raise ValueError(f"metadata must be JSON-able: {error}") from error
    config = getattr(model, "config", None)
    kind = type(model).__name__
    if not isinstance(config, dict):
        raise ValueError(
            f"the network must have a dict config, the arguments that make it again; {kind} has "
            f"{config!r}"
        )
    try:
        if lacking := [name for name in own_arguments(type(model)) if name not in config]:
            raise ValueError(f"which lacks {', '.join(lacking)}")
        check_state(made_state(type(model), json.loads(json.dumps(config))), model.state_dict())
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"the network could not be loaded again: a {kind} made from its config is another one "
            f"({error})"
        ) from error


def made_state(network: Any, config: Mapping[str, Any]) -> dict[str, Tensor]:
    """The tensors of a new network: their names and shapes, and no memory where that works."""
    with contextlib.suppress(RuntimeError), torch.device("meta"):
        return cast(dict[str, Tensor], network(**config).state_dict())
    with torch.random.fork_rng(devices=[]):  # it reads a value, which there is not on "meta"
        return cast(dict[str, Tensor], network(**config).state_dict())


def own_arguments(network: type[nn.Module]) -> list[str]:
    """The names of a class's arguments that :class:`CapsNet` does not have.

    A config may lack one of CapsNet's: some routings have no iterations.
    """
    arguments = inspect.signature(network).parameters.values()
    named = [x.name for x in arguments if x.kind not in (x.VAR_POSITIONAL, x.VAR_KEYWORD)]
    return [name for name in named if name not in inspect.signature(CapsNet).parameters]


def quantized(tensors: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], list[str]]:
    """Tensors with matrices in 8 bits and the scales of these, and the names of the matrices.

    A matrix becomes integers −127 … 127, int8, times float16 scales. Each row of a matrix has a
    scale. In a tensor with more dimensions, each slice of the last two has one: the kernel from one
    channel to another, or the W_ij of a child and a parent. A scale is 1/127 of the largest number
    that it belongs to, and what :func:`load_weights` reads differs by at most half of it.

    Raises:
        ValueError: a number is not finite, or too large.
    """
    stored = dict(tensors)
    names = [name for name, x in tensors.items() if x.is_floating_point() and x.dim() > 1]
    for name in names:
        tensor = tensors[name].detach().float()
        scale = tensor.flatten(max(1, tensor.dim() - 2)).abs().amax(dim=-1) / 127
        # Below it float16 gets coarse, and a row of zeros would be divided by 0.
        scale = scale.clamp(min=torch.finfo(torch.float16).tiny).half()
        if not scale.isfinite().all():
            raise ValueError(f"cannot store {name} in 8 bits: {TOO_LARGE}")
        stored[name] = (tensor / broadcastable(scale, tensor)).round().to(torch.int8)
        stored[name + SCALE] = scale
    return stored, names


def broadcastable(scale: Tensor, tensor: Tensor) -> Tensor:
    """Reshape ``scale`` to broadcast against ``tensor``, in float32."""
    return scale.float().reshape(scale.shape + (1,) * (tensor.dim() - scale.dim()))


def load_weights(path: str | Path) -> tuple[Any, dict[str, Any]]:
    """Make the network that :func:`save_weights` wrote, in float32 and in evaluation mode.

    Args:
        path: the file.

    Returns:
        the model, of the class that the file names, and the metadata.

    Raises:
        FileNotFoundError: there is no such file.
        OSError: it cannot be read.
        ValueError: the file is no safetensors file, is damaged or cut short, is not capsnet's, or
            names a class that is not registered; or its tensors are not those of the network that
            it names, or not finite.
    """
    tensors, metadata = read_tensors(path)
    config = metadata.pop("model", None)
    if not isinstance(config, dict):
        raise ValueError(f"{path} does not say which network it holds")
    dequantize(path, tensors, metadata.pop("int8", []))
    class_name = str(metadata.pop("class", full_name(CapsNet)))
    if class_name not in REGISTERED:
        raise ValueError(
            f"{path} holds a {class_name}, which is not registered: import its module first, and "
            "see capsnet.checkpoint.register"
        )
    try:
        expected_state = made_state(REGISTERED[class_name], config)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"{path} describes a network this version does not know: {error}"
        ) from None
    try:
        check_state(expected_state, tensors)
    except ValueError as error:
        raise ValueError(f"{path} holds weights of another architecture: {error}") from None
    for name, expected in expected_state.items():
        got = tensors[name]
        if got.is_floating_point() != expected.is_floating_point():
            raise ValueError(f"{path}: expected {name} in {expected.dtype}, got {got.dtype}")
        if not got.isfinite().all():
            raise ValueError(f"{path}: expected finite weights, {name} holds NaN or infinity")
    # Made anew, because what is in no state_dict has no value on the device "meta".
    with torch.random.fork_rng(devices=[]):
        model = REGISTERED[class_name](**config)
    model.load_state_dict(tensors)
    return model.eval(), metadata


def dequantize(path: str | Path, tensors: dict[str, Tensor], names: Any) -> None:
    """Put float32 in place of what :func:`quantized` made."""
    try:
        for name in names:
            scale = tensors.pop(name + SCALE)
            tensors[name] = tensors[name] * broadcastable(scale, tensors[name])
    except (TypeError, LookupError, RuntimeError) as error:
        raise ValueError(f"{path} is damaged: its 8-bit tensors do not fit ({error})") from error


def check_state(expected: Mapping[str, Tensor], got: Mapping[str, Tensor]) -> None:
    """Raise ValueError if tensors have other names or shapes than expected."""
    for name in sorted(expected.keys() | got.keys()):
        shapes = [list(t[name].shape) if name in t else "absent" for t in (expected, got)]
        if shapes[0] != shapes[1]:
            raise ValueError(f"expected {name} {shapes[0]}, got {shapes[1]}")
