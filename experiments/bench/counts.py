"""What forward and backward ask of any machine: operations, and the bytes they read and write.

Counted on a processor, but true of a GPU too, to which an operation is a kernel to start, or
several. (Operations are PyTorch's. A GPU's library may split some; a compiler would fuse many.)
"""

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from experiments.bench.contestants import BATCH, Call, contestants, forward_and_backward
from experiments.bench.peers import PAPER

VOTES = PAPER.in_capsules * PAPER.out_capsules * PAPER.out_dim  # numbers of û_{j|i} for an image
ALLOCATES = ("aten.empty", "aten._unsafe_view", "aten.new_empty")  # neither reads nor writes


class OperationCounter(TorchDispatchMode):
    """Counts the operations under it, and the bytes of what they take and give; views are free.

    Attributes:
        operations: how many.
        bytes: of tensors that they read or write, each time.
        votes: those of them that are of tensors as large as all votes of a batch, or larger.
    """

    def __init__(self, batch_size: int = BATCH) -> None:
        super().__init__()
        self.operations = self.bytes = self.votes = 0
        self.batch_size = batch_size

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        gives = any(isinstance(t, Tensor) for t in tree_leaves(result))
        if gives and not function.is_view and not str(function).startswith(ALLOCATES):
            self.operations += 1
            for tensor in tree_leaves((args, kwargs, result)):
                if isinstance(tensor, Tensor):
                    size = tensor.numel() * tensor.element_size()
                    self.bytes += size
                    self.votes += size * (tensor.numel() >= self.batch_size * VOTES)
        return result


def count_operations(call: Call, batch_size: int = BATCH) -> dict[str, int]:
    """Operations and bytes of a second call, because the first also makes what is made once."""
    call()
    with OperationCounter(batch_size) as count:
        call()
    return {"operations": count.operations, "bytes": count.bytes, "votes": count.votes}


def run(device: torch.device) -> dict[str, Any]:
    """A row for each contestant that runs as it is written, without a compiler."""
    counted = {
        str(contestant): count_operations(forward_and_backward(contestant, device)[0])
        for contestant in contestants("counts", device)
        if not contestant.compile and contestant.network != "fast"
    }
    return {"forward and backward": counted}
