"""What the tests of the training share."""

import pytest

from capsnet.data import ImageSet
from helpers.tiny import some_digits


@pytest.fixture(scope="session")
def digits() -> ImageSet:
    return some_digits(128)
