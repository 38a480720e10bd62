"""Every plot of the book, the command line's among them, and the tables that say the same in text.

Like the command line's, each takes numbers and returns a :class:`Figure`.
"""

from capsnet.figures import confusion_matrix, prediction, reconstructions
from capsnet.figures.style import MACROS, QUANTITIES, Figure, Quantity
from capsnet.text import columns, per_class_table
from capsnet_book.figures.architecture import (
    Stage,
    architecture,
    capsule_members,
    channel_grouping,
    receptive_fields,
)
from capsnet_book.figures.bent import Sweep, against_amount, moved_and_bent
from capsnet_book.figures.converging import by_iteration
from capsnet_book.figures.decoder import squared_errors
from capsnet_book.figures.equivariance import (
    length_and_direction,
    orientation_field,
    pictured_vectors,
    pooled_features,
)
from capsnet_book.figures.gallery import gallery
from capsnet_book.figures.labels import errors_by_labels
from capsnet_book.figures.margin import length_histogram, margin_curves, mean_lengths
from capsnet_book.figures.pairs import bounding_boxes, taken_apart
from capsnet_book.figures.palette import palette
from capsnet_book.figures.reading import (
    intervals,
    mistakes,
    per_class_accuracy,
    rejection,
    reliability,
    right_and_wrong,
)
from capsnet_book.figures.reproduction import errors_beside_paper, summary_table
from capsnet_book.figures.routing import (
    routing_lengths,
    routing_shares,
    routing_votes,
    share_histograms,
)
from capsnet_book.figures.speed import durations, growth
from capsnet_book.figures.squash import relative_errors, squash_curves
from capsnet_book.figures.sweeps import following, plane, property_map, sweeps, walk_lengths
from capsnet_book.figures.table1 import effects, missed_by
from capsnet_book.figures.training import course, loss_curves

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
    "course",
    "durations",
    "effects",
    "errors_beside_paper",
    "errors_by_labels",
    "following",
    "gallery",
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
    "squared_errors",
    "squash_curves",
    "summary_table",
    "sweeps",
    "taken_apart",
    "walk_lengths",
]
