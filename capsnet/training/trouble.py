"""What is wrong with a training run, and what to try: one line of text."""

import math
from collections.abc import Sequence
from typing import Any

from capsnet.training.config import MIN_SAMPLES_SEEN, TrainingConfig
from capsnet.training.evaluation import Evaluation

# Shares of the epochs. Before the peak of the learning rate every network is at chance, and at the
# end of a schedule every loss stands still.
PEAK, ENDING = 0.3, 0.8


def find_trouble(
    records: Sequence[dict[str, Any]], config: TrainingConfig, seen: int, result: Evaluation | None
) -> str | None:
    """What to say after an epoch, of all records so far and the latest evaluation, or None."""
    done = len(records) / config.epochs
    if done < PEAK:
        return None
    if result is not None and result.margin is not None:
        trouble = diagnose(result, config.learning_rate, seen)
        if trouble is not None:
            return trouble
    losses = [record["loss"] for record in records[-3:]]
    unchanged = len(losses) == 3 and max(losses) - min(losses) < 0.005 * losses[0]
    if unchanged and done <= ENDING:
        return f"the loss stands still at {losses[-1]:.4f}: try another learning rate"
    return None


def diagnose(result: Evaluation, rate: float, seen: int = MIN_SAMPLES_SEEN) -> str | None:
    """What the capsules do, and what to try, where a network is no better than chance.

    Chance is to answer the most frequent class every time. Returns None where the network is
    better, or where there is only one class.

    Args:
        result: of the network.
        rate: the learning rate of its training.
        seen: the images of the whole training run, each counted as often as it is seen.
    """
    baseline = int(result.labels.bincount().max())
    if baseline == result.total:  # of one class, which tells nothing
        return None
    spread = math.sqrt(baseline * (1 - baseline / result.total))  # of a binomial distribution
    if result.correct > min(baseline + 2 * spread, result.total - 1):
        return None
    shortest, longest = (float(bound.mean()) for bound in result.lengths.aminmax(dim=1))
    lower = f"a lower rate, such as {rate / 3:.1g}"
    if shortest > 0.5:
        state, advice = "saturated", lower
    elif longest < 0.15:
        state, advice = "silent", f"more epochs, or a rate of {3 * rate:.1g}"
    else:
        state, advice = "alike", f"more epochs, or {lower}"
    if seen < MIN_SAMPLES_SEEN:
        advice = f"more epochs first (the run uses only {seen:,} images, repetitions included)"
    return (
        f"hardly better than giving every image the same answer ({result.correct} of "
        f"{result.total} right, {baseline} with the most frequent class): the capsules are "
        f"{state}, with mean lengths from {shortest:.2f} to {longest:.2f}; try {advice}"
    )
