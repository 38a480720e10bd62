"""Every plot that the book and the command line draw, and the tables that say the same in text.

A function takes numbers and returns a :class:`Figure`; it neither computes results nor touches
matplotlib's global state. Arrays may be NumPy's or torch's, on any device.
"""

from capsnet.figures.notebook import glue, source
from capsnet.figures.reading import (
    gallery,
    intervals,
    mistakes,
    rejection,
    reliability,
    right_and_wrong,
)
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
from capsnet.figures.training import course

__all__ = [
    "MACROS",
    "QUANTITIES",
    "Figure",
    "Quantity",
    "columns",
    "confusion_matrix",
    "confusion_text",
    "course",
    "durations",
    "gallery",
    "glue",
    "growth",
    "intervals",
    "loss_curves",
    "mistakes",
    "per_class_accuracy",
    "per_class_table",
    "prediction",
    "reconstructions",
    "rejection",
    "reliability",
    "right_and_wrong",
    "source",
]
