"""Does published code compute what the networks of :mod:`capsnet_lab.wild` do? Asked of itself.

    python -m experiments.studies.originals FOLDER

FOLDER/NAME is a clone of the repository that IMPLEMENTATIONS link for NAME (for labml:
labmlai/annotated_deep_learning_paper_implementations, on GitHub). Its code runs from there, and
none is kept here. What stands in a training loop cannot be called and is said anew: options of a
network, weights of a loss, labels as one-hot. Calls of cuda do nothing. Both networks have the same
weights and the same images, in float64 on the CPU. The record keeps the original's answer, so that
the tests can compare ours with it where the original is not at hand.
"""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torchvision.transforms import Normalize

from capsnet.data import load
from capsnet.files import write_json
from capsnet_lab.check.checker import without_cuda
from capsnet_lab.wild import IMPLEMENTATIONS, WildCapsNet, WildLoss
from experiments.running import LEDGER

TENSORFLOW = "sarasra", "sarasra-cifar10", "naturomics", "geron"
NORMALISED = "labml", "jindongwang", "timomernick"  # their images, by their scripts
Answer = tuple[Tensor, Tensor]  # lengths of the classes, loss


class Setup(NamedTuple):
    """A folder with code, our network, and a batch."""

    folder: Path
    model: WildCapsNet
    images: Tensor
    labels: Tensor
    one_hot: Tensor

    def run_file(
        self, file: str, change: tuple[str, str] = ("", ""), **names: Any
    ) -> SimpleNamespace:
        return run_file(self.folder, file, change, **names)

    def copy_parameters(
        self, network: Any, axes: tuple[int, ...], by_component: bool = False
    ) -> Any:
        """Put our parameters in place of a network's: the gradients of both losses are then theirs.

        All have two convolutions, W, perhaps a prior, and a decoder, in this order. Axes of our W,
        [children, parents, in, out], are named as theirs follow each other. By component: channels
        of the second convolution are the first numbers of all types, then the second … Where there
        are several second convolutions, each takes as many channels, in turn.
        """
        named, ours = [*network.named_parameters()], [*self.model.parameters()]
        if by_component:
            order = torch.arange(256).view(32, 8).t().flatten()
            ours[2:4] = [value[order] for value in ours[2:4]]  # type: ignore
        ours[4] = ours[4].permute(axes)  # type: ignore
        parts = (len(named) - len(ours)) // 2 + 1
        pairs = zip(*(value.chunk(parts) for value in ours[2:4]), strict=True)
        ours[2:4] = [value for pair in pairs for value in pair]
        for (name, parameter), value in zip(named, ours, strict=True):
            module, _, attribute = name.rpartition(".")
            network.get_submodule(module)._parameters[attribute] = value.reshape(parameter.shape)
        return network


def run_file(
    folder: Path, file: str, change: tuple[str, str] = ("", ""), **names: Any
) -> SimpleNamespace:
    """What a file defines, with some names given; of a notebook, cells that define anything.

    A name that is set in what is returned is seen by its functions.
    """
    path = folder / file
    sys.path[:0] = [str(folder), str(path.parent)]
    text = path.read_text()
    if path.suffix == ".ipynb":
        cells = ["\n" + "".join(cell["source"]) for cell in json.loads(text)["cells"]]
        text = "".join(cell for cell in cells if "\nclass " in cell or "\ndef " in cell)
    defined = SimpleNamespace(__name__=path.stem, **names)
    exec(compile(text.replace(*change), file, "exec"), vars(defined))
    return defined


def commit_of(folder: Path) -> str:
    """The commit that is checked out there."""
    command = ["git", "-C", str(folder), "rev-parse", "HEAD"]
    return subprocess.check_output(command, text=True).strip()


# What each computes. A docstring says what had to be done for that, in the record too.


def labml(setup: Setup) -> Answer:
    """The package labml is stubbed, and labml_nn.helpers, which needs it."""
    stub: Any = SimpleNamespace(experiment=None, tracker=None, BatchIndex=None)
    stub.MNISTConfigs, stub.SimpleTrainValidConfigs = SimpleNamespace, object  # to inherit from
    stub.AccuracyDirect, stub.option = object, lambda _: lambda function: function
    helpers = (f"labml_nn.helpers.{name}" for name in ("datasets", "metrics", "trainer"))
    sys.modules.update(dict.fromkeys(("labml", "labml.configs", *helpers), stub))
    code = setup.run_file("labml_nn/capsule_networks/mnist.py")
    network = setup.copy_parameters(
        code.MNISTCapsuleNetworkModel(), (0, 1, 2, 3), by_component=True
    )
    capsules, drawn, _ = network(setup.images)
    drawing = code.Configs.reconstruction_loss(drawn, setup.images)
    loss = code.Configs.margin_loss(capsules, setup.labels) + 0.0005 * drawing
    return capsules.norm(dim=2), loss


def labml_notebook(setup: Setup) -> Answer:
    """As labml: its layers and loss, on images as they are; the notebook's own code is not run."""
    return labml(setup)


def adambielski(setup: Setup) -> Answer:
    """Nothing."""
    code = setup.run_file("net.py")
    network = code.CapsNetWithReconstruction(code.CapsNet(3), code.ReconstructionNet())
    drawn, lengths = setup.copy_parameters(network, (0, 2, 1, 3))(setup.images, setup.labels)
    margin = code.MarginLoss(0.9, 0.1, 0.5)(lengths, setup.labels)
    return lengths, margin + 0.0005 * F.mse_loss(drawn, setup.images.flatten(1))


def cezannec(setup: Setup) -> Answer:
    """Of the notebook, only cells that define something are run, with the names they need."""
    names = {"torch": torch, "nn": nn, "F": F, "TRAIN_ON_GPU": False}
    code = setup.run_file("Capsule_Network.ipynb", **names)  # type: ignore
    network = setup.copy_parameters(code.CapsuleNetwork(), (1, 0, 2, 3), by_component=True)
    capsules, drawn, _ = network(setup.images)
    loss = code.CapsuleLoss()(capsules, setup.one_hot, setup.images, drawn)
    return capsules.norm(dim=2), loss


def xifengguo(setup: Setup) -> Answer:
    """Calls of cuda do nothing."""
    code = setup.run_file("capsulenet.py")
    network = setup.copy_parameters(code.CapsuleNet([1, 28, 28], 10, 3), (1, 0, 3, 2))
    lengths, drawn = network(setup.images, setup.one_hot)
    return lengths, code.caps_loss(setup.one_hot, lengths, setup.images, drawn, 0.0005 * 784)


def jindongwang(setup: Setup) -> Answer:
    """Nothing."""
    network = setup.copy_parameters(setup.run_file("capsnet.py").CapsNet(), (0, 1, 3, 2))
    capsules, drawn, _ = network(setup.images)
    return capsules.norm(dim=2), network.loss(setup.images, capsules, setup.one_hot, drawn)


def gram_ai(setup: Setup) -> Answer:
    """A word changed, view to reshape; Variable, a name of its script, given; cuda does nothing."""
    change = "]).view", "]).reshape"  # today's torch keeps the order in memory of a product
    code = setup.run_file("capsule_network.py", change, Variable=torch.autograd.Variable)
    network = setup.copy_parameters(code.CapsuleNet(), (1, 0, 2, 3), by_component=True)
    lengths, drawn = network(setup.images, setup.one_hot)
    return lengths, code.CapsuleLoss()(setup.images, setup.one_hot, lengths, drawn)


def timomernick(setup: Setup) -> Answer:
    """Calls of cuda do nothing; its count of pictures starts at 1, so that it saves none."""
    network = setup.run_file("capsule_network.py").CapsuleNetwork(
        28, 28, 1, 1, 256, 8, 1152, 10, 16
    )
    network.reconstructed_image_count = 1
    capsules = setup.copy_parameters(network, (0, 1, 3, 2), by_component=True)(setup.images)
    return capsules.norm(dim=2), network.loss(setup.images, capsules, setup.one_hot)


PYTORCH = (labml, labml_notebook, adambielski, cezannec, xifengguo, jindongwang, gram_ai)
ORIGINALS = {code.__name__.replace("_", "-"): code for code in (*PYTORCH, timomernick)}


def batch() -> tuple[Tensor, Tensor]:
    """The first four of MNIST's test images, in float64, and their labels."""
    digits = load("mnist", train=False).subset(slice(4))
    return digits.images.double() / 255, digits.labels


def example(name: str, images: Tensor) -> WildCapsNet:
    """Ours, the same on every machine, and W so wide that a class's capsule is longer than 0.5."""
    generator = torch.Generator().manual_seed(0)
    model = IMPLEMENTATIONS[name].make().double()
    with torch.no_grad():
        for parameter in model.parameters():
            bound = max(parameter[0].numel(), 10) ** -0.5
            parameter.uniform_(-bound, bound, generator=generator)
        while model(images).capsules.norm(dim=2).max() < 0.5:
            model.digits.weight.mul_(2)
    return model


def answer_of(lengths: Tensor, loss: Tensor, model: WildCapsNet) -> dict[str, Any]:
    """Lengths, loss, and the norm of the loss's gradient of each of our parameters."""
    gradients = torch.autograd.grad(loss, [*model.parameters()], retain_graph=True)
    return {
        "lengths": lengths.flatten(1).tolist(),
        "loss": loss.item(),
        "gradients": [gradient.norm().item() for gradient in gradients],
    }


def differences(model: WildCapsNet, batch: tuple[Tensor, Tensor], theirs: Answer) -> dict[str, Any]:
    """The largest: of lengths, of the loss, and of gradients relative to a parameter's largest."""
    loss, parameters = WildLoss(model)(*batch), [*model.parameters()]
    losses = loss, theirs[1]
    pairs = zip(
        *(torch.autograd.grad(of, parameters, retain_graph=True) for of in losses), strict=True
    )
    found = {
        "lengths": (model(*batch).lengths - theirs[0].flatten(1)).abs().max(),
        "loss": (loss - theirs[1]).abs(),
        "gradients": torch.stack([(a - b).abs().max() / b.abs().max() for a, b in pairs]).max(),
    }
    return {name: float(f"{value.item():.1e}") for name, value in found.items()}


def compare(name: str, clones: Path) -> dict[str, Any]:
    """What the record says of a network."""
    if name in TENSORFLOW:
        gone = "TensorFlow 1, which today's Python does not have."
        return {"runs": False, "done": gone, "commit": None, "differences": None, "answer": None}
    folder, original = clones / name.removesuffix("-notebook"), ORIGINALS[name]
    images, labels = batch()
    model, one_hot = example(name, images), torch.eye(10)[labels]
    seen = Normalize((0.1307,), (0.3081,))(images) if name in NORMALISED else images
    theirs = original(Setup(folder, model, seen, labels, one_hot))
    return {
        "runs": True,
        "done": original.__doc__,
        "commit": commit_of(folder),
        "differences": differences(model, (images, labels), theirs),
        "answer": answer_of(*theirs, model),
    }


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit(f"expected one folder of clones, got {sys.argv[1:]}")
    torch.set_default_dtype(torch.float64)
    networks = {}
    with without_cuda():
        for name in [*IMPLEMENTATIONS][1:]:  # the first is the paper's
            networks[name] = compare(name, Path(sys.argv[1]).resolve())
            print(name, *networks[name].values(), sep=", ", flush=True)
    write_json(LEDGER / "originals.json", {"torch": torch.__version__, "networks": networks})


if __name__ == "__main__":
    main()
