"""The networks: what goes in and comes out, that the fast ones are equal, and that they learn."""

import dataclasses
from typing import Any

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from capsnet.fast import arrange
from capsnet.layers import CapsuleLayer
from capsnet.training import TrainingConfig, evaluate, make_step
from capsnet_lab.routings import ROUTINGS, EfficientCapsNet, RoutedCapsNet, spread_loss
from capsnet_lab.wild import WildCapsNet
from helpers import Refuses
from helpers.tiny import FP32, fit, some_digits, tiny_model

SMALL: dict[str, Any] = {
    "conv_channels": 8, "capsule_types": 3, "capsule_dim": 8, "hidden": (8, 16)
}  # fmt: skip
TINY: dict[str, Any] = {**SMALL, "image_shape": (1, 19, 19), "num_classes": 4}


def count(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("stack", [(), (6, 5)])
@pytest.mark.parametrize("routing", ROUTINGS)
def test_a_routed_network(routing: str, stack: tuple[int, ...]) -> None:
    model = RoutedCapsNet(routing=routing, stack=stack, **TINY)
    images, labels = torch.rand(3, 1, 19, 19), torch.tensor([0, 3, 1])
    out = model(images, labels)
    assert out.capsules.shape == (3, 4, 8) and out.lengths.shape == (3, 4)
    assert out.reconstruction.shape == images.shape
    assert (out.lengths >= 0).all() and (out.lengths <= 1).all()
    (out.lengths.sum() + out.reconstruction.square().sum()).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().max() > 0, name

    longest = model(images)  # without labels, the most present class is reconstructed
    same = model(images, longest.lengths.argmax(dim=1)).reconstruction
    assert_close(longest.reconstruction, same, rtol=0, atol=0)
    steps = model.routing_trace(images)
    assert steps[-1].c.shape == (3, stack[-1] if stack else 12, 4)
    assert_close(model.encode(images), out.capsules)
    single = torch.func.vmap(lambda image: model(image.unsqueeze(0)).lengths[0])(images)
    assert_close(single, out.lengths)
    with torch.autocast("cpu", torch.bfloat16):
        half = model(images).lengths
    assert half.dtype == torch.float32
    assert_close(half, out.lengths, rtol=0.1, atol=0.01)


def test_dynamic_routing_without_a_stack_is_capsnet() -> None:
    ours = tiny_model()
    model = RoutedCapsNet(**ours.config)
    model.load_state_dict(ours.state_dict())
    images, labels = torch.rand(3, 1, 28, 28), torch.tensor([0, 3, 1])
    for seen, expected in zip(model(images, labels), ours(images, labels), strict=True):
        assert_close(seen, expected, rtol=0, atol=0)


def test_what_is_present_with_em_and_attention() -> None:
    images = torch.rand(2, 1, 19, 19)
    model = RoutedCapsNet(routing="em", stack=[5], **TINY)
    maps = model.primary.conv(model.conv(images).relu())
    poses = maps.unflatten(1, (3, 8)).permute(0, 1, 3, 4, 2).flatten(1, 3)
    activations = (poses @ model.score.weight[0] + model.score.bias).sigmoid()
    capsules, lengths = model.digits(model.stack((poses, activations)))
    out = model(images)
    assert_close(out.capsules, capsules)
    assert_close(out.lengths, lengths)

    model = RoutedCapsNet(routing="attention", **TINY)
    out = model(images)
    score = out.capsules @ model.score.weight[0] + model.score.bias
    assert_close(out.lengths, score.sigmoid())
    primary = model.primary(model.conv(images).relu())
    spread = (primary.var(dim=2, correction=0, keepdim=True) + 1e-5).sqrt()
    normal = (primary - primary.mean(dim=2, keepdim=True)) / spread
    assert_close(out.capsules, model.digits(normal))


@pytest.mark.parametrize("network", [RoutedCapsNet, WildCapsNet])
def test_a_subclass_is_not_arranged_as_the_class_that_it_changes(
    network: type[nn.Module], refuses: Refuses
) -> None:
    model = type("Mine", (network,), {})(**TINY)
    assert arrange(network(**TINY)) is not model is arrange(model)
    with refuses("there is no arrangement fast of this Mine"):
        arrange(model, "fast")


@pytest.mark.parametrize("stack", [[], [6, 5]])
@pytest.mark.parametrize("routing", ROUTINGS)
def test_the_fast_arrangement_computes_the_same(
    routing: str, stack: list[int], refuses: Refuses
) -> None:
    model = RoutedCapsNet(routing=routing, stack=stack, **TINY).double()
    images = torch.rand(3, 1, 19, 19, dtype=torch.float64)
    if routing == "em":
        assert arrange(model) is model
        with refuses("there is no arrangement fast of this RoutedCapsNet"):
            arrange(model, "fast")
        return
    assert arrange(model) is not model
    for labels in (None, torch.tensor([0, 3, 1])):
        found = []
        for arrangement in ("plain", "fast"):
            out = arrange(model, arrangement)(images, labels)
            model.zero_grad()
            (out.lengths.sum() + out.reconstruction.square().sum()).backward()
            found.append([*out, *(parameter.grad for parameter in model.parameters())])
        assert_close(*found, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("routing", "fast"), [("dynamic", False), ("attention", True)])
def test_auto_leaves_layers_alone_whose_code_it_would_not_run(routing: str, fast: bool) -> None:
    class Mine(CapsuleLayer):
        pass

    model = RoutedCapsNet(routing=routing, stack=(5,), **TINY)
    children, parents, in_dim, out_dim = model.stack[0].weight.shape
    model.stack[0] = Mine(children, in_dim, parents, out_dim)
    assert (arrange(model) is not model) == fast


@pytest.mark.parametrize("routing", ROUTINGS)
def test_a_stack_learns(routing: str) -> None:
    """Drawn as a single layer is, a second one's capsules would be 1e-9 long and never grow."""
    model, digits = RoutedCapsNet(routing=routing, stack=(8,), **SMALL), some_digits(16)
    options = {"criterion": spread_loss} if routing == "em" else {}
    step = make_step(model, config=TrainingConfig(precision="fp32"), **options)
    losses = [float(step(digits.images / 255, digits.labels)) for _ in range(8)]
    assert losses[-1] < 0.9 * losses[0]


def test_efficient_capsnet_is_as_released() -> None:
    model = EfficientCapsNet()
    sizes = {
        "conv.0": 32 * 25 + 32, "conv.3": 64 * 32 * 9 + 64, "conv.6": 64 * 64 * 9 + 64,
        "conv.9": 128 * 64 * 9 + 128, "conv.2": 2 * 32, "conv.5": 2 * 64, "conv.8": 2 * 64,
        "conv.11": 2 * 128, "primary": 128 * 81 + 128, "digits": 16 * 10 * (8 * 16 + 1),
    }  # fmt: skip
    assert {name: count(model.get_submodule(name)) for name in sizes} == sizes
    assert count(EfficientCapsNet(reconstruct=False)) == sum(sizes.values()) == 161_824
    assert (model.conv[2].eps, model.conv[2].momentum) == (1e-3, 0.01)  # Keras's

    images = torch.rand(2, 1, 28, 28)
    out = model(images, torch.tensor([1, 2]))
    assert out.capsules.shape == (2, 10, 16) and out.reconstruction.shape == images.shape
    assert_close(out.lengths, out.capsules.norm(dim=2))
    assert model.routing_trace(images)[0].c.shape == (2, 16, 10)
    few_children = TrainingConfig.for_model(model, 60_000)
    assert few_children == TrainingConfig()
    assert EfficientCapsNet((3, 27, 29), 5).eval()(torch.rand(1, 3, 27, 29)).lengths.shape == (1, 5)


def test_efficient_capsnet_learns() -> None:
    model = EfficientCapsNet(reconstruct=False)
    config = dataclasses.replace(FP32, epochs=3, batch_size=8)
    records = fit(model, some_digits(32), some_digits(16), config)
    assert records[-1]["loss"] < 0.95 * records[0]["loss"]
    margin = evaluate(model, some_digits(16)).margin
    assert margin == pytest.approx(records[-1]["validation_margin"], rel=1e-3)


@pytest.mark.parametrize("routing", ["em", "uniform"])
def test_the_configuration_names_iterations_where_there_are_some(routing: str) -> None:
    model = RoutedCapsNet(stack=[8], routing=routing, **TINY)
    assert ("routing_iterations" in model.config) == (routing == "em")
    assert RoutedCapsNet(**model.config).config == model.config


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"routing": "none"}, "routing must be one of dynamic, em, self-.*, got none"),
        ({"stack": (4, 0)}, r"stack\[1\] must be a whole number of at least 1, got 0"),
        ({"routing": "shared", "routing_iterations": 7}, "routing shared has no .*, got 7"),
        ({"routing": "em", "learn_prior": True}, "routing em has no learn_prior, got True"),
        ({"routing": "em", "capsule_dim": 6}, "poses must be multiples of 4 numbers, got 8, 6"),
    ],
)
def test_refuses(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        RoutedCapsNet(**{**TINY, **options})


def test_refuses_inputs(refuses: Refuses) -> None:
    em = RoutedCapsNet(routing="em", **TINY)
    with refuses("EM's poses have no activations"):
        em.read_out(torch.rand(1, 10, 16))
    with refuses("at least 27", "got [1, 28, 26]"):
        EfficientCapsNet((1, 28, 26))
    with refuses("reconstruct must be True or False, got 2"):
        EfficientCapsNet(reconstruct=2)  # type: ignore[arg-type]
