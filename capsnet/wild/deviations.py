"""What other people's code does and the paper does not: each deviation is one object."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from capsnet.wild.parts import (
    Parts,
    bare_squash,
    by_prediction,
    guarded_squash,
    normal,
    normalised,
    over_children,
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
        recipe: what it replaces of :class:`Recipe`.
    """

    name: str
    paper: str
    code: str
    parts: Mapping[str, Any] = field(default_factory=dict)
    recipe: Mapping[str, Any] = field(default_factory=dict)


AXIS = "A softmax over the parents: the shares of one child sum to 1 (section 2, eq. 3)."
START = "It does not say how W starts; its authors' code draws a normal of 0.1, cut at two of them."
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
            "Three iterations of routing in all experiments (section 4).",
            "A setting of 3 makes 4: one pass with the prior, then three updates of the logits.",
            {"extra_iterations": 1},
        ),
        Deviation(
            "learned-prior",
            "The priors can be learned (section 2), but all logits start at 0 (section 4).",
            "The logits start at a learned prior, one number for each child and parent.",
            {"learn_prior": True},
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
            "prediction-mask",
            "In training the decoder sees the capsule of the correct digit (section 4.1).",
            "It sees the longest capsule, in training too.",
            {"mask": by_prediction},
        ),
        Deviation(
            "unsquared-margin",
            "Each term of the margin loss is squared (eq. 4).",
            "The terms are not squared.",
            {"margin": unsquared_margin_loss},
        ),
        Deviation(
            "mean-margin",
            "The losses of all classes are summed (section 3).",
            "They are averaged: with ten classes, a tenth of the sum.",
            {"mean_over_classes": True},
        ),
        Deviation(
            "mean-reconstruction",
            "0.0005 times the sum of the squared differences of all pixels (section 4.1).",
            "0.0005 times their mean: for 28 × 28 pixels, 784 times less.",
            {"mean_over_pixels": True},
        ),
        Deviation(
            "unit-w",
            START,
            "W starts as a normal of standard deviation 1.",
            {"start_w": normal(1.0)},
        ),
        Deviation(
            "uniform-w",
            START,
            "W starts uniform within ± 1/√children: ± 0.029 for 1152 of them.",
            {"start_w": uniform_by_children},
        ),
        Deviation(
            "normalised-images",
            "The decoder's sigmoid draws the intensities of the pixels (section 4.1, Fig. 2).",
            "MNIST's mean and standard deviation are taken out first, and the sigmoid, which stays "
            "between 0 and 1, is to draw values from −0.42 to 2.82.",
            {"prepare": normalised},
        ),
        Deviation(
            "no-shift",
            "Training images are shifted by up to 2 pixels in each direction (section 5).",
            "Training images stay where they are.",
            recipe={"shift": 0},
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
            "The rate is divided by 10 after 15 epochs without a lower loss on the test set.",
            recipe={"schedule": "plateau"},
        ),
        Deviation(
            "unshuffled",
            "It does not say in which order the images come; its authors' code shuffles them.",
            "The images come in the order of the file, the same in every epoch.",
            recipe={"shuffle": False},
        ),
    )
}


def combine(names: Iterable[str]) -> Parts:
    """The paper's parts, with those of some deviations in their place.

    Raises:
        ValueError: a name is not known, or two deviations replace the same part.
    """
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
