"""``make notebooks``: the picture on the book's first page and in the README.

It shows the first test image of each digit and what the decoder of the committed weights draws.
"""

import io

import numpy as np
import torch
from PIL import Image

from address import ROOT
from capsnet.checkpoint import load_weights
from capsnet.data import load, to_float
from capsnet.files import write_atomically
from capsnet_book import ledger
from capsnet_lab.figures.predictions import contact_sheet

PICTURE = ROOT / "book" / "_static" / "reconstructions.png"


def draw() -> bytes:
    """The reconstructions as PNG."""
    model, _ = load_weights(ledger.path("mnist/weights.safetensors"))
    test = load("mnist", train=False, download=False)
    first = torch.stack([(test.labels == digit).nonzero()[0, 0] for digit in range(10)])
    labels, images = test.labels[first], test.images[first]
    with torch.no_grad():
        out = model(to_float(images), labels)
    pairs = zip(images, out.reconstruction, strict=True)
    return contact_sheet([(image, decoded, "", "", True) for image, decoded in pairs]).png()


def same(*drawings: bytes) -> bool:
    """Whether two PNGs differ by no more than another machine's rounding."""
    a, b = (np.asarray(Image.open(io.BytesIO(png)).convert("RGBA"), float) for png in drawings)
    return a.shape == b.shape and np.abs(a - b).mean() < 1  # of 255


if __name__ == "__main__":
    drawn = draw()
    if not same(PICTURE.read_bytes(), drawn):
        write_atomically(PICTURE, drawn)
