"""Every plot of the book, the command line's among them, and the tables that say the same in text.

Like the command line's, each takes numbers and returns a :class:`Figure`.
"""

from capsnet.text import columns
from capsnet_book.figures.comparison import (
    bars,
    budget_table,
    errors_added,
    intervals,
    membership,
    runs,
)
from capsnet_book.figures.curves import (
    Panel,
    bent_against_plain,
    by_change,
    curves,
    reliability,
)
from capsnet_book.figures.decoder import property_map, squared_errors, sweeps
from capsnet_book.figures.learning_curves import image_in_training, loss_curves
from capsnet_book.figures.lengths import (
    against_chance,
    before_squash,
    length_histogram,
    lengths_and_margins,
)
from capsnet_book.figures.network import capsule_members, network, receptive_fields
from capsnet_book.figures.palette import palette
from capsnet_book.figures.parts import Scene, scene_and_votes, scenes
from capsnet_book.figures.pictures import (
    gallery,
    misclassified,
    orientation_field,
    pair_reconstructions,
    pictured_vectors,
    pooled_features,
    votes_of_children,
)
from capsnet_book.figures.routing import (
    coupling_bars,
    coupling_histograms,
    lengths_by_iteration,
    routing_votes,
)
from capsnet_book.figures.squash import relative_errors, squash_arrows
from capsnet_lab.figures import confusion_matrix, reconstructions
