"""Every plot of the book, the command line's among them, and the tables that say the same in text.

Like the command line's, each takes numbers and returns a :class:`Figure`.
"""

from capsnet.text import columns
from capsnet_book.figures.comparison import (
    Arm,
    Sweep,
    against_amount,
    bent_against_plain,
    budget_table,
    costs,
    effects,
    errors_beside_paper,
    errors_by_draw,
    in_training,
    intervals,
    rejection,
    reliability,
    switched,
    who_has,
)
from capsnet_book.figures.decoder import following, property_map, squared_errors, sweeps
from capsnet_book.figures.learning_curves import course, loss_curves, watched
from capsnet_book.figures.lengths import (
    against_chance,
    before_squash,
    length_and_direction,
    length_histogram,
    margin_curves,
    mean_lengths,
    wanted_lengths,
)
from capsnet_book.figures.network import capsule_members, network, receptive_fields
from capsnet_book.figures.palette import palette
from capsnet_book.figures.parts import Scene, scene_and_votes, scenes
from capsnet_book.figures.pictures import (
    gallery,
    mistakes,
    orientation_field,
    pictured_vectors,
    pooled_features,
    stages,
    taken_apart,
    witnesses,
)
from capsnet_book.figures.routing import (
    by_iteration,
    given,
    routing_shares,
    routing_votes,
    runaway,
    share_histograms,
    shares_by_routing,
)
from capsnet_book.figures.speed import durations, growth, two_shares
from capsnet_book.figures.squash import relative_errors, squash_arrows, squash_curves
from capsnet_lab.figures import confusion_matrix, reconstructions
