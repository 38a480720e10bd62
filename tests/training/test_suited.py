"""Options that suit the network and the images."""

import dataclasses

from capsnet.training import TrainingConfig, evaluate
from helpers.tiny import FP32, fit, some_digits, tiny_model

CHILDREN = 1152  # of MNIST's network


def test_mnist_keeps_its_options() -> None:
    assert TrainingConfig.suited(CHILDREN, 50_000) == TrainingConfig()
    two = TrainingConfig.suited(CHILDREN, 50_000, epochs=2)
    assert two == TrainingConfig(epochs=2, average=two.average) and 0.98 < two.average <= 0.99


def test_more_children_learn_at_a_lower_rate() -> None:
    rates = [TrainingConfig.suited(n, 50_000).learning_rate for n in (576, CHILDREN, 2048, 4608)]
    assert rates == [0.003, 0.003, 0.0017, 0.00075]


def test_what_is_given_stays() -> None:
    given = {"epochs": 1, "batch_size": 7, "learning_rate": 0.5, "average": 0.0, "seed": 3}
    assert TrainingConfig.suited(9999, 50, **given) == TrainingConfig(**given)


def test_fifty_images_are_learned() -> None:
    """With MNIST's options ten steps are all there is."""
    images = some_digits(50)
    suited = TrainingConfig.suited(CHILDREN, len(images), precision="fp32", shift=0)
    assert 400 <= suited.epochs * (50 // suited.batch_size) <= 1000
    right = {}
    for name, config in {"suited": suited, "MNIST's": TrainingConfig(shift=0)}.items():
        model = tiny_model()
        fit(model, images, None, dataclasses.replace(FP32, **dataclasses.asdict(config)))
        right[name] = evaluate(model, images).correct
    assert right["suited"] >= 45 and right["MNIST's"] < 25, right
