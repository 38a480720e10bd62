"""Capsule networks with dynamic routing, as in Sabour, Frosst and Hinton (2017)."""

from capsnet.layers import CapsuleLayer, Decoder, PrimaryCapsules
from capsnet.model import CapsNet, CapsNetOutput
from capsnet.pretrained import load_pretrained

__version__ = "0.1.0"

__all__ = [
    "CapsNet",
    "CapsNetOutput",
    "CapsuleLayer",
    "Decoder",
    "PrimaryCapsules",
    "load_pretrained",
]
