"""The network and its loss as one module."""

from collections.abc import Callable

from torch import Tensor, nn

from capsnet.device import autocast
from capsnet.functional import margin_loss, reconstruction_loss

RECONSTRUCTION_WEIGHT = 0.0005  # of the summed squared error, section 4.1
Criterion = Callable[[Tensor, Tensor], Tensor]  # lengths, targets → a scalar


class TrainingLoss(nn.Module):
    """The network and its loss as one module: what is autocast and distributed.

    A subclass with another ``forward`` learns in another way, for example from pairs of objects.

    ``criterion`` takes lengths [batch, classes] and targets, and returns the loss without the
    reconstruction's; the other arguments are as in :class:`TrainingConfig`.
    """

    def __init__(
        self,
        model: nn.Module,
        reconstruction_weight: float = RECONSTRUCTION_WEIGHT,
        precision: str = "fp32",
        criterion: Criterion = margin_loss,
    ) -> None:
        super().__init__()
        self.model = model
        self.reconstruction_weight = reconstruction_weight
        self.precision = precision
        self.criterion = criterion

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        """Eq. 4 plus ``reconstruction_weight`` times the summed squared error, a scalar."""
        with autocast(images.device, self.precision):
            out = self.model(images, labels)
        loss = self.criterion(out.lengths, labels)
        if out.reconstruction is None:
            return loss
        reconstruction = out.reconstruction.to(images.dtype)
        return loss + self.reconstruction_weight * reconstruction_loss(reconstruction, images)
