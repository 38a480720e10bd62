"""A network that is being checked: copies of it, its calls, and the module that routes."""

import contextlib
import copy
import functools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from capsnet_lab.check.adapter import Adapter, CallFunction, Output, read_output, require_shape
from capsnet_lab.check.evidence import (
    FLOAT64_ERROR,
    UserCodeError,
    copied,
    relative_error,
    scale_weights,
    user_code,
)


class Subject:
    """A copy of a network in float64, and how to call it; a ValueError if that is not possible."""

    def __init__(self, model: nn.Module, adapter: Adapter) -> None:
        with user_code("the network cannot be copied: "):
            self.model = copy.deepcopy(model).cpu().double().eval().requires_grad_(True)
        modules = [name for name, _ in self.model.named_modules() if name]
        if adapter.routing is not None and adapter.routing not in modules:
            raise ValueError(
                f"the network has no module {adapter.routing!r}; it has {', '.join(modules)}"
            )
        self.adapter, self.routing = adapter, adapter.routing
        self.generator = torch.Generator().manual_seed(0)
        self.images = self.random(8, *adapter.image_shape).sigmoid()
        self.classes = 0  # until the first call
        self.find_call()
        self.check_answer()
        if self.routing is None and adapter.primary is None and adapter.digits is None:
            self.routing = find_routing(self)
        if self.routing is not None:
            self.adapter = stages_of_module(self, self.routing)

    def find_call(self) -> None:
        """Set ``call``, with labels if the network accepts them, and ``classes``."""
        ways: list[CallFunction] = [
            lambda net, images, labels: net(images),
            lambda net, images, labels: net(images, labels),
            lambda net, images, labels: net(
                images, F.one_hot(labels, self.classes or 10).to(images)
            ),
        ]
        works: CallFunction | None = None
        errors: list[UserCodeError] = []
        for way in [self.adapter.call] if self.adapter.call else ways:
            self.call = way
            try:
                self.classes = self.output(self.model).answer.shape[1]
                works = way  # the last one that does
            except UserCodeError as error:
                errors.append(error)
        if works is None:
            informative = [error for error in errors if not isinstance(error.__cause__, TypeError)]
            first = (informative or errors)[0]
            raise ValueError(
                f"the network cannot be called with images {list(self.images.shape)}: "
                f"{first}; give an Adapter with another call or image_shape "
                "(labels were 0 and 1, as indices or one-hot of 10 classes; check runs in float64 "
                "on the CPU, with batches of 1 to 8: does the code fix a batch size, or keep "
                "modules in a plain list, where PyTorch does not see them?)"
            ) from first
        self.call = works
        self.adapter = replace(self.adapter, call=works)

    def check_answer(self) -> None:
        """Raise ValueError if nothing can be learned from what the network returns."""
        out = self.output(self.model)
        answer = out.answer
        if not answer.isfinite().all():
            raise ValueError(
                "the network cannot be checked: it returns NaN or infinity; is a capsule of zeros "
                "divided by its norm?"
            )
        if out.norms.min() < 0:
            raise ValueError(
                "expected capsules or their lengths, got negative numbers: are the "
                f"{list(answer.shape)} logits?"
            )
        if relative_error(answer[1:], answer[:-1]) < FLOAT64_ERROR:
            raise ValueError("the network cannot be checked: all images get the same answer")

    def random(self, *shape: int) -> Tensor:
        return torch.randn(shape, generator=self.generator)

    def labels(self, images: Tensor, shift: int = 0) -> Tensor:
        return (torch.arange(len(images)) + shift) % (self.classes or 2)

    def output(
        self, model: nn.Module, images: Tensor | None = None, labels: Tensor | None = None
    ) -> Output:
        """What the network returns; v of the routing's module counts as returned."""
        images = self.images if images is None else images
        labels = self.labels(images) if labels is None else labels
        torch.default_generator.manual_seed(0)  # for dropout
        with torch.enable_grad():  # lengths have a gradient, and a mask has none
            if self.routing is None:
                with user_code():
                    returned = self.call(model, images, labels)
                return read_output(returned, images)
            with recorded_calls(model, self.routing) as calls, user_code():
                returned = self.call(model, images, labels)
        return read_output((calls[-1].returned, returned), images)

    @functools.cached_property
    def rescaled(self) -> nn.Module:
        """A copy whose weights are scaled until the mean length is between 0.2 and 0.7."""
        model = copied(self.model)
        for _ in range(12):
            size = self.output(model).norms.detach().nan_to_num().mean().item()
            if 0.2 < size < 0.7:
                break
            scale_weights(model, min(max((0.45 / max(size, 1e-9)) ** (1 / 6), 0.5), 2))
        return model

    def answer(self, images: Tensor) -> Tensor:
        """The answer of the rescaled copy, in evaluation mode."""
        return self.output(self.rescaled, images).answer

    @functools.cached_property
    def rescaled_training(self) -> nn.Module:
        """A copy of ``rescaled`` in training mode."""
        return copied(self.rescaled).train()

    @functools.cached_property
    def biased(self) -> nn.Module:
        """A copy whose biases are all different."""
        model = copied(self.model)
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.data = 0.2 * self.random(*parameter.shape)
        return model

    def primary(self, model: nn.Module, images: Tensor) -> Tensor:
        """The primary capsules u, by the adapter, [n, children, dim]."""
        assert self.adapter.primary is not None
        with user_code():
            u = self.adapter.primary(model, images)
        return require_shape("u, [n, children, dim]", u, 3, batch=len(images))

    def children(self, images: Tensor) -> Tensor:
        """The primary capsules of the copy with different biases."""
        return self.primary(self.biased, images).detach().nan_to_num()

    @functools.cached_property
    def uniform(self) -> Tensor:
        """The primary capsules of an image whose pixels are all equal, [1, children, dim]."""
        return self.children(torch.full_like(self.images[:1], 0.5))

    @property
    def read_as(self) -> str:
        """The sizes that the network was taken to have."""
        capsules = self.output(self.model).capsules
        read = f"{self.classes} classes"
        if capsules is not None:
            read += f" of {capsules.shape[2]} numbers"
        if self.adapter.primary is not None:
            with contextlib.suppress(UserCodeError):
                count, dim = self.uniform.shape[1:]
                read += f", {count} children of {dim}"
        return read


class Call(NamedTuple):
    """One call of a module."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    returned: Any


@contextlib.contextmanager
def recorded_calls(model: nn.Module, name: str) -> Iterator[list[Call]]:
    """Collect the calls of one module; a UserCodeError if there are none."""
    calls: list[Call] = []

    def hook(module: nn.Module, *call: Any) -> None:
        calls.append(Call(*call))

    handle = model.get_submodule(name).register_forward_hook(hook, with_kwargs=True)
    try:
        yield calls
    finally:
        handle.remove()
    if not calls:
        raise UserCodeError(f"its {name} is not called")


def find_routing(net: Subject) -> str | None:
    """The first child module that is called once with capsules and returns one for each class."""
    for name, _ in net.model.named_children():
        with contextlib.suppress(UserCodeError), recorded_calls(net.model, name) as calls:
            net.output(net.model)
        if len(calls) != 1 or not calls[0].args:
            continue
        u, v = calls[0].args[0], calls[0].returned
        if not isinstance(u, Tensor) or not isinstance(v, Tensor) or u.dim() != 3 or v.dim() < 3:
            continue
        # A mask or a decoder gets no more capsules than there are classes.
        if u.shape[1] > net.classes == v.shape[1] and len(u) == len(v) == len(net.images):
            return name
    return None


def stages_of_module(net: Subject, name: str) -> Adapter:
    """The stages of a network whose routing is one module."""

    def only_call(model: nn.Module, images: Tensor) -> Call:
        with recorded_calls(model, name) as calls:
            net.output(model, images)
        if len(calls) > 1:
            raise UserCodeError(f"its {name} is called {len(calls)} times for one answer")
        return calls[0]

    # The children may lie in rows and columns, and the number of iterations may be given, too.
    call = only_call(net.model, net.images)
    first, *others = call.args
    if not isinstance(first, Tensor) or first.dim() < 3:
        raise UserCodeError(f"{name} must be given u, [n, children, dim], first")
    places = first.shape[1:-1]

    def primary(model: nn.Module, images: Tensor) -> Tensor:
        return cast(Tensor, only_call(model, images).args[0].flatten(1, -2))

    def digits(model: nn.Module, u: Tensor) -> Tensor:
        v: Tensor = model.get_submodule(name)(u.unflatten(1, places), *others, **call.kwargs)
        return v

    return replace(net.adapter, primary=primary, digits=digits, routing=None)
