"""A small network that the page itself trains: its images, and the same training by PyTorch.

``python -m capsnet_book.play.learn`` records the latter, which the page shows before its own.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from capsnet import CapsNet
from capsnet.data import ImageSet, hold_out, load, to_float
from capsnet.files import write_atomically
from capsnet.functional import margin_loss, reconstruction_loss
from capsnet_book import ledger
from capsnet_book.play import pack

RECORD = "page-learn/course.json"  # of the ledger
SIDE = 14  # pixels: half of MNIST's, so that a browser has a quarter of the work
GREYS = 15  # the whitest of a pixel's 4 bits
COUNTS = 3000, 500  # training images, held-out images
SHOWN = 12  # the first of the held-out images
BATCH, STEPS = 16, 625  # images of a step; steps of a run
TOGETHER, EVERY = 5, 25  # steps whose mean loss is reported; steps between two counts
RATE = 0.003
SHARE = 0.0005 * 784 / SIDE**2  # of the reconstruction loss: all pixels together, as the paper's


def network() -> CapsNet:
    """An untrained network for these images, of the size that a browser trains in a minute."""
    return CapsNet(
        (1, SIDE, SIDE), kernel_size=5, conv_channels=16, capsule_types=4, capsule_dim=8,
        hidden=(64, 128),
    )  # fmt: skip


def digits() -> tuple[ImageSet, ImageSet]:
    """Training and held-out images, [n, 1, 14, 14], in 16 greys: 0 to 15. None is a test image."""
    found = []
    for images, count in zip(hold_out(load("mnist")), COUNTS, strict=True):
        some = images.subset(slice(count))
        small = (GREYS * F.avg_pool2d(to_float(some.images), 2)).round().to(torch.uint8)
        found.append(replace(some, images=small))
    training, held = found
    # One of each digit first, which the page shows, and then all others as they come.
    firsts = [int((held.labels == k).nonzero()[0]) for k in range(10)]
    rest = [n for n in range(len(held)) if n not in firsts]
    return training, held.subset(torch.tensor(firsts + rest))


def course() -> dict[str, Any]:
    """A training run of :func:`network` by PyTorch, as the page makes and reports its own."""
    training, held = digits()
    held_images = held.images / GREYS
    torch.manual_seed(1)
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), RATE)
    losses, correct = [], []
    for step in range(STEPS + 1):
        if step % EVERY == 0:
            with torch.no_grad():
                out = model(held_images)
            correct.append((out.lengths.argmax(dim=1) == held.labels).float().mean())
        if step < STEPS:
            index = torch.randint(len(training), (BATCH,))
            images, labels = training.images[index] / GREYS, training.labels[index]
            seen = model(images, labels)
            loss = margin_loss(seen.lengths, labels)
            loss = loss + SHARE * reconstruction_loss(seen.reconstruction, images)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
    shown = 255 * torch.stack([held_images[:SHOWN], out.reconstruction[:SHOWN]])
    return {
        "batch": BATCH,
        "together": TOGETHER,
        "every": EVERY,
        "rate": RATE,
        "losses": torch.stack(losses).view(-1, TOGETHER).mean(dim=1).tolist(),
        "correct": torch.stack(correct).tolist(),
        "images": shown[0].round().to(torch.uint8),
        "labels": held.labels[:SHOWN].to(torch.uint8),
        "drawn": shown[1].round().to(torch.uint8),
        "lengths": out.lengths[:SHOWN],
    }


def packed(digits: ImageSet) -> dict[str, Tensor]:
    """Images with two pixels in a byte, the left one in the upper half, and their labels."""
    left, right = digits.images.flatten(1).unflatten(1, (-1, 2)).unbind(2)
    return {"images": left << 4 | right, "labels": digits.labels.to(torch.uint8)}


def save(folder: Path) -> None:
    """Write what a page shows at first, and what it loads in order to train, into a folder."""
    write_atomically(folder / "course.json", ledger.path(RECORD).read_bytes())
    training, held = digits()
    data = {
        "config": network().config,
        "batch": BATCH,
        "together": TOGETHER,
        "every": EVERY,
        "shown": SHOWN,
        "training": packed(training),
        "held": packed(held),
    }
    write_atomically(folder / "digits.json", pack(data).encode())


if __name__ == "__main__":
    write_atomically(ledger.path(RECORD), pack(course()).encode())
