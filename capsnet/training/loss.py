"""The network and its loss as one module."""

from collections.abc import Callable
from typing import cast

import torch
from torch import Tensor, nn

from capsnet.device import autocast
from capsnet.functional import class_mask, margin_loss, reconstruction_loss

RECONSTRUCTION_WEIGHT = 0.0005  # of the summed squared error beside the margin loss, section 4.1
Criterion = Callable[[Tensor, Tensor], Tensor]  # lengths, targets → a scalar


class TrainingLoss(nn.Module):
    """The network and its loss as one module: what is autocast and distributed.

    The loss is eq. 4 plus ``reconstruction_weight`` times the summed squared error, a scalar.

    Args:
        model: the network, in an arrangement.
        reconstruction_weight: as in :class:`TrainingConfig`.
        precision: "bf16", "fp32" or "auto".
        criterion: as :func:`make_step`; eq. 4 if not given.
    """

    def __init__(
        self,
        model: nn.Module,
        reconstruction_weight: float,
        precision: str,
        criterion: Criterion = margin_loss,
    ) -> None:
        super().__init__()
        self.criterion = criterion
        self.model = model
        self.reconstruction_weight = reconstruction_weight
        self.precision = precision

    def forward(self, images: Tensor, labels: Tensor, objects: Tensor | None = None) -> Tensor:
        """One object an image, labels [n]; or m: labels [n, m], and each object alone.

        Raises:
            ValueError: the objects are not [n, m, channels, height, width].
        """
        several = objects is not None
        if objects is not None and objects.shape != (*labels.shape, *images.shape[1:]):
            raise ValueError(
                "objects must be [batch, m, channels, height, width], m as in the labels, "
                f"{list(labels.shape)}, for images {list(images.shape)}; got {list(objects.shape)}"
            )
        with autocast(images.device, self.precision):
            out = self.model(images, labels[:, 0] if several else labels)
            drawn = out.reconstruction
            if several and drawn is not None:  # the decoder draws each by itself
                decoder = cast(nn.Module, self.model.decoder)
                others = [decoder(out.capsules, k) for k in labels[:, 1:].unbind(1)]
                drawn = torch.stack([drawn, *others], dim=1)
        targets = labels
        if several:
            masks = [class_mask(k, *out.lengths.shape) for k in labels.unbind(1)]
            targets = torch.stack(masks).any(dim=0)
        loss = self.criterion(out.lengths, targets)
        if drawn is None:
            return loss
        wanted = images if objects is None else objects
        return loss + self.reconstruction_weight * reconstruction_loss(
            drawn.to(wanted.dtype), wanted
        )
