"""What other people's code does and the paper does not: each deviation is one object."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from capsnet.training.loop import Draw
from capsnet_lab.wild.parts import (
    Parts,
    bare_squash,
    by_prediction,
    by_softmax_over_batch,
    glorot_start,
    guarded_lengths,
    guarded_squash,
    leaky,
    neighbours_in_space,
    normal,
    normalised,
    over_children,
    rectified,
    released_start,
    routed_to_types,
    shifted_together,
    softmax_of_lengths,
    squash_beside,
    standardised,
    uniform,
    uniform_by_children,
    unsquared_margin_loss,
)


@dataclass(frozen=True)
class Deviation:
    """One thing that is done otherwise; who does it, :data:`IMPLEMENTATIONS` tell.

    Attributes:
        name: in words joined by hyphens.
        paper: what the paper says, and where.
        code: what the code does.
        parts: what it replaces of :class:`Parts`, of the network or of its loss.
        recipe: what it replaces of the options of :class:`capsnet.training.TrainingConfig`.
        draw: what makes a batch of the training, in place of :func:`capsnet.data.shifted`.
        is_choice: the paper leaves open how it is to be done.
    """

    name: str
    paper: str
    code: str
    parts: Mapping[str, Any] = field(default_factory=dict)
    recipe: Mapping[str, Any] = field(default_factory=dict)
    draw: Draw | None = None
    is_choice: bool = False


OWN_LENGTH = "A capsule is shrunk by its own length, which stays below 1 (eq. 1)."
AXIS = "A softmax over the parents: the shares of one child sum to 1 (section 2, eq. 3)."
THREE = "Three iterations of routing are suggested for all experiments (appendix A)."
START = (
    "It does not say how W starts; its authors' code draws a normal with a standard deviation of "
    "0.1, cut off at two of them."
)
MASK = "In training the decoder sees the capsule of the correct digit (section 4.1)."
NORM = "v = s/‖s‖ · ‖s‖² / (1 + ‖s‖²), with no word on s = 0 (eq. 1)."
RATE = "Adam with TensorFlow's defaults, the exponentially falling rate among them (section 4)."

DEVIATIONS: dict[str, Deviation] = {
    deviation.name: deviation
    for deviation in (
        Deviation(
            "softmax-over-children",
            AXIS,
            "The softmax runs over the children: the shares that one parent takes sum to 1.",
            {"share": over_children},
        ),
        Deviation(
            "one-iteration-more",
            THREE,
            "A setting of 3 makes 4: one pass with the prior, then three updates of the logits.",
            {"extra_iterations": 1},
        ),
        Deviation(
            "two-iterations",
            THREE,
            "Two iterations.",
            {"routing_iterations": 2},
        ),
        Deviation(
            "learned-prior",
            "The priors can be learned (section 2), but all logits start at 0 (section 4).",
            "The logits start at a learned prior, one number for each child and parent.",
            {"learn_prior": True},
        ),
        Deviation(
            "batch-logits",
            "Each image has routing logits of its own, b_ij (Procedure 1).",
            "An answer depends on the images beside it, as where agreements are averaged over the "
            "batch.",
            {"batch_logits": True},
        ),
        Deviation(
            "stopped-gradient",
            "It does not say; in its authors' code the gradient passes through all iterations.",
            "The predictions pass no gradient on but in the last iteration.",
            {"stop_gradient": True},
            is_choice=True,
        ),
        Deviation(
            "uniform-shares",
            "Agreement decides over the shares (Procedure 1).",
            "Each child gives all parents the same share, and nothing is routed.",
            {"share": uniform},
        ),
        Deviation(
            "leak",
            "The softmax runs over the parents; for CIFAR-10, over none of them too (section 7).",
            "The softmax has one more logit, of 0, whose share goes nowhere.",
            {"share": leaky},
        ),
        Deviation(
            "digit-bias",
            "s_j is the weighted sum of the predictions, and nothing else (eq. 2).",
            "A learned bias is added to s_j.",
            {"bias": True},
        ),
        Deviation(
            "shared-w",
            "Each child has matrices of its own, W_ij (section 4).",
            "All children of a type share theirs, wherever they are.",
            {"shared_w": True},
        ),
        Deviation(
            "view-without-permute",
            "A capsule is 8 units that see the same place of the image (section 4).",
            "The maps are cut up as they lie in memory: a capsule is 8 neighbouring places of one "
            "map.",
            {"group": neighbours_in_space},
        ),
        Deviation(
            "relu-before-squash",
            "Squash is the convolution's non-linearity (section 4).",
            "ReLU comes before squash: no number of a primary capsule is negative.",
            {"maps": rectified},
        ),
        Deviation(
            "routed-to-types",
            "Nothing is routed between the first convolution and the primary capsules (section 4).",
            "One iteration of routing: a softmax over the types gives each of the 32 (of 64 and a "
            "leak for CIFAR-10) an equal share of what the kernels give, before the bias.",
            {"maps": routed_to_types},
        ),
        Deviation(
            "same-padding",
            "The convolutions take whole kernels alone: 28 pixels become 20, then 6 (section 4).",
            "Zeros around the maps keep their size: 24 pixels become 24, then 12.",
            {"same_padding": True},
        ),
        Deviation(
            "squash-over-children",
            OWN_LENGTH,
            "The norm of the primary capsules is taken over the children, one for each of their 8 "
            "numbers.",
            {"primary_axis": 1},
        ),
        Deviation(
            "squash-over-classes",
            OWN_LENGTH,
            "The norm of the class capsules is taken over the classes, one for each of their 16 "
            "numbers.",
            {"digits_axis": 1},
        ),
        Deviation(
            "squash-by-component",
            OWN_LENGTH,
            "Each number of a class capsule is squashed by itself: 16 of them can be 4 long.",
            {"digits_axis": 3},
        ),
        Deviation(
            "bare-norm",
            NORM,
            "The norm is divided by as it is: a capsule of zeros becomes NaN.",
            {"squash": bare_squash},
        ),
        Deviation(
            "guard-1e-8",
            NORM,
            "10⁻⁸ is added under the root of the norm that squash divides by.",
            {"squash": guarded_squash(1e-8)},
        ),
        Deviation(
            "guard-1e-9",
            NORM,
            "10⁻⁹ is added under the root, in squash and in the lengths that meet the margins.",
            {"squash": guarded_squash(1e-9), "lengths": guarded_lengths(1e-9)},
        ),
        Deviation(
            "guard-1e-7",
            NORM,
            "10⁻⁷ is added under the root, in squash and in the lengths that meet the margins.",
            {"squash": guarded_squash(1e-7), "lengths": guarded_lengths(1e-7)},
        ),
        Deviation(
            "guard-beside-norm",
            NORM,
            "10⁻⁸ is added to the norm that squash divides by.",
            {"squash": squash_beside(1e-8)},
        ),
        Deviation(
            "softmax-of-lengths",
            "The margins are for the lengths of the capsules (section 3, eq. 4).",
            "The margins are for a softmax of the lengths: of ten, one reaches 0.23 at most.",
            {"lengths": softmax_of_lengths},
        ),
        Deviation(
            "prediction-mask",
            MASK,
            "The decoder sees the longest capsule, in training too.",
            {"mask": by_prediction},
        ),
        Deviation(
            "batch-mask",
            MASK,
            "The decoder sees the one that leads in a softmax over the images of the batch, in "
            "training and in use.",
            {"mask": by_softmax_over_batch},
        ),
        Deviation(
            "other-decoder",
            "The decoder's hidden layers have 512 and 1024 units (Fig. 2).",
            "The decoder's hidden layers have 522 and 1176 units: 2/3 of the pixels, and 3/2.",
            {"hidden": (522, 1176)},
        ),
        Deviation(
            "unsquared-margin",
            "Each term of the margin loss is squared (eq. 4).",
            "The terms of the margin loss are not squared.",
            {"margin": unsquared_margin_loss},
        ),
        Deviation(
            "mean-margin",
            "The losses of all classes are summed (section 3).",
            "The losses of all classes are averaged: with ten, a tenth of the sum.",
            {"mean_over_classes": True},
        ),
        Deviation(
            "halved-margin",
            "Only the terms of absent classes are halved, by λ (eq. 4).",
            "All terms of the margin loss are halved once more.",
            {"margin_weight": 0.5},
        ),
        Deviation(
            "mean-reconstruction",
            "0.0005 times the sum of the squared differences of all pixels (section 4.1).",
            "0.0005 times the mean of the squared differences: for 28 × 28 pixels, 784 times less.",
            {"mean_over_pixels": True},
        ),
        Deviation(
            "unit-w",
            START,
            "W starts as a normal of standard deviation 1.",
            {"start_w": normal(1.0)},
            is_choice=True,
        ),
        Deviation(
            "uniform-w",
            START,
            "W starts uniform within ± 1/√children: ± 0.029 for 1152 of them.",
            {"start_w": uniform_by_children},
            is_choice=True,
        ),
        Deviation(
            "small-w",
            START,
            "W starts as a normal of standard deviation 0.01.",
            {"start_w": normal(0.01)},
            is_choice=True,
        ),
        Deviation(
            "uncut-w",
            START,
            "W starts as a normal of standard deviation 0.1, not cut.",
            {"start_w": normal(0.1)},
            is_choice=True,
        ),
        Deviation(
            "released-start",
            "It does not say how the other weights start.",
            "The other weights start as normals with a standard deviation of 0.1 (the first "
            "convolution: 0.05), cut off at two of them, and all biases at 0.1.",
            {"start": released_start},
            is_choice=True,
        ),
        Deviation(
            "glorot-start",
            "It does not say how the other weights start.",
            "The other weights start uniform within ± √(6 / (inputs + outputs)), and their biases "
            "at 0: TensorFlow's default.",
            {"start": glorot_start},
            is_choice=True,
        ),
        Deviation(
            "normalised-images",
            "The decoder's sigmoid draws the intensities of the pixels (section 4.1, Fig. 2).",
            "MNIST's mean and standard deviation are taken out first, and the sigmoid, which stays "
            "between 0 and 1, is to draw values from −0.42 to 2.82.",
            {"prepare": normalised},
        ),
        Deviation(
            "standardised-images",
            "Patches of 24 × 24 pixels of CIFAR-10, with no word on their intensities (section 7).",
            "Each image's own mean and standard deviation are taken out.",
            {"prepare": standardised},
        ),
        Deviation(
            "no-shift",
            "Training images are shifted by up to 2 pixels in each direction (section 5).",
            "Training images stay where they are.",
            recipe={"shift": 0},
        ),
        Deviation(
            "one-shift-for-all",
            "Training images are shifted by up to 2 pixels, test images not at all (section 5).",
            "All images of a batch are shifted alike, those of the test set too.",
            draw=shifted_together,
        ),
        Deviation(
            "new-optimiser",
            "It does not say; Adam is made once as a rule.",
            "Adam is made anew for each epoch and forgets its moments.",
            recipe={"fresh_adam": True},
            is_choice=True,
        ),
        Deviation(
            "rate-by-epoch",
            RATE,
            "The rate is multiplied by 0.9 after each epoch.",
            recipe={"schedule": "by-epoch"},
        ),
        Deviation(
            "constant-rate",
            RATE,
            "The rate stays as it is.",
            recipe={"schedule": "constant"},
        ),
        Deviation(
            "plateau-rate",
            RATE,
            "The rate is divided by 10 when the loss on the test set has not fallen for more than "
            "15 epochs.",
            recipe={"schedule": "plateau"},
        ),
        Deviation(
            "unshuffled",
            "It does not say in which order the images come; its authors' code shuffles them.",
            "The images come in the order of the file, the same in every epoch.",
            recipe={"shuffle": False},
            is_choice=True,
        ),
    )
}


def combine(names: Sequence[str]) -> Parts:
    """The paper's parts, with those of some deviations in their place.

    Raises:
        ValueError: these are no names, one is not known or there twice, or two deviations replace
            the same part.
    """
    several = isinstance(names, Collection) and not isinstance(names, str)
    if not several or not all(isinstance(name, str) for name in names):
        raise ValueError(f"deviations must be a list of names, got {names!r}")
    if len(set(names)) < len(names):
        raise ValueError(f"each deviation is named once, got {', '.join(names)}")
    taken: dict[str, str] = {}
    parts: dict[str, Any] = {}
    for name in names:
        if name not in DEVIATIONS:
            raise ValueError(f"no deviation is called {name}; known are {', '.join(DEVIATIONS)}")
        for part, value in DEVIATIONS[name].parts.items():
            if part in taken:
                raise ValueError(f"deviations {taken[part]} and {name} both replace {part}")
            taken[part], parts[part] = name, value
    return Parts(**parts)
