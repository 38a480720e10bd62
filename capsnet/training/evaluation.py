"""Evaluation: what a network makes of a data set."""

import dataclasses
from typing import Any

import torch
from torch import Tensor

from capsnet.data import ImageSet, to_float
from capsnet.device import autocast
from capsnet.fast import arrange
from capsnet.functional import margin_loss, reconstruction_loss
from capsnet.model import CapsNet
from capsnet.training.loss import RECONSTRUCTION_WEIGHT


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """What a network makes of a data set of n images."""

    lengths: Tensor  # ‖v_j‖ of every class j, [n, num_classes], float32
    labels: Tensor  # [n]
    classes: tuple[str, ...]
    margin: float  # eq. 4, mean over images
    reconstruction: float  # summed squared error under the label's mask, mean over images

    @property
    def loss(self) -> float:
        """The training loss, with the paper's weight of the reconstruction."""
        return self.margin + RECONSTRUCTION_WEIGHT * self.reconstruction

    @property
    def predictions(self) -> Tensor:
        """The longest capsule of each image, [n]."""
        return self.lengths.argmax(dim=1)

    @property
    def confusion(self) -> Tensor:
        """Counts, [num_classes, num_classes]: a row for a label, a column for a prediction."""
        size = self.lengths.shape[1]
        cells = self.labels * size + self.predictions
        return torch.bincount(cells, minlength=size**2).view(size, size)

    @property
    def per_class(self) -> list[tuple[int, int]]:
        """(correct, total) of each class."""
        confusion = self.confusion
        return list(zip(confusion.diag().tolist(), confusion.sum(dim=1).tolist(), strict=True))

    @property
    def errors(self) -> Tensor:
        """Indices of the images that are classified wrongly."""
        return (self.predictions != self.labels).nonzero().flatten()

    @property
    def total(self) -> int:
        """Number of images."""
        return len(self.labels)

    @property
    def correct(self) -> int:
        """Number of images classified rightly."""
        return self.total - len(self.errors)

    @property
    def accuracy(self) -> float:
        """Share of images classified rightly, 0 … 1."""
        return self.correct / self.total

    def summary(self) -> dict[str, Any]:
        """Counts, losses and errors as plain numbers, for JSON."""
        return {
            "correct": self.correct,
            "total": self.total,
            "margin": self.margin,
            "reconstruction": self.reconstruction,
            "classes": list(self.classes),
            "per_class": self.per_class,
            "confusion": self.confusion.tolist(),
            "errors": self.errors.tolist(),
        }


@torch.no_grad()
def evaluate(
    model: CapsNet,
    image_set: ImageSet,
    batch_size: int = 500,
    precision: str = "fp32",
    arrangement: str = "auto",
    compile: bool = False,
) -> Evaluation:
    """Run a network over a data set, on the network's device.

    Args:
        model: the network; its mode (training or evaluation) is put back afterwards.
        image_set: the images and labels.
        batch_size: images at a time.
        precision: "fp32", "bf16" or "auto".
        arrangement: "plain", "fast" or "auto" (:func:`capsnet.fast.arrange`).
        compile: use torch.compile for the inner loops of the fast arrangement.

    Raises:
        ValueError: the images or the classes do not fit the network, or ``batch_size`` is below 1;
            another precision or arrangement.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}")
    check_fits(model, image_set)
    device = next(model.parameters()).device
    was_training = model.training
    arranged = arrange(model, arrangement)
    if compile and arranged is not model:
        arranged.compile()
    lengths: list[Tensor] = []
    squared_error = 0.0
    try:
        model.eval()
        for first in range(0, len(image_set), batch_size):
            batch = image_set.subset(slice(first, first + batch_size)).to(device)
            images = to_float(batch.images)
            with autocast(device, precision):
                out = arranged(images, batch.labels)
            lengths.append(out.lengths.float().cpu())
            if out.reconstruction is not None:
                mean = reconstruction_loss(out.reconstruction.float(), images).item()
                squared_error += mean * len(batch)
    finally:
        model.train(was_training)
    all_lengths, labels = torch.cat(lengths), image_set.labels.cpu()
    return Evaluation(
        lengths=all_lengths,
        labels=labels,
        classes=image_set.classes,
        margin=margin_loss(all_lengths, labels).item(),
        reconstruction=squared_error / len(image_set),
    )


def check_fits(model: CapsNet, image_set: ImageSet) -> None:
    """See that a data set's images and classes are those of a network.

    Raises:
        ValueError: they are not, or there are no images.
    """
    if len(image_set) == 0:
        raise ValueError(f"data set {image_set.name} holds no images")
    expected, found = model.config["image_shape"], list(image_set.images.shape[1:])
    if expected != found:
        raise ValueError(
            f"the network takes images of {expected} [channels, height, width], data set "
            f"{image_set.name} has {found}"
        )
    classes = len(image_set.classes)
    if model.config["num_classes"] != classes:
        raise ValueError(
            f"the network knows {model.config['num_classes']} classes, data set "
            f"{image_set.name} has {classes}"
        )
