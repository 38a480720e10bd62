"""The fast arrangement of the whole network: the same numbers as the plain one."""

import copy
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from capsnet import CapsNet, layers
from capsnet.data import ImageSet, load, to_float
from capsnet.fast import FastCapsNet, arrange, fast_capsnet
from capsnet.fast.routing import LANES
from capsnet.functional import margin_loss, reconstruction_loss
from capsnet.training import TrainingLoss
from capsnet_book.breaks import CHANGES, broken
from helpers import Refuses

F64 = torch.float64
SMALL: dict[str, Any] = {
    "conv_channels": 6, "capsule_types": 3, "primary_dim": 4, "capsule_dim": 5, "hidden": (7, 9),
}  # fmt: skip


@pytest.mark.parametrize("labels", [True, False])
@pytest.mark.parametrize(
    "options",
    [
        {"image_shape": (1, 28, 28)},
        {"image_shape": (3, 17, 20), "num_classes": 2, "reconstruct": False},
        {"image_shape": (2, 33, 30), "learn_prior": True, "routing_iterations": 1},
        {"image_shape": (1, 40, 36), "num_classes": 4, "kernel_size": 6, "learn_prior": True},
    ],
)
def test_outputs_and_gradients_are_the_plain_ones(
    options: dict[str, Any], labels: bool, device: torch.device
) -> None:
    model = CapsNet(**(SMALL | options)).to(device, F64)
    images = torch.rand(3, *options["image_shape"], dtype=F64, device=device)
    present = torch.tensor([0, 1, 1], device=device) if labels else None
    outputs, gradients = [], []
    for network in (model, FastCapsNet(model)):
        out = network(images, present)
        loss = margin_loss(out.lengths, torch.tensor([1, 0, 1], device=device))
        if out.reconstruction is not None:
            loss = loss + 0.0005 * reconstruction_loss(out.reconstruction, images)
        outputs.append([part for part in out if part is not None])
        gradients.append(torch.autograd.grad(loss, list(model.parameters())))
    assert_close(outputs[1], outputs[0], rtol=1e-9, atol=1e-12)
    assert_close(gradients[1], gradients[0], rtol=1e-7, atol=1e-12)


@pytest.fixture(scope="module")
def exact() -> tuple[CapsNet, ImageSet, dict[str, Tensor]]:
    """The paper's network, digits for a chunk and a part of one, and gradients in float64."""
    torch.manual_seed(0)
    digits = load("mnist", train=False).subset(slice(LANES + 3))
    model = CapsNet().to(F64)
    TrainingLoss(model, 0.0005, "fp32")(to_float(digits.images).to(F64), digits.labels).backward()
    gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    return model.float(), digits, gradients


@pytest.mark.slow
@pytest.mark.parametrize(
    ("precision", "limit", "compiled"),
    [("fp32", 5e-5, False), ("bf16", 2e-2, False), ("bf16", 2e-2, True)],
)
def test_the_papers_network_on_real_digits_agrees_with_float64(
    exact: tuple[CapsNet, ImageSet, dict[str, Tensor]],
    precision: str,
    limit: float,
    compiled: bool,
    device: torch.device,
    request: pytest.FixtureRequest,
) -> None:
    """Every parameter's gradient, relative to that of the plain network in float64."""
    model, digits, gradients = exact
    model = copy.deepcopy(model).to(device)
    loss = TrainingLoss(arrange(model, "fast"), 0.0005, precision)
    images, labels = to_float(digits.images).to(device), digits.labels.to(device)
    if compiled:
        request.getfixturevalue("inductor")
        loss.model.compile()
    total = loss(images, labels)
    total.backward()
    with torch.no_grad():  # the kernel transformed beforehand
        assert_close(loss(images, labels), total.detach(), rtol=limit, atol=0)
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None
        error = (parameter.grad.cpu().double() - gradients[name]).norm() / gradients[name].norm()
        # In a GPU's decoder the rounding of bf16 turned a unit of ReLU off.
        turned = precision == "bf16" and name.startswith("decoder") and device.type == "cuda"
        most = 5 * limit if turned else limit
        assert error < most, name


def test_points_are_for_gradients_alone() -> None:
    network, images = FastCapsNet(CapsNet()), torch.rand(2, 1, 28, 28)
    wanted = copy.deepcopy(network.model).to(F64)(images.to(F64)).capsules
    for grad, limit in ((True, 5e-5), (False, 1e-6)):
        with torch.set_grad_enabled(grad):
            assert {each.toom_cook for each in network.phases_of(images)} == {grad}
            error = (network(images).capsules - wanted).norm() / wanted.norm()
            assert network.primary_capsules(images.bfloat16()).dtype == torch.bfloat16
        assert error < limit


def test_parameters_are_shared_and_keep_their_names() -> None:
    model = CapsNet(**SMALL)
    arranged = FastCapsNet(model)
    assert {id(p) for p in arranged.parameters()} == {id(p) for p in model.parameters()}
    assert [f"model.{name}" for name in model.state_dict()] == list(arranged.state_dict())


def test_arrangements(refuses: Refuses) -> None:
    model = CapsNet(**SMALL)
    assert arrange(model, "plain") is model
    assert isinstance(arrange(model, "fast"), FastCapsNet)
    assert isinstance(arrange(model), FastCapsNet)  # on a processor
    assert arrange(model.to("meta")) is model  # anywhere else
    with refuses("must have parameters, ReLU has none"):
        arrange(nn.ReLU())
    with refuses("auto, plain, fast", "got quick"):
        arrange(model, "quick")
    with refuses("arrangement fast needs cpu or cuda", "got device meta"):  # as MPS is refused
        arrange(model, "fast")


def changed(change: Callable[[CapsNet], Any], **options: Any) -> CapsNet:
    model = CapsNet(**SMALL, **options)
    change(model)
    return model


def with_conv(layer: str, *size: Any, **options: Any) -> Callable[[CapsNet], None]:
    """Replace a convolution by one with the same channels."""

    def change(model: CapsNet) -> None:
        owner = model.primary if layer == "primary" else model
        old = owner.conv
        owner.conv = nn.Conv2d(old.in_channels, old.out_channels, *size, **options)

    return change


@pytest.mark.parametrize(
    ("layer", "change"),
    [
        ("digits", lambda m: setattr(m, "digits", nn.Sequential(m.digits))),
        ("the whole", lambda m: setattr(m, "encode", lambda x: x)),
        ("digits", lambda m: setattr(m.digits, "predict", lambda x: x)),
        ("conv", lambda m: setattr(m.conv, "forward", lambda x: x)),
        ("primary.conv", lambda m: m.primary.conv.register_forward_hook(lambda *_: None)),
        ("primary", lambda m: m.primary.register_full_backward_hook(lambda *_: None)),
        ("primary.conv", with_conv("primary", 9, 2, groups=2)),
        ("primary.conv", with_conv("primary", (9, 5), 2)),
        ("conv", with_conv("first", 13, padding=2)),
        ("conv", with_conv("first", 9, stride=2)),
        ("primary, a layer", lambda m: setattr(m, "primary", nn.Identity())),
        ("primary.conv", lambda m: setattr(m.primary.conv, "padding", (1, 1))),
        ("conv", lambda m: setattr(m.conv, "dilation", (2, 2))),
    ],
)
def test_a_changed_network_has_no_fast_arrangement(
    layer: str, change: Callable[[CapsNet], Any], refuses: Refuses
) -> None:
    model = changed(change)
    assert arrange(model) is model
    with refuses(f"but {layer} of this network was replaced, changed or hooked into"):
        arrange(model, "fast")


@pytest.mark.parametrize(
    ("owner", "name", "instead"),
    [
        *[(layers, "dynamic_routing", broken(change)) for change in CHANGES if change.test],
        (layers, "dynamic_routing", lambda u_hat, *_: u_hat.view(-1, 1152, 10, 16).mean(1)),
        (layers, "squash", lambda s: s),
        (layers.CapsuleLayer, "forward", lambda layer, u, _: layer.predict(u).mean(1)),
        (layers.PrimaryCapsules, "forward", lambda layer, x: layer.conv(x).view(len(x), -1, 2)),
        (CapsNet, "encode", lambda model, images: model.primary(model.conv(images)) @ torch.eye(2)),
    ],
)
def test_code_that_was_changed_is_run(
    owner: Any, name: str, instead: Any, monkeypatch: pytest.MonkeyPatch, refuses: Refuses
) -> None:
    """As an edited file is: what is trained and evaluated is what one reads."""
    monkeypatch.setattr(owner, name, instead)
    model = CapsNet(**SMALL)
    assert arrange(model) is model
    with refuses("but the code (in capsnet.functional or capsnet.layers) of this network was"):
        arrange(model, "fast")


def test_auto_leaves_alone_other_classes_and_what_is_large(refuses: Refuses) -> None:
    mine = type("Mine", (CapsNet,), {})(**SMALL)
    for model in (mine, CapsNet((1, 65, 28), **SMALL)):
        assert arrange(model) is model
    with refuses("there is no arrangement fast of this Mine"):
        arrange(mine, "fast")
    hooked = CapsNet(**SMALL)
    hooked.conv.register_forward_hook(lambda *_: None).remove()
    assert arrange(hooked) is not hooked


def test_without_gradients_the_kernel_is_transformed_once_for_every_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = CapsNet(**SMALL).to(F64)
    network = FastCapsNet(model)
    images = torch.rand(2, 1, 28, 28, dtype=F64)
    transform = Mock(wraps=fast_capsnet.transform_kernel)
    monkeypatch.setattr(fast_capsnet, "transform_kernel", transform)

    def check(expected: int, context: Callable[[], Any] = torch.no_grad) -> None:
        with context():
            assert_close(network(images).capsules, model(images).capsules, rtol=1e-9, atol=1e-12)
        assert transform.call_count == expected

    kernel = model.primary.conv.weight
    check(1)
    check(1, torch.inference_mode)
    kernel.data[0, 0, 0, 0] += 1  # leaves the tensor's version as it was
    check(2)
    with torch.no_grad():
        kernel[0, 0, 0, 0] += 1
    check(3, torch.inference_mode)
    model.load_state_dict(CapsNet(**SMALL).state_dict())
    check(4)
    check(5, torch.enable_grad)
    check(6, torch.enable_grad)  # with gradients, each time
    with torch.no_grad():
        children = network.primary_capsules(torch.rand(2, 1, 40, 30, dtype=F64))  # another grid
        assert_close(children.shape[1], 3 * 12 * 7)
        assert network.float()(images.float()).capsules.dtype == torch.float32
    model.double()
    check(9)


OK = torch.zeros(2, 1, 28, 28)


@pytest.mark.parametrize("reconstruct", [True, False])
@pytest.mark.parametrize(("weights", "other"), [(torch.float32, F64), (F64, torch.float32)])
def test_bad_input_is_refused_as_by_the_plain_network(
    reconstruct: bool, weights: torch.dtype, other: torch.dtype, refuses: Refuses
) -> None:
    plain = CapsNet(**SMALL, reconstruct=reconstruct).to(weights)
    for images, labels, autocast in (
        (OK[..., :27], None, False),
        (OK.byte(), None, False),
        (OK.to(weights), torch.tensor([1, 10]), False),
        (OK.bfloat16(), None, False),
        (OK.to(other), None, False),
        (OK.to(other), None, True),
        (OK.to(weights), None, None),
    ):
        plain.digits.routing_iterations = 0 if autocast is None else 3
        with torch.autocast("cpu", enabled=bool(autocast)):
            with pytest.raises(ValueError, match="must") as refused:
                plain(images, labels)
            with refuses(refused.value):
                FastCapsNet(plain)(images, labels)


@pytest.mark.parametrize(
    ("weights", "images"),
    [(F64, F64), (torch.float32, torch.bfloat16), (torch.bfloat16, torch.float32)],
)
def test_what_autocast_converts_is_taken(weights: torch.dtype, images: torch.dtype) -> None:
    model = CapsNet(**SMALL).to(weights)
    with torch.autocast("cpu"):
        plain, fast = (network(OK.to(images)) for network in (model, FastCapsNet(model)))
    for one, other in zip(plain, fast, strict=True):
        assert_close(other.double(), one.double(), rtol=0.05, atol=0.02)
    assert fast.capsules.dtype == torch.promote_types(weights, torch.float32)


def test_in_bfloat16_it_is_close(device: torch.device) -> None:
    model = CapsNet(**SMALL).to(device, torch.bfloat16)
    images = torch.rand(2, 1, 28, 28).to(device, torch.bfloat16)
    assert_close(tuple(FastCapsNet(model)(images)), tuple(model(images)), rtol=0.05, atol=0.02)
