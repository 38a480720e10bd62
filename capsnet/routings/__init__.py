"""Other ways to route, in :class:`CapsuleLayer`'s place."""

from capsnet.routings.attention import AttentionCapsules, attention_routing
from capsnet.routings.em import EMCapsules, em_routing, spread_loss
from capsnet.routings.network import ROUTINGS, RoutedCapsNet
from capsnet.routings.self_attention import (
    EfficientCapsNet,
    SelfAttentionCapsules,
    exponential_squash,
    self_attention_routing,
)
from capsnet.routings.uniform import UniformCapsules

__all__ = [
    "ROUTINGS",
    "AttentionCapsules",
    "EMCapsules",
    "EfficientCapsNet",
    "RoutedCapsNet",
    "SelfAttentionCapsules",
    "UniformCapsules",
    "attention_routing",
    "em_routing",
    "exponential_squash",
    "self_attention_routing",
    "spread_loss",
]
