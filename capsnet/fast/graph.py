"""A training step's forward and backward pass as one CUDA graph."""

import contextlib
import warnings
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn


@contextlib.contextmanager
def error_on_sync() -> Iterator[None]:
    """A RuntimeError where the host waits for a GPU until the block's end.

    A capture would end with one as well, but would leave CUDA's random numbers unusable.
    """
    before = torch.cuda.get_sync_debug_mode()
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Synchronization debug mode is a prototype")
            torch.cuda.set_sync_debug_mode("error")
        yield
    finally:
        torch.cuda.set_sync_debug_mode(before)


class Graph:
    """The loss of a batch and its gradients: captured once, then replayed with other batches.

    A step is hundreds of kernels, most of them so short that the GPU waits for the next one to be
    launched; a graph is launched all at once. What Python decides is decided by the capture.

    Args:
        loss: takes the batch and returns a scalar; it has run on the device before.
        batch: tensors on the device; what is replayed takes others of these shapes.

    Raises:
        RuntimeError: a tensor is not on the device, or something cannot be captured.
    """

    def __init__(self, loss: nn.Module, batch: Sequence[Tensor]) -> None:
        if not all(part.is_cuda for part in batch):
            raise RuntimeError("a part of the batch is not on the GPU")
        self.parameters = [p for p in loss.parameters() if p.requires_grad]
        self.device = batch[0].device
        self.batch = [part.clone() for part in batch]
        for parameter in self.parameters:
            parameter.grad = None  # the capture makes its own, which each replay writes anew
        self.graph = torch.cuda.CUDAGraph()
        stream = torch.cuda.Stream(self.device)
        with torch.cuda.device(self.device), torch.cuda.graph(self.graph, stream=stream):
            total = loss(*self.batch)
            total.backward()
        self.loss, self.gradients = total.detach(), [p.grad for p in self.parameters]

    def takes(self, batch: Sequence[Tensor]) -> bool:
        """Whether these are tensors such as it was captured with."""
        kept, new = ([(x.shape, x.dtype, x.device) for x in parts] for parts in (self.batch, batch))
        return kept == new

    def __call__(self, batch: Sequence[Tensor]) -> Tensor:
        for kept, new in zip(self.batch, batch, strict=True):
            kept.copy_(new)
        for parameter, gradient in zip(self.parameters, self.gradients, strict=True):
            parameter.grad = gradient
        with torch.cuda.device(self.device):
            self.graph.replay()
        return self.loss.clone()
