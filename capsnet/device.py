"""The machine that a network runs on: devices, precisions, processes and the compiler."""

import contextlib
import logging
import os
import platform
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from lightning_fabric import Fabric

PRECISIONS = ("auto", "bf16", "fp32")


def pick_device(name: str = "auto") -> torch.device:
    """The device of a name: "auto" (CUDA where there is one), "cpu", "cuda" or "mps".

    Raises:
        ValueError: another name, or there is no such device.
    """
    available = {
        "cpu": True,
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
    }
    if name == "auto":
        name = "cuda" if available["cuda"] else "cpu"
    if name not in available:
        raise ValueError(f"device must be auto, {', '.join(available)}, got {name!r}")
    if not available[name]:
        raise ValueError(f"device {name} was asked for, but there is none here")
    return torch.device(name)


def bfloat16_is_fast(device: torch.device) -> bool:
    """Whether the hardware multiplies bfloat16 matrices natively."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type != "cpu":
        return False
    # Older versions of PyTorch do not say.
    capabilities: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_tile"))


def resolve_precision(device: torch.device, precision: str) -> str:
    """Choose "bf16" or "fp32" for a device: "auto" is bf16 where the hardware multiplies in it.

    "bf16" is autocast to bfloat16; "fp32" is IEEE float32, which :func:`ieee_float32` ensures.

    Raises:
        ValueError: another precision.
    """
    if precision not in PRECISIONS:
        raise ValueError(f"precision must be one of {', '.join(PRECISIONS)}, got {precision}")
    if precision == "auto":
        precision = "bf16" if bfloat16_is_fast(device) else "fp32"
    return precision


def autocast(device: torch.device, precision: str) -> torch.autocast:
    """The autocast context of a precision, as :func:`resolve_precision` takes it."""
    enabled = resolve_precision(device, precision) == "bf16"
    return torch.autocast(device.type, torch.bfloat16, enabled=enabled)


def rounding_switches(device: torch.device) -> tuple[list[Any], str, str | bool]:
    """PyTorch's settings that let float32 products round, their attribute and its IEEE value."""
    backends: Any = torch.backends
    cuda = device.type == "cuda"
    if not hasattr(backends, "fp32_precision"):  # before PyTorch 2.9
        return [backends.cudnn] if cuda else [], "allow_tf32", False
    if cuda:
        switches = [backends.cudnn.conv, backends.cudnn.rnn, backends.cuda.matmul]
    else:
        switches = [backends.mkldnn.conv, backends.mkldnn.matmul]
    return switches, "fp32_precision", "ieee"


@contextlib.contextmanager
def ieee_float32(device: torch.device, precision: str) -> Iterator[None]:
    """Compute float32 products with all bits inside the block, if the precision is "fp32".

    By default cuDNN's convolutions round to TF32, and a program may have allowed matrix products to
    round too, on a CPU even to bfloat16. The settings of the process are restored.
    """
    if resolve_precision(device, precision) != "fp32" or device.type not in ("cpu", "cuda"):
        yield
        return
    switches, attribute, ieee = rounding_switches(device)
    with contextlib.ExitStack() as restore:
        # The older switch moves the newer ones along, but not the reverse; it cannot be read
        # where the newer ones contradict it.
        with contextlib.suppress(RuntimeError):
            matmul = torch.get_float32_matmul_precision()
            if matmul != "highest":
                restore.callback(torch.set_float32_matmul_precision, matmul)
                torch.set_float32_matmul_precision("highest")
        for switch in switches:
            setting = getattr(switch, attribute)
            if setting not in (ieee, "none"):
                restore.callback(setattr, switch, attribute, setting)
                setattr(switch, attribute, ieee)
        yield


def make_fabric(device: str = "auto") -> "Fabric":
    """Lightning Fabric for this process: one device, or torchrun's processes and machines.

    Devices are named, and refused, as by :func:`pick_device`.
    """
    from lightning_fabric import Fabric

    # Lightning's hints, such as to allow TF32, are not for who calls `fit`.
    logging.getLogger("lightning_fabric.utilities.rank_zero").setLevel(logging.WARNING)
    world, local = 1, 1
    # Schedulers set WORLD_SIZE too, and then nobody would start the other processes.
    if torch.distributed.is_available() and torch.distributed.is_torchelastic_launched():
        world, local = int(os.environ["WORLD_SIZE"]), int(os.environ["LOCAL_WORLD_SIZE"])
    fabric = Fabric(
        accelerator=pick_device(device).type,
        devices=local,
        num_nodes=world // local,
        strategy="ddp" if world > 1 else "auto",
    )
    fabric.launch()
    return fabric


def resolve_compile(wish: bool | None, device: torch.device) -> bool:
    """Whether to use torch.compile: as wished, and for None where it works, except on CUDA.

    On CUDA a training step is a graph, which starts at once; compiled ones were not timed.
    """
    if wish is not None:
        return wish
    return device.type != "cuda" and can_compile(device)


def can_compile(device: torch.device) -> bool:
    """Whether torch.compile works here: it needs a C++ compiler, or Triton on a GPU."""
    try:
        # A real try: compilers, headers and caches can be missing in many ways.
        torch.compile(lambda x: x + 1)(torch.zeros(2, device=device))
    except Exception:
        return False
    return True


def describe_machine(device: torch.device, processes: int = 1) -> dict[str, Any]:
    """The properties that a time, or a result's last digit, may depend on."""
    cuda = device.type == "cuda"
    return {
        "device": torch.cuda.get_device_name(device) if cuda else platform.machine(),
        # Its vector extensions tell more than its name, which a cloud may hide.
        "processor": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "processes": processes,
        "bfloat16": bfloat16_is_fast(device),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }
