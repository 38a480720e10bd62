"""Training: ``make_step``, ``fit`` and ``evaluate``."""

from capsnet.training.config import TrainingConfig
from capsnet.training.evaluation import Evaluation, evaluate
from capsnet.training.fit import TrainingError, fit
from capsnet.training.loss import TrainingLoss
from capsnet.training.step import make_optimizer, make_step

__all__ = [
    "Evaluation",
    "TrainingConfig",
    "TrainingError",
    "TrainingLoss",
    "evaluate",
    "fit",
    "make_optimizer",
    "make_step",
]
