"""Other people's capsule networks, as named differences from the paper's."""

from capsnet_lab.wild.deviations import DEVIATIONS, Deviation
from capsnet_lab.wild.implementations import IMPLEMENTATIONS, Implementation, Published, found_in
from capsnet_lab.wild.parts import Parts
from capsnet_lab.wild.wild_capsnet import WildCapsNet, WildLoss

__all__ = [
    "DEVIATIONS",
    "IMPLEMENTATIONS",
    "Deviation",
    "Implementation",
    "Parts",
    "Published",
    "WildCapsNet",
    "WildLoss",
    "found_in",
]
