"""Options that suit the network and the images."""

from collections.abc import Callable
from functools import partial

import pytest
import torch

from capsnet import CapsNet
from capsnet.training import TrainingConfig
from capsnet_lab.routings import RoutedCapsNet
from capsnet_lab.wild import WildCapsNet
from helpers import Refuses


def network(shape: tuple[int, int, int] = (1, 28, 28), classes: int = 10) -> CapsNet:
    with torch.device("meta"):
        return CapsNet(shape, classes)


def test_mnist_keeps_its_options() -> None:
    assert TrainingConfig.for_model(network(), 50_000) == TrainingConfig()
    for easier in (network((1, 20, 20)), network(classes=26)):  # no rate is higher
        assert TrainingConfig.for_model(easier, 50_000) == TrainingConfig()
    two = TrainingConfig.for_model(network(), 50_000, epochs=2)
    assert two == TrainingConfig(epochs=2, average=two.average) and 0.98 < two.average <= 0.99


@pytest.mark.parametrize(
    ("make", "rate"),
    [
        (partial(WildCapsNet, deviations=["shared-w"]), 0.00075),
        (partial(RoutedCapsNet, routing="shared"), 0.00075),
        (partial(RoutedCapsNet, stack=[32]), 0.0024),  # 4,608 / 32 terms, below 32 / 10
        (partial(RoutedCapsNet, stack=[5]), 0.00038),
    ],
)
def test_children_count_that_share_a_w_and_the_lowest_layers(
    make: Callable[..., CapsNet], rate: float
) -> None:
    with torch.device("meta"):
        assert TrainingConfig.for_model(make((1, 40, 40)), 50_000).learning_rate == rate


def test_what_is_given_stays() -> None:
    given = {"epochs": 1, "batch_size": 7, "learning_rate": 0.5, "average": 0.0, "seed": 3}
    assert TrainingConfig.for_model(network(), 50, **given) == TrainingConfig(**given)


def test_what_is_out_of_its_range_is_refused(refuses: Refuses) -> None:
    for name in ("epochs", "batch_size"):
        for images in (0, 50):
            with refuses(f"{name} must be a whole number of at least 1, got 0"):
                TrainingConfig.for_model(network(), images, **{name: 0})
    assert TrainingConfig.for_model(network(), 0) == TrainingConfig.for_model(network(), 1)


def test_fifty_images_get_enough_steps() -> None:
    """With MNIST's options they would get ten; the ledger shows that these are learned."""
    suited = TrainingConfig.for_model(network(), 50)
    assert 400 <= suited.epochs * (50 // suited.batch_size) <= 1000
