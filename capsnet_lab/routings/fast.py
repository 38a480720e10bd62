"""The fast arrangement of a network that is routed in another way."""

from typing import Any

import torch
from torch import Tensor, nn

from capsnet.fast import FastCapsNet
from capsnet.fast.routing import routed_capsules
from capsnet.layers import CapsuleLayer


class FastRoutedCapsNet(FastCapsNet):
    """:class:`FastCapsNet` for a :class:`RoutedCapsNet` with any routing but "em".

    The convolutions are fast, and so are layers with dynamic routing.
    """

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.route = model.route
        self.dynamic = model.routing.layer is CapsuleLayer

    @staticmethod
    def replaced(model: Any) -> list[tuple[nn.Module, type[nn.Module]]]:
        *convolutions, _ = FastCapsNet.replaced(model)
        layers = (*model.stack, model.digits) if model.routing.layer is CapsuleLayer else ()
        return [*convolutions, *((layer, CapsuleLayer) for layer in layers)]

    @staticmethod
    def has_kernels(model: Any) -> bool:
        return model.routing.layer is CapsuleLayer and FastCapsNet.has_kernels(model)

    def compile(self) -> None:
        super().compile()
        self.route = torch.compile(self.route, dynamic=False)

    def capsules_of(self, children: Tensor) -> Tensor:
        if not self.dynamic:
            return self.route(children)
        model: Any = self.model
        for layer in (*model.stack, model.digits):
            how = layer.routing_iterations, layer.prior
            children = routed_capsules(children, layer.weight, *how, compile=self.compiled)
        return children
