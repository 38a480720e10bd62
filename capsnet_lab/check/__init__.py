"""Which named deviations from the paper does a network have? The command ``capsnet check``."""

from capsnet_lab.check.adapter import Adapter
from capsnet_lab.check.checker import Report, assert_paper, check

__all__ = ["Adapter", "Report", "assert_paper", "check"]
