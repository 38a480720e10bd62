"""How to train: every option, its default and its range."""

import dataclasses
import math
import numbers
from collections.abc import Sequence
from typing import Any

from capsnet.checks import as_int
from capsnet.device import PRECISIONS
from capsnet.fast import ARRANGEMENTS
from capsnet.model import CapsNet
from capsnet.training.loss import RECONSTRUCTION_WEIGHT

MAX_SEED = 2**40
MNIST_CHILDREN = 115.2  # primary capsules per class
ENOUGH_STEPS = 500  # with fewer, the batches become smaller
SMALLEST_BATCH = 16
MIN_SAMPLES_SEEN = 8000  # images in a whole training run, each counted as often as it is seen
# Images in a whole run, counted in the same way. In the time that torch.compile takes, one core
# trains the paper's network on 5,700 images without it, and compiling saves only a part of a step.
WORTH_COMPILING = 10_000
SCHEDULES = ("one-cycle", "exponential")


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
    """How to train; ``capsnet train --help`` has the same options.

    The defaults suit MNIST; :meth:`for_model` chooses them for another network and other images.

    Raises:
        ValueError: an option is out of its range, no number or not whole where it must be, or
            unknown.
    """

    epochs: int = 10  # passes over the training images
    # Images per step, over all devices together. The partial batch that ends an epoch is left out;
    # the images are shuffled, so each epoch leaves out other ones.
    batch_size: int = 128
    learning_rate: float = 3e-3  # Adam's (peak) rate
    # One-cycle rises over the first 30 % of the steps and falls to 0 as a cosine. Exponential is
    # × 0.96 every 2000 steps, continuously, as in the authors' released code.
    schedule: str = "one-cycle"
    # Decay of the weights' moving average; 0 for none. The averaged weights are the ones that are
    # evaluated and saved.
    average: float = 0.99
    reconstruction_weight: float = RECONSTRUCTION_WEIGHT  # of an image's summed squared error
    shift: int = 2  # largest random shift in pixels, in each direction
    precision: str = "auto"  # fp32, bf16, or auto: bf16 where the hardware has it
    # Of the arithmetic: plain (as the book prints it), fast, or auto, which is fast where it pays.
    arrangement: str = "auto"
    # Use torch.compile; with None, wherever it works, except on CUDA and in a run of fewer than
    # WORTH_COMPILING images.
    compile: bool | None = False
    seed: int = 0  # of the weights, of the images' order and of their shifts

    @classmethod
    def for_model(cls, model: CapsNet, images: int, **given: Any) -> "TrainingConfig":
        """Options for this network and this number of training images.

        They are those for MNIST, except for the given ones and the following. Few images are seen
        more often and in smaller batches, so that there are enough steps, and a short training run
        averages its weights over fewer of them. The learning rate falls with the number of terms in
        a sum, because a step of Adam's moves all weights alike: s_j sums the predictions of all
        primary capsules, each weighted by 1 / classes at first, and a feature sums over all
        channels. At too high a rate all capsules soon have length 1, where squash is flat, and stay
        there.
        """
        usual = cls(**given)  # refuses what is out of range
        images = max(1, images)
        epochs = given.setdefault("epochs", max(usual.epochs, math.ceil(MIN_SAMPLES_SEEN / images)))
        rounded = 2 ** int(math.log2(max(1, epochs * images / ENOUGH_STEPS)))
        batch = given.setdefault("batch_size", min(usual.batch_size, max(SMALLEST_BATCH, rounded)))
        steps = epochs * max(1, images // batch)
        # The lowest routed layer counts, where capsules are stacked below those of the classes.
        parents = [*model.config.get("stack", ()), model.num_classes][0]
        children_per_parent = model.num_primary_capsules / parents
        rate = usual.learning_rate * min(1.0, MNIST_CHILDREN / children_per_parent)
        rate /= model.image_shape[0]
        given.setdefault("learning_rate", float(f"{rate:.2g}"))
        given.setdefault("average", min(usual.average, max(0.0, round(1 - 8 / steps, 3))))
        return cls(**given)

    def check_shift(self, image_shape: Sequence[int]) -> None:
        """Raise ValueError if ``shift`` is not smaller than an image, [channels, height, width]."""
        if self.shift >= min(image_shape[1:]):
            raise ValueError(
                f"shift must be smaller than the images, {image_shape[1]} × {image_shape[2]}, got "
                f"{self.shift}"
            )

    def __post_init__(self) -> None:
        for name, low in (("epochs", 1), ("batch_size", 1), ("shift", 0), ("seed", 0)):
            # A checkpoint's JSON holds Python's numbers, not NumPy's.
            object.__setattr__(self, name, as_int(name, getattr(self, name), low))
        for name in ("learning_rate", "average", "reconstruction_weight"):
            value = getattr(self, name)
            if not isinstance(value, numbers.Real):
                raise ValueError(f"{name} must be a number, got {value!r}")
            object.__setattr__(self, name, float(value))
        if self.seed >= MAX_SEED:
            raise ValueError(f"seed must be below {MAX_SEED}, got {self.seed}")
        if not 0 < self.learning_rate < math.inf:
            raise ValueError(f"learning_rate must be positive, got {self.learning_rate}")
        if not 0 <= self.average < 1:
            raise ValueError(f"average must be at least 0 and below 1, got {self.average}")
        weight = self.reconstruction_weight
        if not 0 <= weight < math.inf:
            raise ValueError(f"reconstruction_weight must be at least 0, got {weight}")
        choices: dict[str, Sequence[Any]] = {
            "schedule": SCHEDULES,
            "precision": PRECISIONS,
            "arrangement": ARRANGEMENTS,
            "compile": (True, False, None),
        }
        for name, values in choices.items():
            value = getattr(self, name)
            if value not in values:
                expected = ", ".join(map(str, values))
                raise ValueError(f"{name} must be one of {expected}, got {value}")
