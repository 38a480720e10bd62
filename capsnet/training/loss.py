"""The network and its loss as one module."""

from collections.abc import Callable

from torch import Tensor, nn

from capsnet.device import autocast
from capsnet.functional import margin_loss, reconstruction_loss

RECONSTRUCTION_WEIGHT = 0.0005  # of the summed squared error beside the margin loss, section 4.1
Criterion = Callable[[Tensor, Tensor], Tensor]  # lengths, targets → a scalar


class TrainingLoss(nn.Module):
    """The network and its loss as one module: what is autocast and distributed.

    Another way to learn, from pairs of objects, say, is a subclass with another ``forward``.

    Args:
        model: the network, in an arrangement.
        reconstruction_weight: as in :class:`TrainingConfig`.
        precision: "bf16", "fp32" or "auto".
        criterion: lengths [batch, classes] and targets → the loss beside the reconstruction's.
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
        drawn = out.reconstruction.to(images.dtype)
        return loss + self.reconstruction_weight * reconstruction_loss(drawn, images)
