"""Every plot that the book and the command line draw, and the tables that say the same in text.

A function takes numbers and returns a :class:`Figure`; it neither computes results nor touches
matplotlib's global state. Arrays may be NumPy's or torch's, on any device.
"""

from capsnet.figures.notebook import glue, source
from capsnet.figures.results import (
    columns,
    confusion_matrix,
    confusion_text,
    loss_curves,
    per_class_accuracy,
    per_class_table,
    prediction,
    reconstructions,
)
from capsnet.figures.speed import durations, growth
from capsnet.figures.style import MACROS, QUANTITIES, Figure, Quantity
from capsnet.figures.sweeps import following, plane, property_map, sweeps, walk_lengths

__all__ = [
    "MACROS",
    "QUANTITIES",
    "Figure",
    "Quantity",
    "columns",
    "confusion_matrix",
    "confusion_text",
    "durations",
    "following",
    "glue",
    "growth",
    "loss_curves",
    "per_class_accuracy",
    "per_class_table",
    "plane",
    "prediction",
    "property_map",
    "reconstructions",
    "source",
    "sweeps",
    "walk_lengths",
]
