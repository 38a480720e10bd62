"""Our network and its loss, with some of their parts replaced."""

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from capsnet.checkpoint import register
from capsnet.checks import check_predictions, class_mask
from capsnet.device import autocast
from capsnet.functional import RoutingStep, margin_loss, reconstruction_loss
from capsnet.layers import check_capsules
from capsnet.model import CapsNet, CapsNetOutput
from capsnet.training.loss import TrainingLoss
from capsnet_lab.wild.deviations import combine
from capsnet_lab.wild.fast_wild_capsnet import FastWildCapsNet
from capsnet_lab.wild.parts import RELEASED_BIAS, Parts, squash_capsules


def route_with(
    parts: Parts,
    u_hat: Tensor,
    iterations: int,
    prior: Tensor | None = None,
    bias: Tensor | None = None,
    trace: list[RoutingStep] | None = None,
) -> Tensor:
    """Procedure 1 with other parts in its loop; arguments and shapes as of
    :func:`capsnet.functional.dynamic_routing`.

    ``bias``, [out_capsules, out_dim], is added to s_j.
    """
    check_predictions("u_hat", u_hat, iterations)
    fixed = u_hat.detach() if parts.stop_gradient else u_hat
    if prior is None:
        prior = u_hat.new_zeros(u_hat.shape[1:3])
    b = prior.to(torch.promote_types(prior.dtype, torch.float32)).repeat(u_hat.shape[0], 1, 1)
    for left in reversed(range(iterations)):
        c = parts.share(b)
        s = torch.einsum("nij,nijd->njd", c.to(u_hat.dtype), fixed if left else u_hat)
        if bias is not None:
            s = s + bias
        v = squash_capsules(s, parts.squash, parts.digits_axis)
        if trace is not None:
            trace.append(RoutingStep(b, c, s, v))
        if left:
            agreement = torch.einsum("nijd,njd->nij", fixed, v)
            b = b + (agreement.mean(dim=0, keepdim=True) if parts.batch_logits else agreement)
    return v


@register
class WildCapsNet(CapsNet):
    """:class:`CapsNet` with deviations; without any, it computes the same bits.

    Args:
        image_shape: as of :class:`CapsNet`.
        num_classes: as of :class:`CapsNet`.
        deviations: names of :data:`DEVIATIONS`.
        options: the others of :class:`CapsNet`; those that a deviation sets are overridden.

    Attributes:
        parts: what the network and its loss are made of.

    Raises:
        ValueError: as of :class:`CapsNet`; a deviation is not known, or two replace the same part.
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
        deviations = list(deviations)
        parts = combine(deviations)
        for name in ("routing_iterations", "learn_prior", "hidden"):
            if (value := getattr(parts, name)) is not None:
                options[name] = value
        super().__init__(image_shape, num_classes, **options)
        self.arguments["deviations"] = deviations
        self.parts = parts
        digits, types = self.digits, self.arguments["capsule_types"]
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
        return self.route(self.predict(self.primary_capsules(images)), trace)

    def primary_capsules(self, images: Tensor) -> Tensor:
        """Images → primary capsules, [batch, in_capsules, in_dim]."""
        conv = self.primary.conv
        features = F.relu(self.conv(self.parts.prepare(images)))
        return self.group(lambda weight: F.conv2d(features, weight, conv.bias, conv.stride))

    def group(self, convolve: Callable[[Tensor], Tensor]) -> Tensor:
        """The second convolution's kernels, applied by ``convolve`` → primary capsules."""
        parts, weight = self.parts, self.primary.conv.weight
        if parts.routed_to_types:  # one iteration: each type gets an equal share
            logits = weight.new_zeros(1, 1, self.arguments["capsule_types"])
            weight = weight * parts.share(logits)[0, 0, 0]
        maps = parts.activation(convolve(weight))
        children = parts.group(maps, self.primary.capsule_dim)
        return squash_capsules(children, parts.squash, parts.primary_axis)

    def predict(self, u: Tensor) -> Tensor:
        """û_{j|i}, as :meth:`CapsuleLayer.predict`."""
        if not self.parts.shared_w:
            return self.digits.predict(u)
        weight = self.digits.weight  # [types, out_capsules, in_dim, out_dim]
        u = u.unflatten(1, (len(weight), -1))
        return torch.einsum("ntpk,tjkd->ntpjd", u, weight).flatten(1, 2)

    def route(self, u_hat: Tensor, trace: list[RoutingStep] | None = None) -> Tensor:
        """Predictions → the classes' capsules, by :func:`route_with`."""
        digits = self.digits
        iterations, prior = digits.routing_iterations, digits.prior
        return route_with(self.parts, u_hat, iterations, prior, self.bias, trace)

    def read_out(self, capsules: Tensor, labels: Tensor | None = None) -> CapsNetOutput:
        check_capsules(capsules, self.num_classes, self.capsule_dim)
        lengths = torch.linalg.vector_norm(capsules, dim=2)
        # Refused where the mask does not depend on them, too.
        labels = None if labels is None else class_mask(labels, *lengths.shape)
        out = super().read_out(capsules, self.parts.mask(lengths, labels))
        return out._replace(lengths=self.parts.lengths(out.lengths))


class WildLoss(TrainingLoss):
    """:class:`TrainingLoss` with the parts of a :class:`WildCapsNet`, whose own margin loss is the
    default criterion.
    """

    def __init__(self, model: nn.Module, *args: Any, **options: Any) -> None:
        super().__init__(model, *args, **options)
        wild = model.model if isinstance(model, FastWildCapsNet) else model
        self.parts = cast(WildCapsNet, wild).parts
        if self.criterion is margin_loss:
            self.criterion = self.parts.margin

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
        squares = reconstruction_loss(out.reconstruction.to(target.dtype), target)
        if parts.mean_over_pixels:
            squares = squares / target[0].numel()
        return loss + self.reconstruction_weight * squares
