"""The paper's network: its size, its shapes, its decoder's mask, its routing, what it refuses."""

import inspect
import io
import json
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.autograd import gradcheck
from torch.func import functional_call, grad, vmap
from torch.testing import assert_close

from capsnet import CapsNet, CapsNetOutput
from capsnet.functional import margin_loss, reconstruction_loss
from helpers import Refuses, reference

F64 = torch.float64
SMALL: dict[str, Any] = {
    "image_shape": [1, 19, 19],
    "num_classes": 3,
    "conv_channels": 4,
    "capsule_types": 2,
    "primary_dim": 4,
    "capsule_dim": 5,
    "hidden": [6, 7],
}
LABELS = torch.tensor([0, 2, 1, 1])


def small(**changes: Any) -> CapsNet:
    """A small network whose routing has something to decide."""
    torch.manual_seed(1)
    model = CapsNet(**{**SMALL, **changes})
    nn.init.normal_(model.digits.weight, std=2)
    return model


def pictures(batch: int = 4, shape: Sequence[int] = (1, 19, 19)) -> Tensor:
    return torch.rand(batch, *shape)


def count(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def total_loss(out: Any, images: Tensor, labels: Tensor) -> Tensor:
    """The paper's: eq. 4 and 0.0005 times the sum of squares."""
    reconstruction = out.reconstruction.to(images.dtype)
    return margin_loss(out.lengths, labels) + 0.0005 * reconstruction_loss(reconstruction, images)


def loss(model: Callable[..., Any], images: Tensor, labels: Tensor) -> Tensor:
    return total_loss(model(images, labels), images, labels)


def test_the_papers_parameter_counts() -> None:
    with torch.device("meta"):  # no numbers are drawn
        model = CapsNet()
        assert count(model) == 8_215_568
        assert count(CapsNet(reconstruct=False)) == 6_804_224
        assert count(CapsNet(learn_prior=True)) == 8_215_568 + 1152 * 10
    assert count(model.conv) == 256 * (81 + 1)
    assert count(model.primary) == 256 * (256 * 81 + 1)
    assert count(model.digits) == 1152 * 10 * 8 * 16


def test_the_state_dict_has_stable_names() -> None:
    names = ["conv.weight", "conv.bias", "primary.conv.weight", "primary.conv.bias"]
    names += ["digits.weight"]
    decoder = [f"decoder.fc{n}.{kind}" for n in (1, 2, 3) for kind in ("weight", "bias")]
    assert list(small().state_dict()) == names + decoder
    with_prior = small(learn_prior=True, reconstruct=False).state_dict()
    assert list(with_prior) == [*names, "digits.prior"]


@pytest.mark.equation("procedure 1")
@pytest.mark.parametrize(("dtype", "rtol"), [(torch.float64, 1e-10), (torch.float32, 1e-4)])
@pytest.mark.parametrize("shape", [(1, 19, 19), (2, 17, 21)])
def test_the_whole_network_is_the_papers(
    dtype: torch.dtype, rtol: float, shape: tuple[int, int, int], device: torch.device
) -> None:
    """From pixels to reconstruction, against plain loops."""
    model = small(image_shape=shape, learn_prior=True).to(dtype)
    nn.init.normal_(model.digits.prior)
    images = pictures(2, shape).to(dtype)
    weights = {name: value.to("cpu", F64).numpy() for name, value in model.state_dict().items()}
    out = model.to(device)(images.to(device), torch.tensor([0, 2], device=device))

    decoder = [
        (weights[f"decoder.fc{n}.weight"], weights[f"decoder.fc{n}.bias"]) for n in (1, 2, 3)
    ]
    for n, k in [(0, 0), (1, 2)]:
        maps = reference.convolution(
            images[n].to(F64).numpy(), weights["conv.weight"], weights["conv.bias"]
        )
        maps = reference.convolution(
            np.maximum(maps, 0),
            weights["primary.conv.weight"],
            weights["primary.conv.bias"],
            stride=2,
        )
        u_hat = reference.predictions(weights["digits.weight"], reference.primary_capsules(maps, 4))
        v = reference.procedure_1(u_hat, 3, weights["digits.prior"])[-1].v
        lengths = np.array([reference.length(row) for row in v])
        expected = (v, lengths, reference.decoder(v, k, decoder, shape))
        for got, want in zip(out, expected, strict=True):
            assert_close(got[n].to("cpu", F64), torch.tensor(want), rtol=rtol, atol=rtol)


@pytest.mark.parametrize("shape", [(1, 17, 17), (3, 32, 32), (2, 18, 25), (4, 40, 17)])
@pytest.mark.parametrize("num_classes", [1, 2, 100])
def test_any_image_and_any_number_of_classes(shape: tuple[int, int, int], num_classes: int) -> None:
    model = small(image_shape=shape, num_classes=num_classes)
    out = model(pictures(2, shape))
    rows, columns = ((side - 17) // 2 + 1 for side in shape[1:])
    assert model.digits.weight.shape == (2 * rows * columns, num_classes, 4, 5)
    shapes = [tuple(x.shape) for x in out]
    assert shapes == [(2, num_classes, 5), (2, num_classes), (2, *shape)]
    assert ((out.reconstruction >= 0) & (out.reconstruction <= 1)).all()


SIZES = ["num_classes", "routing_iterations", "conv_channels", "kernel_size"]
SIZES += ["capsule_types", "primary_dim", "capsule_dim"]


def test_arguments_out_of_range_are_refused(refuses: Refuses) -> None:
    for height, width in [(16, 17), (17, 16)]:
        with refuses("at least 17 × 17 pixels", "kernels of 9", f"got {height} × {width}"):
            small(image_shape=(1, height, width))
    with refuses("at least 5 × 5", "kernels of 3", "got 5 × 4"):
        small(image_shape=(1, 5, 4), kernel_size=3)
    with refuses("image_shape must be [channels, height, width], got (28, 28)"):
        small(image_shape=(28, 28))
    for name in SIZES:
        with refuses(f"{name} must be a whole number of at least 1", "got 2.5"):
            small(**{name: 2.5})
    for reconstruct in (True, False):
        for hidden in ((8, 2.5), (8,), 512):
            with refuses("hidden"):
                small(hidden=hidden, reconstruct=reconstruct)
    for name in ("learn_prior", "reconstruct"):
        with refuses(f"{name} must be True or False", "got 'no'"):
            small(**{name: "no"})


@pytest.mark.parametrize("two", [np.int64(2), torch.tensor(2)])
def test_whole_numbers_may_be_numpys_and_torchs(two: Any) -> None:
    """The network's config is written as JSON, which holds Python's alone."""
    sizes = dict.fromkeys(SIZES, two)
    model = small(image_shape=np.array([1, 9, 9]), hidden=np.array([4, 5]), **sizes)
    assert CapsNet(**json.loads(json.dumps(model.config))).config == model.config
    assert type(model.num_primary_capsules) is int


def test_the_config_says_how_often_the_network_routes_now() -> None:
    model = small()
    model.digits.routing_iterations = 5
    assert model.config["routing_iterations"] == 5


def test_capsules_that_are_none_are_not_read_out(refuses: Refuses) -> None:
    for model in (small(), small(reconstruct=False)):
        for shape in ([3, 32], [2, 7, 5], [2, 2, 5], [2, 3, 6], [2, 3, 5, 1]):
            with refuses("capsules must be [batch, 3, 5]", f"got shape {shape}"):
                model.read_out(torch.rand(shape))


def test_without_a_decoder(refuses: Refuses) -> None:
    model, images = small(reconstruct=False), pictures()
    out = model(images, LABELS)
    assert model.decoder is None and out.reconstruction is None
    with warnings.catch_warnings():  # torch.jit.trace is deprecated, and warns of each check
        warnings.simplefilter("ignore")
        with refuses("torch.jit.trace takes no None", "use torch.export"):
            torch.jit.trace(model, images)
    with_decoder = small()
    with_decoder.load_state_dict(model.state_dict(), strict=False)
    assert_close(with_decoder(images).capsules, out.capsules, rtol=0, atol=0)


def test_the_decoder_sees_the_label_in_training_and_else_the_longest_capsule() -> None:
    model, images = small(), pictures()
    assert model.decoder is not None
    unlabelled, labelled = model(images), model(images, LABELS)
    assert_close(unlabelled.capsules, labelled.capsules, rtol=0, atol=0)
    prediction = unlabelled.lengths.argmax(1)
    assert (prediction != LABELS).any()  # or the two masks would not differ
    for out, classes in [(unlabelled, prediction), (labelled, LABELS)]:
        alone = torch.zeros_like(out.capsules)
        alone[range(4), classes] = out.capsules[range(4), classes]
        expected = model.decoder(alone, torch.ones(4, 3))
        assert_close(out.reconstruction, expected)
    assert not torch.allclose(unlabelled.reconstruction, labelled.reconstruction)


@pytest.mark.parametrize("learn_prior", [False, True])
def test_the_loss_has_the_right_gradient_for_every_parameter(learn_prior: bool) -> None:
    model = small(learn_prior=learn_prior).to(F64)
    images = pictures(2).to(F64)
    labels = LABELS[:2]
    names = [name for name, _ in model.named_parameters()]
    values = tuple(value.detach().requires_grad_() for value in model.parameters())

    def total(*values: Tensor) -> Tensor:
        parameters = dict(zip(names, values, strict=True))
        return loss(lambda *x: functional_call(model, parameters, x), images, labels)

    assert gradcheck(total, values, fast_mode=True)
    loss(model, images, labels).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().max() > 0, name


@pytest.mark.parametrize("iterations", [1, 3])
def test_the_routing_trace_is_what_forward_does(iterations: int) -> None:
    model, images = small(learn_prior=True, routing_iterations=iterations), pictures()
    assert model.digits.prior is not None
    nn.init.normal_(model.digits.prior)
    trace, capsules = model.routing_trace(images), model(images).capsules
    assert len(trace) == iterations
    assert_close(trace[-1].v, capsules, rtol=0, atol=0)
    assert capsules.requires_grad and not any(step.v.requires_grad for step in trace)
    before = model.digits.prior.detach().clone()
    nn.init.zeros_(model.digits.prior)  # as a step would change it
    assert_close(trace[0].b, before.expand(len(images), -1, -1))


def test_the_config_is_every_argument() -> None:
    assert CapsNet().config.keys() == inspect.signature(CapsNet).parameters.keys()
    for changes in ({}, {"learn_prior": True, "reconstruct": False}):
        model = small(**changes)
        assert SMALL | changes == {name: model.config[name] for name in SMALL | changes}


def test_a_replica_on_another_gpu_has_tensors_but_no_parameters() -> None:
    model, images = small(), pictures()
    expected = model(images)
    for module in model.modules():  # as nn.parallel.replicate does
        for name in [*module._parameters]:
            object.__setattr__(module, name, module._parameters.pop(name))
    assert_close([*model(images)], [*expected], rtol=0, atol=0)


def test_images_that_do_not_fit_are_refused(refuses: Refuses) -> None:
    model, square = small(), [19, 19]
    shapes = [[1, *square], [4, 361], [4, 3, *square], [4, 1, 1, *square], [4, 1, 20, 19]]
    for call in (model, model.encode, model.routing_trace):
        for shape in (*shapes, [4, 1, 19, 18]):
            with refuses("images must be [batch, 1, 19, 19], ", f"got shape {shape}"):
                call(torch.rand(shape))
    for dtype in (torch.uint8, torch.int64, torch.bool):
        with refuses("images must be floating point", "0 … 1", f"got {dtype}"):
            model(pictures().to(dtype))
    with refuses("images must be torch.float32, as the weights are, got torch.float64"):
        model(pictures().double())
    for network in (model, small(reconstruct=False)):
        with refuses("0 … 2", "got 3"):
            network(pictures(), torch.tensor([0, 1, 2, 3]))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_finite_and_close(dtype: torch.dtype, device: torch.device) -> None:
    model, images, labels = small().to(device, dtype), pictures(), LABELS.to(device)
    images = images.to(device, dtype)
    out = model(images, labels)
    assert out.capsules.dtype == out.reconstruction.dtype == dtype
    assert out.lengths.dtype == torch.float32  # the margins need more than half precision
    loss(model, images, labels).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all(), name
    expected = model.to(F64)(images.to(F64), labels)
    assert expected.lengths.dtype == F64
    tolerance = 32 * torch.finfo(dtype).eps
    assert_close([x.to(F64) for x in out], [*expected], rtol=tolerance, atol=tolerance)


@pytest.mark.slow
@pytest.mark.usefixtures("inductor")
def test_compiled_agrees_with_eager() -> None:
    """Network and losses in one graph, forward and backward."""
    model, images = small(learn_prior=True, routing_iterations=2), pictures()
    parameters = list(model.parameters())

    def step(images: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
        out = model(images, labels)
        return (total_loss(out, images, labels), *out)

    got, want = torch.compile(step, fullgraph=True)(images, LABELS), step(images, LABELS)
    assert_close(got, want, rtol=1e-4, atol=1e-5)
    gradients = torch.autograd.grad(got[0], parameters)
    expected = torch.autograd.grad(want[0], parameters)
    assert_close(gradients, expected, rtol=1e-3, atol=1e-5)


@pytest.mark.slow
def test_exported_agrees_with_eager_for_any_batch() -> None:
    """With the losses; `capsnet export` has tests of the network without labels."""

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = small()

        def forward(self, images: Tensor, labels: Tensor) -> tuple[Tensor, CapsNetOutput]:
            out = self.model(images, labels)
            return total_loss(out, images, labels), out

    def example(size: int) -> tuple[Tensor, Tensor]:
        return pictures(size), torch.arange(size) % 3

    network = Network().eval()
    shapes = ({0: torch.export.Dim("batch", min=1, max=64)},) * 2
    exported = torch.export.export(network, example(4), dynamic_shapes=shapes)
    torch.export.save(exported, file := io.BytesIO())
    exported = torch.export.load(file)  # after a way through a file
    for size in (2, 4, 7):
        given_ = example(size)
        assert_close(exported.module()(*given_), network(*given_))


def test_vmap_and_grad_agree_with_eager() -> None:
    """Per-image gradients, the way torch.func does them."""
    model, images = small().to(F64), pictures().to(F64)
    parameters = {name: value.detach() for name, value in model.named_parameters()}

    def one(parameters: dict[str, Tensor], image: Tensor, label: Tensor) -> Tensor:
        def network(*x: Tensor) -> Any:
            return functional_call(model, parameters, x)

        return loss(network, image.unsqueeze(0), label.unsqueeze(0))

    each = vmap(grad(one), in_dims=(None, 0, 0))(parameters, images, LABELS)
    loss(model, images, LABELS).backward()
    for name, parameter in model.named_parameters():
        assert_close(each[name].mean(0), parameter.grad)
