"""On a GPU: the same numbers, and nothing that waits for the device.

FakeTensorMode has CUDA tensors on any machine. They have no values, so it raises where the host
reads one.
"""

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode

from capsnet.data import (
    ImageSet,
    affine,
    moved_whole,
    multimnist,
    overlaid,
    random_shift,
    shifted,
    to_float,
)
from helpers.tiny import some_digits

INDEX = torch.arange(50)


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(0)


@pytest.fixture(scope="module")
def digits() -> ImageSet:
    return some_digits(50)


@pytest.fixture
def there(digits: ImageSet, monkeypatch: pytest.MonkeyPatch) -> Iterator[ImageSet]:
    """The digits on a GPU that need not exist."""
    order, starts, present = digits.by_class  # its one read comes before the first batch
    monkeypatch.setattr(Tensor, "pin_memory", lambda tensor: tensor)  # fake tensors have none
    with FakeTensorMode(allow_non_fake_inputs=True):
        moved = digits.to("cuda")
        vars(moved)["by_class"] = (order.to("cuda"), starts.to("cuda"), present)
        yield moved


def test_a_read_by_the_host_would_be_noticed(there: ImageSet) -> None:
    with pytest.raises(DataDependentOutputException):
        int(there.labels.max())
    with pytest.raises(DataDependentOutputException):
        ImageSet(there.images, there.labels, there.classes, "not trusted")


@pytest.mark.parametrize("generator", [seeded(), None], ids=["drawn here", "drawn there"])
def test_batches_do_not_wait(there: ImageSet, generator: torch.Generator | None) -> None:
    index = INDEX.to("cuda")
    made = [
        *shifted(there, index, 2, generator),
        *overlaid(there, index, 2, generator),
        to_float(there.subset(slice(0, 20)).images),
        there.subset(index).labels,
        affine(there.images, generator),
        moved_whole(there.images, generator),
    ]
    assert all(tensor.device.type == "cuda" for tensor in made)


MAKERS = {
    "random_shift": lambda s: random_shift(s.images, 2, seeded()),
    "multimnist": lambda s: multimnist(s, INDEX, seeded()).images,
    "moved_whole": lambda s: moved_whole(s.images, seeded()),
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_cpu_generator_gives_the_same_on_every_device(
    digits: ImageSet, name: str, device: torch.device
) -> None:
    make: Callable[[ImageSet], Tensor] = MAKERS[name]
    assert torch.equal(make(digits.to(device)).cpu(), make(digits))


def test_affine_is_the_same_on_every_device(digits: ImageSet, device: torch.device) -> None:
    there, here = affine(digits.images.to(device), seeded()).cpu(), affine(digits.images, seeded())
    assert (there.int() - here.int()).abs().max() <= 1  # the samplers round differently
