"""What is wrong with a training run, and what to try: one line of text."""

import math

from capsnet.training.evaluation import Evaluation

ENOUGH_IMAGES = 30  # fewer are no evidence that a network is no better than chance


def diagnose(result: Evaluation, rate: float) -> str | None:
    """What the capsules do, and what to try, where a network is no better than chance.

    Chance is to answer the most frequent class every time. Returns None where the network is
    better, has no capsules or was evaluated on fewer than 30 images, or where all images are of one
    class. ``rate`` is the learning rate of its training.
    """
    baseline = int(result.labels.bincount().max())
    others = result.total - baseline
    if result.margin is None or others == 0 or result.total < ENOUGH_IMAGES:
        return None
    spread = math.sqrt(baseline * others / result.total)  # of a binomial distribution
    # If the other classes are rare, two spreads are more than their images: half of them will do.
    if result.correct > baseline + min(2 * spread, others / 2):
        return None
    shortest, longest = (float(bound.mean()) for bound in result.lengths.aminmax(dim=1))
    lower = f"a lower rate, such as {rate / 3:.1g}"
    if longest - shortest >= 0.2:
        state, advice = "long for the wrong classes", f"more epochs, or {lower}"
    elif shortest > 0.5:
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
