"""The layers: contracts with ``reference.py``, derivatives, masks, stacking, bad input."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.autograd import gradcheck
from torch.func import functional_call, jacrev, vmap
from torch.testing import assert_close

from capsnet import CapsuleLayer, Decoder, PrimaryCapsules
from capsnet.functional import RoutingStep, dynamic_routing
from capsnet.layers import channels_to_capsules
from helpers import Refuses, reference

F64 = torch.float64
PRECISION = [(torch.float64, 1e-10), (torch.float32, 1e-5)]

small = st.integers(1, 4)


def array(tensor: Tensor | None) -> reference.Array:
    assert tensor is not None
    return tensor.detach().to(F64).numpy()


def stacked(images: list[reference.Array], dtype: torch.dtype = F64) -> Tensor:
    return torch.tensor(np.stack(images)).to(dtype)


@pytest.mark.equation(1)
@pytest.mark.parametrize(("dtype", "rtol"), PRECISION)
@pytest.mark.parametrize(("height", "width"), [(7, 7), (8, 11), (3, 3)])
@pytest.mark.parametrize("stride", [1, 2])
def test_primary_capsules_are_channels_grouped_by_type_row_column(
    dtype: torch.dtype, rtol: float, height: int, width: int, stride: int, device: torch.device
) -> None:
    layer = PrimaryCapsules(2, capsule_types=3, capsule_dim=4, kernel_size=3, stride=stride)
    layer.to(dtype)
    features = torch.rand(2, 2, height, width, dtype=F64).to(dtype)
    expected = []
    for image in features:
        maps = reference.convolution(
            array(image), array(layer.conv.weight), array(layer.conv.bias), stride
        )
        expected.append(reference.primary_capsules(maps, 4))
    capsules = layer.to(device)(features.to(device)).cpu()
    rows, columns = (height - 3) // stride + 1, (width - 3) // stride + 1
    assert capsules.shape == (2, 3 * rows * columns, 4)
    assert_close(capsules, stacked(expected, dtype), rtol=rtol, atol=rtol * 0.1)


def test_primary_capsules_are_the_papers_unless_told() -> None:
    layer = PrimaryCapsules(256)
    assert layer.conv.weight.shape == (32 * 8, 256, 9, 9)
    assert layer.conv.bias is not None and layer.conv.bias.shape == (256,)
    assert layer.conv.stride == (2, 2) and layer.conv.padding == (0, 0)
    assert layer(torch.rand(1, 256, 20, 20)).shape == (1, 1152, 8)


def test_primary_capsules_have_the_size_that_is_asked_for() -> None:
    layer = PrimaryCapsules(3, 5, 7, 2, 3)
    assert layer.conv.weight.shape == (35, 3, 2, 2)
    assert layer.conv.stride == (3, 3)
    assert layer(torch.rand(4, 3, 8, 5)).shape == (4, 5 * 3 * 2, 7)


def test_primary_capsules_gradcheck() -> None:
    layer = PrimaryCapsules(2, 2, 3, kernel_size=2).to(F64)
    features = torch.rand(2, 2, 4, 4, dtype=F64, requires_grad=True)
    parameters = tuple(parameter.detach().requires_grad_() for parameter in layer.parameters())

    def forward(features: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return functional_call(layer, {"conv.weight": weight, "conv.bias": bias}, features)

    assert gradcheck(forward, (features, *parameters))
    zero = tuple(torch.zeros_like(parameter, requires_grad=True) for parameter in parameters)
    assert gradcheck(forward, (features, *zero), atol=1e-5)


@pytest.mark.parametrize("shape", [[1, 3, 9, 9], [1, 1, 9, 9], [1, 2, 8, 9], [1, 2, 9, 8]])
def test_primary_capsules_refuse_other_features(refuses: Refuses, shape: list[int]) -> None:
    layer = PrimaryCapsules(2, 1, 2)
    assert layer(torch.rand(1, 2, 9, 9)).shape == (1, 1, 2)
    with refuses("[batch, 2, height, width]", "at least 9 × 9", f"got shape {shape}"):
        layer(torch.rand(shape))


@pytest.mark.parametrize("shape", [[2, 9, 9], [1, 1, 2, 9, 9], [1, 2, 81], []])
def test_primary_capsules_refuse_other_than_four_dimensions(
    refuses: Refuses, shape: list[int]
) -> None:
    with refuses("[batch, 2, height, width]", f"got shape {shape}"):
        PrimaryCapsules(2, 1, 2)(torch.rand(shape))


@pytest.mark.parametrize("dim", [1, 2, 8])
def test_a_capsule_is_neighbouring_channels(dim: int) -> None:
    capsules = channels_to_capsules(torch.arange(16).view(2, 8, 1, 1), dim)
    assert torch.equal(capsules, torch.arange(16).view(2, 8 // dim, dim))


@pytest.mark.parametrize(
    ("shape", "dim"),
    [
        ([2, 8, 3, 3], 5),
        ([2, 8, 3, 3], 16),
        ([2, 8, 3, 3], 0),
        ([2, 8, 3, 3], -4),
        ([8, 3, 3], 4),
        ([2, 8, 9], 4),
        ([1, 8, 2, 3, 3], 4),
    ],
)
def test_channels_that_make_no_whole_capsules(refuses: Refuses, shape: list[int], dim: int) -> None:
    expected = f"maps must be [batch, a multiple of capsule_dim = {dim}, height, width]"
    with refuses(f"{expected}, got shape {shape}"):
        channels_to_capsules(torch.rand(shape), dim)


@pytest.mark.equation(2)
@pytest.mark.parametrize(("dtype", "rtol"), PRECISION)
def test_eq2_predictions_are_w_times_u(
    dtype: torch.dtype, rtol: float, device: torch.device
) -> None:
    layer = CapsuleLayer(5, 4, 3, 2).to(dtype)
    u = torch.randn(2, 5, 4, dtype=F64).to(dtype)
    expected = [reference.predictions(array(layer.weight), array(image)) for image in u]
    u_hat = layer.to(device).predict(u.to(device)).cpu()
    assert u_hat.shape == (2, 5, 3, 2)
    assert_close(u_hat, stacked(expected, dtype), rtol=rtol, atol=rtol * 0.1)


@pytest.mark.equation(2)
@pytest.mark.equation("procedure 1")
@pytest.mark.parametrize(("dtype", "rtol"), PRECISION)
@pytest.mark.parametrize("learn_prior", [False, True])
@pytest.mark.parametrize("iterations", [1, 2, 3])
def test_capsule_layer_routes_by_procedure_1(
    dtype: torch.dtype, rtol: float, learn_prior: bool, iterations: int, device: torch.device
) -> None:
    layer = CapsuleLayer(5, 4, 3, 2, iterations, learn_prior).to(dtype)
    prior = None
    if layer.prior is not None:
        nn.init.normal_(layer.prior)
        prior = array(layer.prior)
    u = torch.randn(2, 5, 4, dtype=F64).to(dtype) * 10
    expected = [
        reference.procedure_1(
            reference.predictions(array(layer.weight), array(image)), iterations, prior
        )[-1].v
        for image in u
    ]
    v = layer.to(device)(u.to(device)).cpu()
    assert v.shape == (2, 3, 2) and v.dtype == dtype
    assert_close(v, stacked(expected, dtype), rtol=10 * rtol, atol=rtol)


def test_capsule_layer_has_three_iterations_and_no_prior_unless_told() -> None:
    layer = CapsuleLayer(5, 4, 3, 2)
    assert layer.routing_iterations == 3
    assert layer.prior is None
    assert [name for name, _ in layer.named_parameters()] == ["weight"]
    assert CapsuleLayer(5, 4, 3, 2, 1).routing_iterations == 1


def test_capsule_layer_learns_a_prior_that_starts_at_zero() -> None:
    layer = CapsuleLayer(5, 4, 3, 2, learn_prior=True)
    assert [name for name, _ in layer.named_parameters()] == ["weight", "prior"]
    assert layer.prior is not None
    assert_close(layer.prior.detach(), torch.zeros(5, 3), rtol=0, atol=0)
    layer(torch.randn(2, 5, 4) * 10).square().sum().backward()
    assert layer.prior.grad is not None and layer.prior.grad.abs().max() > 1e-4


def test_capsule_layer_draws_its_weight_from_a_truncated_normal() -> None:
    """σ = 0.1 cut at 2 σ: the standard deviation of what is left is 0.08796."""
    weight = CapsuleLayer(40, 10, 10, 10).weight.detach()
    assert weight.shape == (40, 10, 10, 10)
    assert float(weight.abs().max()) <= 0.2
    assert float(weight.min()) < -0.19 and float(weight.max()) > 0.19
    assert float(weight.mean()) == pytest.approx(0, abs=0.002)
    assert float(weight.std()) == pytest.approx(0.08796, abs=0.001)


def test_reset_parameters_draws_anew() -> None:
    layer = CapsuleLayer(5, 4, 3, 2, learn_prior=True)
    assert layer.prior is not None
    nn.init.ones_(layer.prior)
    before = layer.weight.detach().clone()
    layer.reset_parameters()
    assert (layer.weight != before).all()
    assert (layer.prior == 0).all()


@pytest.mark.parametrize("iterations", [1, 3])
@pytest.mark.parametrize("zero", [False, True])
def test_capsule_layer_gradcheck(iterations: int, zero: bool) -> None:
    layer = CapsuleLayer(3, 2, 2, 3, iterations, learn_prior=True)
    u = torch.zeros(2, 3, 2, dtype=F64) if zero else torch.randn(2, 3, 2, dtype=F64)
    weight, prior = torch.randn(3, 2, 2, 3, dtype=F64), torch.randn(3, 2, dtype=F64)

    def forward(u: Tensor, weight: Tensor, prior: Tensor) -> Tensor:
        return functional_call(layer, {"weight": weight, "prior": prior}, u)

    assert gradcheck(forward, [x.requires_grad_() for x in (u, weight, prior)], atol=1e-5)


def test_capsule_layer_passes_a_trace_on() -> None:
    layer = CapsuleLayer(5, 4, 3, 2, 2, learn_prior=True).to(F64)
    assert layer.prior is not None
    nn.init.normal_(layer.prior)
    u = torch.randn(2, 5, 4, dtype=F64)
    trace: list[RoutingStep] = []
    expected: list[RoutingStep] = []
    v = layer(u, trace)
    assert_close(v, layer(u), rtol=0, atol=0)
    dynamic_routing(layer.predict(u), 2, layer.prior, expected)
    assert len(trace) == 2
    for step, expected_step in zip(trace, expected, strict=True):
        assert_close(tuple(step), tuple(expected_step))
    assert_close(trace[0].logits.expand(2, 5, 3), layer.prior.expand(2, 5, 3), rtol=0, atol=0)


@given(seed=st.integers(0, 2**32 - 1), shape=st.tuples(small, small, small, small, small))
def test_an_images_capsules_do_not_depend_on_its_batch(
    seed: int, shape: tuple[int, int, int, int, int]
) -> None:
    torch.manual_seed(seed)
    batch, children, in_dim, parents, out_dim = shape
    layer = CapsuleLayer(children, in_dim, parents, out_dim).to(F64)
    u = torch.randn(batch, children, in_dim, dtype=F64) * 10
    alone = torch.cat([layer(image) for image in u.split(1)])
    assert_close(layer(u), alone, rtol=1e-11, atol=1e-13)


def test_capsule_layers_stack() -> None:
    """Parents of one layer are children of the next, and gradients reach the first."""
    first, second = CapsuleLayer(6, 4, 5, 3), CapsuleLayer(5, 3, 2, 7, 2)
    nn.init.normal_(first.weight)
    nn.init.normal_(second.weight)
    v = nn.Sequential(first, second)(torch.randn(3, 6, 4))
    assert v.shape == (3, 2, 7)
    assert (v.norm(dim=2) < 1).all()
    v.square().sum().backward()
    assert first.weight.grad is not None and (first.weight.grad != 0).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_layers_in_half_precision_are_close(dtype: torch.dtype, device: torch.device) -> None:
    network = nn.Sequential(PrimaryCapsules(2, 4, 4, 3), CapsuleLayer(36, 4, 3, 8))
    network.to(device, dtype)
    features = torch.rand(2, 2, 7, 7).to(device, dtype)
    v = network(features)
    v.float().norm(dim=2).sum().backward()
    gradients = [parameter.grad for parameter in network.parameters()]
    assert v.dtype == dtype
    for gradient in gradients:
        assert gradient is not None and gradient.isfinite().all()
    expected = network.to(F64)(features.to(F64))
    tolerance = 32 * torch.finfo(dtype).eps
    assert_close(
        v.to(F64), expected, rtol=tolerance, atol=tolerance * float(expected.detach().abs().max())
    )


@pytest.mark.parametrize("shape", [[2, 5, 3], [2, 4, 4], [2, 4, 5], [5, 4], [2, 5, 4, 1], [2, 20]])
def test_capsule_layer_refuses_children_of_another_shape(
    refuses: Refuses, shape: list[int]
) -> None:
    layer = CapsuleLayer(5, 4, 3, 2)
    for call in (layer, layer.predict):
        with refuses("capsules must be [batch, 5, 4]", f"got shape {shape}"):
            call(torch.rand(shape))


@pytest.mark.parametrize("iterations", [0, -1])
def test_capsule_layer_refuses_less_than_one_iteration(refuses: Refuses, iterations: int) -> None:
    with refuses("routing_iterations must be at least 1", f"got {iterations}"):
        CapsuleLayer(5, 4, 3, 2, iterations)


@pytest.mark.parametrize(("dtype", "rtol"), PRECISION)
@pytest.mark.parametrize("image_shape", [(1, 3, 4), [3, 2, 2]])
def test_decoder_is_the_papers(
    dtype: torch.dtype, rtol: float, image_shape: tuple[int, int, int], device: torch.device
) -> None:
    decoder = Decoder(3, 4, image_shape, hidden=(5, 6)).to(dtype)
    capsules, classes = torch.randn(4, 3, 4, dtype=F64).to(dtype), torch.tensor([0, 2, 1, 2])
    layers = [
        (array(layer.weight), array(layer.bias))
        for layer in (decoder.fc1, decoder.fc2, decoder.fc3)
    ]
    expected = [
        reference.decoder(array(image), int(k), layers, tuple(image_shape))
        for image, k in zip(capsules, classes, strict=True)
    ]
    reconstruction = decoder.to(device)(capsules.to(device), classes.to(device)).cpu()
    assert reconstruction.shape == (4, *image_shape)
    assert_close(reconstruction, stacked(expected, dtype), rtol=rtol, atol=rtol)


def test_decoder_has_the_papers_layers_unless_told() -> None:
    decoder = Decoder(10, 16, (1, 28, 28))
    sizes = [tuple(parameter.shape) for parameter in decoder.parameters()]
    assert sizes == [(512, 160), (512,), (1024, 512), (1024,), (784, 1024), (784,)]
    assert sum(parameter.numel() for parameter in decoder.parameters()) == 8_215_568 - 6_804_224


def test_decoder_cuts_at_zero_between_its_layers_and_ends_between_0_and_1() -> None:
    decoder = Decoder(2, 3, (1, 4, 4), hidden=(8, 8))
    for parameter in decoder.parameters():
        nn.init.normal_(parameter, std=20)
    image = decoder(torch.randn(5, 2, 3), torch.zeros(5, dtype=torch.int64))
    assert (image >= 0).all() and (image <= 1).all()
    assert image.min() < 0.01 and image.max() > 0.99
    nn.init.constant_(decoder.fc1.bias, -1e6)
    silent = decoder(torch.randn(5, 2, 3), torch.zeros(5, dtype=torch.int64))
    assert_close(silent, silent[:1].expand(5, -1, -1, -1))  # no hidden unit is on: biases alone


@pytest.mark.parametrize("garbage", [1e30, float("inf"), float("nan")])
def test_decoder_sees_nothing_of_the_other_capsules(garbage: float) -> None:
    decoder = Decoder(3, 4, (1, 2, 2), hidden=(5, 6))
    capsules, classes = torch.randn(2, 3, 4), torch.tensor([2, 0])
    others = torch.ones(2, 3, 1, dtype=torch.bool)
    others[[0, 1], classes] = False
    expected = decoder(capsules, classes)
    spoiled = capsules.masked_fill(others, garbage).requires_grad_()
    reconstruction = decoder(spoiled, classes)
    assert_close(reconstruction, expected, rtol=0, atol=0)

    reconstruction.square().sum().backward()
    assert spoiled.grad is not None
    assert (spoiled.grad.masked_select(others) == 0).all()
    assert (spoiled.grad.masked_select(~others) != 0).any()
    for parameter in decoder.parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.float32])
def test_decoder_takes_a_mask_of_one_or_several_capsules(dtype: torch.dtype) -> None:
    decoder = Decoder(3, 4, (1, 2, 2), hidden=(5, 6))
    capsules, classes = torch.randn(2, 3, 4), torch.tensor([2, 0])
    mask = nn.functional.one_hot(classes, 3).to(dtype)
    assert_close(decoder(capsules, mask), decoder(capsules, classes), rtol=0, atol=0)
    mask[0, 1] = 1
    both = capsules.clone()
    both[0, 0] = 0
    everything = torch.ones(2, 3)
    assert_close(decoder(capsules, mask)[0], decoder(both, everything)[0], rtol=0, atol=0)


def test_decoder_gradcheck() -> None:
    decoder = Decoder(2, 3, (1, 2, 2), hidden=(4, 5)).to(F64)
    capsules = torch.randn(2, 2, 3, dtype=F64, requires_grad=True)
    assert gradcheck(lambda v: decoder(v, torch.tensor([1, 0])), capsules)


@pytest.mark.parametrize("shape", [[2, 3, 5], [2, 4, 4], [2, 4, 3], [2, 12], [2, 3, 4, 1]])
def test_decoder_refuses_capsules_of_another_shape(refuses: Refuses, shape: list[int]) -> None:
    with refuses("capsules must be [batch, 3, 4]", f"got shape {shape}"):
        Decoder(3, 4, (1, 2, 2))(torch.rand(shape), torch.tensor([0, 1]))


def test_decoder_refuses_classes_that_do_not_fit(refuses: Refuses) -> None:
    decoder = Decoder(3, 4, (1, 2, 2), hidden=(5, 6))
    with refuses("0 … 2", "got 3"):
        decoder(torch.rand(2, 3, 4), torch.tensor([0, 3]))
    with refuses("[2]", "[2, 3]", "got shape [3]"):
        decoder(torch.rand(2, 3, 4), torch.tensor([0, 1, 2]))


@pytest.mark.parametrize("hidden", [(1, 6), (5, 1)])
def test_a_hidden_layer_may_have_a_single_unit(hidden: tuple[int, int]) -> None:
    decoder = Decoder(3, 4, (1, 2, 2), hidden)
    assert (decoder.fc1.out_features, decoder.fc2.out_features) == hidden
    assert decoder(torch.rand(2, 3, 4), torch.tensor([0, 2])).shape == (2, 1, 2, 2)


@pytest.mark.parametrize("hidden", [[], [5], [5, 6, 7], [5, 0], [0, 5]])
def test_decoder_refuses_other_than_two_hidden_layers(refuses: Refuses, hidden: list[int]) -> None:
    with refuses("two layers", f"got {hidden}"):
        Decoder(3, 4, (1, 2, 2), hidden)


class Layers(nn.Module):
    """Every layer once, and a capsule layer on a capsule layer."""

    def __init__(self) -> None:
        super().__init__()
        self.primary = PrimaryCapsules(2, 2, 4, kernel_size=3)
        self.middle = CapsuleLayer(18, 4, 5, 3, 2, learn_prior=True)
        self.last = CapsuleLayer(5, 3, 3, 4, 2)
        self.decoder = Decoder(3, 4, (1, 2, 2), hidden=(5, 6))
        nn.init.normal_(self.middle.weight)
        nn.init.normal_(self.last.weight)

    def forward(self, features: Tensor, classes: Tensor) -> tuple[Tensor, Tensor]:
        capsules = self.last(self.middle(self.primary(features)))
        return capsules, self.decoder(capsules, classes)


FEATURES, CLASSES = (3, 2, 7, 7), torch.tensor([0, 2, 1])


def outputs_and_gradients(
    network: nn.Module, call: Callable[..., tuple[Tensor, Tensor]], features: Tensor
) -> list[Tensor]:
    capsules, reconstruction = call(features, CLASSES)
    loss = capsules.float().square().sum() + reconstruction.float().square().sum()
    return [capsules, reconstruction, *torch.autograd.grad(loss, list(network.parameters()))]


def test_vmap_and_jacrev_agree_with_eager() -> None:
    network, features = Layers().to(F64), torch.rand(FEATURES, dtype=F64)

    def one(features: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
        capsules, reconstruction = network(features.unsqueeze(0), label.unsqueeze(0))
        return capsules[0], reconstruction[0]

    assert_close(vmap(one)(features, CLASSES), network(features, CLASSES))
    jacobian = jacrev(lambda x: one(x, CLASSES[0])[0])(features[0])
    expected = torch.autograd.functional.jacobian(lambda x: one(x, CLASSES[0])[0], features[0])
    assert_close(jacobian, expected)


def test_autocast_is_close_to_float32() -> None:
    network, features = Layers(), torch.rand(FEATURES)
    expected = outputs_and_gradients(network, network, features)
    with torch.autocast("cpu", torch.bfloat16):
        got = outputs_and_gradients(network, network, features)
    for value, want in zip(got, expected, strict=True):
        assert value.isfinite().all()
        difference = (value.detach().float() - want.detach()).norm() / want.detach().norm()
        assert float(difference) < 0.05


@pytest.mark.slow
def test_captured_in_one_graph_agrees_with_eager() -> None:
    """What torch.compile captures; ``test_model`` also has it compiled."""
    network, features = Layers(), torch.rand(FEATURES)
    expected = outputs_and_gradients(network, network, features)
    captured = torch.compile(network, fullgraph=True, backend="aot_eager")
    assert_close(outputs_and_gradients(network, captured, features), expected)


@pytest.mark.slow
def test_exported_agrees_with_eager_for_any_batch() -> None:
    network = Layers()
    batch = torch.export.Dim("batch", min=1, max=64)
    shapes = ({0: batch}, {0: batch})
    example = (torch.rand(FEATURES), CLASSES)
    program = torch.export.export(network, example, dynamic_shapes=shapes).module()
    for size in (2, 3, 7):
        batch_of = (torch.rand(size, *FEATURES[1:]), torch.arange(size) % 3)
        assert_close(program(*batch_of), network(*batch_of))
