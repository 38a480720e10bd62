"""Trained networks for ``torch.hub.load(FOLDER, "mnist_small", source="local")``."""

from capsnet import CapsNet, load_pretrained

dependencies = ["torch", "safetensors"]


def mnist() -> CapsNet:
    """The paper's network, 8.2 million parameters."""
    return load_pretrained("mnist")


def mnist_small() -> CapsNet:
    """The paper's network with a quarter of the channels, 1.3 million parameters."""
    return load_pretrained("mnist-small")
