"""How to train: every choice, its default and its range."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

from capsnet.checks import as_int
from capsnet.device import PRECISIONS
from capsnet.fast import ARRANGEMENTS
from capsnet.model import CapsNet
from capsnet.training.loss import RECONSTRUCTION_WEIGHT

MAX_SEED = 2**40
MNIST_CHILDREN = 115.2  # primary capsules for each class
ENOUGH_STEPS = 500  # a training of fewer is one of small batches
SMALLEST_BATCH = 16
FEWEST_SEEN = 8000  # images, each counted as often as it is seen
SUITED = ("epochs", "batch_size", "learning_rate", "average")
SCHEDULES = ("one-cycle", "exponential", "by-epoch", "plateau", "constant")


def option(default: Any, text: str) -> Any:
    """A field and its description, which is also the command line's help."""
    return dataclasses.field(default=default, metadata={"help": text})


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
    """How to train; ``capsnet train --help`` shows the same list.

    The defaults suit MNIST; :meth:`suited` has those of another network and other images.

    Raises:
        ValueError: a setting is out of its range, not whole where it must be, or not known.
    """

    epochs: int = option(10, "passes over the training images")
    # Over all devices together. An epoch's last, partial batch is left out: a random one each time.
    batch_size: int = option(128, "images a step")
    learning_rate: float = option(3e-3, "Adam's (peak) rate")
    # One-cycle rises over the first 30 % of the steps and falls to 0 as a cosine. Exponential is
    # × 0.96 every 2000 steps, continuously, as in the authors' released code. By epoch: × 0.9 after
    # each. Plateau: ÷ 10 after more than 15 epochs without a lower validation loss, or without
    # validation images, training loss.
    schedule: str = option("one-cycle", f"of the rate: {', '.join(SCHEDULES)}")
    # The averaged weights are the ones that are evaluated and saved.
    average: float = option(0.99, "decay of the weights' moving average; 0 for none")
    reconstruction_weight: float = option(
        RECONSTRUCTION_WEIGHT, "factor of the summed squared error of an image (section 4.1)"
    )
    shift: int = option(2, "largest random shift in pixels, in each direction")
    shuffle: bool = option(True, "see the images in another order in each epoch")
    fresh_adam: bool = option(False, "make Adam anew for each epoch")
    precision: str = option("auto", "fp32, bf16, or auto: bf16 where the hardware has it")
    arrangement: str = option(
        "auto",
        "of the arithmetic: plain (as the book prints it), fast, or auto: fast where it pays",
    )
    # None: where it works, but on CUDA; fit finds that out after the first batch of a new run.
    compile: bool | None = option(
        False, "use torch.compile (if not given, where it works, but on CUDA)"
    )
    seed: int = option(0, "of the weights, of the images' order and of their shifts")

    @classmethod
    def suited(cls, model: CapsNet, images: int, **given: Any) -> "TrainingConfig":
        """Options for a network that learns from so many images.

        Those of MNIST, but for what is given, and these: few images are seen more often, in smaller
        batches, so that there are steps enough; in a short training the average spans less. The
        rate falls as a sum has more terms, for a step of Adam's moves all weights alike: s_j is the
        sum of the primary capsules' predictions, each weighed by 1 / classes at first, and a
        feature that of all channels. At too high a rate all capsules are soon of length 1, where
        squash is flat, and stay so.
        """
        usual, images = cls(**given), max(1, images)  # what is given is looked at first
        epochs = given.setdefault("epochs", max(usual.epochs, math.ceil(FEWEST_SEEN / images)))
        rounded = 2 ** int(math.log2(max(1, epochs * images / ENOUGH_STEPS)))
        batch = given.setdefault("batch_size", min(usual.batch_size, max(SMALLEST_BATCH, rounded)))
        steps = epochs * max(1, images // batch)
        rate = usual.learning_rate * min(1.0, MNIST_CHILDREN / model.children_for_each_parent)
        rate /= model.config["image_shape"][0]
        given.setdefault("learning_rate", float(f"{rate:.2g}"))
        given.setdefault("average", min(usual.average, max(0.0, round(1 - 8 / steps, 3))))
        return cls(**given)

    def check_shift(self, image_shape: Sequence[int]) -> None:
        """See that a shift leaves some of the images, [channels, height, width], in sight.

        Raises:
            ValueError: it does not.
        """
        if self.shift >= min(image_shape[1:]):
            raise ValueError(
                f"shift must be smaller than the images, {image_shape[1]} × {image_shape[2]}, got "
                f"{self.shift}"
            )

    def __post_init__(self) -> None:
        for name, low in (("epochs", 1), ("batch_size", 1), ("shift", 0), ("seed", 0)):
            # In a checkpoint's JSON there are no numbers but Python's.
            object.__setattr__(self, name, as_int(name, getattr(self, name), low))
        if self.seed >= MAX_SEED:
            raise ValueError(f"seed must be below {MAX_SEED}, got {self.seed}")
        for name in ("learning_rate", "average", "reconstruction_weight"):
            if not isinstance(value := getattr(self, name), int | float):
                raise ValueError(f"{name} must be a number of Python's, got {value!r}")
        if not 0 < self.learning_rate < math.inf:
            raise ValueError(f"learning_rate must be positive, got {self.learning_rate}")
        if not 0 <= self.average < 1:
            raise ValueError(f"average must be at least 0 and below 1, got {self.average}")
        if not 0 <= (weight := self.reconstruction_weight) < math.inf:
            raise ValueError(f"reconstruction_weight must be at least 0, got {weight}")
        known: dict[str, Sequence[Any]] = {
            "schedule": SCHEDULES,
            "shuffle": (True, False),
            "fresh_adam": (True, False),
            "precision": PRECISIONS,
            "arrangement": ARRANGEMENTS,
            "compile": (True, False, None),
        }
        for name, values in known.items():
            if (value := getattr(self, name)) not in values:
                expected = ", ".join(map(str, values))
                raise ValueError(f"{name} must be one of {expected}, got {value}")
