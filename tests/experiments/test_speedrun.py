"""The speed run: its tricks do what their names say, and what is left is the paper's network."""

import dataclasses
import json
from pathlib import Path

import pytest
import torch
from torch import Tensor

from capsnet import CapsNet
from capsnet.data import load, to_float
from capsnet.device import bfloat16_is_fast
from capsnet.fast import FastCapsNet
from capsnet.functional import dynamic_routing, margin_loss
from experiments.studies import speedrun
from experiments.studies.speedrun import (
    BASE,
    TRIALS,
    TRIED,
    Optimizer,
    Recipe,
    StagedCapsNet,
    batches,
    train,
)

DIGITS = load("mnist").subset(slice(64))


@pytest.fixture
def staged() -> StagedCapsNet:
    torch.manual_seed(0)
    return StagedCapsNet(CapsNet())


@pytest.fixture
def images() -> Tensor:
    return to_float(DIGITS.images[:4])


def test_grown_up_it_is_the_network(staged: StagedCapsNet, images: Tensor) -> None:
    with torch.autocast("cpu", torch.bfloat16):
        one, other = staged(images), FastCapsNet(staged.model)(images)
    assert torch.equal(one.capsules, other.capsules)


@torch.no_grad()
def test_middle_places_and_one_iteration(staged: StagedCapsNet, images: Tensor) -> None:
    staged.middle = staged.one_iteration = True
    model = staged.model
    model.digits.weight.mul_(100)  # so that routing matters
    votes = model.digits.predict(model.primary(model.conv(images).relu()))
    places = torch.arange(1152) % 36
    rows, columns = places // 6, places % 6
    inside = (rows > 0) & (rows < 5) & (columns > 0) & (columns < 5)
    expected = dynamic_routing(votes[:, inside], 1)
    torch.testing.assert_close(staged(images).capsules, expected, rtol=1e-3, atol=1e-5)
    for other in (dynamic_routing(votes[:, inside], 3), dynamic_routing(votes, 1)):
        assert (other - expected).norm() > 0.05 * expected.norm()


def test_the_rate_rises_and_falls_to_nothing() -> None:
    for recipe in (BASE, TRIALS["rate falls on a line"]):
        rates = [recipe.rate(step / 100) for step in range(101)]
        peak = rates.index(max(rates))
        assert peak == round(100 * recipe.rise) and rates[peak] == pytest.approx(3e-3)
        assert rates == sorted(rates[:peak]) + sorted(rates[peak:], reverse=True)
        assert rates[-1] == pytest.approx(0.0)


def test_only_the_hardest_are_seen_again() -> None:
    recipe = Recipe(batch_size=5, hardest=0.5)
    hardness = torch.zeros(20)
    drawn = batches(20, recipe, hardness, torch.Generator().manual_seed(0))
    first = torch.cat([next(drawn) for _ in range(4)])
    assert sorted(first.tolist()) == [*range(20)]
    hardness[::2] = 1.0
    again = torch.cat([next(drawn) for _ in range(2)])
    assert sorted(again.tolist()) == [*range(0, 20, 2)]


def test_the_loss_of_an_image_is_its_margin_loss() -> None:
    lengths, labels = torch.rand(6, 10), torch.arange(6)
    each = speedrun.margins(lengths, labels)
    torch.testing.assert_close(each.mean(), margin_loss(lengths, labels))
    torch.testing.assert_close(each[:1].mean(), margin_loss(lengths[:1], labels[:1]))


def test_kernels_that_are_pieces_of_digits() -> None:
    like = CapsNet().conv.weight
    found = speedrun.pieces(DIGITS, like, torch.Generator().manual_seed(0))
    assert found.shape == like.shape
    torch.testing.assert_close(found.mean(dim=(1, 2, 3)), torch.zeros(256), rtol=0, atol=1e-6)
    torch.testing.assert_close(found.flatten(1).norm(dim=1), like.flatten(1).norm(dim=1).detach())


def test_muon_steps_the_kernel_and_adam_the_rest() -> None:
    torch.manual_seed(0)
    model = CapsNet(conv_channels=8, capsule_types=2, hidden=(16, 16))
    optimizer = Optimizer(model, TRIALS["Muon"])
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    optimizer.step(1e-3)
    moved = {name: (p - before[name]).abs() for name, p in model.named_parameters()}
    kernel = moved.pop("primary.conv.weight")
    assert kernel.max() > 0 and kernel.std() > 0.1 * kernel.mean()
    for change in moved.values():  # Adam's first step is the rate, whatever the gradient
        torch.testing.assert_close(change, torch.full_like(change, 1e-3), rtol=1e-2, atol=0)
    assert all(parameter.grad is None for parameter in model.parameters())


MOST = Recipe(middle=0.3, one_iteration=0.5, hardest=0.5, reconstruct_from=0.5, patches=True)
in_bfloat16 = pytest.mark.skipif(
    not bfloat16_is_fast(speedrun.CPU),
    reason="Muon multiplies in bfloat16: ten minutes where no hardware does",
)


@pytest.mark.parametrize(
    "recipe",
    [
        pytest.param(BASE, id="base"),
        pytest.param(MOST, id="most at once"),
        pytest.param(dataclasses.replace(MOST, muon=True), id="all at once", marks=in_bfloat16),
    ],
)
def test_a_recipe_trains(recipe: Recipe) -> None:
    few = dataclasses.replace(recipe, batch_size=16, passes=2)
    model, rate = train(few, DIGITS, compile=False)
    again, _ = train(few, DIGITS, compile=False)
    assert rate > 0
    for one, other in zip(model.parameters(), again.parameters(), strict=True):
        assert one.isfinite().all() and torch.equal(one, other)


def test_the_ledger_has_what_is_declared() -> None:
    """Every trial, and the runs of the recipe that was chosen."""
    made = speedrun.made()
    assert {record["trial"] for record in made} == TRIED.keys()
    for record in made:
        recipe, learned = TRIED[record["trial"]]
        assert record["recipe"] == dataclasses.asdict(recipe), record["trial"]
        assert record["total"] == 60_000 - learned
    runs = json.loads(Path(speedrun.FOLDER, "runs.json").read_text())
    assert runs["recipe"] == dataclasses.asdict(speedrun.CHOSEN)
    assert [run["seed"] for run in runs["runs"]] == [*range(speedrun.SEEDS)]
