"""Every plot that the book and the command line draw, and the tables that say the same in text.

A function takes numbers and returns a :class:`Figure`; it neither computes results nor touches
matplotlib's global state. Arrays may be NumPy's or torch's, on any device.
"""

from capsnet.figures.architecture import (
    Stage,
    architecture,
    capsule_members,
    channel_grouping,
    receptive_fields,
)
from capsnet.figures.bent import Sweep, against_amount, moved_and_bent
from capsnet.figures.converging import by_iteration
from capsnet.figures.decoder import squared_errors
from capsnet.figures.equivariance import (
    length_and_direction,
    orientation_field,
    pictured_vectors,
    pooled_features,
)
from capsnet.figures.labels import errors_by_labels
from capsnet.figures.margin import length_histogram, margin_curves, mean_lengths
from capsnet.figures.notebook import glue, source
from capsnet.figures.pairs import bounding_boxes, taken_apart
from capsnet.figures.palette import palette
from capsnet.figures.reading import (
    intervals,
    mistakes,
    rejection,
    reliability,
    right_and_wrong,
)
from capsnet.figures.reproduction import errors_beside_paper, summary_table
from capsnet.figures.results import (
    columns,
    confusion_matrix,
    confusion_text,
    gallery,
    loss_curves,
    per_class_accuracy,
    per_class_table,
    prediction,
    reconstructions,
)
from capsnet.figures.routing import (
    routing_lengths,
    routing_shares,
    routing_votes,
    share_histograms,
)
from capsnet.figures.speed import durations, growth
from capsnet.figures.squash import relative_errors, squash_curves
from capsnet.figures.style import MACROS, QUANTITIES, Figure, Quantity
from capsnet.figures.sweeps import following, plane, property_map, sweeps, walk_lengths
from capsnet.figures.table1 import effects, missed_by
from capsnet.figures.training import course

__all__ = [
    "MACROS",
    "QUANTITIES",
    "Figure",
    "Quantity",
    "Stage",
    "Sweep",
    "against_amount",
    "architecture",
    "bounding_boxes",
    "by_iteration",
    "capsule_members",
    "channel_grouping",
    "columns",
    "confusion_matrix",
    "confusion_text",
    "course",
    "durations",
    "effects",
    "errors_beside_paper",
    "errors_by_labels",
    "following",
    "gallery",
    "glue",
    "growth",
    "intervals",
    "length_and_direction",
    "length_histogram",
    "loss_curves",
    "margin_curves",
    "mean_lengths",
    "missed_by",
    "mistakes",
    "moved_and_bent",
    "orientation_field",
    "palette",
    "per_class_accuracy",
    "per_class_table",
    "pictured_vectors",
    "plane",
    "pooled_features",
    "prediction",
    "property_map",
    "receptive_fields",
    "reconstructions",
    "rejection",
    "relative_errors",
    "reliability",
    "right_and_wrong",
    "routing_lengths",
    "routing_shares",
    "routing_votes",
    "share_histograms",
    "source",
    "squared_errors",
    "squash_curves",
    "summary_table",
    "sweeps",
    "taken_apart",
    "walk_lengths",
]
