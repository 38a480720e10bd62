"""How to train: every choice, its default and its range."""

import dataclasses
import math

from capsnet.device import PRECISIONS
from capsnet.fast import ARRANGEMENTS
from capsnet.training.loss import RECONSTRUCTION_WEIGHT

MAX_SEED = 2**40


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
    """How to train. The defaults suit MNIST.

    Attributes:
        epochs: passes over the training images, at least 1.
        batch_size: images a step, over all devices together, at least 1. An epoch's last, partial
            batch is left out (a random one each epoch).
        learning_rate: Adam's, above 0; the peak of "one-cycle", the start of "exponential".
        schedule: "one-cycle" (rise over the first 30 % of the steps, cosine fall to 0) or
            "exponential" (× 0.96 every 2000 steps, continuously, as the authors' released code).
        average: decay of an exponential moving average of the weights, which is then what is
            evaluated and saved; at least 0, for none, and below 1.
        reconstruction_weight: factor of the summed squared error (section 4.1), at least 0.
        shift: largest random shift in pixels, in each direction, at least 0.
        precision: "bf16", "fp32", or "auto": bf16 where the hardware multiplies in it.
        arrangement: of the arithmetic, "plain", "fast", or "auto" (:func:`capsnet.fast.arrange`).
        compile: use torch.compile: for the whole network, or the parts of the fast arrangement;
            None: where it works, which :func:`fit` finds out after a run's first batch.
        seed: of the order of the images and of the shifts, at least 0 and below 2⁴⁰.

    Raises:
        ValueError: a number is out of its range or not whole where it must be, or there is no such
            schedule, precision or arrangement.
    """

    epochs: int = 10
    batch_size: int = 128
    learning_rate: float = 3e-3
    schedule: str = "one-cycle"
    average: float = 0.99
    reconstruction_weight: float = RECONSTRUCTION_WEIGHT
    shift: int = 2
    precision: str = "auto"
    arrangement: str = "auto"
    compile: bool | None = False
    seed: int = 0

    def __post_init__(self) -> None:
        for name, low in (("epochs", 1), ("batch_size", 1), ("shift", 0), ("seed", 0)):
            value = getattr(self, name)
            if not isinstance(value, int) or value < low:
                raise ValueError(f"{name} must be a whole number of at least {low}, got {value}")
        if self.seed >= MAX_SEED:
            raise ValueError(f"seed must be below {MAX_SEED}, got {self.seed}")
        if not (self.learning_rate > 0 and math.isfinite(self.learning_rate)):
            raise ValueError(f"learning_rate must be positive, got {self.learning_rate}")
        if not 0 <= self.average < 1:
            raise ValueError(f"average must be at least 0 and below 1, got {self.average}")
        if not (self.reconstruction_weight >= 0 and math.isfinite(self.reconstruction_weight)):
            raise ValueError(
                f"reconstruction_weight must be at least 0, got {self.reconstruction_weight}"
            )
        for name, known in (
            ("schedule", ("one-cycle", "exponential")),
            ("precision", PRECISIONS),
            ("arrangement", ARRANGEMENTS),
        ):
            if getattr(self, name) not in known:
                raise ValueError(
                    f"{name} must be one of {', '.join(known)}, got {getattr(self, name)}"
                )
