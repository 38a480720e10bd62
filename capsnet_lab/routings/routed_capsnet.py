"""The paper's network with another way to route, and with more than one routed layer."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from capsnet.checkpoint import register
from capsnet.checks import as_int
from capsnet.fast import FastCapsNet
from capsnet.fast.routing import routed_capsules
from capsnet.functional import RoutingStep
from capsnet.layers import CapsuleLayer, channels_to_capsules
from capsnet.model import CapsNet, CapsNetOutput
from capsnet_lab.routings.attention import AttentionCapsules
from capsnet_lab.routings.em import EMCapsules
from capsnet_lab.routings.self_attention import SelfAttentionCapsules
from capsnet_lab.routings.uniform import UniformCapsules


class Routing(NamedTuple):
    """A way to route, and how a network that uses it says which classes are present."""

    layer: Callable[..., Any]  # of children, their numbers, parents and theirs, and of options
    options: tuple[str, ...] = ()  # that the layer takes
    presence: str = "length"  # of a capsule; "score", a linear map of it; or "activation", EM's


ROUTINGS = {
    "dynamic": Routing(CapsuleLayer, ("routing_iterations", "learn_prior")),
    "em": Routing(EMCapsules, ("routing_iterations",), "activation"),
    "self-attention": Routing(SelfAttentionCapsules),
    "attention": Routing(AttentionCapsules, ("routing_iterations",), "score"),
    "uniform": Routing(UniformCapsules),
    "shared": Routing(UniformCapsules, ("positions",)),
}


class FastRoutedCapsNet(FastCapsNet):
    """:class:`FastCapsNet` for a :class:`RoutedCapsNet` with any routing but "em".

    The convolutions are fast, and so are layers with dynamic routing.
    """

    @staticmethod
    def bypassed_layers(model: Any) -> list[tuple[Any, type[nn.Module]]]:
        *convolutions, _ = FastCapsNet.bypassed_layers(model)
        return [*convolutions, *((layer, CapsuleLayer) for layer in dynamic_layers(model))]

    @staticmethod
    def has_kernels(model: Any) -> bool:
        return len(dynamic_layers(model)) > 0 and FastCapsNet.has_kernels(model)

    def compile(self) -> None:
        super().compile()
        self.route_plainly = torch.compile(self.route_plainly, dynamic=False)  # type: ignore

    def class_capsules(self, children: Tensor) -> Tensor:
        layers = dynamic_layers(self.model)
        for layer in layers:
            how = layer.routing_iterations, layer.prior
            children = routed_capsules(children, layer.weight, *how, compile=self.compiled)
        return children if layers else self.route_plainly(children)

    def route_plainly(self, children: Tensor) -> Tensor:
        model: Any = self.model
        return model.route(children)


def dynamic_layers(model: Any) -> list[Any]:
    """All routed layers of a network with dynamic routing, from the bottom up; none of another."""
    return [*model.stack, model.digits] if model.routing.layer is CapsuleLayer else []


@register
class RoutedCapsNet(CapsNet):
    """:class:`CapsNet` with another routing, and with a stack of routed layers.

    ``out.lengths`` are the activations with "em", the logistic of a linear map of each pose with
    "attention", else the capsules' lengths. With "em" the primary capsules are not squashed, the
    logistic of a linear map of each is its activation, and the criterion that suits is
    :func:`spread_loss`. With "attention", layer normalisation follows their squash. All but "em"
    have a fast arrangement.

    Args:
        image_shape: as of :class:`CapsNet`.
        num_classes: as of :class:`CapsNet`.
        routing_iterations: of "dynamic", "em" and "attention".
        routing: "dynamic", "em", "self-attention", "attention", "uniform" (no routing), or
            "shared": no routing, and one W for all positions of a type of primary capsule.
        stack: capsules of each further layer between the primary capsules and the classes', from
            the bottom up, of ``capsule_dim`` numbers each.
        options: the others of :class:`CapsNet`.

    Attributes:
        stack: the layers in between.

    Raises:
        ValueError: as of :class:`CapsNet`; an unknown routing, a layer without capsules, an option
            that the routing does not have, or "em" with capsules of no multiple of 4 numbers.
    """

    digits: Any
    score: Any

    def __init__(
        self,
        image_shape: Sequence[int] = (1, 28, 28),
        num_classes: int = 10,
        routing_iterations: int = 3,
        *,
        routing: str = "dynamic",
        stack: Sequence[int] = (),
        **options: Any,
    ) -> None:
        if routing not in ROUTINGS:
            raise ValueError(f"routing must be one of {', '.join(ROUTINGS)}, got {routing}")
        super().__init__(image_shape, num_classes, routing_iterations, **options)
        self.routing = ROUTINGS[routing]
        for name, default in (("routing_iterations", 3), ("learn_prior", False)):
            if name not in self.routing.options and (value := self.arguments.pop(name)) != default:
                raise ValueError(f"routing {routing} has no {name}, got {value}")
        parents = [as_int(f"stack[{i}]", size) for i, size in enumerate(stack)]
        self.arguments = {"routing": routing, "stack": parents} | self.arguments

        children, dim = self.num_primary_capsules, self.arguments["primary_dim"]
        out_dim = self.arguments["capsule_dim"]
        available = self.arguments | {"positions": children // self.arguments["capsule_types"]}
        layers = []
        for size in (*parents, self.arguments["num_classes"]):
            chosen = {name: available[name] for name in self.routing.options}
            layer = self.routing.layer(children, dim, size, out_dim, **chosen)
            if parents and self.routing.presence == "length":
                # Squash shortens what is short: children of length 1 must give sums of length 1.
                nn.init.normal_(layer.weight, std=size / math.sqrt(children * out_dim))
            layers.append(layer)
            children, dim, available["positions"] = size, out_dim, 1
        self.stack, self.digits = nn.Sequential(*layers[:-1]), layers[-1]
        scored = {"score": out_dim, "activation": self.arguments["primary_dim"]}
        numbers = scored.get(self.routing.presence)
        self.score = None if numbers is None else nn.Linear(numbers, 1)

    @property
    def fast_arrangement(self) -> type[FastRoutedCapsNet] | None:
        return None if self.routing.presence == "activation" else FastRoutedCapsNet

    def encode(self, images: Tensor, trace: list[RoutingStep] | None = None) -> Tensor:
        return self.capsules_and_activations(images, trace)[0]

    def capsules_and_activations(
        self, images: Tensor, trace: list[RoutingStep] | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Images → the classes' capsules, [batch, num_classes, capsule_dim], and with "em" their
        activations, [batch, num_classes]; a trace of the last layer.
        """
        self.check_images(images)
        features = F.relu(self.conv(images))
        if self.routing.presence != "activation":
            return self.route(self.primary(features), trace), None
        poses = channels_to_capsules(self.primary.conv(features), self.primary.capsule_dim)
        return self.route((poses, self.logistic(poses)), trace)

    def route(self, children: Any, trace: list[RoutingStep] | None = None) -> Any:
        """Primary capsules → the classes'; with "em" each with their activations, as a pair."""
        if self.routing.presence == "score":
            children = F.layer_norm(children, children.shape[2:])
        return self.digits(self.stack(children), trace)

    def logistic(self, capsules: Tensor) -> Tensor:
        """How present each capsule is, by a linear map of it: [batch, capsules], 0 … 1."""
        score = self.score(capsules).squeeze(2)
        return score.to(torch.promote_types(score.dtype, torch.float32)).sigmoid()

    def forward(self, images: Tensor, labels: Tensor | None = None) -> CapsNetOutput:
        capsules, activations = self.capsules_and_activations(images)
        return self.read_out(capsules, labels, activations)

    def read_out(
        self, capsules: Tensor, labels: Tensor | None = None, activations: Tensor | None = None
    ) -> CapsNetOutput:
        """As :meth:`CapsNet.read_out`; with "em" the activations are needed too."""
        if self.routing.presence == "length":
            return super().read_out(capsules, labels)
        present = self.logistic(capsules) if self.routing.presence == "score" else activations
        if present is None:
            raise ValueError("expected a call of the network: EM's poses have no activations")
        if labels is None:
            labels = present.argmax(dim=1)
        return super().read_out(capsules, labels)._replace(lengths=present)
