"""Weights and checkpoints as safetensors files, written whole or not at all.

A file holds tensors and one JSON document (its safetensors metadata under the key "capsnet").
Nothing is pickled or unpickled.
"""

import contextlib
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from capsnet.model import CapsNet


def write_atomically(path: str | Path, data: bytes) -> None:
    """Write a file so that at every moment ``path`` is the old file or the whole new one.

    Several processes may write the same file; the last one wins. A process that is killed while it
    writes leaves a hidden file (:func:`partial_files`) behind, which nobody reads.

    Raises:
        OSError: it cannot be written (the message names the file); what was there is untouched.
    """
    target = Path(os.path.realpath(path))  # the file that a link names, not the link
    # A name of its own for every write, so that two writers never share a file.
    partial = target.with_name(f".{target.name[:180]}.{os.getpid()}-{secrets.token_hex(4)}.partial")
    try:
        if target.exists() and not target.is_file():
            raise OSError("it is no ordinary file")
        target.parent.mkdir(parents=True, exist_ok=True)
        with open(partial, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, target)
    except BaseException as error:
        with contextlib.suppress(OSError):  # the first error is the one to tell
            partial.unlink(missing_ok=True)
        if isinstance(error, OSError):
            reason = error.strerror or str(error)
            raise OSError(f"cannot write {path}: {reason}") from error
        raise


def partial_files(folder: Path) -> list[Path]:
    """What killed processes left in a folder; while others write there, their files as well."""
    return list(folder.glob(".*.partial"))


def write_json(path: str | Path, document: Any, indent: int | None = 1) -> None:
    """Write a document as JSON, atomically; with ``indent`` None in a single line.

    Raises:
        OSError: as :func:`write_atomically`.
    """
    write_atomically(path, (json.dumps(document, indent=indent) + "\n").encode())


def write_tensors(path: str | Path, tensors: Mapping[str, Tensor], document: Mapping) -> None:
    """Write named tensors and a JSON document atomically.

    Raises:
        OSError: as :func:`write_atomically`.
    """
    import safetensors.torch

    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_atomically(path, safetensors.torch.save(plain, {"capsnet": json.dumps(document)}))


def read_tensors(path: str | Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what :func:`write_tensors` wrote.

    Raises:
        FileNotFoundError: there is no such file.
        OSError: it cannot be read.
        ValueError: it is no safetensors file, is damaged or cut short, or is not capsnet's.
    """
    from safetensors import SafetensorError, safe_open

    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"no such file: {path}")
    if not path.is_file():
        kind = "a folder" if path.is_dir() else "no ordinary file"
        raise ValueError(f"expected a safetensors file, got {kind}: {path}")
    try:
        with safe_open(path, framework="pt") as file:
            document = (file.metadata() or {}).get("capsnet")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, RuntimeError) as error:
        raise ValueError(
            f"{path} is not a whole safetensors file (damaged, cut short or of another kind): "
            f"{error}"
        ) from error
    if document is None:
        raise ValueError(f"{path} was not written by capsnet: it does not say which network it is")
    try:
        document = json.loads(document)
    except ValueError as error:
        raise ValueError(f"{path} is damaged: its description is no JSON: {error}") from None
    if not isinstance(document, dict):
        raise ValueError(f"{path} is damaged: its description is no JSON object")
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
        model: the network, with its ``config``.
        metadata: JSON-able facts to keep beside the weights, such as the names of the classes.
        dtype: store in this floating-point type (float16 halves the file); as it is if None.

    Raises:
        OSError: as :func:`write_atomically`.
    """
    tensors = {name: tensor.to(dtype) for name, tensor in model.state_dict().items()}
    write_tensors(path, tensors, {**(metadata or {}), "model": model.config})


def load_weights(path: str | Path) -> tuple[CapsNet, dict[str, Any]]:
    """Make the network that :func:`save_weights` wrote, in float32 and in evaluation mode.

    Returns:
        the model and the metadata.

    Raises:
        FileNotFoundError, OSError, ValueError: as :func:`read_tensors`; ValueError also where the
            tensors are not those of the network that the file names.
    """
    tensors, metadata = read_tensors(path)
    if "model" not in metadata:
        raise ValueError(f"{path} does not say which network it holds")
    try:
        with torch.device("meta"):  # no memory and no random numbers before the shapes are checked
            model = CapsNet(**metadata["model"])
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"{path} describes a network this version does not know: {error}"
        ) from None
    check_state(model, tensors, source=path)
    model.to_empty(device="cpu")
    model.load_state_dict(tensors)
    return model.eval(), metadata


def check_state(model: nn.Module, tensors: Mapping[str, Tensor], source: str | Path) -> None:
    """See that tensors have the names and shapes of a model's parameters.

    Raises:
        ValueError: they have not.
    """
    expected = {name: list(tensor.shape) for name, tensor in model.state_dict().items()}
    found = {name: list(tensor.shape) for name, tensor in tensors.items()}
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name):
            raise ValueError(
                f"{source} holds weights of another architecture: expected {name} "
                f"{expected.get(name, 'absent')}, got {found.get(name, 'absent')}"
            )
