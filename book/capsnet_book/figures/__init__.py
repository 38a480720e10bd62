"""Every plot of the book, the command line's among them, and the tables that say the same in text.

Like the command line's, each takes numbers and returns a :class:`Figure`. A chapter loads only the
modules of the figures that it draws, so that a change of another figure does not make it stale.
"""

from importlib import import_module
from typing import Any

HOMES = {
    "capsnet.text": "columns",
    "capsnet_book.figures.comparison": "bars budget_table errors_added intervals membership runs",
    "capsnet_book.figures.lines": "Panel bent_against_plain by_change curves reliability",
    "capsnet_book.figures.decoder": "property_map squared_errors sweeps",
    "capsnet_book.figures.learning_curves": "image_in_training loss_curves",
    "capsnet_book.figures.lengths": (
        "against_chance before_squash length_histogram lengths_and_margins walks"
    ),
    "capsnet_book.figures.tensors": "capsule_members network receptive_fields",
    "capsnet_book.figures.parts": "Scene scene_and_votes scenes",
    "capsnet_book.figures.pictures": (
        "gallery misclassified orientation_field pair_reconstructions pictured_vectors "
        "pooled_features reconstructions votes_of_children"
    ),
    "capsnet_book.figures.routing": (
        "coupling_bars coupling_histograms lengths_by_iteration palette routing_votes"
    ),
    "capsnet_book.figures.squash": "relative_errors squash_arrows",
    "capsnet_lab.figures": "confusion_matrix",
}


def __getattr__(name: str) -> Any:
    for home, names in HOMES.items():
        if name in names.split():
            return getattr(import_module(home), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
