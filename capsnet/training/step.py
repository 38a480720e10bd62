"""One training step: forward, backward, optimiser."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from capsnet.device import resolve_precision
from capsnet.fast import arrange
from capsnet.functional import margin_loss
from capsnet.model import CapsNet
from capsnet.training.config import TrainingConfig
from capsnet.training.loss import Criterion, TrainingLoss

if TYPE_CHECKING:
    from lightning_fabric import Fabric


class Step:
    """One training step; :func:`make_step` makes it and says what it takes and returns."""

    def __init__(
        self,
        model: CapsNet,
        optimizer: torch.optim.Optimizer,
        config: TrainingConfig,
        fabric: "Fabric | None",
        criterion: Criterion,
    ) -> None:
        self.optimizer, self.fabric = optimizer, fabric
        device = next(model.parameters()).device
        precision = resolve_precision(device, config.precision)
        arranged = arrange(model, config.arrangement)
        if arranged is model:
            for module in model.modules():
                # oneDNN and cuDNN are faster so, in bf16 above all.
                if isinstance(module, nn.Conv2d):
                    module.to(memory_format=torch.channels_last)
        loss_module = TrainingLoss(arranged, config.reconstruction_weight, precision, criterion)
        # The fast arrangement compiles its own parts.
        self.to_compile = loss_module if arranged is model else arranged
        self.compiled = False
        self.loss_module: nn.Module = loss_module
        if fabric is not None and fabric.world_size > 1:
            self.loss_module = fabric.setup_module(loss_module)

    def compile(self) -> None:
        """Use torch.compile from the next call on."""
        self.to_compile.compile()
        self.compiled = True

    def __call__(self, images: Tensor, labels: Tensor, objects: Tensor | None = None) -> Tensor:
        self.optimizer.zero_grad()
        loss: Tensor = self.loss_module(images, labels, objects)
        if self.fabric is None:
            loss.backward()
        else:
            self.fabric.backward(loss)
        self.optimizer.step()
        return loss.detach()


def make_step(
    model: CapsNet,
    optimizer: torch.optim.Optimizer | None = None,
    config: TrainingConfig | None = None,
    fabric: "Fabric | None" = None,
    criterion: Criterion = margin_loss,
) -> Step:
    """The training step that ``fit`` runs: forward, backward, optimiser.

    Args:
        model: the network, on its device; the plain arrangement puts its convolutions into
            channels_last layout.
        optimizer: of the model's parameters; Adam with the configuration's learning rate if None.
        config: ``reconstruction_weight``, ``precision``, ``arrangement``, ``compile`` and
            ``learning_rate`` count.
        fabric: averages gradients over its processes.
        criterion: lengths [batch, classes] and labels, as :func:`margin_loss` takes them → the loss
            beside the reconstruction's.

    Returns:
        step(images, labels) → the loss before the step, a scalar without gradient: images
        [batch, channels, height, width], floating point in 0 … 1; labels, class indices [batch].
        For m objects in each image, step(images, labels, objects): labels [batch, m], and each
        object alone [batch, m, channels, height, width], which the decoder learns to draw.
        ``step.compile()`` compiles it from the next call on, where the configuration has not.

    Raises:
        ValueError: the configuration names another precision or arrangement.
    """
    config = config or TrainingConfig()
    optimizer = optimizer or make_optimizer(model, config)
    step = Step(model, optimizer, config, fabric, criterion)
    if config.compile:
        step.compile()
    return step


def make_optimizer(model: nn.Module, config: TrainingConfig) -> torch.optim.Optimizer:
    """Adam with β = (0.9, 0.999) and ε = 1e-8, in its fused form."""
    return torch.optim.Adam(model.parameters(), lr=config.learning_rate, fused=True)
