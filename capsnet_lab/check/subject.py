"""A stranger's capsule network: how to call it, and to reach its inside."""

import contextlib
import copy
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, is_dataclass, replace
from typing import Any, NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from capsnet.text import reason

EXACT = 1e-9  # two float64 computations of the same thing agree to this
STRANGE = Exception, SystemExit  # in what a stranger's code may end
Map = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Adapter:
    """How to call a network, and how to reach its inside; what is left out is not examined.

    Each function's first argument is the network, because copies of it are looked at. Batches are
    of 1 to 8: code that is written for one size fails, and a ``.squeeze()`` without a dimension on
    a batch of one. Images are intensities of about 0 … 1: what a data loader does to them besides,
    such as Normalize, is the first thing that each function does. Labels are indices. A decoder
    that stands beside the network is first joined to it, in one module::

        adapter = Adapter(
            call=lambda net, images, labels: net(images, labels),
            primary=lambda net, images: net.primary(net.conv(images).relu()),
            digits=lambda net, u: net.digits(u),
            loss=lambda net, images, labels: my_loss(*net(images, labels), images, labels),
        )

    Attributes:
        call: images and class indices → what the network returns in training: capsules [n, classes,
            dim], lengths [n, classes], the reconstruction that the loss is of, or several of them.
            By default ``net(images, labels)``, with indices or one-hot, or ``net(images)``.
        primary: images → u, the primary capsules, squashed, [n, children, dim].
        digits: u → v, the class capsules, [n, classes, dim].
        routing: the name of the module that maps u to v, in place of both; v is then looked at also
            where the network returns only its lengths.
        loss: images and class indices → the loss of training.
        image_shape: [channels, height, width].
    """

    call: Callable[[Any, Tensor, Tensor], Any] | None = None
    primary: Callable[[Any, Tensor], Tensor] | None = None
    digits: Callable[[Any, Tensor], Tensor] | None = None
    loss: Callable[[Any, Tensor, Tensor], Tensor] | None = None
    image_shape: Sequence[int] = (1, 28, 28)
    routing: str | None = None

    def __post_init__(self) -> None:
        """Raises ValueError where the shape is not one, or a stage is said twice."""
        if self.routing is not None and (self.primary or self.digits):
            raise ValueError("an Adapter has routing, or primary and digits, and not both")
        shape: Any = self.image_shape
        sides = [*shape] if isinstance(shape, Sequence) else []
        if len(sides) != 3 or not all(isinstance(side, int) and side > 0 for side in sides):
            raise ValueError(
                f"image_shape must be [channels, height, width], whole and positive, got {shape!r}"
            )


class Output(NamedTuple):
    capsules: Tensor | None  # [n, classes, dim]
    lengths: Tensor | None  # [n, classes], as the network returns them
    reconstruction: Tensor | None  # like the images
    raw: Tensor | None  # the capsules as the network returns them: the decoder may have seen these
    besides: tuple[Tensor, ...]  # others of the lengths' shape, such as their softmax

    @property
    def answer(self) -> Tensor:
        """The most that is known of the classes."""
        answer = self.lengths if self.capsules is None else self.capsules
        assert answer is not None
        return answer

    @property
    def norms(self) -> Tensor:
        """How long the capsules are; the lengths where they are all that is returned."""
        return self.answer if self.capsules is None else self.capsules.norm(dim=2)


class Subject:
    """A copy of a network in float64, and how to call it.

    Raises:
        ValueError: it cannot be copied or called, returns no capsules and no lengths (which are
            never negative), or such that tell nothing: of one class, NaN or infinite, without a
            gradient, the same of all images. Or its routing has no module of that name, one that is
            not called just once, or one that is given no u.
    """

    def __init__(self, model: nn.Module, adapter: Adapter) -> None:
        try:
            self.model = copy.deepcopy(model).cpu().double().eval().requires_grad_(True)
        except STRANGE as error:
            raise ValueError(f"the network cannot be copied: {words_of(error)}") from error
        modules = dict(self.model.named_modules())
        if adapter.routing is not None and not (adapter.routing and adapter.routing in modules):
            there = ", ".join(filter(None, modules))
            raise ValueError(f"the network has no module {adapter.routing}, but {there}")
        self.adapter, self.routing = adapter, adapter.routing
        self.generator = torch.Generator().manual_seed(0)
        self.images = self.random(8, *adapter.image_shape).sigmoid()
        self.classes = 0  # until it answers
        ways: list[Callable[[Any, Tensor, Tensor], Any]] = [
            lambda net, images, labels: net(images),
            lambda net, images, labels: net(images, labels),
            lambda net, images, labels: net(
                images, F.one_hot(labels, self.classes or 10).to(images)
            ),
        ]
        works: Callable[[Any, Tensor, Tensor], Any] | None = None
        wrong: list[BaseException] = []
        for self.call in [adapter.call] if adapter.call else ways:
            try:
                self.classes = self.output(self.model).answer.shape[1]
                works = self.call  # the last that does
            except STRANGE as error:
                wrong.append(error)
        if works is None:
            telling = [error for error in wrong if not isinstance(error, TypeError)] or wrong
            raise ValueError(
                f"the network cannot be called with images {list(self.images.shape)}: "
                f"{words_of(telling[0])}; an Adapter says how, and with which image_shape (labels "
                "were 0 and 1, or one-hot of 10 classes; check runs in float64 on the CPU, with "
                "batches of 1 to 8: is a batch size fixed in the code, or a module kept in a plain "
                "list, which PyTorch does not see?)"
            ) from telling[0]
        self.call = works
        answer = self.output(self.model).answer
        if self.classes < 2:
            raise ValueError(f"expected a network of at least two classes, got {self.classes}")
        if not answer.isfinite().all():
            raise ValueError(
                f"the network cannot be checked: it returns NaN or infinity{self.first_ill()}; "
                "is a capsule of zeros divided by its norm?"
            )
        if self.output(self.model).norms.min() < 0:
            raise ValueError(
                "expected capsules or their lengths, got negative numbers: are the "
                f"{list(answer.shape)} logits?"
            )
        if not answer.requires_grad:
            raise ValueError("the network cannot be checked: what it returns has no gradient")
        if apart(answer[1:], answer[:-1]) < EXACT:
            raise ValueError("the network cannot be checked: all images get the same answer")
        if self.routing is not None:
            self.adapter = within(self, self.routing)

    def first_ill(self) -> str:
        """Which module is the first to make what is no number of numbers, if one does."""
        ill: list[str] = []

        def note(name: str, given: Any, returned: Any) -> None:
            good, made = (
                all(x.isfinite().all() for x in tensors_in(value)) for value in (given, returned)
            )
            if name and good and not made:
                ill.append(name)

        with watched(self.model, note):
            self.output(self.model)
        return f", first from its {ill[0]}" if ill else ""

    def random(self, *shape: int) -> Tensor:
        return torch.randn(shape, generator=self.generator)

    def labels(self, images: Tensor, after: int = 0) -> Tensor:
        return (torch.arange(len(images)) + after) % (self.classes or 2)

    def output(
        self, model: nn.Module, images: Tensor | None = None, labels: Tensor | None = None
    ) -> Output:
        """What the network returns."""
        images = self.images if images is None else images
        labels = self.labels(images) if labels is None else labels
        torch.default_generator.manual_seed(0)  # of dropout
        with torch.enable_grad():  # by which lengths are told from a mask
            if self.routing is None:
                return told_apart(self.call(model, images, labels), images)
            with calls_of(model, self.routing) as calls:
                returned = self.call(model, images, labels)
        return told_apart((calls[-1].made, returned), images)

    @functools.cached_property
    def lively(self) -> nn.Module:
        """A copy of it with weights such that capsules are neither short nor long."""
        model = copy.deepcopy(self.model)
        for _ in range(12):
            size = self.output(model).norms.detach().nan_to_num().mean().item()
            if 0.2 < size < 0.7:
                break
            grow(model, min(max((0.45 / max(size, 1e-9)) ** (1 / 6), 0.5), 2))
        return model

    @functools.cached_property
    def learning(self) -> nn.Module:
        """The same in training."""
        return copy.deepcopy(self.lively).train()

    @functools.cached_property
    def biased(self) -> nn.Module:
        """A copy of it with biases that are all different."""
        model = copy.deepcopy(self.model)
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.data = 0.2 * self.random(*parameter.shape)
        return model

    def primary(self, model: nn.Module, images: Tensor) -> Tensor:
        """The primary capsules, by the adapter."""
        assert self.adapter.primary is not None
        return of_each(
            images, checked("u, [n, children, dim]", self.adapter.primary(model, images), 3)
        )

    def children(self, images: Tensor) -> Tensor:
        """The primary capsules of that copy."""
        return self.primary(self.biased, images).detach().nan_to_num()

    @property
    def read_as(self) -> str:
        """Of what sizes it was taken to be."""
        capsules = self.output(self.model).capsules
        read = f"{self.classes} classes"
        if capsules is not None:
            read += f" of {capsules.shape[2]} numbers"
        with contextlib.suppress(*STRANGE):
            count, dim = self.even.shape[1:]
            read += f", {count} children of {dim}"
        return read

    @functools.cached_property
    def even(self) -> Tensor:
        """The primary capsules of an even image."""
        return self.children(torch.full_like(self.images[:1], 0.5))

    def last(self, model: nn.Module) -> list[nn.Parameter]:
        """W of the class capsules, by a side: as long as there are classes, or numbers of them."""
        answer = self.output(model).answer
        sides = {self.classes, answer[0].numel()}
        depends = depends_on(answer, model)
        return [p for p in depends if p.dim() > 1 and not sides.isdisjoint(p.shape)]


def told_apart(returned: Any, images: Tensor) -> Output:
    """What a network returns of images, by shape: capsules, lengths, a reconstruction.

    Raises:
        ValueError: there are neither capsules nor lengths, or it is open which are the capsules.
    """
    several = tensors_in(returned)
    found: dict[str, Tensor] = {}
    besides: list[Tensor] = []
    single: list[Tensor] = []
    solid: list[Tensor] = []
    flat: list[Tensor] = []
    for tensor in several:
        if tensor.dim() < 2 or len(tensor) != len(images):
            continue
        slim = without_ones(tensor)
        as_images = tensor.dim() == 2 or slim.shape == without_ones(images).shape
        if tensor.numel() == images.numel() and as_images:
            found.setdefault("reconstruction", tensor.reshape(images.shape))
            continue
        if tensor.dim() == 2:
            single.append(tensor)
        if slim.dim() == 3:
            solid.append(tensor)
        elif slim.dim() == 2 and slim.requires_grad:  # a mask is no lengths
            flat.append(slim)
    # A drawing of another size has no side of so many classes; a flat one has more.
    sides = {side for x in solid for side in without_ones(x).shape[1:]}
    fitting = [x for x in flat if x.shape[1] in sides]
    flat = fitting or [x for x in flat if x.shape[1] <= max(sides, default=x.shape[1])]
    if flat:
        alike = [x for x in flat if x.shape == flat[0].shape]
        alike.sort(key=sums_to_one)  # shares are no lengths where lengths are there, too
        found["lengths"], *besides = alike
        solid = [x for x in solid if flat[0].shape[1] in without_ones(x).shape[1:]]
    elif len({without_ones(x).shape for x in solid}) > 1:
        shapes = " or ".join(str(list(x.shape)) for x in solid)
        raise ValueError(f"which of the tensors that it returns are the capsules, {shapes}?")
    if solid:
        found["raw"], found["capsules"] = solid[0], without_ones(solid[0])
        if "lengths" in found and found["capsules"].shape[1] != found["lengths"].shape[1]:
            found["capsules"] = found["capsules"].transpose(1, 2)
    if "capsules" not in found and {x.shape[1] for x in single} == {1}:
        found["lengths"] = single[-1]  # of one class, and not of dim classes
    capsules, lengths, drawn, raw = map(found.get, ("capsules", "lengths", "reconstruction", "raw"))
    out = Output(capsules, lengths, drawn, raw, tuple(besides))
    if out.capsules is None and out.lengths is None:
        got = [f"a tensor {list(each.shape)}" for each in several] or [type(returned).__name__]
        raise ValueError(
            "it returns neither capsules [n, classes, dim] nor lengths with a gradient, but "
            f"{', '.join(got)}"
        )
    return out


def checked(expected: str, value: Any, dims: int) -> Tensor:
    """What a stage of an adapter returns; one number counts as a scalar in any shape.

    Raises:
        ValueError: it is no tensor of so many dimensions.
    """
    if isinstance(value, Tensor) and (value.dim() == dims or (dims == 0 and value.numel() == 1)):
        return value
    got = list(value.shape) if isinstance(value, Tensor) else type(value).__name__
    raise ValueError(f"it must return {expected}, got {got}")


def of_each(given: Tensor, made: Tensor) -> Tensor:
    """What a stage of an adapter makes, where it is as many as it was given.

    Raises:
        ValueError: it is not.
    """
    if len(made) != len(given):
        shape = list(made.shape)
        raise ValueError(
            f"its first dimension must be the batch's, {len(given)}, got shape {shape}"
        )
    return made


def words_of(error: BaseException) -> str:
    """What a stranger's error says, in a line."""
    return "it calls sys.exit" if isinstance(error, SystemExit) else reason(error)


@contextlib.contextmanager
def watched(model: nn.Module, note: Callable[[str, tuple[Any, ...], Any], None]) -> Iterator[None]:
    """Meanwhile, note the name of each module that ends, what it was given, and what it returns."""

    def watch(name: str, module: nn.Module) -> RemovableHandle:
        return module.register_forward_hook(
            lambda module, given, named, out: note(name, (*given, *named.values()), out),
            with_kwargs=True,
        )

    hooks = [watch(*each) for each in model.named_modules()]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def stages_inside(net: Subject) -> Adapter:
    """How to reach the routing, if a module of the network's maps u to the class capsules.

    Its children must be others in number than the classes, or it may be a squash or a norm, and
    more than the numbers of each, or u may lie the other way round. It must have weights, or it may
    be a part of the routing alone.

    Raises:
        ValueError: there is none.
    """
    seen: list[tuple[str, tuple[Any, ...], Any]] = []
    with watched(net.lively, lambda *call: seen.append(call)):
        norms = net.output(net.lively).norms
    names = [name for name, _, _ in seen]
    for name, given, v in seen:  # the inner ones first
        tensors = [each for each in given if each is not None]
        if len(tensors) != 1 or not is_capsules(tensors[0]):
            continue
        _, children, dim = tensors[0].shape
        if children == net.classes or children <= dim:
            continue
        weights = [p for p in net.lively.get_submodule(name).parameters() if p.dim() > 1]
        if not weights or names.count(name) > 1 or not isinstance(v, Tensor):
            continue
        v = without_ones(v)
        if v.shape[:2] == norms.shape and is_capsules(v) and apart(v.norm(dim=2), norms) < EXACT:
            return within(net, name)
    raise ValueError("no module maps primary capsules to the classes'")


def is_capsules(tensor: Any) -> bool:
    return isinstance(tensor, Tensor) and tensor.dim() == 3 and tensor.is_floating_point()


def within(net: Subject, name: str) -> Adapter:
    """The stages of a network whose routing is one module.

    Raises:
        ValueError: it is not called just once for an answer, or is given no u.
    """

    def called(model: nn.Module, images: Tensor) -> tuple[tuple[Any, ...], dict[str, Any]]:
        with calls_of(model, name) as calls:
            net.output(model, images)
        if len(calls) > 1:
            raise ValueError(f"its {name} is called {len(calls)} times for one answer")
        return calls[0].given, calls[0].named

    # Children may stand in rows and columns, and how often to route may be given, too.
    (first, *rest), named = called(net.model, net.images)
    if not isinstance(first, Tensor) or first.dim() < 3:
        raise ValueError(f"{name} must be given u, [n, children, dim], first")
    places = first.shape[1:-1]

    def primary(model: nn.Module, images: Tensor) -> Tensor:
        (u, *_), _ = called(model, images)
        return cast(Tensor, u.flatten(1, -2))

    def digits(model: nn.Module, u: Tensor) -> Tensor:
        v: Tensor = model.get_submodule(name)(u.unflatten(1, places), *rest, **named)
        return v

    return replace(net.adapter, primary=primary, digits=digits, routing=None)


class Call(NamedTuple):
    """Of a module: what it is given, in a row and by name, and what it returns."""

    given: tuple[Any, ...]
    named: dict[str, Any]
    made: Any


@contextlib.contextmanager
def calls_of(model: nn.Module, name: str) -> Iterator[list[Call]]:
    """The calls of a module meanwhile.

    Raises:
        ValueError: there are none.
    """
    calls: list[Call] = []
    module = model.get_submodule(name)
    hook = module.register_forward_hook(
        lambda _, *call: calls.append(Call(*call)), with_kwargs=True
    )
    try:
        yield calls
    finally:
        hook.remove()
    if not calls:
        raise ValueError(f"its {name} is not called")


@torch.no_grad()
def grow(model: nn.Module, factor: float) -> None:
    """Scale all weights, but no biases."""
    for parameter in model.parameters():
        if parameter.dim() > 1:
            parameter.mul_(factor)


def tensors_in(value: Any) -> list[Tensor]:
    """Those of what a module takes or returns, in what order they stand."""
    if isinstance(value, Tensor):
        return [value]
    if is_dataclass(value):
        value = vars(value)
    if isinstance(value, str) or not isinstance(value, Iterable):
        return []
    each = value.values() if isinstance(value, dict) else value
    return [tensor for part in each for tensor in tensors_in(part)]


def without_ones(tensor: Tensor) -> Tensor:
    return tensor.reshape(len(tensor), *(side for side in tensor.shape[1:] if side > 1))


def sums_to_one(shares: Tensor) -> bool:
    """Do all rows?"""
    sums = shares.sum(dim=1)
    return apart(sums, torch.ones_like(sums)) < EXACT


def apart(one: Tensor, other: Tensor) -> float:
    """The largest difference, relative to the largest number."""
    one, other = one.detach().nan_to_num(), other.detach().nan_to_num()
    return float((one - other).abs().max() / other.abs().max().clamp(min=1e-300))


def depends_on(value: Tensor, model: nn.Module) -> list[nn.Parameter]:
    """The parameters that a value is made of.

    Raises:
        ValueError: it has no gradient.
    """
    if not value.requires_grad:
        raise ValueError(f"a tensor {list(value.shape)} has no gradient")
    parameters = list(model.parameters())
    gradients = torch.autograd.grad(value.sum(), parameters, retain_graph=True, allow_unused=True)
    return [p for p, g in zip(parameters, gradients, strict=True) if g is not None]


@torch.no_grad()
def scale_for(f: Map, x: Tensor, length: float) -> float:
    """The t for which f(t x) is of about such a mean length."""
    t = 1e-3
    for _ in range(30):
        size = float(f(t * x).norm(dim=2).nan_to_num().mean())
        if 0.9 < size / length < 1.1:
            break
        t *= min(max((length / max(size, 1e-300)) ** 0.5, 0.01), 100)
    return t
