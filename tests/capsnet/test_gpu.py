"""The network, its training and its evaluation on CUDA, shown on a machine without one."""

import types
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor

from capsnet import CapsNet
from capsnet.data import ImageSet, shifted_batch
from capsnet.fast import arrange, routing
from capsnet.functional import margin_loss, reconstruction_loss
from capsnet.multimnist import overlaid_batch
from capsnet.training import TrainingLoss, make_optimizer, make_step
from capsnet.training.evaluation import predict_batches
from capsnet.training.fit import READ_EVERY, Batches, make_schedule, train_epoch
from capsnet.training.run import Run
from capsnet_book.pairs import PairsLoss
from helpers.tiny import FP32, tiny_model

CUDA = torch.device("cuda", 0)


@pytest.fixture
def fake_cuda(fake_cuda: torch.device, monkeypatch: pytest.MonkeyPatch) -> torch.device:
    """The shared one, as far as autocast and a step need more."""
    monkeypatch.setattr(torch.cuda.amp.common, "amp_definitely_not_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda *_, **__: True)
    # FakeTensorMode cannot exchange a module's tensors for others of another layout.
    monkeypatch.setattr(nn.Conv2d, "to", lambda module, **_: module)
    # Its labels have no values to look at.
    monkeypatch.setattr(ImageSet, "__post_init__", lambda image_set: None)
    if not torch.cuda.is_available():
        # Without a driver autograd's engine refuses the device. What it would run is autograd's
        # own, so gradients of the right shape stand for it here.
        monkeypatch.setattr(Tensor, "backward", lambda loss: None)
        monkeypatch.setattr(torch.optim.Adam, "zero_grad", give_gradients)
    return fake_cuda


def give_gradients(optimizer: torch.optim.Adam) -> None:
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            parameter.grad = torch.zeros_like(parameter)


def model_on_cuda(**changes: Any) -> CapsNet:
    with CUDA:
        return tiny_model(**changes)


def digits_on(device: torch.device) -> ImageSet:
    images = torch.zeros(768, 1, 28, 28, dtype=torch.uint8, device=device)
    labels = torch.zeros(768, dtype=torch.int64, device=device)
    found = ImageSet(images, labels, tuple("0123456789"), "fake")
    # Once for a set, multimnist reads how many classes there are.
    starts = torch.zeros(11, dtype=torch.int64, device=device)
    found.__dict__["by_class"] = (labels, starts, 10)
    return found


@pytest.mark.parametrize("arrangement", ["plain", "fast"])
@pytest.mark.parametrize("bf16", [False, True], ids=["fp32", "bf16, with a prior"])
@pytest.mark.parametrize("gradients", [False, True])
def test_forward_and_losses(
    fake_cuda: torch.device, arrangement: str, bf16: bool, gradients: bool
) -> None:
    network = arrange(model_on_cuda(learn_prior=bf16), arrangement)
    with CUDA:
        images, labels = torch.rand(3, 1, 28, 28), torch.randint(10, (3,))
        mask = torch.rand(3, 10) < 0.3
    with torch.set_grad_enabled(gradients), torch.autocast("cuda", torch.bfloat16, enabled=bf16):
        for targets in (None, labels, mask):
            out = network(images, targets)
            assert [each.device for each in out] == [CUDA] * 3
        for targets in (labels, mask):
            drawn = reconstruction_loss(out.reconstruction.to(images.dtype), images)
            assert (margin_loss(out.lengths, targets) + drawn).device == CUDA


@pytest.mark.parametrize("with_prior", [False, True])
def test_backward_of_the_loops(
    fake_cuda: torch.device, with_prior: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our own formula, without autograd around it."""
    monkeypatch.setattr(torch.func, "vjp", lambda f, x: (f(x), lambda grad: (grad,)))
    with CUDA:
        u, weight = torch.rand(routing.LANES + 1, 6, 3), torch.rand(6, 4, 3, 5)
        prior = torch.rand(6, 4) if with_prior else None
    context = types.SimpleNamespace(needs_input_grad=(True, True, with_prior))
    context.save_for_backward = lambda *tensors: setattr(context, "saved_tensors", tensors)
    v = routing.RoutedCapsules.forward(context, u, weight, prior, 3, routing.squash, False, True)
    with torch.no_grad():
        gradients = routing.RoutedCapsules.backward(context, torch.rand_like(v))
    for gradient, of in zip(gradients, (u, weight, prior), strict=False):
        assert of is None or (gradient.device, gradient.shape) == (CUDA, of.shape)


def test_a_step_without_a_decoder_reads_nothing(fake_cuda: torch.device) -> None:
    step = make_step(model_on_cuda(reconstruct=False), config=FP32)
    images, labels = torch.rand(8, 1, 28, 28, device=CUDA), torch.zeros(8, device=CUDA).long()
    assert step(images, labels).device == CUDA


@pytest.mark.filterwarnings("ignore:Accessing the data pointer of FakeTensor")  # copy.deepcopy's
@pytest.mark.parametrize(
    ("make_batch", "make_loss"), [(shifted_batch, TrainingLoss), (overlaid_batch, PairsLoss)]
)
def test_an_epoch_reads_the_loss_now_and_then_and_nothing_else(
    fake_cuda: torch.device, monkeypatch: pytest.MonkeyPatch, make_batch: Any, make_loss: Any
) -> None:
    reads: list[int] = []

    def tolist(tensor: Tensor) -> list[float]:
        assert tensor.device == CUDA
        reads.append(len(tensor))
        return [0.5] * len(tensor)

    fabric: Any = types.SimpleNamespace(
        device=CUDA, world_size=1, global_rank=0, is_global_zero=True,
        all_reduce=lambda tensor, reduce_op: tensor, backward=lambda loss: loss.backward(),
    )  # fmt: skip
    config, model, digits = FP32, model_on_cuda(), digits_on(CUDA)
    optimizer = make_optimizer(model, config)
    step = make_step(model, optimizer, config, fabric, make_loss=make_loss)
    batches = Batches(digits, config, make_batch, torch.randperm, fabric)
    batches.training = digits  # a copy's classes are counted again
    schedule = make_schedule(optimizer, config, config.epochs * len(batches))
    run = Run(model, optimizer, schedule, config.average, {})
    monkeypatch.setattr(step, "capture", lambda: None)  # which takes a real GPU
    monkeypatch.setattr(FakeTensor, "tolist", tolist)
    record = train_epoch(run, step, batches, None, show=False)
    assert record["step"] == len(batches) == 12
    parameters = len(list(model.parameters()))
    assert reads == [1, READ_EVERY, 12 - READ_EVERY - 1, parameters]


@pytest.mark.parametrize("place", ["cpu", "cuda"])
def test_evaluation_and_prediction_read_nothing(fake_cuda: torch.device, place: str) -> None:
    model, digits = model_on_cuda().eval(), digits_on(torch.device(place))
    lengths, errors = predict_batches(model, digits, 500, "fp32")
    assert lengths.device == errors.device == CUDA
    assert (lengths.shape, errors.shape) == ((768, 10), (2,))
    with torch.no_grad():
        assert model(torch.rand(4, 1, 28, 28, device=CUDA)).reconstruction.device == CUDA
