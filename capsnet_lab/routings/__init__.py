"""Other routing algorithms, in :class:`CapsuleLayer`'s place."""

from capsnet_lab.routings.attention import AttentionCapsules, attention_routing
from capsnet_lab.routings.em import EMCapsules, em_routing, spread_loss
from capsnet_lab.routings.routed_capsnet import ROUTINGS, RoutedCapsNet
from capsnet_lab.routings.self_attention import (
    EfficientCapsNet,
    SelfAttentionCapsules,
    exponential_squash,
    self_attention_routing,
)
from capsnet_lab.routings.uniform import UniformCapsules

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
