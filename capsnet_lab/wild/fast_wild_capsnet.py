"""The fast arrangement of a network with deviations."""

from typing import Any

import torch
from torch import Tensor

from capsnet.fast import FastCapsNet
from capsnet.fast.convolution import correlate, relu_conv2d, transform_kernel
from capsnet.fast.fast_capsnet import prefers_cudnn
from capsnet.fast.routing import routed_capsules
from capsnet_lab.wild.parts import Parts, over_parents, uniform


class FastWildCapsNet(FastCapsNet):
    """:class:`FastCapsNet` for a :class:`WildCapsNet`.

    Other coupling coefficients, shared logits, a bias of s_j, another axis of squash, and a stopped
    gradient keep the plain routing.
    """

    @staticmethod
    def has_kernels(model: Any) -> bool:
        return has_fast_routing(model.parts) and FastCapsNet.has_kernels(model)

    def compile(self) -> None:
        super().compile()
        for name in ("primary_capsules", "route_plainly"):
            setattr(self, name, torch.compile(getattr(self, name), dynamic=False))

    def primary_capsules(self, images: Tensor) -> Tensor:
        model: Any = self.model
        if prefers_cudnn(images):
            return model.primary_capsules(images)
        phases, conv, bias = self.phases_of(images), model.conv, model.primary.conv.bias
        features = relu_conv2d(model.parts.prepare(images), conv.weight, conv.bias, phases)

        def convolve(weight: Tensor) -> Tensor:
            return correlate(features, transform_kernel(weight, phases, images.dtype), bias, phases)

        return model.group(convolve)

    def class_capsules(self, children: Tensor) -> Tensor:
        model: Any = self.model
        parts, digits, prior = model.parts, model.digits, model.digits.prior
        if not has_fast_routing(parts):
            return self.route_plainly(children)
        iterations: int = digits.routing_iterations
        weight: Tensor = digits.weight
        if parts.shared_w:  # the children of a type lie side by side
            weight = weight.repeat_interleave(children.shape[1] // len(weight), dim=0)
        if parts.share is uniform:  # as a softmax over parents is with one iteration
            iterations, prior = 1, None
        options: Any = {"squash": parts.squash, "compile": self.compiled}
        return routed_capsules(children, weight, iterations, prior, **options)

    def route_plainly(self, children: Tensor) -> Tensor:
        model: Any = self.model
        return model.route(model.predict(children))


def has_fast_routing(parts: Parts) -> bool:
    """Whether the fast routing supports these parts."""
    if parts.stop_gradient or parts.batch_logits or parts.bias or parts.digits_axis != 2:
        return False
    return parts.share in (over_parents, uniform)
