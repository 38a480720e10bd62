"""One training step: forward, backward, optimiser."""

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn

from capsnet.device import ieee_float32, resolve_compile, resolve_precision
from capsnet.fast import arrange
from capsnet.fast.graph import Graph, nothing_waits
from capsnet.functional import margin_loss
from capsnet.model import CapsNet
from capsnet.text import reason
from capsnet.training.config import TrainingConfig
from capsnet.training.loss import Criterion, TrainingLoss

if TYPE_CHECKING:
    from lightning_fabric import Fabric


WARM_UP = 2  # calls before the capture: what is first called is compiled and tuned


class Step:
    """The training step that ``fit`` runs.

    ``step = make_step(model)``; ``step(images, labels)`` updates the weights and returns the loss
    before the update, a scalar without gradient. Images are [batch, channels, height, width],
    floating point in 0 … 1; labels are class indices [batch]. (Another ``loss`` may take other
    tensors.) ``step.compile()`` compiles from the next call on, and ``step.capture()`` turns it
    into a CUDA graph.

    Args:
        model: the network, on its device; on CUDA, and in the plain arrangement, its convolutions
            are put into channels_last layout.
        optimizer: of the model's parameters; Adam with the configuration's learning rate if None.
        config: ``reconstruction_weight``, ``precision``, ``arrangement``, ``compile`` and
            ``learning_rate`` count.
        fabric: averages gradients over its processes.
        criterion: lengths [batch, classes] and labels → the loss beside the reconstruction's.
        loss: makes a module of the network and its loss, as :class:`TrainingLoss` does.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer | None = None,
        config: TrainingConfig | None = None,
        fabric: "Fabric | None" = None,
        criterion: Criterion = margin_loss,
        loss: Callable[..., nn.Module] = TrainingLoss,
    ) -> None:
        config = config or TrainingConfig()
        self.optimizer, self.fabric = optimizer or make_optimizer(model, config), fabric
        device = next(model.parameters()).device
        arranged = arrange(cast(CapsNet, model), config.arrangement)
        if arranged is model or device.type == "cuda":
            for module in model.modules():
                # oneDNN and cuDNN are faster so, in bf16 above all.
                if isinstance(module, nn.Conv2d):
                    module.to(memory_format=torch.channels_last)
        self.device, self.precision = device, resolve_precision(device, config.precision)
        self.loss = loss(arranged, config.reconstruction_weight, self.precision, criterion)
        # The fast arrangement compiles its own parts.
        self._to_compile = self.loss if arranged is model else arranged
        self.compiled = False
        self.graph: Graph | None = None
        self.calls_to_capture = 0  # 0: none is to come
        if fabric is not None and fabric.world_size > 1:
            self.loss = fabric.setup_module(self.loss)
        if resolve_compile(config.compile, device):
            self.compile()

    def compile(self) -> None:
        self._to_compile.compile()
        self.compiled = True

    def capture(self) -> None:
        """Capture forward and backward pass as a CUDA graph, where a single GPU computes them.

        Three calls later all further ones are replays: nothing that Python decides is decided
        again, such as a margin that grows, or what ``requires_grad``. Where the host waits for the
        device, as it does to read a value, a warning says so, and steps go on as before.
        """
        alone = self.fabric is None or self.fabric.world_size == 1
        if alone and next(self.loss.parameters()).device.type == "cuda":
            self.calls_to_capture = WARM_UP + 1

    def __call__(self, *batch: Tensor) -> Tensor:
        with ieee_float32(self.device, self.precision):
            return self.update(batch)

    def update(self, batch: Sequence[Tensor]) -> Tensor:
        if self.graph is not None and self.graph.takes(batch):
            loss = self.graph(batch)
        elif self.calls_to_capture == 1:
            return self.capture_after(batch)
        else:
            self.calls_to_capture = max(0, self.calls_to_capture - 1)
            loss = self.forward_and_backward(batch)
        self.optimizer.step()
        return loss

    def capture_after(self, batch: Sequence[Tensor]) -> Tensor:
        """A call that shows whether the host waits; if not, the next ones are replays."""
        self.calls_to_capture = 0
        waits = False
        try:
            with nothing_waits():
                loss = self.forward_and_backward(batch)
        except RuntimeError as error:
            waits = True
            say_slower(error)
            loss = self.forward_and_backward(batch)
        self.optimizer.step()
        if not waits:
            try:
                self.graph = Graph(self.loss, batch)
            except RuntimeError as error:
                say_slower(error)
        return loss

    def forward_and_backward(self, batch: Sequence[Tensor]) -> Tensor:
        self.optimizer.zero_grad()
        loss: Tensor = self.loss(*batch)
        if self.fabric is None:
            loss.backward()
        else:
            self.fabric.backward(loss)
        return loss.detach()


def say_slower(error: RuntimeError) -> None:
    warnings.warn(f"no CUDA graph, so steps are slower: {reason(error)}", stacklevel=4)


make_step = Step


def make_optimizer(model: nn.Module, config: TrainingConfig) -> torch.optim.Optimizer:
    """Adam with β = (0.9, 0.999) and ε = 1e-8, in its fused form."""
    return torch.optim.Adam(model.parameters(), lr=config.learning_rate, fused=True)
