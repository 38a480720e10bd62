"""What does a network do differently from the paper? The command ``capsnet check``."""

from capsnet_lab.check.checker import Adapter, assert_paper, check

__all__ = ["Adapter", "assert_paper", "check"]
