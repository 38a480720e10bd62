"""What ``capsnet check`` finds in published networks that it was not made for.

    python -m experiments.studies.checked FOLDER

FOLDER/OWNER/NAME is a clone of that repository of GitHub's. Its code runs from there, and none is
kept here. The record also has what a reader found in the sources who knew the deviations' names,
but neither the checker nor its answers ("read"), and what else that reader found, which has no name
and which no evidence shows ("unseen"). What stands in a training loop cannot be called and is
written anew: options of a network, weights of a loss, labels as one-hot, the images' normalisation.
Calls of cuda do nothing.
"""

import importlib
import json
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torchvision.transforms import Normalize

from capsnet.files import write_json
from capsnet_lab.check import Adapter, check
from experiments.running import LEDGER
from experiments.studies.originals import commit_of, run_file

RECORD = LEDGER / "checked.json"
NAMES = {"torch": torch, "nn": nn, "F": F, "np": np, "Variable": torch.autograd.Variable}


# What makes a network, and how its training calls it and reaches its routing.
Network = tuple[Callable[[], nn.Module], Adapter]


def one_hot(labels: Tensor) -> Tensor:
    return torch.eye(10)[labels]


def own_loss(net: Any, images: Tensor, labels: Tensor) -> Any:
    """The loss of networks that have a method for it."""
    return net.loss(images, net(images), one_hot(labels))[0]


# How each is called. A docstring says what had to be done for that, in the record too.


def leftthomas(folder: Path) -> Network:
    """A word changed, view to reshape. The reconstruction takes the images' shape before its
    loss. Its capsules, [classes, n, 1, 1, dim], are put in order.
    """
    code = run_file(folder, "capsnet.py", ("None]).view", "None]).reshape"))
    criterion = run_file(folder, "loss.py").CapsuleLoss()

    def primary(net: Any, images: Tensor) -> Any:
        return net.primary_capsules(F.relu(net.conv1(images)))

    def digits(net: Any, u: Tensor) -> Any:
        return net.digit_capsules(u).flatten(2).transpose(0, 1)

    def call(net: Any, images: Tensor, labels: Tensor) -> Any:
        return digits(net, primary(net, images)), net(images, one_hot(labels))[1]

    def loss(net: Any, images: Tensor, labels: Tensor) -> Any:
        lengths, drawn = net(images, one_hot(labels))
        return criterion(images, one_hot(labels), lengths, drawn.view_as(images))

    return code.CapsuleNet, Adapter(call, primary, digits, loss)


def danielhavir(folder: Path) -> Network:
    """The options of its trainer, for MNIST."""
    code = run_file(folder, "model.py")
    criterion = run_file(folder, "loss.py").CapsuleLoss(loss_lambda=0.5, recon_loss_scale=5e-4)
    options = (1, 28, 28), 256, 8, 10, 16, 3, torch.device("cpu")

    def loss(net: Any, images: Tensor, labels: Tensor) -> Any:
        lengths, drawn = net(images)
        return criterion(lengths, one_hot(labels), images, drawn)

    adapter = Adapter(lambda net, images, _: net(images), loss=loss, routing="digits")
    return lambda: code.CapsuleNetwork(*options), adapter


def laubonghaudoi(folder: Path) -> Network:
    """Three iterations. The decoder is called after the network, as its loss does."""
    code = run_file(folder, "CapsNet.py")

    def call(net: Any, images: Tensor, labels: Tensor) -> Any:
        v = net(images)
        return v, net.Decoder(v, one_hot(labels))

    def loss(net: Any, images: Tensor, labels: Tensor) -> Any:
        return net.loss(net(images), one_hot(labels), images)[0]

    options = SimpleNamespace(r=3, use_cuda=True)
    return lambda: code.CapsNet(options), Adapter(call, loss=loss, routing="DigitCaps")


def motokimura(folder: Path) -> Network:
    """Nothing."""
    code = run_file(folder, "capsule_network.py")

    def call(net: Any, images: Tensor, labels: Tensor) -> Any:
        v = net(images)
        return v, net.reconstruct(v)

    return code.CapsuleNetwork, Adapter(call, loss=own_loss, routing="digit_caps")


def spikefairway(folder: Path) -> Network:
    """Three iterations; its script gives is_relu besides, which the network does not take."""
    code = run_file(folder, "capsule_network.py")

    def call(net: Any, images: Tensor, labels: Tensor) -> Any:
        v = net(images)
        return v, net.reconstruct(v, one_hot(labels))

    adapter = Adapter(call, loss=own_loss, routing="digit_caps")
    return lambda: code.CapsuleNetwork(routing_iters=3), adapter


def jeong_tae(folder: Path) -> Network:
    """Three iterations, ten classes. Network and decoder, two modules, become one."""
    sys.path.insert(0, str(folder))
    capsules, decoder, losses = (
        importlib.import_module(f"models.{name}") for name in ("CapsNet", "Decoder", "Loss")
    )
    options = SimpleNamespace(r_iterations=3, num_classes=10, cuda=False)
    margin, drawing = losses.marginLoss(), losses.reconstructionLoss()

    def make() -> nn.Module:
        parts = {"capsules": capsules.capsNet(options), "decoder": decoder.decoder(options)}
        return nn.ModuleDict(parts)

    def call(net: Any, images: Tensor, labels: Tensor) -> Any:
        v = net["capsules"](images)
        return v, net["decoder"](v, one_hot(labels))

    def loss(net: Any, images: Tensor, labels: Tensor) -> Any:
        v, drawn = call(net, images, labels)
        return margin(v, one_hot(labels)) + drawing(drawn, images)

    return make, Adapter(call, loss=loss, routing="capsules.digitCaps")


def kellerjordan(folder: Path) -> Network:
    """The options of its notebook Train-CapsNet for MNIST, a weight of 0.005 among them."""
    code = run_file(folder, "models/capsnet.py")
    criterion = code.CapsuleLoss(rcsn_scale=0.005)

    def make() -> Any:
        decoder = code.CapsuleDecoder(reconstruction=True, mask_incorrect=True)
        return code.CapsuleModel(code.CapsuleNetwork(), decoder)

    def call(net: Any, images: Tensor, labels: Tensor) -> Any:
        return net(images, one_hot(labels))

    def loss(net: Any, images: Tensor, labels: Tensor) -> Any:
        lengths, drawn = call(net, images, labels)
        return criterion(lengths, one_hot(labels), drawn, images)

    return make, Adapter(call, loss=loss, routing="net.digit_caps")


def higgsfield(folder: Path) -> Network:
    """Of the notebook, only cells that define something are run, with the names they need."""
    code = run_file(folder, "Capsule Network.ipynb", USE_CUDA=True, **NAMES)  # type: ignore[arg-type]

    def loss(net: Any, images: Tensor, labels: Tensor) -> Any:
        v, drawn, _ = net(images)
        return net.loss(images, v, one_hot(labels), drawn)

    adapter = Adapter(lambda net, images, _: net(images)[:2], loss=loss, routing="digit_capsules")
    return code.CapsNet, adapter


def tonysy(folder: Path) -> Network:
    """The reconstruction takes the images' shape before its loss."""
    code = run_file(folder, "CapsuleNet.py")
    criterion = code.CapsuleLoss()

    def call(net: Any, images: Tensor, labels: Tensor) -> Any:
        return net(images, labels)[1:]

    def loss(net: Any, images: Tensor, labels: Tensor) -> Any:
        lengths, drawn = call(net, images, labels)
        return criterion(10, images, one_hot(labels).float(), lengths, drawn.view_as(images))

    return code.CapsuleNet, Adapter(call, loss=loss, routing="digit_capsules")


def alexhex7(folder: Path) -> Network:
    """Labels as [n, 1]."""
    code = run_file(folder, "lib/network.py")

    def call(net: Any, images: Tensor, labels: Tensor) -> Any:
        return net(images, labels[:, None], True)

    def loss(net: Any, images: Tensor, labels: Tensor) -> Any:
        v, drawn = call(net, images, labels)
        return net.margin_loss(v, labels[:, None]) + net.reconstruction_loss(images, drawn)

    return code.CapsNet, Adapter(call, loss=loss, routing="digit_caps")


def acburigo(folder: Path) -> Network:
    """Of the notebook, only cells that define something are run, with the names they need. Its loss
    takes the lengths from a name of the training loop, which is set. A squeeze, which makes one
    image 1152, is of the last dimension.
    """
    change = "x.squeeze()", "x.squeeze(-1)"
    code = run_file(folder, "CapsNet.ipynb", change, INPUT_SIZE=(1, 28, 28), **NAMES)
    criterion = code.CapsNetLoss()

    def call(net: Any, images: Tensor, labels: Tensor) -> Any:
        return net(images, labels)[:2]

    def loss(net: Any, images: Tensor, labels: Tensor) -> Any:
        code.y_pred, drawn = net(images, labels)
        return criterion(images, labels, drawn, code.y_pred)[0]

    return code.CapsNet, Adapter(call, loss=loss, routing="routing")


NETWORKS = {
    "leftthomas/CapsNet": leftthomas,
    "danielhavir/capsule-network": danielhavir,
    "laubonghaudoi/CapsNet_guide_PyTorch": laubonghaudoi,
    "motokimura/capsnet_pytorch": motokimura,
    "spikefairway/CapsNet-PyTorch": spikefairway,
    "jeong-tae/CapsNet-pytorch": jeong_tae,
    "KellerJordan/CapsNet-Adversarial": kellerjordan,
    "higgsfield/Capsule-Network-Tutorial": higgsfield,
    "tonysy/CapsuleNet-PyTorch": tonysy,
    "AlexHex7/CapsNet_pytorch": alexhex7,
    "acburigo/CapsNet": acburigo,
}
NORMALISED = {"danielhavir", "motokimura", "spikefairway", "jeong-tae", "higgsfield", "tonysy"}


def examine(clones: Path, name: str) -> dict[str, Any]:
    """What the checker finds in a network."""
    make, adapter = NETWORKS[name](clones / name)
    call, loss = adapter.call, adapter.loss
    assert call is not None and loss is not None
    if name.split("/")[0] in NORMALISED:  # by its script
        normalise = Normalize((0.1307,), (0.3081,))
        adapter = replace(
            adapter,
            call=lambda net, images, labels: call(net, normalise(images), labels),
            loss=lambda net, images, labels: loss(net, normalise(images), labels),
        )
    torch.manual_seed(0)
    report = check(make, adapter)
    return {
        "commit": commit_of(clones / name),
        "done": " ".join((NETWORKS[name].__doc__ or "").split()),
        "found": sorted(report.found),
        "otherwise": report.unnamed,
    }


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit(f"expected one folder of clones, got {sys.argv[1:]}")
    networks = json.loads(RECORD.read_text())["networks"]
    # Each in a process of its own: their modules have the same names.
    pool = ProcessPoolExecutor(2, get_context("spawn"), max_tasks_per_child=1)
    reports = pool.map(partial(examine, Path(sys.argv[1]).resolve()), NETWORKS)
    for name, report in zip(NETWORKS, reports, strict=True):
        networks[name] |= report
        differ = {*networks[name]["read"]} ^ {*report["found"]}
        print(f"{name}: {len(report['found'])} found, {len(differ)} differ from what was read")
    write_json(RECORD, {"torch": torch.__version__, "networks": networks})


if __name__ == "__main__":
    main()
