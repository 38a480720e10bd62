"""Adversarial examples: how far a white-box attack raises a network's error rate.

The attack knows the network and its gradient, which passes through the routing. For all networks it
ascends the same quantity, :func:`error_margin`, whose sign is what an error is.
"""

from typing import Any

import torch
from torch import Tensor, nn

from capsnet.data import ImageSet, to_float

ATTACKED_IMAGES = 200  # test images, the first ones
EPSILONS = (0.05, 0.1, 0.2)  # of intensities in 0 … 1
EPSILON = 0.1  # of the primary analysis
STEPS = 20


def error_margin(lengths: Tensor, labels: Tensor) -> Tensor:
    """The longest wrong capsule's length minus the right one's, [batch]; above 0 is an error.

    The margin loss would not do: its gradient is 0 where an image is classified with margins kept.
    """
    right = torch.nn.functional.one_hot(labels, lengths.shape[1]).bool()
    longest_wrong = lengths.masked_fill(right, -torch.inf).amax(dim=1)
    return longest_wrong - lengths[right]


def attack(
    model: nn.Module,
    images: Tensor,
    labels: Tensor,
    epsilon: float,
    steps: int,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Projected ascent of :func:`error_margin` by the gradient's sign (Madry et al., 2018).

    Args:
        model: the network, whose output has ``lengths``.
        images: [batch, channels, height, width], intensities in 0 … 1.
        labels: the right classes, [batch].
        epsilon: the largest change of a pixel.
        steps: one step is the fast gradient sign method (Goodfellow et al., 2015), which starts at
            the image and moves by all of ε; more begin at a random place within ε and move by
            2.5 ε / steps each.
        generator: for the random place.

    Returns:
        images of the same shape, in 0 … 1, no pixel further than ε from where it was.
    """
    lowest, highest = (images - epsilon).clamp(min=0), (images + epsilon).clamp(max=1)
    attacked, size = images, epsilon
    if steps > 1:
        noise = torch.rand(images.shape, generator=generator).to(images.device)
        attacked = (images + epsilon * (2 * noise - 1)).clamp(lowest, highest)
        size = 2.5 * epsilon / steps
    for _ in range(steps):
        attacked = attacked.detach().requires_grad_()
        loss = error_margin(model(attacked).lengths, labels).sum()
        (gradient,) = torch.autograd.grad(loss, attacked)
        attacked = (attacked + size * gradient.sign()).clamp(lowest, highest)
    return attacked.detach()


def count_attacked(model: nn.Module, test: ImageSet) -> dict[str, Any]:
    """Right answers to the first test images under attack, by the attack and by ε.

    "correct" of "total" is of the primary analysis, PGD with :data:`EPSILON`.
    """
    model.eval()
    device = next(model.parameters()).device
    images = to_float(test.images[:ATTACKED_IMAGES]).to(device)
    labels = test.labels[:ATTACKED_IMAGES].to(device)

    def correct(epsilon: float, steps: int) -> int:
        generator = torch.Generator().manual_seed(0)
        attacked = attack(model, images, labels, epsilon, steps, generator)
        with torch.no_grad():
            return int((error_margin(model(attacked).lengths, labels) < 0).sum())

    fgsm = {str(epsilon): correct(epsilon, 1) for epsilon in EPSILONS}
    pgd = {str(epsilon): correct(epsilon, STEPS) for epsilon in EPSILONS}
    return {"correct": pgd[str(EPSILON)], "total": len(images), "fgsm": fgsm, "pgd": pgd}
