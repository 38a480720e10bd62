"""Our network and its loss, with some of their parts replaced."""

import functools
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from capsnet.device import autocast
from capsnet.functional import RoutingStep, margin_loss, reconstruction_loss
from capsnet.layers import CapsuleLayer
from capsnet.model import CapsNet, CapsNetOutput
from capsnet.training.loss import TrainingLoss
from capsnet_lab.wild.deviations import combine
from capsnet_lab.wild.fast import FastWildCapsNet
from capsnet_lab.wild.parts import RELEASED_BIAS, Conv2d, same, valid


class WildCapsNet(CapsNet):
    """:class:`CapsNet` with deviations; without any, the same bits.

    Args:
        image_shape: as of :class:`CapsNet`.
        num_classes: likewise.
        deviations: their names, of :data:`DEVIATIONS`.
        options: the others of :class:`CapsNet`; a deviation's own go first.

    Attributes:
        config: the arguments above, as a dict that makes the same network again.
        parts: what the network and its loss are made of.

    Raises:
        ValueError: as of :class:`CapsNet`; a deviation is not known or named twice, or two replace
            the same part.
    """

    fast_arrangement = FastWildCapsNet

    def __init__(
        self,
        image_shape: Sequence[int] = (1, 28, 28),
        num_classes: int = 10,
        *,
        deviations: Sequence[str] = (),
        **options: Any,
    ) -> None:
        parts = combine(deviations)
        for name in ("routing_iterations", "learn_prior", "hidden"):
            if (value := getattr(parts, name)) is not None:
                options[name] = value
        super().__init__(image_shape, num_classes, **options)
        self.config["deviations"] = list(deviations)
        self.parts = parts
        digits, types = self.digits, self.config["capsule_types"]
        if parts.same_padding:
            positions = -(image_shape[1] // -2) * -(image_shape[2] // -2)
            self.primary_capsules = types * positions
            _, out_capsules, in_dim, out_dim = digits.weight.shape
            routing = digits.routing_iterations, digits.prior is not None
            shape = self.primary_capsules, in_dim, out_capsules, out_dim
            self.digits = digits = CapsuleLayer(*shape, *routing)
        if parts.shared_w:
            digits.weight = nn.Parameter(digits.weight.detach()[:types].clone())
        self.bias: nn.Parameter | None = None
        if parts.bias:
            self.bias = nn.Parameter(torch.full(digits.weight.shape[1::2], RELEASED_BIAS))
        if parts.start_w is not None:
            parts.start_w(digits.weight)
        if parts.start is not None:
            parts.start(self)

    def encode(self, images: Tensor, trace: list[RoutingStep] | None = None) -> Tensor:
        self.check_images(images)
        return self.route(self.predict(self.children_of(images)), trace)

    def children_of(self, images: Tensor) -> Tensor:
        """Images → primary capsules, [batch, in_capsules, in_dim]."""
        pad = same if self.parts.same_padding else valid
        features = F.relu(self.conv(pad(self.parts.prepare(images), self.conv)))
        return self.group(functools.partial(F.conv2d, pad(features, self.primary.conv)))

    def group(self, conv2d: Conv2d) -> Tensor:
        """The second convolution, of what the first one gives → primary capsules."""
        parts = self.parts
        maps = parts.maps(self.primary, parts.share, conv2d)
        children = parts.group(maps, self.primary.capsule_dim)
        return self.squash(children, parts.primary_axis)

    def predict(self, u: Tensor) -> Tensor:
        """û_{j|i}, as :meth:`CapsuleLayer.predict`."""
        if not self.parts.shared_w:
            return self.digits.predict(u)
        weight = self.digits.weight  # [types, out_capsules, in_dim, out_dim]
        u = u.unflatten(1, (len(weight), -1))
        return torch.einsum("ntpk,tjkd->ntpjd", u, weight).flatten(1, 2)

    def squash(self, s: Tensor, axis: int) -> Tensor:
        """Squash capsules [batch, capsules, dim]; axis 3 makes each number a capsule of its own."""
        if axis < s.dim():
            return self.parts.squash(s, axis)
        return self.parts.squash(s.unsqueeze(axis), axis).squeeze(axis)

    def route(self, u_hat: Tensor, trace: list[RoutingStep] | None = None) -> Tensor:
        """:func:`dynamic_routing`, as the deviations have it; shapes as there."""
        parts, learned = self.parts, self.digits.prior
        seen = u_hat.detach() if parts.stop_gradient else u_hat
        prior = u_hat.new_zeros(u_hat.shape[1:3]) if learned is None else learned
        b = prior.to(torch.promote_types(prior.dtype, torch.float32)).repeat(u_hat.shape[0], 1, 1)
        for left in reversed(range(self.digits.routing_iterations + parts.extra_iterations)):
            c = parts.share(b)
            s = torch.einsum("nij,nijd->njd", c.to(u_hat.dtype), seen if left else u_hat)
            if self.bias is not None:
                s = s + self.bias
            v = self.squash(s, parts.digits_axis)
            if trace is not None:
                trace.append(RoutingStep(b, c, s, v))
            if left:
                agreed = torch.einsum("nijd,njd->nij", seen, v)
                b = b + (agreed.mean(dim=0, keepdim=True) if parts.batch_logits else agreed)
        return v

    def read_out(self, capsules: Tensor, labels: Tensor | None = None) -> CapsNetOutput:
        lengths = torch.linalg.vector_norm(capsules, dim=2)
        out = super().read_out(capsules, self.parts.mask(lengths, labels))
        return out._replace(lengths=self.parts.lengths(out.lengths))


class WildLoss(TrainingLoss):
    """What :class:`TrainingLoss` is for ours, with the parts of a :class:`WildCapsNet`.

    Args:
        model: the network, in an arrangement.
        args: as of :class:`TrainingLoss`, but eq. 4 is the network's own margin loss.
        options: likewise.

    Raises:
        ValueError: the model is no :class:`WildCapsNet`.
    """

    def __init__(self, model: nn.Module, *args: Any, **options: Any) -> None:
        wild = model.model if isinstance(model, FastWildCapsNet) else model
        if not isinstance(wild, WildCapsNet):
            raise ValueError(f"expected a WildCapsNet, got {type(wild).__name__}")
        super().__init__(model, *args, **options)
        self.parts = wild.parts
        if self.criterion is margin_loss:
            self.criterion = wild.parts.margin

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        """The network's loss, a scalar."""
        parts = self.parts
        with autocast(images.device, self.precision):
            out: CapsNetOutput = self.model(images, labels)
        loss = parts.margin_weight * self.criterion(out.lengths, labels)
        if parts.mean_over_classes:
            loss = loss / out.lengths.shape[1]
        if out.reconstruction is None:
            return loss
        target = parts.prepare(images)
        drawn = reconstruction_loss(out.reconstruction.to(target.dtype), target)
        if parts.mean_over_pixels:
            drawn = drawn / target[0].numel()
        return loss + self.reconstruction_weight * drawn
