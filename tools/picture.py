"""``make notebooks``: the picture in the README and on the book's first page.

The first test image of each digit, and what the decoder of the committed weights draws of it.
"""

from pathlib import Path

import torch

from capsnet.checkpoint import load_weights
from capsnet.data import load, to_float
from capsnet_book import figures, ledger

PICTURE = Path(__file__).parent.parent / "book" / "_static" / "reconstructions.png"


def draw() -> bytes:
    """The picture as PNG."""
    model, _ = load_weights(ledger.path("mnist/weights.safetensors"))
    test = load("mnist", train=False, download=False)
    first = torch.stack([(test.labels == digit).nonzero()[0, 0] for digit in range(10)])
    labels, images = test.labels[first], test.images[first]
    with torch.no_grad():
        out = model(to_float(images), labels)
    named = out.lengths.argmax(dim=1)
    figure = figures.reconstructions(images, out.reconstruction, labels, named, test.classes)
    return figure._repr_png_()


if __name__ == "__main__":
    PICTURE.write_bytes(draw())
