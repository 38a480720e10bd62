"""One training step: forward, backward, optimiser."""

import dataclasses
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn

from capsnet.checks import device_of
from capsnet.device import ieee_float32, resolve_compile, resolve_precision
from capsnet.fast import arrange
from capsnet.fast.graph import Graph, error_on_sync
from capsnet.functional import margin_loss
from capsnet.model import CapsNet
from capsnet.text import reason
from capsnet.training.config import TrainingConfig
from capsnet.training.loss import Criterion, TrainingLoss

if TYPE_CHECKING:
    from lightning_fabric import Fabric

WARM_UP = 2  # calls before the capture: the first ones compile and tune kernels


def make_step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer | None = None,
    config: TrainingConfig | None = None,
    fabric: "Fabric | None" = None,
    criterion: Criterion = margin_loss,
    make_loss: Callable[..., nn.Module] = TrainingLoss,
) -> "Step":
    """The training step that ``fit`` runs: ``step(images, labels)`` → the loss.

    Args:
        model: the network, on its device; on CUDA, and in the plain arrangement, its convolutions
            are put into channels_last layout.
        optimizer: of the model's parameters; by default Adam with the configuration's rate.
        config: ``reconstruction_weight``, ``precision``, ``arrangement``, ``compile`` and
            ``learning_rate`` count.
        fabric: averages gradients over its processes.
        criterion: lengths [batch, classes] and labels → the loss without the reconstruction's.
        make_loss: makes a module of the network and its loss, as :class:`TrainingLoss` does.

    Raises:
        ValueError: no weight has a gradient here, or the arrangement is refused.
    """
    if not (torch.is_grad_enabled() and any(p.requires_grad for p in model.parameters())):
        raise ValueError("no weight has a gradient: all are frozen, or this is under torch.no_grad")
    config = config or TrainingConfig()
    device = device_of(model)
    precision = resolve_precision(device, config.precision)
    arranged = arrange(cast(CapsNet, model), config.arrangement)
    if arranged is model or device.type == "cuda":
        for module in model.modules():
            # oneDNN and cuDNN are faster in this layout, above all in bf16.
            if isinstance(module, nn.Conv2d):
                module.to(memory_format=torch.channels_last)
    with_loss = make_loss(arranged, config.reconstruction_weight, precision, criterion)
    # The fast arrangement compiles its own parts.
    to_compile = with_loss if arranged is model else arranged
    if fabric is not None and fabric.world_size > 1:
        with_loss = fabric.setup_module(with_loss)
    optimizer = optimizer or make_optimizer(model, config)
    step = Step(with_loss, optimizer, device, precision, fabric, to_compile)
    if resolve_compile(config.compile, device):
        step.compile()
    return step


def make_optimizer(model: nn.Module, config: TrainingConfig) -> torch.optim.Optimizer:
    """Adam with β = (0.9, 0.999) and ε = 1e-8, in its fused form."""
    return torch.optim.Adam(model.parameters(), lr=config.learning_rate, fused=True)


@dataclasses.dataclass(eq=False)
class Step:
    """What :func:`make_step` returns.

    ``step(images, labels)`` updates the weights and returns the loss before the update, a scalar
    without gradient. Images are [batch, channels, height, width], floating point in 0 … 1; labels
    are class indices [batch]. (Another ``make_loss`` may take other tensors.)
    """

    loss: nn.Module  # the network and its loss
    optimizer: torch.optim.Optimizer
    device: torch.device
    precision: str
    fabric: "Fabric | None"
    to_compile: nn.Module
    compiled: bool = False
    graph: Graph | None = None
    calls_to_capture: int = 0  # 0: no capture is due

    def compile(self) -> None:
        """Use torch.compile from the next call on."""
        self.to_compile.compile()
        self.compiled = True

    def capture(self) -> None:
        """Capture forward and backward pass as a CUDA graph, if a single GPU computes them.

        From the fourth call on, every call is a replay. What Python decides, such as a margin that
        grows or which weights are frozen, is not decided again. If the host waits for the device,
        for example to read a value, a warning says so and nothing is captured.
        """
        single = self.fabric is None or self.fabric.world_size == 1
        if single and self.device.type == "cuda":
            self.calls_to_capture = WARM_UP + 1

    def __call__(self, *batch: Tensor) -> Tensor:
        with ieee_float32(self.device, self.precision):
            if self.calls_to_capture == 1:
                return self.step_then_capture(batch)
            self.calls_to_capture = max(0, self.calls_to_capture - 1)
            if self.graph is not None and self.graph.takes(batch):
                loss = self.graph(batch)
            else:
                loss = self.forward_and_backward(batch)
            self.optimizer.step()
            return loss

    def step_then_capture(self, batch: Sequence[Tensor]) -> Tensor:
        """A step that shows whether the host waits; if it does not, the next ones are replays."""
        self.calls_to_capture = 0
        try:
            with error_on_sync():
                loss = self.forward_and_backward(batch)
        except RuntimeError as error:
            warn_slower(error)
            loss = self.forward_and_backward(batch)
            self.optimizer.step()
            return loss
        self.optimizer.step()
        try:
            self.graph = Graph(self.loss, batch)
        except RuntimeError as error:
            warn_slower(error)
        return loss

    def forward_and_backward(self, batch: Sequence[Tensor]) -> Tensor:
        self.optimizer.zero_grad()
        loss: Tensor = self.loss(*batch)
        if self.fabric is None:
            loss.backward()
        else:
            self.fabric.backward(loss)
        return loss.detach()


def warn_slower(error: RuntimeError) -> None:
    warnings.warn(f"no CUDA graph, so steps are slower: {reason(error)}", stacklevel=4)
