"""On a GPU: the same numbers, and nothing that waits for the device."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import DataDependentOutputException

from capsnet import data
from capsnet.data import ImageSet
from capsnet_book.affnist import affine, moved_whole
from helpers.tiny import some_digits

INDEX = torch.arange(50)


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(0)


@pytest.fixture
def digits() -> ImageSet:
    found = some_digits(50)
    assert found.by_class  # its one read comes before the first batch
    return found


@pytest.fixture
def there(digits: ImageSet, fake_cuda: torch.device) -> ImageSet:
    """Digits on a GPU that need not exist."""
    order, starts, present = digits.by_class
    moved = digits.to(fake_cuda)
    vars(moved)["by_class"] = (order.to(fake_cuda), starts.to(fake_cuda), present)
    return moved


def test_a_set_that_is_not_trusted_would_be_read(there: ImageSet) -> None:
    with pytest.raises(DataDependentOutputException):
        ImageSet(there.images, there.labels, there.classes, "not trusted")


@pytest.mark.parametrize("generator", [seeded(), None], ids=["drawn here", "drawn there"])
def test_batches_do_not_wait(there: ImageSet, generator: torch.Generator | None) -> None:
    index = INDEX.to("cuda")
    made = [
        *data.shifted(there, index, 2, generator),
        *data.overlaid(there, index, 2, generator),
        data.to_float(there.subset(slice(0, 20)).images),
        there.subset(index).labels,
        affine(there.images, generator),
        moved_whole(there.images, generator),
    ]
    assert all(tensor.device.type == "cuda" for tensor in made)


# The function and, as samplers round differently, the grey levels that may lie between devices.
MAKERS: dict[str, tuple[Callable[[ImageSet], Tensor], int]] = {
    "random_shift": (lambda s: data.random_shift(s.images, 2, seeded()), 0),
    "multimnist": (lambda s: data.multimnist(s, INDEX, seeded()).images, 0),
    "moved_whole": (lambda s: moved_whole(s.images, seeded()), 0),
    "affine": (lambda s: affine(s.images, seeded()), 1),
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_cpu_generator_gives_the_same_on_every_device(name: str, device: torch.device) -> None:
    make, most = MAKERS[name]
    digits = some_digits(50)
    there, here = make(digits.to(device)).cpu(), make(digits)
    assert (there.int() - here.int()).abs().max() <= most
