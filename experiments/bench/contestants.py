"""What is timed: for each contestant, a function to call on a device."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from capsnet import CapsNet, CapsuleLayer
from capsnet.device import autocast, bfloat16_is_fast, can_compile
from capsnet.fast import FastCapsNet
from capsnet.fast.convolution import fast_conv2d
from capsnet.fast.routing import routed_capsules
from capsnet.model import CapsNetOutput
from capsnet.training import TrainingConfig, TrainingLoss, make_step
from experiments.bench import peers

BATCH = 128
DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}
# Of the second convolution: points are for float32.
CONVOLUTIONS = {"bf16": ("direct", "Fourier"), "fp32": ("direct", "Fourier", "points")}
Call = Callable[[], object]
compiles = functools.cache(can_compile)  # a real compilation each time, otherwise


@dataclasses.dataclass(frozen=True)
class Contestant:
    """A network, and how it is run."""

    network: str  # "plain" or "fast", ours; or one of the peers
    precision: str = "fp32"
    compile: bool = False

    @property
    def ours(self) -> bool:
        return self.network not in peers.PEERS

    def __str__(self) -> str:
        name = f"capsnet {self.network}, {self.precision}" if self.ours else self.network
        # The peers run as published; one that does not says so.
        name += ", bf16" if not self.ours and self.precision == "bf16" else ""
        return name + ", compiled" * self.compile

    def can_run(self, device: torch.device) -> bool:
        fast_enough = self.precision == "fp32" or bfloat16_is_fast(device)
        return fast_enough and (not self.compile or compiles(device))

    def make(self) -> Any:
        """The network, for MNIST."""
        return CapsNet() if self.ours else peers.PEERS[self.network]()


# A step on the way from plain to fast, for the book: its training step alone.
HALF_WAY = Contestant("Fourier with plain routing", "bf16", True)
CONTESTANTS = {
    str(contestant): contestant
    for contestant in (
        *(Contestant(name) for name in peers.PEERS),
        # What a reader may ask next: labml's layers with our compiler and our precision.
        Contestant("labml", "bf16", True),
        Contestant("plain"),
        Contestant("plain", "bf16", True),
        Contestant("fast"),
        Contestant("fast", compile=True),
        Contestant("fast", "bf16"),
        Contestant("fast", "bf16", True),
        HALF_WAY,
    )
}


def contestants(group: str, device: torch.device) -> list[Contestant]:
    """Who takes part in a group, on a device."""
    return [
        contestant
        for contestant in CONTESTANTS.values()
        if contestant.can_run(device) and (contestant != HALF_WAY or group == "training step")
    ]


def batch(size: int, device: torch.device) -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    return torch.rand(size, 1, 28, 28, device=device), torch.randint(10, (size,), device=device)


def matrix_product(dtype: torch.dtype, device: torch.device) -> Call:
    """A large matrix product, for comparison."""
    n = 2048 if device.type == "cpu" else 8192
    a, b = (torch.randn(n, n, device=device).to(dtype) for _ in range(2))
    return lambda: a @ b


def forward_and_backward(
    contestant: Contestant, device: torch.device, batch_size: int = BATCH
) -> tuple[Call, nn.Module]:
    """Loss and gradients on one batch, as published or plain, and the network."""
    images, labels = batch(batch_size, device)
    network = contestant.make().to(device)
    loss = TrainingLoss(network) if contestant.ours else network
    if contestant.compile:
        loss.to(memory_format=torch.channels_last)
        loss.compile()

    def call() -> None:
        network.zero_grad()
        with autocast(device, contestant.precision):
            total = loss(images, labels)
        total.backward()

    return call, network


def training_step(
    contestant: Contestant, device: torch.device, batch_size: int = BATCH, captured: bool = False
) -> Call:
    """Forward, backward and optimiser on one batch; of ours also as a CUDA graph."""
    if contestant.ours:
        half_way = contestant == HALF_WAY
        config = TrainingConfig(
            arrangement="plain" if half_way else contestant.network,
            compile=contestant.compile,
            precision=contestant.precision,
        )
        make_loss = half_way_loss if half_way else TrainingLoss
        step = make_step(contestant.make().to(device), config=config, make_loss=make_loss)
        if captured:
            step.capture()
        return functools.partial(step, *batch(batch_size, device))
    call, network = forward_and_backward(contestant, device, batch_size)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, fused=contestant.compile)

    def step_of_peer() -> None:
        call()
        optimizer.step()

    return step_of_peer


class HalfWay(nn.Module):
    """The network with the fast convolutions and the plain routing."""

    def __init__(self, model: CapsNet) -> None:
        super().__init__()
        self.model, self.fast = model, FastCapsNet(model)

    def forward(self, images: Tensor, labels: Tensor) -> CapsNetOutput:
        children = self.fast.primary_capsules(images.to(torch.bfloat16))
        return self.model.read_out(self.model.digits(children), labels)


def half_way_loss(model: CapsNet, *options: Any) -> TrainingLoss:
    return TrainingLoss(HalfWay(model), *options)


def convolution(name: str, dtype: torch.dtype, device: torch.device) -> Call:
    """The second convolution alone, one of :data:`CONVOLUTIONS`, with both of its gradients."""
    torch.manual_seed(0)
    x = torch.rand(BATCH, 256, 20, 20, device=device).to(dtype)
    weight = 0.01 * torch.randn(256, 256, 9, 9, device=device)
    grad = torch.randn(BATCH, 256, 6, 6, device=device).to(dtype)
    if name == "direct":
        x, weight = (t.to(memory_format=torch.channels_last) for t in (x, weight))

    def convolve(x: Tensor, weight: Tensor) -> Tensor:
        if name == "direct":
            return F.conv2d(x, weight.to(dtype), stride=2)
        return fast_conv2d(x, weight, None, stride=2, toom_cook=name == "points")

    if compiles(device):
        convolve = torch.compile(convolve)
    x.requires_grad_()
    weight.requires_grad_()

    def call() -> None:
        x.grad = weight.grad = None
        convolve(x, weight).backward(grad)

    return call


def routed_layer(
    contestant: Contestant, device: torch.device, batch_size: int = BATCH, iterations: int = 3
) -> Call:
    """Predictions and routing alone, with gradients of children and weights."""
    torch.manual_seed(0)
    sizes = peers.PAPER
    u = 0.3 * torch.randn(batch_size, sizes.in_capsules, sizes.in_dim, device=device)
    grad = torch.randn(batch_size, sizes.out_capsules, sizes.out_dim, device=device)
    layer: Any
    if contestant.ours:
        shape = sizes.in_capsules, sizes.in_dim, sizes.out_capsules, sizes.out_dim
        layer = CapsuleLayer(*shape, iterations).to(device)
    else:
        layer = peers.PEERS[contestant.network].router(sizes, iterations).to(device)
    weight, run = layer.weight, layer
    if contestant.network == "fast":
        dtype = DTYPES[contestant.precision]

        def run(u: Tensor) -> Tensor:
            return routed_capsules(u.to(dtype), weight, iterations, compile=contestant.compile)
    elif contestant.compile:
        run = torch.compile(layer)

    def call() -> None:
        weight.grad = None
        with autocast(device, contestant.precision):
            v = run(u.clone().requires_grad_())
        v.backward(grad.to(v.dtype))

    return call


GROUPS = {"training step": training_step, "routed layer": routed_layer}
