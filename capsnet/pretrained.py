"""Trained networks by name."""

from pathlib import Path

from capsnet.model import CapsNet

# Where a checkout has their weights. The wheel brings the small network (setup.py).
PRETRAINED = {
    "mnist": "results/mnist/weights.safetensors",
    "mnist-small": "results/page/weights.safetensors",
}


def load_pretrained(name: str) -> CapsNet:
    """Load a trained network by its name, in float32 and in evaluation mode.

    ``results/mnist/README.md`` says how each was trained, and how well it does.

    Args:
        name: "mnist", the paper's network, 8.2 million parameters; or "mnist-small", 1.3 million.

    Raises:
        ValueError: there is no network of this name.
        FileNotFoundError: its weights are not here. Nothing is downloaded.
    """
    from capsnet.checkpoint import load_weights  # safetensors, which `import capsnet` does without

    return load_weights(weights_file(name))[0]


def weights_file(name: str) -> Path:
    """The weights of a network by its name; errors as of :func:`load_pretrained`."""
    if name not in PRETRAINED:
        raise ValueError(f"expected the name of a network, {' or '.join(PRETRAINED)}; got {name!r}")
    package = Path(__file__).parent
    for path in (package / f"{name}.safetensors", package.parent / PRETRAINED[name]):
        if path.is_file():
            return path
    raise FileNotFoundError(
        f"the weights of {name!r} are not installed: they are {PRETRAINED[name]} in a clone of the "
        "repository; give the path of that file, as here or to capsnet.checkpoint.load_weights"
    )
