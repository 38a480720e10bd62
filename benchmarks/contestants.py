"""What is timed: for each contestant, a function to call on a device."""

import dataclasses
import functools
from collections.abc import Callable, Iterable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks import peers
from capsnet import CapsNet, CapsuleLayer
from capsnet.device import autocast, bfloat16_is_fast, can_compile
from capsnet.fast import FastCapsNet, arrange
from capsnet.fast.convolution import fourier_conv2d
from capsnet.fast.routing import routed_capsules
from capsnet.model import CapsNetOutput
from capsnet.training import TrainingConfig, TrainingLoss, make_optimizer, make_step
from capsnet.training.loss import RECONSTRUCTION_WEIGHT

BATCH = 128
Call = Callable[[], object]
compiles = functools.cache(can_compile)  # a real compilation each time, otherwise


@dataclasses.dataclass(frozen=True)
class Ours:
    """One way to run ``capsnet``."""

    arrangement: str
    precision: str
    compile: bool

    def __str__(self) -> str:
        compiled = ", compiled" if self.compile else ""
        return f"capsnet {self.arrangement}, {self.precision}{compiled}"

    def possible(self, device: torch.device) -> bool:
        fast_enough = self.precision == "fp32" or bfloat16_is_fast(device)
        return fast_enough and (not self.compile or compiles(device))


PUBLISHED = list(peers.PEERS)
# What a reader may ask next: labml's layers, given the same compiler and the same precision.
COMPILED_PEER = "labml, bf16, compiled"
OURS = {
    str(ours): ours
    for ours in (
        Ours("plain", "fp32", False),
        Ours("plain", "bf16", True),
        Ours("fast", "fp32", False),
        Ours("fast", "fp32", True),
        Ours("fast", "bf16", False),
        Ours("fast", "bf16", True),
    )
}
NAMES = [*PUBLISHED, COMPILED_PEER, *OURS]
# A step on the way from plain to fast, for the book.
HALF_WAY = "capsnet Fourier with plain routing, bf16, compiled"


def possible(name: str, device: torch.device) -> bool:
    if name in (COMPILED_PEER, HALF_WAY):
        return bfloat16_is_fast(device) and compiles(device)
    return name not in OURS or OURS[name].possible(device)


def headline(names: Iterable[str], device: torch.device) -> str:
    """Of these, ordered as ``OURS``, what ``capsnet train`` runs there, or the nearest to it."""
    arrangement = "fast" if device.type == "cpu" else "plain"
    return [name for name in names if name in OURS and OURS[name].arrangement == arrangement][-1]


def names(group: str, device: torch.device) -> list[str]:
    """Who takes part in a group, on a device."""
    extra = [HALF_WAY] if group == "training step" else []
    return [name for name in [*NAMES, *extra] if possible(name, device)]


def batch(size: int, device: torch.device) -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    return torch.rand(size, 1, 28, 28, device=device), torch.randint(10, (size,), device=device)


def matrix_product(dtype: torch.dtype, device: torch.device) -> tuple[Call, int]:
    """A large product of matrices, and how many operations it takes: the rate to compare with."""
    n = 2048 if device.type == "cpu" else 8192
    a, b = (torch.randn(n, n, device=device).to(dtype) for _ in range(2))
    return lambda: a @ b, 2 * n**3


def training_step(name: str, device: torch.device, batch_size: int = BATCH) -> Call:
    """Forward, backward and optimiser on one batch."""
    images, labels = batch(batch_size, device)
    if name in OURS:
        config = TrainingConfig(**dataclasses.asdict(OURS[name]))
        step = make_step(CapsNet().to(device), config=config)
        return lambda: step(images, labels)
    if name == HALF_WAY:
        model = CapsNet().to(device)
        loss_module = TrainingLoss(HalfWay(model), RECONSTRUCTION_WEIGHT, "bf16")
        loss_module.compile()
        return step_of(lambda: loss_module(images, labels), make_optimizer(model, TrainingConfig()))

    network: nn.Module = peers.PEERS[name.split(",")[0]]().to(device)
    precision = "bf16" if name == COMPILED_PEER else "fp32"
    if name == COMPILED_PEER:
        network.to(memory_format=torch.channels_last)
        network.compile()
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, fused=name == COMPILED_PEER)

    def loss() -> Tensor:
        with autocast(device, precision):
            total: Tensor = network(images, labels)
        return total

    return step_of(loss, optimizer)


def step_of(loss: Callable[[], Tensor], optimizer: torch.optim.Optimizer) -> Call:
    """The usual step: forward, backward, optimiser."""

    def step() -> None:
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    return step


class HalfWay(nn.Module):
    """The network with the fast convolutions and the plain routing."""

    def __init__(self, model: CapsNet) -> None:
        super().__init__()
        self.model, self.fast = model, FastCapsNet(model)

    def forward(self, images: Tensor, labels: Tensor) -> CapsNetOutput:
        children = self.fast.children_of(images.to(torch.bfloat16))
        return self.model.read_out(self.model.digits(children), labels)


def convolution(
    name: str, dtype: torch.dtype, device: torch.device, batch_size: int = BATCH
) -> Call:
    """The second convolution alone, "direct" or "Fourier", with both of its gradients."""
    torch.manual_seed(0)
    x = torch.rand(batch_size, 256, 20, 20, device=device).to(dtype)
    weight = 0.01 * torch.randn(256, 256, 9, 9, device=device)
    grad = torch.randn(batch_size, 256, 6, 6, device=device).to(dtype)
    if name == "direct":
        x, weight = (t.to(memory_format=torch.channels_last) for t in (x, weight))

    def convolve(x: Tensor, weight: Tensor) -> Tensor:
        if name == "direct":
            return F.conv2d(x, weight.to(dtype), stride=2)
        return fourier_conv2d(x, weight, None, stride=2)

    if compiles(device):
        convolve = torch.compile(convolve)
    x.requires_grad_()
    weight.requires_grad_()

    def call() -> None:
        x.grad = weight.grad = None
        convolve(x, weight).backward(grad)

    return call


def evaluation(name: str, device: torch.device, batch_size: int = BATCH) -> Call:
    """Lengths and reconstructions of one batch, without gradients."""
    images, _ = batch(batch_size, device)
    precision = "fp32"
    if name in OURS:
        ours = OURS[name]
        precision = ours.precision
        model = CapsNet().to(device).eval()
        run: nn.Module = arrange(model, ours.arrangement)
        if ours.compile:
            run.compile()
        infer: Callable[[Tensor], object] = run
    else:
        network = peers.PEERS[name.split(",")[0]]().to(device).eval()
        infer = network.infer
        if name == COMPILED_PEER:
            network.to(memory_format=torch.channels_last)
            precision = "bf16"
            infer = torch.compile(infer)

    @torch.no_grad()
    def evaluate() -> None:
        with autocast(device, precision):
            infer(images)

    return evaluate


def routed_layer(
    name: str,
    device: torch.device,
    batch_size: int = BATCH,
    children: int = 1152,
    parents: int = 10,
    iterations: int = 3,
    train: bool = True,
) -> Call:
    """Predictions and routing alone, 8 to 16 numbers; with gradients of children and weights."""
    torch.manual_seed(0)
    sizes = peers.Sizes(children, parents)
    u = 0.3 * torch.randn(batch_size, children, sizes.in_dim, device=device)
    grad = torch.randn(batch_size, parents, sizes.out_dim, device=device)
    run: Callable[[Tensor], Tensor]
    precision = "bf16" if name == COMPILED_PEER else "fp32"
    if name in OURS:
        ours = OURS[name]
        precision = ours.precision
        layer = CapsuleLayer(children, sizes.in_dim, parents, sizes.out_dim, iterations).to(device)
        weight = layer.weight
        if ours.arrangement == "fast":
            dtype = torch.bfloat16 if precision == "bf16" else torch.float32

            def run(u: Tensor) -> Tensor:
                return routed_capsules(u.to(dtype), weight, iterations, compile=ours.compile)
        else:
            run = torch.compile(layer) if ours.compile else layer
    else:
        router = peers.ROUTERS[name.split(",")[0]](sizes, iterations).to(device)
        weight = router.get_parameter("weight")
        run = torch.compile(router) if name == COMPILED_PEER else router

    def call() -> None:
        if not train:
            with torch.no_grad(), autocast(device, precision):
                run(u)
            return
        weight.grad = None
        children = u.clone().requires_grad_()
        with autocast(device, precision):
            v = run(children)
        v.backward(grad.to(v.dtype))

    return call
