"""What a chapter gives the knobs of a capsule."""

from typing import Any

import torch
import torch.nn.functional as F

from capsnet import Decoder
from capsnet_book.directions import PROPERTIES, draw

DIGIT = 8


def found(decoder: Decoder) -> dict[str, Any]:
    """Capsules of random directions, and random tables of what their numbers change."""
    generator = torch.Generator().manual_seed(0)
    tables = torch.randn(10, 16, 6, generator=generator)
    capsules = 0.95 * F.normalize(torch.randn(10, 3, 16, generator=generator), dim=2)
    return {
        "digit": DIGIT,
        "properties": PROPERTIES,
        "images": torch.randint(0, 256, (10, 3, 28, 28), generator=generator).byte(),
        "capsules": capsules,
        "drawing": (255 * draw(decoder, capsules[DIGIT, :1], DIGIT)[0]).round().byte(),
        "tables": tables,
        "directions": F.normalize(torch.linalg.pinv(tables), dim=2),
        "along": torch.eye(6).repeat(10, 1, 1),
    }
