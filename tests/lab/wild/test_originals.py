"""Our networks compared with what the published code computed, where that still runs."""

import pytest
import torch
from torch import Tensor

from capsnet.data import load
from capsnet_book import ledger
from capsnet_lab.wild import IMPLEMENTATIONS, WildCapsNet, WildLoss

RECORDS = ledger.read("originals.json")["networks"]
RUN = [name for name, record in RECORDS.items() if record["runs"]]


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


@pytest.mark.parametrize("name", RUN)
def test_equals_what_the_published_code_computed(name: str) -> None:
    """Lengths, loss, and the norms of all gradients."""
    digits = load("mnist", train=False).subset(slice(4))
    images, labels = digits.images.double() / 255, digits.labels
    model = example(name, images)
    loss = WildLoss(model)(images, labels)
    gradients = torch.autograd.grad(loss, [*model.parameters()])
    ours = {
        "lengths": model(images).lengths.tolist(),
        "loss": loss.item(),
        "gradients": [gradient.norm().item() for gradient in gradients],
    }
    for part, numbers in RECORDS[name]["answer"].items():
        seen, expected = (torch.tensor(of, dtype=torch.float64) for of in (ours[part], numbers))
        assert (seen - expected).norm() < 1e-9 * expected.norm(), part
