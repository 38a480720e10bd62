"""How was this digit written? A linear read-out of the front page's capsules.

    python -m experiments.handwriting

For each class, least squares fit slant, width and stroke thickness, as measured in training
images, to the capsule of their class. What is counted is how far the read-out of the longest
capsule is from what is measured in test images.
"""

from typing import Any

import torch
from torch import Tensor

from capsnet import CapsNet
from capsnet.checkpoint import load_weights
from capsnet.data import ImageSet, load, to_float
from capsnet.fast import arrange
from capsnet.files import write_json
from capsnet_book.directions import handwriting
from experiments.running import LEDGER

RECORD = LEDGER / "page/handwriting.json"
IMAGES = 20_000  # training images, from the first on
QUARTILES = torch.tensor([0.25, 0.75])
BATCH = 500


@torch.no_grad()
def capsules_of(model: CapsNet, images: ImageSet) -> Tensor:
    """The capsules of images with a 1 for the constant of the read-out, [n, classes, 17]."""
    network = arrange(model)
    v = torch.cat([network(to_float(batch)).capsules for batch in images.images.split(BATCH)])
    return torch.cat([v, v.new_ones(*v.shape[:2], 1)], dim=2)


def fit_read_out(v: Tensor, measured: Tensor, labels: Tensor) -> Tensor:
    """The read-out of each class, [classes, 17, properties], by least squares."""
    classes = range(v.shape[1])
    fits = [torch.linalg.lstsq(v[labels == k, k], measured[labels == k]).solution for k in classes]
    return torch.stack(fits)


def read_out(fit: Tensor, v: Tensor) -> Tensor:
    """What is read out of the longest capsule of each image, [n, properties]."""
    longest = v[..., :-1].norm(dim=2).argmax(dim=1)
    return torch.einsum("nd,ndp->np", v[torch.arange(len(v)), longest], fit[longest])


def study(model: CapsNet, train: ImageSet, test: ImageSet) -> dict[str, Any]:
    """The read-out, quartiles of the training images of each class, and the test's mean errors."""
    measured, expected = (handwriting(to_float(part.images[:, 0])) for part in (train, test))
    fit = fit_read_out(capsules_of(model, train), measured, train.labels)
    errors = (read_out(fit, capsules_of(model, test)) - expected).abs()
    quartiles = [
        measured[train.labels == k].quantile(QUARTILES, dim=0) for k in range(len(train.classes))
    ]

    def rounded(table: Tensor) -> list[Any]:
        return [rounded(row) if row.dim() else round(row.item(), 4) for row in table]

    return {
        "images": len(train),
        "test images": len(test),
        "properties": ["slant, degrees", "width, pixels", "stroke thickness, pixels"],
        "mean absolute error": rounded(errors.mean(dim=0)),
        "standard deviation": rounded(expected.std(dim=0)),
        "quartiles": rounded(torch.stack(quartiles)),
        "fit": rounded(fit),
    }


if __name__ == "__main__":
    network, _ = load_weights(LEDGER / "page/weights.safetensors")
    train = load("mnist", train=True).subset(slice(IMAGES))
    write_json(RECORD, study(network, train, load("mnist", train=False)), indent=None)
