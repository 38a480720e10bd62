"""Adversarial examples: they stay within ε, and they do what an attack should."""

import pytest
import torch
from torch import Tensor, nn

from capsnet.checkpoint import load_weights
from capsnet.data import load
from capsnet.model import CapsNetOutput
from capsnet_book import ledger
from experiments import attacks


class Linear(nn.Module):
    """Lengths that are linear in the pixels, for which the best attack is known."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(36, classes, generator=torch.manual_seed(0)))

    def forward(self, images: Tensor) -> CapsNetOutput:
        lengths = images.flatten(1) @ self.weight
        return CapsNetOutput(lengths.unsqueeze(2), lengths, None)


@pytest.mark.parametrize("steps", [1, attacks.STEPS])
def test_an_attack_on_a_linear_network_is_the_best_one(steps: int) -> None:
    model, images, labels = Linear(2), torch.full((3, 1, 6, 6), 0.5), torch.tensor([0, 1, 0])
    attacked = attacks.attack(model, images, labels, 0.1, steps)
    before, after = (
        attacks.error_margin(model(seen).lengths, labels) for seen in (images, attacked)
    )
    best = 0.1 * (model.weight[:, 1] - model.weight[:, 0]).abs().sum()
    torch.testing.assert_close(after - before, best.expand(3), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("steps", [1, attacks.STEPS])
def test_an_attack_stays_within_epsilon_and_within_an_image(steps: int) -> None:
    images = torch.rand(8, 1, 6, 6)
    images[:, :, :2] = images[:, :, :2].round()  # 0 and 1: at the ends of what a pixel can be
    attacked = attacks.attack(Linear(5), images, torch.arange(8) % 5, 0.1, steps)
    change = (attacked - images).abs()
    assert 0.09 < float(change.max()) <= 0.1 + 1e-6
    assert float(attacked.min()) >= 0 and float(attacked.max()) <= 1


def test_a_stronger_attack_breaks_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attacks, "ATTACKED_IMAGES", 20)
    model, _ = load_weights(ledger.path("page/weights.safetensors"))
    test = load("mnist", train=False)
    found = attacks.count_attacked(model, test)
    fgsm, pgd = ([found[by][str(e)] for e in attacks.EPSILONS] for by in ("fgsm", "pgd"))
    assert fgsm == sorted(fgsm, reverse=True) and pgd == sorted(pgd, reverse=True)
    assert all(slow <= quick for slow, quick in zip(pgd, fgsm, strict=True))
    assert found["total"] == 20 > found["correct"] == pgd[1]
