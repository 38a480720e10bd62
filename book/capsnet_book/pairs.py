"""The loss of images with several objects (section 6), for ``fit(…, make_loss=PairsLoss)``."""

from typing import Any

import torch
from torch import Tensor

from capsnet.checks import class_mask
from capsnet.device import autocast
from capsnet.fast import FastCapsNet
from capsnet.functional import reconstruction_loss
from capsnet.training import TrainingLoss


class PairsLoss(TrainingLoss):
    """The network and its loss for images of m objects each, for m = 2 those that
    :func:`capsnet.multimnist.overlaid_batch` makes. The decoder reconstructs each object by itself.
    """

    def forward(self, images: Tensor, labels: Tensor, objects: Tensor) -> Tensor:  # type: ignore[override]
        """The loss, a scalar; the squared errors of an image's objects are added.

        Args:
            images: [batch, channels, height, width].
            labels: the classes of each image's objects, [batch, m].
            objects: each object alone, [batch, m, channels, height, width].

        Raises:
            ValueError: the objects are of another shape, or a label is out of range.
        """
        if objects.shape != (*labels.shape, *images.shape[1:]):
            raise ValueError(
                "objects must be [batch, m, channels, height, width], m as in the labels, "
                f"{list(labels.shape)}, for images {list(images.shape)}; got {list(objects.shape)}"
            )
        with autocast(images.device, self.precision):
            out = self.model(images, labels[:, 0])
            reconstruction = out.reconstruction
            if reconstruction is not None:
                network = self.model.model if isinstance(self.model, FastCapsNet) else self.model
                decoder: Any = network.decoder
                others = [decoder(out.capsules, k) for k in labels[:, 1:].unbind(1)]
                reconstruction = torch.stack([reconstruction, *others], dim=1)
        masks = [class_mask(k, *out.lengths.shape) for k in labels.unbind(1)]
        loss = self.criterion(out.lengths, torch.stack(masks).any(dim=0))
        if reconstruction is None:
            return loss
        return loss + self.reconstruction_weight * reconstruction_loss(
            reconstruction.to(objects.dtype), objects
        )
