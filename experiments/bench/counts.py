"""What forward and backward ask of any machine: operations, and the bytes they read and write.

Counted on a processor, but true of a GPU too, to which an operation is a kernel to start, or
several. (Operations are PyTorch's. A GPU's library may split some; a compiler would fuse many. The
optimiser is left out: its operations are its own affair, whatever the network.)
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.hooks import RemovableHandle

from experiments.bench.contestants import BATCH, CONTESTANTS, Call, names, training_step
from experiments.bench.peers import PAPER

VOTES = PAPER.in_capsules * PAPER.out_capsules * PAPER.out_dim  # numbers of û_{j|i} for an image
ALLOCATES = ("aten.empty", "aten._unsafe_view", "aten.new_empty")  # neither reads nor writes


class Counted(TorchDispatchMode):
    """Counts the operations under it, and the bytes of what they take and give; views are free.

    Those of an optimiser's step are not counted.

    Attributes:
        operations: how many.
        bytes: of tensors that they read or write, each time.
        votes: those of them that are of tensors as large as all votes of a batch, or larger.
    """

    def __init__(self, batch_size: int = BATCH) -> None:
        super().__init__()
        self.operations = self.bytes = self.votes = 0
        self.batch_size, self.optimizing = batch_size, False
        self.hooks: tuple[RemovableHandle, ...] = ()

    def __enter__(self) -> "Counted":
        def during(value: bool) -> Callable[..., None]:
            return lambda *_: setattr(self, "optimizing", value)

        start = register_optimizer_step_pre_hook(during(True))
        self.hooks = start, register_optimizer_step_post_hook(during(False))
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        for hook in self.hooks:
            hook.remove()

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        tensors = [t for t in tree_leaves((args, kwargs, result)) if isinstance(t, Tensor)]
        gives = any(isinstance(t, Tensor) for t in tree_leaves(result)) and not self.optimizing
        if gives and not function.is_view and not str(function).startswith(ALLOCATES):
            self.operations += 1
            for tensor in tensors:
                size = tensor.numel() * tensor.element_size()
                self.bytes += size
                self.votes += size * (tensor.numel() >= self.batch_size * VOTES)
        return result


def counted(call: Call, batch_size: int = BATCH) -> dict[str, int]:
    """What a second call asks for; the first makes what is made once."""
    call()
    with Counted(batch_size) as count:
        call()
    return {"operations": count.operations, "bytes": count.bytes, "votes": count.votes}


def run(device: torch.device) -> dict[str, Any]:
    """A row for each contestant that runs as it is written, without a compiler."""
    return {
        "forward and backward": {
            name: counted(training_step(name, device))
            for name in names("counts", device)
            if not CONTESTANTS[name].compile and CONTESTANTS[name].network != "fast"
        }
    }
