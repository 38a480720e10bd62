"""Data of the front page's widget: two networks in 8 bits, and what is shown until they load."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from capsnet import CapsNet
from capsnet.checkpoint import load_weights
from capsnet.data import ImageSet, load, to_float
from capsnet.fast import arrange
from capsnet.files import write_atomically
from capsnet_book import ledger
from capsnet_book.directions import PROPERTIES, STEPS, changes, image_moments
from capsnet_book.play import pack

FILE = "front.json"
SLIDERS = {"slant": "slant", "stroke": "ink", "width": "width"}  # label: name of the property
NETWORKS = ("page", "mnist")  # folders of the ledger
EXAMPLES = 40  # of a digit, to find directions with: half of them are changed
SHOWN = 7  # stands on the pad at first


@torch.no_grad()
def found_directions(model: CapsNet, images: ImageSet) -> Tensor:
    """For each class the directions of the sliders, of length 1, as *Inside a capsule* finds them.

    Returns:
        [classes, sliders, capsule_dim].
    """
    fast, directions = arrange(model), []
    assert model.decoder is not None
    for digit in range(len(images.classes)):
        some = to_float(images.images[images.labels == digit][:EXAMPLES])
        v = fast(some[: EXAMPLES // 2]).capsules[:, digit]
        each = torch.eye(v.shape[1])
        table = changes(model.decoder, v, digit, each, image_moments(some[:, 0]).std(0))
        directions.append(F.normalize(torch.linalg.pinv(table), dim=1))  # [6, 16]
    rows = [PROPERTIES.index(name) for name in SLIDERS.values()]
    return torch.stack(directions)[:, rows]


@torch.no_grad()
def save(folder: Path, names: Iterable[str] = NETWORKS) -> None:
    """Write :data:`FILE`, and the weights of each network, into a folder."""
    images, networks = load("mnist", train=False), {}
    data: dict[str, Any] = {"sliders": list(SLIDERS), "reach": STEPS[-1].item()}
    for name in names:
        path = ledger.path(f"{name}/weights.safetensors")
        write_atomically(folder / f"{name}.safetensors", path.read_bytes())
        model, _ = load_weights(path)
        evaluation = ledger.read(f"{name}/evaluation.json")
        networks[name] = {
            "directions": found_directions(model, images).half(),
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
            "bytes": path.stat().st_size,
            "correct": evaluation["correct"],
            "total": evaluation["total"],
        }
        if name == "page":  # of each class the first test digit that it classifies correctly
            out = model(to_float(images.images[:200]))
            right = out.lengths.argmax(dim=1) == images.labels[:200]
            firsts = [int((right & (images.labels[:200] == k)).nonzero()[0]) for k in range(10)]
            shown = firsts[SHOWN]
            data["digits"] = images.images[firsts, 0]
            data["shown"] = SHOWN
            data["lengths"] = out.lengths[shown]
            data["drawn"] = (255 * out.reconstruction[shown, 0]).round().to(torch.uint8)
    write_atomically(folder / FILE, pack(data | {"networks": networks}).encode())
