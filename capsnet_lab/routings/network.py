"""The paper's network with another way to route, and with more than one routed layer."""

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from capsnet.functional import RoutingStep, one_hot
from capsnet.layers import CapsuleLayer, channels_to_capsules
from capsnet.model import CapsNet, CapsNetOutput
from capsnet_lab.routings.attention import AttentionCapsules
from capsnet_lab.routings.em import EMCapsules
from capsnet_lab.routings.fast import FastRoutedCapsNet
from capsnet_lab.routings.self_attention import SelfAttentionCapsules
from capsnet_lab.routings.uniform import UniformCapsules

ROUTINGS = ("dynamic", "em", "self-attention", "attention", "uniform", "shared")
ITERATED = ("dynamic", "em", "attention")
SCORED = ("em", "attention")  # where another number than its length says that a capsule is there


class RoutedCapsNet(CapsNet):
    """:class:`CapsNet` whose capsules are routed to in another way.

    What ``out.lengths`` holds: with "em" the activations, with "attention" the logistic of a linear
    map of each pose, else the capsules' lengths. With "em" the primary capsules are not squashed,
    the logistic of a linear map of each is its activation, and the criterion that suits is
    :func:`spread_loss`. With "attention", layer normalisation follows their squash. All but "em"
    have a fast arrangement.

    Args:
        image_shape: as of :class:`CapsNet`.
        num_classes: likewise.
        routing_iterations: likewise; "self-attention", "uniform" and "shared" have none.
        routing: "dynamic", "em", "self-attention", "attention", "uniform" (no routing), or
            "shared": no routing, and one W for all positions of a type of primary capsule.
        stack: capsules of each further layer between the primary capsules and the classes', from
            the bottom up, of ``capsule_dim`` numbers each.
        options: the others of :class:`CapsNet`.

    Attributes:
        config: the arguments above, as a dict that makes the same network again.
        stack: the layers in between.

    Raises:
        ValueError: as of :class:`CapsNet`; another routing, a layer without capsules, a learned
            prior where routing is not "dynamic", other than 3 iterations where it has none, or
            numbers of a capsule that suit not "em".
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
        listed = list(stack) if isinstance(stack, Sequence) else None
        if listed is None or not all(type(n) is int and n > 0 for n in listed):
            raise ValueError(f"stack must be numbers of capsules, got {listed or stack}")
        super().__init__(image_shape, num_classes, routing_iterations, **options)
        config = self.config
        if config["learn_prior"] and routing != "dynamic":
            raise ValueError(f"learn_prior is of routing dynamic, got routing {routing}")
        if routing_iterations != 3 and routing not in ITERATED:
            raise ValueError(
                f"routing_iterations is of routing {', '.join(ITERATED)}, got {routing_iterations} "
                f"with {routing}"
            )
        config |= {"routing": routing, "stack": list(stack)}
        children, dim = self.primary_capsules, config["primary_dim"]
        out_dim = config["capsule_dim"]
        positions = children // config["capsule_types"]
        layers = []
        for parents in (*stack, num_classes):
            layer = self.layer((children, dim, parents, out_dim), positions)
            if stack and routing not in SCORED:
                # Each squash shortens what is short: children of length 1 shall give sums as long.
                nn.init.normal_(layer.weight, std=parents / math.sqrt(children * out_dim))
            layers.append(layer)
            children, dim, positions = parents, out_dim, 1
        self.stack, self.digits = nn.Sequential(*layers[:-1]), layers[-1]
        scored = config["primary_dim"] if routing == "em" else out_dim
        self.score = nn.Linear(scored, 1) if routing in SCORED else None

    def layer(self, shape: tuple[int, int, int, int], positions: int) -> Any:
        """A routed layer: of children, their numbers, parents and theirs."""
        config = self.config
        routing, iterations = config["routing"], config["routing_iterations"]
        if routing == "dynamic":
            return CapsuleLayer(*shape, iterations, config["learn_prior"])
        if routing == "em":
            return EMCapsules(*shape, iterations)
        if routing == "attention":
            return AttentionCapsules(*shape, iterations)
        if routing == "self-attention":
            return SelfAttentionCapsules(*shape)
        return UniformCapsules(*shape, positions if routing == "shared" else 1)

    @property
    def children_for_each_parent(self) -> float:
        return self.primary_capsules / [*self.config["stack"], self.config["num_classes"]][0]

    @property
    def fast_arrangement(self) -> type[FastRoutedCapsNet] | None:
        return None if self.config["routing"] == "em" else FastRoutedCapsNet

    def encode(self, images: Tensor, trace: list[RoutingStep] | None = None) -> Tensor:
        return self.present(images, trace)[0]

    def present(
        self, images: Tensor, trace: list[RoutingStep] | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Images → the classes' capsules, and how present each is, if their lengths do not say.

        Args:
            images: as :meth:`forward`.
            trace: receives the last layer's iterations.

        Returns:
            [batch, num_classes, capsule_dim], and [batch, num_classes], float32 or wider, or None.

        Raises:
            ValueError: as :meth:`encode`.
        """
        self.check_images(images)
        features = F.relu(self.conv(images))
        if self.config["routing"] != "em":
            capsules = self.route(self.primary(features), trace)
            return capsules, None if self.score is None else self.logistic(capsules)
        capsules = channels_to_capsules(self.primary.conv(features), self.primary.capsule_dim)
        present = self.logistic(capsules)
        for layer in self.stack:
            capsules, present = layer(capsules, present)
        return self.digits(capsules, present, trace)

    def route(self, children: Tensor, trace: list[RoutingStep] | None = None) -> Tensor:
        """Primary capsules → the classes', in all ways but "em"."""
        if self.config["routing"] == "attention":
            children = F.layer_norm(children, children.shape[2:])
        capsules: Tensor = self.digits(self.stack(children), trace)
        return capsules

    def logistic(self, capsules: Tensor) -> Tensor:
        """How present each capsule is, by a linear map of it: [batch, capsules], 0 … 1."""
        score = self.score(capsules).squeeze(2)
        return score.to(torch.promote_types(score.dtype, torch.float32)).sigmoid()

    def forward(self, images: Tensor, labels: Tensor | None = None) -> CapsNetOutput:
        return self.say(*self.present(images), labels)

    def read_out(self, capsules: Tensor, labels: Tensor | None = None) -> CapsNetOutput:
        if self.config["routing"] == "em":
            raise ValueError(
                "EM's poses do not say what is present: expected a call of the network"
            )
        scored = self.config["routing"] == "attention"
        return self.say(capsules, self.logistic(capsules) if scored else None, labels)

    def say(self, capsules: Tensor, present: Tensor | None, labels: Tensor | None) -> CapsNetOutput:
        """What :meth:`forward` returns, of :meth:`present`."""
        if present is None:
            return super().read_out(capsules, labels)
        if labels is None:
            labels = one_hot(present.argmax(dim=1), present.shape[1])
        return super().read_out(capsules, labels)._replace(lengths=present)
