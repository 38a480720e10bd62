"""What other people's code does and the paper does not: each deviation is one object."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch.nn.functional as F

from capsnet_lab.wild import parts
from capsnet_lab.wild.parts import Parts


@dataclass(frozen=True)
class Deviation:
    """One difference from the paper; :func:`found_in` names the implementations that have it.

    Attributes:
        paper: what the paper says, and where.
        code: what the code does.
        parts: replaced fields of :class:`Parts`, of the network or of its loss.
        recipe: replaced options of :class:`TrainingConfig`, and keys of
            ``recipes.FIT_OPTIONS_BY_RECIPE``.
        name: its key in :data:`DEVIATIONS`, words joined by hyphens.
    """

    paper: str
    code: str
    parts: Mapping[str, Any] = field(default_factory=dict)
    recipe: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""

    @property
    def is_choice(self) -> bool:
        """Whether the paper leaves it open."""
        return self.paper.startswith(SILENT)


OWN_LENGTH = "Squash computes each capsule's own length, which stays below 1 (eq. 1)."
AXIS = "The coupling coefficients of one child sum to 1 over the parents (section 2, eq. 3)."
THREE = "Three iterations of routing are suggested for all experiments (appendix A)."
SILENT = "It does not say"
START = (
    f"{SILENT} how W is initialised; its authors' code draws from a normal distribution with a "
    "standard deviation of 0.1, truncated at two standard deviations."
)
MASK = "In training the decoder sees the capsule of the correct digit (section 4.1)."
NORM = "v = s/‖s‖ · ‖s‖² / (1 + ‖s‖²), with no word on s = 0 (eq. 1)."
RATE = "Adam with TensorFlow's defaults, the exponentially falling rate among them (section 4)."

_TABLE = {
    "softmax-over-children": Deviation(
        AXIS,
        "The softmax runs over the children: one parent's coupling coefficients sum to 1.",
        {"share": parts.over_children},
    ),
    "one-iteration-more": Deviation(
        THREE,
        "With the setting 3 there are four: one with the prior, then three updates of the logits.",
        {"routing_iterations": 4},
    ),
    "two-iterations": Deviation(THREE, "Two iterations.", {"routing_iterations": 2}),
    "learned-prior": Deviation(
        "The priors can be learned (section 2), but all logits start at 0 (section 4).",
        "The logits start at a learned prior, one number for each child and parent.",
        {"learn_prior": True},
    ),
    "batch-logits": Deviation(
        "Each image has routing logits of its own, b_ij (Procedure 1).",
        "An answer depends on the other images of its batch, as where agreements are averaged.",
        {"batch_logits": True},
    ),
    "stopped-gradient": Deviation(
        "It does not say; in its authors' code the gradient passes through all iterations.",
        "Only in the last iteration does a gradient pass through the predictions.",
        {"stop_gradient": True},
    ),
    "uniform-shares": Deviation(
        "Agreement decides on the coupling coefficients (Procedure 1).",
        "All coupling coefficients of a child are equal, and nothing is routed.",
        {"share": parts.uniform},
    ),
    "leak": Deviation(
        "The softmax runs over the parents; for CIFAR-10, over one more class (section 7).",
        "The softmax has one more logit, 0, and no parent receives its coefficient.",
        {"share": parts.leaky},
    ),
    "digit-bias": Deviation(
        "s_j is the weighted sum of the predictions, and nothing else (eq. 2).",
        "A learned bias is added to s_j.",
        {"bias": True},
    ),
    "shared-w": Deviation(
        "Each child has matrices of its own, W_ij (section 4).",
        "All children of a type share one set of matrices, wherever they are.",
        {"shared_w": True},
    ),
    "view-without-permute": Deviation(
        "A capsule is 8 units that see the same place of the image (section 4).",
        "The maps are cut up as they lie in memory: a capsule is 8 neighbouring places of one map.",
        {"group": parts.neighbours_in_space},
    ),
    "relu-before-squash": Deviation(
        "Squash is the convolution's non-linearity (section 4).",
        "ReLU comes before squash: no number of a primary capsule is negative.",
        {"activation": F.relu},
    ),
    "routed-to-types": Deviation(
        "Nothing is routed between the first convolution and the primary capsules (section 4).",
        "One iteration of routing: before the bias, each of the 32 types gets 1/32 of what the "
        "kernels compute.",
        {"routed_to_types": True},
    ),
    "squash-over-children": Deviation(
        OWN_LENGTH,
        "The norm of the primary capsules is taken over the children, one for each of their 8 "
        "numbers.",
        {"primary_axis": 1},
    ),
    "squash-over-classes": Deviation(
        OWN_LENGTH,
        "The norm of the class capsules is taken over the classes, one for each of their 16 "
        "numbers.",
        {"digits_axis": 1},
    ),
    "squash-by-component": Deviation(
        OWN_LENGTH,
        "Each number of a class capsule is squashed by itself: 16 of them can be 4 long.",
        {"digits_axis": 3},
    ),
    "bare-norm": Deviation(
        NORM,
        "The squash divides by the bare norm, so a capsule of zeros becomes NaN.",
        {"squash": parts.bare_squash},
    ),
    "guard-1e-8": Deviation(
        NORM,
        "10⁻⁸ is added under the root of the norm that squash divides by.",
        {"squash": parts.guarded_squash(1e-8)},
    ),
    "guard-1e-9": Deviation(
        NORM,
        "10⁻⁹ is added under the root, in squash and in the lengths that meet the margins.",
        {"squash": parts.guarded_squash(1e-9), "lengths": parts.guarded_lengths(1e-9)},
    ),
    "guard-1e-7": Deviation(
        NORM,
        "10⁻⁷ is added under the root, in squash and in the lengths that meet the margins.",
        {"squash": parts.guarded_squash(1e-7), "lengths": parts.guarded_lengths(1e-7)},
    ),
    "guard-beside-norm": Deviation(
        NORM,
        "10⁻⁸ is added to the norm that squash divides by.",
        {"squash": parts.squash_beside(1e-8)},
    ),
    "softmax-of-lengths": Deviation(
        "The margins are for the lengths of the capsules (section 3, eq. 4).",
        "The margins are for a softmax of the lengths: of ten, one reaches 0.23 at most.",
        {"lengths": parts.softmax_of_lengths},
    ),
    "prediction-mask": Deviation(
        MASK,
        "The decoder sees the longest capsule, in training too.",
        {"mask": parts.by_prediction},
    ),
    "batch-mask": Deviation(
        MASK,
        "The decoder sees the capsule with the largest softmax over the images of the batch, in "
        "training and in use.",
        {"mask": parts.by_softmax_over_batch},
    ),
    "other-decoder": Deviation(
        "The decoder's hidden layers have 512 and 1024 units (Fig. 2).",
        "The decoder's hidden layers have 522 and 1176 units: 2/3 of the pixels, and 3/2.",
        {"hidden": (522, 1176)},
    ),
    "unsquared-margin": Deviation(
        "Each term of the margin loss is squared (eq. 4).",
        "The terms of the margin loss are not squared.",
        {"margin": parts.unsquared_margin_loss},
    ),
    "mean-margin": Deviation(
        "The losses of all classes are summed (section 3).",
        "The losses of all classes are averaged: with ten, a tenth of the sum.",
        {"mean_over_classes": True},
    ),
    "halved-margin": Deviation(
        "Only the terms of absent classes are halved, by λ (eq. 4).",
        "All terms of the margin loss are halved once more.",
        {"margin_weight": 0.5},
    ),
    "mean-reconstruction": Deviation(
        "0.0005 times the sum of the squared differences of all pixels (section 4.1).",
        "0.0005 times the mean of the squared differences: for 28 × 28 pixels, 784 times less.",
        {"mean_over_pixels": True},
    ),
    "unit-w": Deviation(
        START,
        "W is drawn from a normal distribution with standard deviation 1.",
        {"start_w": parts.normal(1.0)},
    ),
    "uniform-w": Deviation(
        START,
        "W is drawn uniformly from ± 1/√children: ± 0.029 for 1152 children.",
        {"start_w": parts.uniform_by_children},
    ),
    "small-w": Deviation(
        START,
        "W is drawn from a normal distribution with standard deviation 0.01.",
        {"start_w": parts.normal(0.01)},
    ),
    "uncut-w": Deviation(
        START,
        "W is drawn from a normal distribution with standard deviation 0.1, not truncated.",
        {"start_w": parts.normal(0.1)},
    ),
    "released-start": Deviation(
        "It does not say how the other weights are initialised.",
        "The other weights are drawn from normal distributions with a standard deviation of 0.1 "
        "(the first convolution: 0.05), truncated at two of them, and all biases start at 0.1.",
        {"start": parts.released_start},
    ),
    "glorot-start": Deviation(
        "It does not say how the other weights are initialised.",
        "The other weights are drawn uniformly from ± √(6 / (inputs + outputs)), and their biases "
        "start at 0: TensorFlow's default.",
        {"start": parts.glorot_start},
    ),
    "normalised-images": Deviation(
        "The decoder's sigmoid models the intensities of the pixels (section 4.1, Fig. 2).",
        "Images are normalised by MNIST's mean and standard deviation, and the sigmoid, which "
        "stays between 0 and 1, has to reconstruct values from −0.42 to 2.82.",
        {"prepare": parts.normalise_mnist},
    ),
    "no-shift": Deviation(
        "Training images are shifted by up to 2 pixels in each direction (section 5).",
        "Training images are not shifted.",
        recipe={"shift": 0},
    ),
    "one-shift-for-all": Deviation(
        "Training images are shifted by up to 2 pixels, test images not at all (section 5).",
        "All images of a batch are shifted alike, those of the test set too.",
        recipe={"shift_together": True},
    ),
    "new-optimiser": Deviation(
        "It does not say; as a rule Adam is created once.",
        "Adam is created anew for each epoch and forgets its moments.",
        recipe={"fresh_adam": True},
    ),
    "rate-by-epoch": Deviation(
        RATE, "The rate is multiplied by 0.9 after each epoch.", recipe={"schedule": "by-epoch"}
    ),
    "constant-rate": Deviation(RATE, "The rate is constant.", recipe={"schedule": "constant"}),
    "plateau-rate": Deviation(
        RATE,
        "The rate is divided by 10 when the loss on the test set has not fallen for more than 15 "
        "epochs.",
        recipe={"schedule": "plateau"},
    ),
    "unshuffled": Deviation(
        "It does not say in which order the images come; its authors' code shuffles them.",
        "The images come in the order of the file, the same in every epoch.",
        recipe={"shuffle": False},
    ),
}
DEVIATIONS = {name: replace(deviation, name=name) for name, deviation in _TABLE.items()}


def combine(names: Sequence[str]) -> Parts:
    """The paper's parts, with those of some deviations in their place.

    Raise ValueError if a name is not known, or two deviations replace the same part.
    """
    taken: dict[str, str] = {}
    replaced: dict[str, Any] = {}
    for name in names:
        if name not in DEVIATIONS:
            raise ValueError(f"no deviation is called {name}; known are {', '.join(DEVIATIONS)}")
        for part, value in DEVIATIONS[name].parts.items():
            if part in taken:
                raise ValueError(f"deviations {taken[part]} and {name} both replace {part}")
            taken[part], replaced[part] = name, value
    return Parts(**replaced)
