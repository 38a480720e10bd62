"""Other people's capsule networks, rebuilt from a description of what they compute.

Each is the paper's network with that project's own arrangement of the arithmetic and its own
departures from the paper (stated in its class), so that time and memory can be compared in one
process on one machine. No line of the originals is here, and nothing in ``capsnet`` imports this.

- labml: annotated implementation, https://nn.labml.ai/capsule_networks/
- XifengGuo: https://github.com/XifengGuo/CapsNet-Pytorch
- adambielski: https://github.com/adambielski/CapsNet-pytorch
"""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from capsnet_lab.wild.parts import bare_squash, guarded_squash, squash_beside


class Sizes(NamedTuple):
    """Of a routed layer."""

    in_capsules: int = 1152
    out_capsules: int = 10
    in_dim: int = 8
    out_dim: int = 16


PAPER = Sizes()


under_root, beside_norm = guarded_squash(1e-8), squash_beside(1e-8)


class LabmlRouter(nn.Module):
    """Routing as labml's: softmax over the *children*; einsum throughout; W a unit normal."""

    def __init__(self, sizes: Sizes = PAPER, iterations: int = 3) -> None:
        super().__init__()
        self.iterations = iterations
        in_capsules, out_capsules, in_dim, out_dim = sizes
        self.weight = nn.Parameter(torch.randn(in_capsules, out_capsules, in_dim, out_dim))

    def forward(self, u: Tensor) -> Tensor:
        u_hat = torch.einsum("ijkd,nik->nijd", self.weight, u)
        b = u_hat.new_zeros(u_hat.shape[:3])
        for _ in range(self.iterations):
            c = b.softmax(dim=1)
            v = under_root(torch.einsum("nij,nijd->njd", c, u_hat), -1)
            b = b + torch.einsum("njd,nijd->nij", v, u_hat)
        return v


class XifengGuoRouter(nn.Module):
    """Routing as XifengGuo's: broadcast products of column vectors; no gradient through the
    updates of the logits.
    """

    def __init__(self, sizes: Sizes = PAPER, iterations: int = 3) -> None:
        super().__init__()
        self.iterations = iterations
        in_capsules, out_capsules, in_dim, out_dim = sizes
        self.weight = nn.Parameter(0.01 * torch.randn(out_capsules, in_capsules, out_dim, in_dim))

    def forward(self, u: Tensor) -> Tensor:
        # [out, in, d, k] @ [n, 1, in, k, 1] → [n, out, in, d]
        u_hat = torch.matmul(self.weight, u[:, None, :, :, None]).squeeze(-1)
        constant = u_hat.detach()
        b = u_hat.new_zeros(u_hat.shape[:3])
        for _ in range(self.iterations - 1):
            c = b.softmax(dim=1).unsqueeze(-1)
            v = beside_norm((c * constant).sum(dim=2, keepdim=True), -1)
            b = b + (v * constant).sum(dim=-1)
        c = b.softmax(dim=1).unsqueeze(-1)
        return beside_norm((c * u_hat).sum(dim=2), -1)


class AdambielskiRouter(nn.Module):
    """Routing as adambielski's: a learned prior for all images, one iteration more than asked for,
    and no ε: a vector of zeros gives NaN.
    """

    def __init__(self, sizes: Sizes = PAPER, iterations: int = 3) -> None:
        super().__init__()
        self.iterations = iterations
        in_capsules, out_capsules, in_dim, out_dim = sizes
        self.out_capsules = out_capsules
        bound = 1 / math.sqrt(in_capsules)
        weight = torch.empty(in_capsules, in_dim, out_capsules * out_dim).uniform_(-bound, bound)
        self.weight = nn.Parameter(weight)
        self.prior = nn.Parameter(torch.zeros(in_capsules, out_capsules))

    def forward(self, u: Tensor) -> Tensor:
        # [n, in, 1, k] @ [in, k, out · d] → [n, in, out, d]
        u_hat = torch.matmul(u.unsqueeze(2), self.weight).view(*u.shape[:2], self.out_capsules, -1)
        c = self.prior.softmax(dim=1)
        v = bare_squash((c.unsqueeze(-1) * u_hat).sum(dim=1), -1)
        b = self.prior.expand(len(u), -1, -1)
        for _ in range(self.iterations):
            b = b + (u_hat * v.unsqueeze(1)).sum(dim=-1)
            c = b.softmax(dim=2)
            v = bare_squash((c.unsqueeze(-1) * u_hat).sum(dim=1), -1)
        return v


class PeerNetwork(nn.Module):
    """The network around one of the routers: two convolutions, capsules, and three linear layers.

    A project's departures from the paper are the attributes of its class.
    """

    router: type[nn.Module]
    group: str  # how channels become capsules
    squash = staticmethod(under_root)  # of the primary capsules
    by_label = True  # mask the decoder by the label, in training, instead of the prediction
    power = 2  # of the margins
    mean_over_classes = False
    weight = 0.0005  # of the reconstruction's mean squared error

    def __init__(self) -> None:
        super().__init__()
        self.routed = self.router()
        self.conv = nn.Conv2d(1, 256, 9)
        self.primary = nn.Conv2d(256, 256, 9, stride=2)
        self.decoder = nn.Sequential(
            nn.Linear(PAPER.out_capsules * PAPER.out_dim, 512),
            nn.ReLU(),
            nn.Linear(512, 1024),
            nn.ReLU(),
            nn.Linear(1024, 784),
            nn.Sigmoid(),
        )

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        """Images [n, 1, 28, 28], labels [n] → the loss, a scalar."""
        maps = self.primary(F.relu(self.conv(images)))  # [n, 256, 6, 6]
        if self.group == "types":
            u = maps.unflatten(1, (-1, PAPER.in_dim)).permute(0, 1, 3, 4, 2).flatten(1, 3)
        elif self.group == "dims":
            u = maps.reshape(len(maps), PAPER.in_dim, -1).transpose(1, 2)
        else:
            u = maps.reshape(len(maps), -1, PAPER.in_dim)
        v = self.routed(self.squash(u, -1))  # [n, 10, 16]
        lengths = v.norm(dim=-1)
        chosen = labels if self.by_label else lengths.argmax(dim=1)
        mask = F.one_hot(chosen, PAPER.out_capsules).to(v.dtype)
        reconstruction = self.decoder((v * mask.unsqueeze(-1)).flatten(1))
        target = F.one_hot(labels, PAPER.out_capsules).to(images.dtype)
        too_short, too_long = F.relu(0.9 - lengths), F.relu(lengths - 0.1)
        margins = target * too_short**self.power + 0.5 * (1 - target) * too_long**self.power
        margin = margins.mean() if self.mean_over_classes else margins.sum(dim=1).mean()
        return margin + self.weight * F.mse_loss(reconstruction, images.flatten(1))


class Labml(PeerNetwork):
    router = LabmlRouter
    group = "dims"  # neighbouring channels belong to different capsules
    by_label = False
    power = 1


class XifengGuo(PeerNetwork):
    router = XifengGuoRouter
    group = "space"  # a capsule's components are neighbours in space
    squash = staticmethod(beside_norm)
    weight = 0.0005 * 784


class Adambielski(PeerNetwork):
    router = AdambielskiRouter
    group = "types"  # neighbouring channels belong to one capsule, as in the paper
    squash = staticmethod(bare_squash)
    mean_over_classes = True


PEERS: dict[str, type[PeerNetwork]] = {
    "labml": Labml,
    "XifengGuo": XifengGuo,
    "adambielski": Adambielski,
}
