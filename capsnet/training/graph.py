"""A training step's forward and backward pass as one CUDA graph."""

import contextlib
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn


@contextlib.contextmanager
def nothing_waits() -> Iterator[None]:
    """A RuntimeError where the host waits for a GPU until the block's end.

    A recording would end with one as well, but would leave CUDA's random numbers unusable.
    """
    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(before)


class Graph:
    """The loss of a batch and its gradients: recorded once, then replayed with other batches.

    A step is hundreds of kernels, most of them so short that the GPU waits for the next one to be
    launched; a graph is launched all at once. What Python decides is decided by the recording.

    Args:
        loss: takes the batch and returns a scalar; it has run on the device before.
        batch: tensors on the device; what is replayed takes others of these shapes.

    Raises:
        RuntimeError: something in it waits for the device.
    """

    def __init__(self, loss: nn.Module, batch: Sequence[Tensor]) -> None:
        self.parameters = [p for p in loss.parameters() if p.requires_grad]
        self.batch = [part.clone() for part in batch]
        for parameter in self.parameters:
            parameter.grad = None  # the recording makes its own, which each replay writes anew
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            total = loss(*self.batch)
            total.backward()
        self.loss, self.gradients = total.detach(), [p.grad for p in self.parameters]

    def takes(self, batch: Sequence[Tensor]) -> bool:
        """Whether these are tensors such as it was recorded with."""
        kinds = [[(part.shape, part.dtype) for part in each] for each in (self.batch, batch)]
        return kinds[0] == kinds[1]

    def __call__(self, batch: Sequence[Tensor]) -> Tensor:
        for mine, given in zip(self.batch, batch, strict=True):
            mine.copy_(given)
        for parameter, gradient in zip(self.parameters, self.gradients, strict=True):
            parameter.grad = gradient
        self.graph.replay()
        return self.loss.clone()
