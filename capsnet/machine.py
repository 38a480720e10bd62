"""The machine that a network runs on: its devices and processes, its compiler, its description."""

import os
import platform
from typing import TYPE_CHECKING, Any

import torch

from capsnet.evaluation import bfloat16_is_fast, pick_device

if TYPE_CHECKING:
    from lightning_fabric import Fabric


def make_fabric(device: str = "auto") -> "Fabric":
    """Lightning Fabric for this process: one device, or torchrun's processes and machines.

    Args:
        device: as :func:`capsnet.evaluation.pick_device`.

    Raises:
        ValueError: there is no such device.
    """
    from lightning_fabric import Fabric

    world = int(os.environ.get("WORLD_SIZE", 1))  # set by torchrun, as is the next
    local = int(os.environ.get("LOCAL_WORLD_SIZE", 1))
    fabric = Fabric(
        accelerator=pick_device(device).type,
        devices=local,
        num_nodes=world // local,
        strategy="ddp" if world > 1 else "auto",
    )
    fabric.launch()
    return fabric


def can_compile(device: torch.device) -> bool:
    """Whether torch.compile works here: it needs a C++ compiler, or Triton on a GPU."""
    try:
        # A real try: compilers, headers and caches can be missing in many ways.
        torch.compile(lambda x: x + 1)(torch.zeros(2, device=device))
    except Exception:
        torch._dynamo.reset()
        return False
    return True


def describe_machine(device: torch.device, processes: int = 1) -> dict[str, Any]:
    """What a time or a last digit may depend on.

    The processor's vector extensions tell more than its name, which a cloud may hide.
    """
    cuda = device.type == "cuda"
    return {
        "device": torch.cuda.get_device_name(device) if cuda else platform.machine(),
        "processor": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "processes": processes,
        "bfloat16": bfloat16_is_fast(device),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }
