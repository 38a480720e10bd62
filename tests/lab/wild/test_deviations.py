"""Each deviation alone, put on our network, changes what it says, and nothing else."""

from typing import Any

import pytest
import torch
from torch import Tensor

from capsnet.fast import FastCapsNet, arrange
from capsnet.training import TrainingConfig, evaluate, make_step
from capsnet_lab.wild import DEVIATIONS, IMPLEMENTATIONS, Parts, WildCapsNet, WildLoss, found_in
from helpers.tiny import fit, some_digits, tiny_model

CLASSES = 5
ROUTED = {"lengths", "reconstruction", "loss", "gradient"}
# What is seen to differ from the paper's network of the same weights.
CHANGES = {
    "softmax-over-children": ROUTED,
    "one-iteration-more": ROUTED,
    "two-iterations": ROUTED,
    "learned-prior": {"parameters"},
    "batch-logits": ROUTED,
    "stopped-gradient": {"gradient"},
    "uniform-shares": ROUTED,
    "leak": ROUTED,
    "digit-bias": {"parameters"} | ROUTED,
    "shared-w": {"parameters", "start"} | ROUTED,
    "view-without-permute": ROUTED,
    "relu-before-squash": ROUTED,
    "routed-to-types": ROUTED,
    "same-padding": {"parameters", "start"} | ROUTED,
    "squash-over-children": ROUTED,
    "squash-over-classes": ROUTED,
    "squash-by-component": ROUTED,
    "bare-norm": {"at zero"},
    "guard-1e-8": ROUTED,
    "guard-1e-9": ROUTED,
    "guard-1e-7": ROUTED,
    "guard-beside-norm": ROUTED,
    "softmax-of-lengths": {"lengths", "loss", "gradient"},
    "prediction-mask": {"reconstruction", "loss", "gradient"},
    "batch-mask": {"reconstruction", "loss", "gradient"},
    "other-decoder": {"parameters", "start", "reconstruction", "loss", "gradient"},
    "unsquared-margin": {"loss", "gradient"},
    "mean-margin": {"loss", "gradient"},
    "halved-margin": {"loss", "gradient"},
    "mean-reconstruction": {"loss", "gradient"},
    "unit-w": {"start"},
    "uniform-w": {"start"},
    "small-w": {"start"},
    "uncut-w": {"start"},
    "released-start": {"start"},
    "glorot-start": {"start"},
    "normalised-images": ROUTED,
    "standardised-images": ROUTED,
    "no-shift": {"recipe"},
    "one-shift-for-all": {"recipe"},
    "new-optimiser": {"recipe"},
    "rate-by-epoch": {"recipe"},
    "constant-rate": {"recipe"},
    "plateau-rate": {"recipe"},
    "unshuffled": {"recipe"},
}


def network(*deviations: str, **options: Any) -> WildCapsNet:
    torch.manual_seed(0)
    small = {"conv_channels": 4, "capsule_types": 3, "capsule_dim": 6, "hidden": (9, 11)}
    return WildCapsNet(num_classes=CLASSES, deviations=deviations, **small | options).double()


def batch() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    images = torch.rand(8, 1, 28, 28, dtype=torch.float64, generator=generator)
    return images, torch.arange(8) % CLASSES


def weighted(*deviations: str) -> WildCapsNet:
    """A network of the same weights, whatever its start; capsules are neither short nor long."""
    model, plain = network(*deviations), network()
    with torch.no_grad():
        generator = torch.Generator().manual_seed(2)
        for parameter in plain.parameters():
            parameter.normal_(std=0.2, generator=generator)
    fitting = {
        name: parameter
        for name, parameter in plain.state_dict().items()
        if parameter.shape == model.state_dict()[name].shape
    }
    model.load_state_dict(fitting, strict=False)
    return model


def observed(*deviations: str) -> dict[str, Any]:
    """All that can be seen of a network with deviations."""
    made, model = network(*deviations), weighted(*deviations)
    images, labels = batch()
    loss = WildLoss(model)(images, labels)
    loss.backward()
    out = model(images, labels)
    zeros = made.parts.squash(torch.zeros(1, CLASSES, 6, dtype=torch.float64), 2)
    common = [p for name, p in made.named_parameters() if name not in ("digits.prior", "bias")]
    return {
        "parameters": [(name, p.shape) for name, p in made.named_parameters()],
        "start": torch.cat([p.flatten() for p in common]),
        "at zero": zeros.isnan().any(),
        "lengths": out.lengths,
        "reconstruction": out.reconstruction,
        "loss": loss,
        "gradient": torch.cat([p.grad.flatten() for p in model.parameters() if p.dim() == 4]),
        "recipe": [
            (d.recipe, d.draw) for d in map(DEVIATIONS.get, deviations) if d.recipe or d.draw
        ],
    }


def differ(one: Any, other: Any) -> bool:
    if not isinstance(one, Tensor) or not one.is_floating_point():
        return bool(one != other)
    return one.shape != other.shape or bool((one - other).norm() > 1e-11 * one.norm())


def test_all_are_looked_at() -> None:
    assert list(CHANGES) == list(DEVIATIONS)


@pytest.mark.parametrize("name", CHANGES)
def test_changes_what_it_says(name: str) -> None:
    paper, wild = observed(), observed(name)
    assert {what for what in paper if differ(paper[what], wild[what])} == CHANGES[name]


@pytest.mark.parametrize("name", DEVIATIONS)
def test_says_what_it_is(name: str) -> None:
    deviation = DEVIATIONS[name]
    assert deviation.name == name
    assert deviation.parts or deviation.recipe or deviation.draw
    for text in (deviation.paper, deviation.code):
        assert text.endswith(".") and len(text) < 200
    assert found_in(deviation) or name in ALONE


ALONE = {"uniform-shares", "shared-w"}  # what no implementation here has


def test_config_makes_the_same_network_again() -> None:
    model = network("learned-prior", "softmax-over-children")
    again = WildCapsNet(**model.config)
    assert again.config == model.config and again.parts == model.parts
    again.double().load_state_dict(model.state_dict())
    assert torch.equal(again(batch()[0]).lengths, model(batch()[0]).lengths)


def test_without_deviations_all_parts_are_the_papers() -> None:
    assert network().parts == Parts()


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["no-such-thing"], "no deviation is called no-such-thing; known are softmax-over-"),
        (["unit-w", "uniform-w"], "deviations unit-w and uniform-w both replace start_w"),
        (["leak", "leak"], "each deviation is named once, got leak, leak$"),
    ],
)
def test_refuses(names: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        network(*names)


@pytest.mark.parametrize("names", [None, "leak", 5, [5], [["leak"]]])
def test_refuses_what_is_no_list_of_names(names: Any) -> None:
    with pytest.raises(ValueError, match=r"^deviations must be a list of names, got ") as raised:
        WildCapsNet(deviations=names)
    assert str(raised.value).endswith(f"got {names!r}")


NOT_PLAINLY = [["stopped-gradient", "learned-prior"], ["softmax-over-children", "guard-1e-7"]]


@pytest.mark.parametrize("names", [[], *([name] for name in DEVIATIONS), *NOT_PLAINLY])
def test_the_fast_arrangement_computes_the_same(names: list[str]) -> None:
    """Lengths, drawing, loss and every gradient, in float64."""
    images, labels = batch()
    found = []
    for arrangement in ("plain", "fast"):
        model = weighted(*names)
        network = arrange(model, arrangement)
        out = network(images, labels)
        loss = WildLoss(network)(images, labels)
        loss.backward()
        # No gradient, of a prior that nothing reads, is one of zeros.
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in model.parameters()]
        found.append([out.lengths, out.reconstruction, loss, *gradients])
    torch.testing.assert_close(*found, rtol=1e-10, atol=1e-12)


def test_the_fast_arrangement_is_traced_as_one_at_points_too() -> None:
    model, images = weighted("softmax-over-children").float(), batch()[0].float()
    network = arrange(model, "fast")
    assert isinstance(network, FastCapsNet)
    assert all(each.at_points for each in network.phases_of(images))
    traced = torch.compile(network.children_of, backend="eager", dynamic=False, fullgraph=True)
    torch.testing.assert_close(traced(images), model.children_of(images), rtol=1e-3, atol=1e-4)


def test_what_the_paper_leaves_open_is_a_choice() -> None:
    starts = {"unit-w", "uniform-w", "small-w", "uncut-w", "released-start", "glorot-start"}
    others = {"stopped-gradient", "new-optimiser", "unshuffled"}
    assert {name for name, of in DEVIATIONS.items() if of.is_choice} == starts | others


def test_a_loss_without_parts_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a WildCapsNet, got FastCapsNet"):
        make_step(tiny_model(), config=TrainingConfig(arrangement="fast"), loss=WildLoss)


def test_another_criterion_takes_the_place_of_the_margin_loss() -> None:
    model = weighted("unsquared-margin", "mean-reconstruction")
    model.decoder = None
    images, labels = batch()
    loss = WildLoss(model, criterion=lambda lengths, labels: lengths.sum())(images, labels)
    assert torch.equal(loss, model(images).lengths.sum())


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_learns(name: str) -> None:
    made = IMPLEMENTATIONS[name]
    tiny = {k: v for k, v in tiny_model().config.items() if k not in ("deviations", "learn_prior")}
    torch.manual_seed(0)
    model, digits = made.make(**tiny), some_digits(32)
    before = WildLoss(model)(digits.images / 255, digits.labels).item()
    config = TrainingConfig(**(made.recipe | {"epochs": 2, "batch_size": 16}))
    fit(model, digits, None, config, loss=WildLoss, draw=made.draw)
    assert WildLoss(model)(digits.images / 255, digits.labels).item() < before
    assert evaluate(model, digits).total == 32
