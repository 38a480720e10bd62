"""Evaluation: a network's answers to the images of a data set, counted."""

import dataclasses
from typing import Any, cast

import torch
from torch import Tensor, nn

from capsnet.checkpoint import unwrapped
from capsnet.checks import as_int, device_of
from capsnet.data import ImageSet, as_image_set, to_float
from capsnet.device import autocast, ieee_float32
from capsnet.fast import arrange
from capsnet.functional import margin_loss, reconstruction_loss
from capsnet.model import CapsNet


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """A network's answers to the n images of a data set."""

    lengths: Tensor  # ‖v_j‖ of every class j, [n, num_classes], float32
    labels: Tensor  # [n]
    classes: tuple[str, ...]
    margin: float | None  # eq. 4, mean over images; None of a network without capsules
    # Summed squared error under the label's mask, mean over images; None without a decoder.
    reconstruction: float | None

    def __repr__(self) -> str:
        return f"<Evaluation: {self.correct} of {self.total} correct, {self.accuracy:.2%}>"

    @property
    def predictions(self) -> Tensor:
        """The class of the longest capsule for each image, [n]."""
        return self.lengths.argmax(dim=1)

    @property
    def confusion(self) -> Tensor:
        """Counts, [num_classes, num_classes]: a row per label, a column per prediction."""
        size = self.lengths.shape[1]
        cells = self.labels * size + self.predictions
        return cells.bincount(minlength=size**2).view(size, size)

    @property
    def per_class(self) -> list[tuple[int, int]]:
        """(correct, total) of each class."""
        confusion = self.confusion
        return list(zip(confusion.diag().tolist(), confusion.sum(dim=1).tolist(), strict=True))

    @property
    def errors(self) -> Tensor:
        """Indices of the misclassified images."""
        return (self.predictions != self.labels).nonzero().flatten()

    @property
    def total(self) -> int:
        """Number of images."""
        return len(self.labels)

    @property
    def correct(self) -> int:
        """Number of images classified correctly."""
        return self.total - len(self.errors)

    @property
    def accuracy(self) -> float:
        """Fraction of images classified correctly, 0 … 1."""
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


def evaluate(
    model: nn.Module,
    image_set: Any,
    batch_size: int = 500,
    precision: str = "fp32",
    arrangement: str = "auto",
    compile: bool = False,
) -> Evaluation:
    """Run a network over a data set, on the network's device.

    Args:
        model: a :class:`CapsNet`, or another network with its ``config`` and its output, or its
            wrapper by torch.compile or DataParallel; its mode (training or evaluation) is put back
            afterwards.
        image_set: the images and labels, in any form that :func:`capsnet.data.as_image_set` takes.
        batch_size: images at a time.
        precision: as in :class:`capsnet.training.TrainingConfig`.
        arrangement: as in :class:`capsnet.training.TrainingConfig`.
        compile: use torch.compile for the inner loops of the fast arrangement.

    Raises:
        ValueError: the images or the classes do not fit the network, an option is out of range, or
            the network's answer to an image is NaN.
    """
    batch_size = as_int("batch_size", batch_size)
    model = unwrapped(model)
    image_set = images_for(model, image_set)
    modes = {module: module.training for module in model.modules()}
    arranged = arrange(cast(CapsNet, model), arrangement)
    if compile and arranged is not model:
        arranged.compile()
    try:
        model.eval()
        lengths, squared_errors = predict_batches(arranged, image_set, batch_size, precision)
    finally:
        for module, mode in modes.items():
            module.training = mode
    lengths, labels = lengths.cpu(), image_set.labels.cpu()
    if nan := int(lengths.isnan().any(dim=1).sum()):
        raise ValueError(f"the network's lengths are NaN for {nan} of {len(labels)} images")
    reconstruction = None
    if squared_errors is not None:
        weights = map(len, labels.split(batch_size))
        total = sum(e * n for e, n in zip(squared_errors.tolist(), weights, strict=True))
        reconstruction = total / len(labels)
    return Evaluation(
        lengths=lengths,
        labels=labels,
        classes=image_set.classes,
        # Others, such as a CNN, have logits for lengths.
        margin=margin_loss(lengths, labels).item() if hasattr(model, "read_out") else None,
        reconstruction=reconstruction,
    )


@torch.no_grad()
def predict_batches(
    network: nn.Module, image_set: ImageSet, batch_size: int, precision: str
) -> tuple[Tensor, Tensor | None]:
    """All lengths [n, num_classes], and the mean squared error of each batch, if decoded.

    Both stay on the device.
    """
    device = device_of(network)
    lengths, squared_errors = [], []
    for first in range(0, len(image_set), batch_size):
        part = slice(first, first + batch_size)
        images = to_float(image_set.images[part].to(device))
        with ieee_float32(device, precision), autocast(device, precision):
            out = network(images, image_set.labels[part].to(device))
        lengths.append(out.lengths.float())
        if out.reconstruction is not None:
            squared_errors.append(reconstruction_loss(out.reconstruction.float(), images))
    return torch.cat(lengths), torch.stack(squared_errors) if squared_errors else None


def images_for(model: nn.Module, data: Any) -> ImageSet:
    """``data`` as an :class:`ImageSet` with a network's image shape and classes.

    Raises:
        ValueError: the images or classes are others, there are no images, or the network has no
            ``config`` that says which it takes.
    """
    config: Any = getattr(model, "config", {})
    if not {"image_shape", "num_classes"} <= config.keys():
        raise ValueError(
            'the network must have a dict config with "image_shape" and "num_classes", as CapsNet '
            f"has, {type(model).__name__} has not"
        )
    num_classes, expected = config["num_classes"], list(config["image_shape"])
    image_set = as_image_set(data, num_classes)
    if len(image_set) == 0:
        raise ValueError(f"data set {image_set.name} holds no images")
    shape, classes = list(image_set.images.shape[1:]), len(image_set.classes)
    if shape != expected:
        raise ValueError(
            f"the network takes images of {expected} [channels, height, width], data set "
            f"{image_set.name} has {shape}"
        )
    if classes != num_classes:
        raise ValueError(
            f"the network knows {num_classes} classes, data set {image_set.name} has {classes}"
        )
    return image_set
