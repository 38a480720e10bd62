"""Data of the front page's widget: two networks in 8 bits, and what is shown until they load."""

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
from capsnet_book.directions import PROPERTIES, STEPS, changes, handwriting, image_moments, sweep
from capsnet_book.play import cnn, pack  # noqa: F401  (the one lets its weights be loaded)

FILE = "front.json"
# Name of the slider, in the order of what `handwriting` measures: name of the property.
SLIDERS = {"slant": "slant", "width": "width", "stroke": "ink"}
FOLDERS = ("page", "page-cnn")  # folders of the ledger: the capsules, and what `cnn` makes
EXAMPLES = 40  # of a digit, to find directions with: half of them are changed
REACH = STEPS[-1].item() / 2  # further along a direction it reconstructs no digits
SHOWN = 7  # stands on the pad at first


@torch.no_grad()
def found_directions(model: CapsNet, images: ImageSet) -> tuple[Tensor, Tensor]:
    """For each class the directions of the sliders, of length 1, as *Inside a capsule* finds them.

    Returns:
        The directions, [classes, sliders, capsule_dim], and how much of its property, in degrees or
        pixels, a reconstruction gains along each, [classes, sliders].
    """
    fast, directions, gains = arrange(model), [], []
    assert model.decoder is not None
    rows = [PROPERTIES.index(name) for name in SLIDERS.values()]
    ends = torch.tensor([-REACH, REACH])
    for digit in range(len(images.classes)):
        some = to_float(images.images[images.labels == digit][:EXAMPLES])
        v = fast(some[: EXAMPLES // 2]).capsules[:, digit]
        each = torch.eye(v.shape[1])
        table = changes(model.decoder, v, digit, each, image_moments(some[:, 0]).std(0))
        found = F.normalize(torch.linalg.pinv(table), dim=1)[rows]
        pictures = sweep(model.decoder, v, digit, found, ends)  # [n, sliders, 2, 28, 28]
        measured = handwriting(pictures.flatten(0, 2)).unflatten(0, pictures.shape[:3]).mean(0)
        gain = (measured[:, 1] - measured[:, 0]) / (ends[1] - ends[0])  # [sliders, properties]
        directions.append(found)
        gains.append(gain.diag())
    return torch.stack(directions), torch.stack(gains)


@torch.no_grad()
def save(folder: Path) -> None:
    """Write :data:`FILE`, and the weights of each network, into a folder."""
    images = load("mnist", train=False)
    models, data = [], dict[str, Any]()
    for name in FOLDERS:
        path = ledger.path(f"{name}/weights.safetensors")
        write_atomically(folder / f"{name}.safetensors", path.read_bytes())
        model, _ = load_weights(path)
        models.append(model)
        evaluation = ledger.read(f"{name}/evaluation.json")
        data[name] = {
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
            "bytes": path.stat().st_size,
            "correct": evaluation["correct"],
            "total": evaluation["total"],
        }
    capsules, plain = models
    directions, gains = found_directions(capsules, images)
    read = ledger.read("page/handwriting.json")
    # Of each class the first test digit that the capsule network classifies correctly.
    some = to_float(images.images[:200])
    out = capsules(some)
    right = out.lengths.argmax(dim=1) == images.labels[:200]
    firsts = [int((right & (images.labels[:200] == k)).nonzero()[0]) for k in range(10)]
    shown = firsts[SHOWN]
    data |= {
        "sliders": list(SLIDERS),
        "reach": REACH,
        "directions": directions.half(),
        "gains": gains,
        "fit": torch.tensor(read["fit"]),
        "quartiles": torch.tensor(read["quartiles"]),
        "errors": read["mean absolute error"],
        "digits": images.images[firsts, 0],
        "shown": SHOWN,
        "v": out.capsules[shown],
        "lengths": out.lengths[shown],
        "drawn": (255 * out.reconstruction[shown, 0]).round().to(torch.uint8),
        "chances": plain(some[[shown]]).lengths[0].softmax(dim=0),
    }
    write_atomically(folder / FILE, pack(data).encode())
