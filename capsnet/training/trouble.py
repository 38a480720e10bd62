"""What is wrong with a training run, and what to try: one line of text."""

import math

from capsnet.training.evaluation import Evaluation


def diagnose(result: Evaluation, rate: float) -> str | None:
    """What the capsules do, and what to try, where a network is no better than chance.

    Chance is to answer the most frequent class every time. Returns None where the network is
    better or has no capsules, or where all images are of one class. ``rate`` is the learning rate
    of its training.
    """
    baseline = int(result.labels.bincount().max())
    if result.margin is None or baseline == result.total:
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
    return (
        f"hardly better than giving every image the same answer ({result.correct} of "
        f"{result.total} right, {baseline} with the most frequent class): the capsules are "
        f"{state}, with mean lengths from {shortest:.2f} to {longest:.2f}; try {advice}"
    )
